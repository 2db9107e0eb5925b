package teamfile

import (
	"fmt"
	"math"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"

	"cadre/internal/pattern"
)

var (
	nameForm = pattern.Lazy(`^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$`)
	idForm   = pattern.Lazy(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$`)
)

// parser turns the nodes of one file into a File. It goes on after an error, so that one run finds them all; what it makes
// of a broken part is never seen, as a file with errors is not returned.
type parser struct {
	*source
	agents []Agent

	members []memberNode
	tasks   []taskNode
}

// memberNode is a member as written: one entry of the file, however large its count.
type memberNode struct {
	*mapping
	name    string
	members []Member // what it is spelled out to
}

// taskNode is a task and where its parts stand in the file.
type taskNode struct {
	*mapping
	Task
	blockers []*yaml.Node // of BlockedBy
}

func (p *parser) file(root *yaml.Node) *File {
	m := p.mapping(root, "a team file", "name", "goal", "lead", "defaults", "members", "tasks", "hooks", "budget", "report")
	f := &File{Name: m.text("name"), Goal: m.text("goal"), Lead: m.text("lead")}
	p.form(m, "name", "the team", f.Name, nameForm())
	if f.Lead == "" {
		f.Lead = DefaultLead
	} else {
		p.form(m, "lead", "the lead", f.Lead, nameForm())
	}
	member, task := p.defaults(m)
	p.readMembers(m, member)
	p.readTasks(m, task)
	f.Hooks = p.hooks(m)
	f.Budget = p.budget(m)
	f.Report = p.report(m)

	p.checkNames(f.Lead)
	p.checkTasks()
	p.checkCycles()
	for _, n := range p.members {
		f.Members = append(f.Members, n.members...)
	}
	for _, n := range p.tasks {
		f.Tasks = append(f.Tasks, n.Task)
	}
	if f.Report.Sections == nil {
		for _, t := range f.Tasks {
			f.Report.Sections = append(f.Report.Sections, t.ID)
		}
	}
	return f
}

// form records an error if a required name does not have its form.
func (p *parser) form(m *mapping, key, of, value string, form *regexp.Regexp) {
	switch {
	case value == "" && m.values[key] == nil:
		p.fail(m.node, "%s has no %s; add %s: with %s", of, key, key, inWords(form))
	case !form.MatchString(value) && key == "lead":
		p.fail(m.at(key), "%q cannot be the lead's name; use %s", shorten(value), inWords(form))
	case !form.MatchString(value):
		p.fail(m.at(key), "%q cannot be the %s of %s; use %s", shorten(value), key, of, inWords(form))
	}
}

func inWords(form *regexp.Regexp) string {
	if form == idForm() {
		return "letters, digits, _ . and -, at most 64, the first a letter or digit"
	}
	return "letters, digits, _ and -, at most 64, the first a letter or digit"
}

// shorten keeps a quoted value from filling the screen.
func shorten(s string) string {
	if r := []rune(s); len(r) > 80 {
		return string(r[:80]) + "…"
	}
	return s
}

// defaults reads what members and tasks start from.
func (p *parser) defaults(root *mapping) (Member, Task) {
	member, task := Member{}, Task{Priority: "medium"}
	if len(p.agents) > 0 {
		member.Agent = p.agents[0].Name
	}
	n := root.values["defaults"]
	if n == nil {
		return member, task
	}
	if m := p.mapping(n, "defaults", "agent", "prompt", "priority", "timeout", "retries"); m != nil {
		member.Agent = m.oneOf("agent", member.Agent, p.agentNames())
		member.Prompt = m.text("prompt")
		p.workSettings(m, &task)
	}
	return member, task
}

// workSettings reads what defaults and tasks have in common.
func (p *parser) workSettings(m *mapping, task *Task) {
	task.Priority = m.oneOf("priority", task.Priority, priorities)
	task.Timeout = m.duration("timeout", task.Timeout)
	task.Retries = int(m.integer("retries", int64(task.Retries), 0, MaxRetries))
}

func (p *parser) agentNames() []string {
	names := make([]string, len(p.agents))
	for i, a := range p.agents {
		names[i] = a.Name
	}
	return names
}

func (p *parser) readMembers(root *mapping, start Member) {
	nodes := root.list("members", "members")
	if root.isEmpty("members") {
		p.fail(root.at("members"), "the team has no members; add at least one under members:, such as - name: worker")
	}
	total := 0
	for _, n := range nodes {
		m := p.mapping(n, "a member", "name", "agent", "role", "prompt", "count")
		if m == nil {
			continue
		}
		node := memberNode{mapping: m, name: m.text("name")}
		p.form(m, "name", "a member", node.name, nameForm())
		member := start
		member.Name, member.Role = node.name, m.line("role")
		member.Agent = m.oneOf("agent", start.Agent, p.agentNames())
		if prompt := m.text("prompt"); prompt != "" {
			member.Prompt = prompt
		}
		count := int(m.integer("count", 1, 1, MaxMembers))
		if total += count; total > MaxMembers {
			p.fail(m.at("count"), "with this the team has %d members; a team has at most %d", total, MaxMembers)
			return
		}
		if m.text("count") == "" {
			node.members = []Member{member}
		} else {
			for i := range count {
				member.Name = fmt.Sprintf("%s-%d", node.name, i+1)
				node.members = append(node.members, member)
			}
			if len(member.Name) > 64 {
				p.fail(m.at("name"), "with its number the name %q has more than 64 characters; shorten it", shorten(node.name))
			}
		}
		p.members = append(p.members, node)
	}
}

func (p *parser) readTasks(root *mapping, start Task) {
	nodes := root.list("tasks", "tasks")
	if root.isEmpty("tasks") {
		p.fail(root.at("tasks"), "the team has no tasks; add at least one under tasks:, such as - {id: hello, run: echo hello}")
	}
	if len(nodes) > MaxTasks {
		p.fail(nodes[MaxTasks], "the file has %d tasks; a team has at most %d", len(nodes), MaxTasks)
		nodes = nodes[:MaxTasks]
	}
	for _, n := range nodes {
		m := p.mapping(n, "a task", "id", "subject", "description", "run", "blockedBy", "owner", "role", "priority", "timeout", "retries")
		if m == nil {
			continue
		}
		node := taskNode{mapping: m, Task: start}
		t := &node.Task
		t.ID, t.Subject, t.Description, t.Run = m.text("id"), m.line("subject"), m.text("description"), m.text("run")
		p.form(m, "id", "a task", t.ID, idForm())
		if strings.TrimSpace(t.Subject) == "" {
			t.Subject = t.ID
		}
		if strings.TrimSpace(t.Run) == "" {
			t.Run = ""
		}
		t.BlockedBy, node.blockers = m.texts("blockedBy", "task ids")
		t.Owner, t.Role = m.text("owner"), m.line("role")
		p.workSettings(m, t)
		p.tasks = append(p.tasks, node)
	}
}

func (p *parser) hooks(root *mapping) Hooks {
	n := root.values["hooks"]
	if n == nil {
		return nil
	}
	m := p.mapping(n, "hooks", hookEvents...)
	if m == nil {
		return nil
	}
	hooks := Hooks{}
	for _, event := range hookEvents {
		for _, n := range m.list(event, "mappings with hooks:") {
			g := p.mapping(n, "an entry of "+event, "matcher", "hooks")
			if g == nil {
				continue
			}
			group := HookGroup{Matcher: g.text("matcher")}
			for _, n := range g.list("hooks", "commands") {
				if c := p.mapping(n, "a hook", "type", "command", "timeout"); c != nil {
					group.Hooks = append(group.Hooks, p.hookCommand(c))
				}
			}
			if g.isEmpty("hooks") {
				p.fail(g.at("hooks"), "this entry of %s runs nothing; add hooks: [{type: command, command: ...}]", event)
			}
			hooks[event] = append(hooks[event], group)
		}
	}
	return hooks
}

func (p *parser) hookCommand(m *mapping) HookCommand {
	m.oneOf("type", "command", []string{"command"})
	command := m.text("command")
	if strings.TrimSpace(command) == "" {
		p.fail(m.at("command"), "the hook has no command; add command: with what to run")
	}
	// Seconds without a unit, as in settings.json.
	text := m.text("timeout")
	seconds, err := strconv.ParseFloat(text, 64)
	if text != "" && (err != nil || !(seconds > 0 && seconds <= 86_400)) {
		p.fail(m.at("timeout"), "the timeout of a hook is a number of seconds from above 0 to 86400, not %q", shorten(text))
		seconds = 0
	}
	return HookCommand{Command: command, Timeout: time.Duration(seconds * float64(time.Second))}
}

func (p *parser) budget(root *mapping) Budget {
	n := root.values["budget"]
	if n == nil {
		return Budget{}
	}
	m := p.mapping(n, "budget", "tokens", "usd", "time")
	if m == nil {
		return Budget{}
	}
	b := Budget{Tokens: m.integer("tokens", 0, 1, math.MaxInt64), Time: m.duration("time", 0)}
	if text := m.text("usd"); text != "" {
		usd, err := strconv.ParseFloat(text, 64)
		if err != nil || !(usd > 0 && usd <= 1e9) {
			p.fail(m.at("usd"), "usd is an amount above zero such as 2.50, not %q", shorten(text))
		}
		b.USD = usd
	}
	return b
}

func (p *parser) report(root *mapping) Report {
	n := root.values["report"]
	if n == nil {
		return Report{}
	}
	m := p.mapping(n, "report", "file", "title", "sections")
	if m == nil {
		return Report{}
	}
	r := Report{File: m.line("file"), Title: m.line("title")}
	// A team file may come from anybody; its report stays in the directory that its user named.
	if r.File != "" && !filepath.IsLocal(r.File) {
		p.fail(m.at("file"), "the report's file %q is outside of the team's directory; use a path below it, or --report on the command line", shorten(r.File))
	}
	ids, state := make([]string, len(p.tasks)), map[string]string{}
	for i, t := range p.tasks {
		ids[i], state[t.ID] = t.ID, "unlisted"
	}
	sections, nodes := m.texts("sections", "task ids")
	for i, id := range sections {
		switch state[id] {
		case "":
			p.fail(nodes[i], "section %q is not the id of a task%s", shorten(id), p.didYouMean(id, ids))
		case "listed":
			p.fail(nodes[i], "section %q is listed twice; keep one of them", id)
		default:
			state[id] = "listed"
			r.Sections = append(r.Sections, id)
		}
	}
	return r
}
