package teamfile

import (
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"

	"cadre/internal/render/excerpt"
	"cadre/internal/sys/lazyregexp"
	"cadre/internal/team"
)

var (
	nameForm = lazyregexp.New(`^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$`)
	idForm   = lazyregexp.New(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$`)
)

// parser turns the nodes of one file into a File. It continues after an error, so that one run
// finds all errors. A file with errors is not returned, so the values of broken parts do not
// matter.
type parser struct {
	*source
	agents   []Agent
	remote   string // of the file; "" for none
	maxDepth int    // how deep teams may be nested in the team
	led      bool   // an agent leads, which can add tasks and members to those of the file
	leader   Member
	lead     string // the lead's name

	added    bool // the tasks are for an existing team
	named    []Command
	params   []parameter
	sample   bool     // a parameter without a value gets an example of its type
	unknown  []string // parameters that get an example, although they will be set
	template bool     // the file is a template
	inner    *Inside  // the member whose team the file is for; nil for a team by itself
	grown    int      // bytes that values of parameters added to the texts
	members  []memberNode
	tasks    []taskNode

	variables []string // the values of the parameters, for the commands of tasks
}

// memberNode is a member as written: one entry of the file, whatever its count.
type memberNode struct {
	*mapping
	name    string
	members []Member // the members that it stands for
}

// taskNode is a task, and where its parts are in the file.
type taskNode struct {
	*mapping
	Task
	blockers []*yaml.Node // of BlockedBy
	verify   *mapping     // nil where nobody verifies it
}

func (p *parser) file(root *yaml.Node) *File {
	m := p.mapping(root, "a team file", "name", "goal", "lead", "defaults", "members", "tasks", "hooks", "checks",
		"commands", "clean", "withCheckChanges", "consolidate", "budget", "report", "permissions", "handover",
		"maxTeammates", "maxParallel", "maxDepth", "remote",
		"delegate", "liveness", "facts", "metadata", "parameters")
	f := &File{Name: m.text("name"), Goal: m.text("goal"), Delegate: m.yes("delegate"),
		Handover: int(m.integer("handover", 0, 1, 100)), MaxTeammates: int(m.integer("maxTeammates", 0, 1, MaxMembers)),
		MaxParallel: int(m.integer("maxParallel", 0, 1, MaxMembers)),
		MaxDepth:    int(m.integer("maxDepth", 0, 0, team.MostDepth)), Remote: m.line("remote")}
	p.remote = f.Remote
	p.maxDepth = f.MaxDepth
	p.form(m, "name", "the team", f.Name, nameForm())
	p.readLead(m, f)
	p.lead = f.Lead
	if f.Delegate && p.boundless(f.Leader.Agent) {
		p.fail(m.at("delegate"), "nothing keeps %s from doing the work itself in delegate mode; leave delegate out, "+
			"or let another agent lead", shorten(f.Leader.Agent))
	}
	f.Permissions = p.permissions(m)
	f.Commands = p.commands(m)
	p.named = f.Commands
	member, task := p.defaults(m)
	p.readMembers(m, member)
	p.readTasks(m, task)
	f.Hooks = p.hooks(m)
	f.Checks, f.Consolidate = p.checks(m), m.yes("consolidate")
	f.Clean, f.CheckChanges = m.yes("clean"), m.yes("withCheckChanges")
	f.Budget = p.budget(m)
	f.Report = p.report(m)
	f.Liveness = p.liveness(m)
	f.Facts, f.Metadata = p.facts(m), p.metadata(m)

	p.checkNames(f.Lead)
	p.checkInner(m, f)
	if p.led && f.Goal == "" && f.Leader.Prompt == "" && len(p.tasks) == 0 {
		p.fail(m.node, "the lead has no goal; add goal: with what the team is for")
	}
	p.checkTasks()
	p.checkCycles()
	p.collect(f)
	if f.MaxTeammates > 0 && len(f.Members) > f.MaxTeammates {
		p.fail(m.at("maxTeammates"), "the file has %d members, and maxTeammates allows %d; raise it, or leave "+
			"members out", len(f.Members), f.MaxTeammates)
	}
	return f
}

// collect puts what was read into the file, in its order.
func (p *parser) collect(f *File) {
	for _, n := range p.members {
		f.Members = append(f.Members, n.members...)
	}
	for _, n := range p.tasks {
		t := n.Task
		if t.Run != "" || t.Check != "" || t.ForEach != nil && t.ForEach.Run != "" {
			t.Env = append(slices.Clone(p.variables), t.Env...)
		}
		f.Tasks = append(f.Tasks, t)
	}
	for _, a := range p.params {
		f.Parameters = append(f.Parameters, a.Parameter)
	}
	if f.Report.Sections == nil {
		for _, t := range f.Tasks {
			f.Report.Sections = append(f.Report.Sections, t.ID)
		}
	}
}

// form records an error if a required name is malformed.
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

// shorten shortens a quoted value, which could fill the screen.
func shorten(s string) string {
	return excerpt.Characters(s, 81)
}

// defaults reads the defaults of members and tasks.
func (p *parser) defaults(root *mapping) (Member, Task) {
	member, task := Member{}, Task{Priority: "medium"}
	if len(p.agents) > 0 {
		member.Agent = p.agents[0].Name
	}
	n := root.values["defaults"]
	if n == nil {
		return member, task
	}
	if m := p.mapping(n, "defaults", "agent", "model", "prompt", "priority", "timeout", "retries"); m != nil {
		member.Agent = p.agent(m, member.Agent)
		member.Model = m.line("model")
		member.Prompt = m.text("prompt")
		p.workSettings(m, &task)
	}
	return member, task
}

// workSettings reads the keys that defaults and tasks have in common.
func (p *parser) workSettings(m *mapping, task *Task) {
	task.Priority = m.oneOf("priority", task.Priority, priorities)
	task.Timeout = m.duration("timeout", task.Timeout)
	task.Retries = int(m.integer("retries", int64(task.Retries), 0, MaxRetries))
}

// agentNames returns the agents as they are written in a team file: acp:COMMAND for acp: and a
// command.
func (p *parser) agentNames() []string {
	names := make([]string, len(p.agents))
	for i, a := range p.agents {
		names[i] = a.Name
		if strings.HasSuffix(a.Name, ":") {
			names[i] += "COMMAND"
		}
	}
	return names
}

// readLead reads the lead: a name, or an agent.
func (p *parser) readLead(root *mapping, f *File) {
	f.Lead = DefaultLead
	n := root.values["lead"]
	if n == nil || n.Kind != yaml.MappingNode {
		if name := root.text("lead"); name != "" {
			f.Lead = name
			p.form(root, "lead", "the lead", f.Lead, nameForm())
		}
		return
	}
	m := p.mapping(n, "the lead", append([]string{"role"}, agentKeys...)...)
	f.Leader = p.agentSettings(m, Member{Role: m.line("role")})
	if name := m.text("name"); name != "" {
		f.Lead = name
		p.form(m, "name", "the lead", name, nameForm())
	}
	f.Leader.Name = f.Lead
	switch {
	case f.Leader.Agent == "":
		p.fail(n, "the lead is a mapping without agent:; say which agent leads, or write lead: NAME where a person "+
			"or a program does")
	case p.commandsOnly(f.Leader.Agent) || p.kind(f.Leader.Agent).FollowsOnly || f.Leader.Agent == "external":
		p.fail(m.at("agent"), "%s cannot lead by itself; a lead needs an agent with a model, or write lead: NAME "+
			"where a person or a program leads", f.Leader.Agent)
	default:
		p.led, p.leader = true, f.Leader
	}
}

// agentKeys are the keys of a member that say how its agent runs.
var agentKeys = []string{"name", "agent", "model", "prompt", "command", "args", "env"}

// agentSettings reads those keys, except for the name.
func (p *parser) agentSettings(m *mapping, start Member) Member {
	start.Agent = p.agent(m, start.Agent)
	if prompt := m.text("prompt"); prompt != "" {
		start.Prompt = prompt
	}
	if model := m.line("model"); model != "" {
		start.Model = model
	}
	start.Command = m.line("command")
	start.Args, _ = m.texts("args", "arguments")
	start.Env = p.env(m)
	return start
}

// agent reads the key agent, which must be a known agent.
func (p *parser) agent(m *mapping, fallback string) string {
	text := m.text("agent")
	for _, a := range p.agents {
		if !strings.HasSuffix(a.Name, ":") || !strings.HasPrefix(text, a.Name) {
			continue
		}
		if p.filled[meant(m.at("agent"))] != "" {
			p.fail(m.at("agent"), "an agent with a command cannot come from a parameter; write %q in the file",
				"agent: "+shorten(text))
		}
		if strings.TrimSpace(text[len(a.Name):]) == "" {
			p.fail(m.at("agent"), "agent %q needs a command behind it, such as %q", text, a.Name+"my-agent --acp")
		}
		return text
	}
	return m.oneOf("agent", fallback, p.agentNames())
}

// env reads the key env as variables, in the order of the file.
func (p *parser) env(m *mapping) []string {
	n := m.values["env"]
	if n == nil || n.Tag == "!!null" {
		return nil
	}
	if n.Kind != yaml.MappingNode {
		p.fail(n, "env is a mapping of names to values, but this is %s", kind(n))
		return nil
	}
	var all []string
	for i := 0; i+1 < len(n.Content); i += 2 {
		name, ok := p.scalar(n.Content[i], "a name in env")
		if !ok || name == "" || strings.ContainsAny(name, "= ") {
			p.fail(n.Content[i], "%q cannot be the name of a variable", shorten(name))
			continue
		}
		value, _ := p.scalar(n.Content[i+1], "a value in env")
		all = append(all, name+"="+value)
	}
	return all
}

func (p *parser) permissions(root *mapping) Permissions {
	n := root.values["permissions"]
	if n == nil {
		return Permissions{}
	}
	m := p.mapping(n, "permissions", "mode", "allow", "policy", "timeout")
	if m == nil {
		return Permissions{}
	}
	allow, _ := m.texts("allow", "rules")
	return Permissions{Mode: m.oneOf("mode", "", permissionModes), Allow: allow,
		Policy: m.oneOf("policy", "", policies), Timeout: m.duration("timeout", 0)}
}

func (p *parser) readMembers(root *mapping, start Member) {
	nodes := root.list("members", "members")
	if root.isEmpty("members") && !p.led {
		p.fail(root.at("members"), "the team has no members; add at least one under members:, such as - name: worker")
	}
	total := 0
	for _, n := range nodes {
		m := p.mapping(n, "a member", append([]string{"role", "count", "planApproval", "permissionMode",
			"isolation", "runsOn", "budget", "file", "template", "goal", "lead", "set"}, agentKeys...)...)
		if m == nil {
			continue
		}
		node := memberNode{mapping: m, name: m.text("name")}
		p.form(m, "name", "a member", node.name, nameForm())
		member := p.agentSettings(m, start)
		member.Name, member.Role = node.name, m.line("role")
		member.PlanApproval, member.Isolation = m.yes("planApproval"), m.oneOf("isolation", "", []string{"worktree"})
		member.RunsOn = p.runsOn(m, member)
		member.Mode = m.oneOf("permissionMode", "", permissionModes)
		member.Budget = p.budget(m)
		member.Nested = p.nested(m, member)
		if member.PlanApproval && p.commandsOnly(member.Agent) {
			p.fail(m.at("planApproval"), "%s only runs commands and submits no plan; leave planApproval out, or take "+
				"another agent", member.Agent)
		}
		if member.PlanApproval && p.boundless(member.Agent) {
			p.fail(m.at("planApproval"), "nothing keeps %s from writing before its plan is approved; leave "+
				"planApproval out, or take another agent", shorten(member.Agent))
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
				p.fail(m.at("name"), "with its number the name %q has more than 64 characters; shorten it",
					shorten(node.name))
			}
		}
		p.members = append(p.members, node)
	}
}

func (p *parser) readTasks(root *mapping, start Task) {
	nodes := root.list("tasks", "tasks")
	if root.isEmpty("tasks") && !p.led {
		p.fail(root.at("tasks"), "the team has no tasks; add at least one under tasks:, such as - {id: hello, run: "+
			"echo hello}")
	}
	if len(nodes) > MaxTasks {
		p.fail(nodes[MaxTasks], "the file has %d tasks; a team has at most %d", len(nodes), MaxTasks)
		nodes = nodes[:MaxTasks]
	}
	p.eachTask(nodes, start)
}

func (p *parser) eachTask(nodes []*yaml.Node, start Task) {
	for _, n := range nodes {
		m := p.mapping(n, "a task", append([]string{"id", "subject", "description", "run", "in", "dir", "env", "when",
			"blockedBy", "paths", "verify", "owner", "role", "priority", "timeout", "retries", "metadata", "forEach",
			"matrix"}, demandKeys...)...)
		if m == nil {
			continue
		}
		node := taskNode{mapping: m, Task: start}
		t := &node.Task
		t.ID, t.Subject, t.Description, t.Run = m.text("id"), m.line("subject"), m.text("description"), m.text("run")
		if !p.added || m.values["id"] != nil {
			p.form(m, "id", "a task", t.ID, idForm())
		} else if m.isBlank("subject") {
			p.fail(m.node, "the task has neither an id nor a subject; add subject: with what it is about")
		}
		if strings.TrimSpace(t.Subject) == "" {
			t.Subject = t.ID
		}
		if strings.TrimSpace(t.Run) == "" {
			t.Run = ""
		}
		t.In, t.When = m.oneOf("in", "", []string{inMerged}), m.oneOf("when", "", team.Whens)
		p.demands(m, t)
		t.Dir, t.Env, t.Metadata = p.taskDir(m), p.env(m), p.metadata(m)
		t.ForEach = p.forEach(m, t.ID)
		if t.ForEach != nil && t.When != "" {
			p.fail(m.at("when"), "task %q has when: and makes tasks for items, which it does when the tasks in blockedBy "+
				"are completed; leave when out", shorten(t.ID))
		}
		for _, key := range []string{"dir", "env", "timeout"} {
			if t.Run != "" || t.Check != "" || t.ForEach != nil && t.ForEach.Run != "" || !m.isBlank("run") ||
				m.values[key] == nil || m.isEmpty(key) {
				continue
			}
			or := ""
			if key == "timeout" {
				or = "limit the team with budget: {time: 2h}, "
			}
			p.fail(m.at(key), "task %q has %s: and no run, and only commands have one; add run: with a command, %sor "+
				"leave it out", shorten(t.ID), key, or)
		}
		t.BlockedBy, node.blockers = m.texts("blockedBy", "task ids")
		if t.When == team.OnSuccess {
			t.When = ""
		}
		if t.When == team.OnFailure && len(t.BlockedBy) == 0 {
			p.fail(m.at("when"), "task %q runs when a task that it depends on has failed, and depends on none; add "+
				"blockedBy:", shorten(t.ID))
		}
		t.Paths = p.paths(m)
		t.Owner, t.Role = m.text("owner"), m.line("role")
		t.Verify, node.verify = p.verify(m)
		p.workSettings(m, t)
		p.tasks = append(p.tasks, node)
	}
}

// metadata reads the values that a program keeps with a team or a task, which may be any JSON.
func (p *parser) metadata(m *mapping) map[string]json.RawMessage {
	n := m.values["metadata"]
	if n == nil || n.Tag == "!!null" {
		return nil
	}
	if n.Kind != yaml.MappingNode {
		p.fail(n, "metadata is a mapping of names to values, but this is %s", kind(n))
		return nil
	}
	all := map[string]json.RawMessage{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, ok := p.scalar(n.Content[i], "a name in metadata")
		if !ok {
			continue
		}
		if _, twice := all[key]; twice {
			p.fail(n.Content[i], "the name %q is here a second time; keep one of them", shorten(key))
		}
		if value, ok := p.json(n.Content[i+1]); ok {
			all[key] = value
		}
	}
	return all
}

// json converts a value to JSON.
func (p *parser) json(n *yaml.Node) (json.RawMessage, bool) {
	if aliased(n) {
		p.fail(n, "a value in metadata has an alias; write it out")
		return nil, false
	}
	var v any
	if err := n.Decode(&v); err != nil {
		p.fail(n, "this value cannot be kept: %v", err)
		return nil, false
	}
	data, err := json.Marshal(v)
	if err != nil || len(data) > MaxText {
		p.fail(n, "this value cannot be kept as JSON; write a text in quotes")
		return nil, false
	}
	return data, true
}

// aliased reports whether a value contains an alias: a few aliases can expand to gigabytes.
func aliased(n *yaml.Node) bool {
	return n.Kind == yaml.AliasNode || slices.ContainsFunc(n.Content, aliased)
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
				p.fail(g.at("hooks"), "this entry of %s runs nothing; add hooks: [{type: command, command: ...}]",
					event)
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
	// A number without a unit is in seconds, as in settings.json.
	text := m.text("timeout")
	seconds, err := strconv.ParseFloat(text, 64)
	if text != "" && (err != nil || !(seconds > 0 && seconds <= 86_400)) {
		p.fail(m.at("timeout"), "the timeout of a hook is a number of seconds from above 0 to 86400, not %q",
			shorten(text))
		seconds = 0
	}
	return HookCommand{Command: command, Timeout: time.Duration(seconds * float64(time.Second))}
}

// checks reads each check: a command, or a mapping.
func (p *parser) checks(root *mapping) []Check {
	var all []Check
	lines := map[string]int{}
	nodes := root.list("checks", "commands")
	if len(nodes) > MaxChecks {
		p.fail(nodes[MaxChecks], "the file has %d checks; a team has at most %d", len(nodes), MaxChecks)
		nodes = nodes[:MaxChecks]
	}
	for _, n := range nodes {
		c, at := Check{}, n
		if n.Kind == yaml.MappingNode {
			m := p.mapping(n, "a check", "name", "run", "timeout")
			c = Check{Name: m.line("name"), Run: m.text("run"), Timeout: m.duration("timeout", 0)}
			if m.isBlank("run") {
				p.fail(m.at("run"), "the check has no run; add run: with a command")
			}
			if m.values["name"] != nil {
				at = m.at("name")
			}
		} else if text, ok := p.scalar(n, "a check"); !ok {
			continue
		} else if c.Run = text; strings.TrimSpace(text) == "" {
			p.fail(n, "the check is empty; write a command")
		}
		if strings.TrimSpace(c.Name) == "" {
			c.Name = shorten(strings.Join(strings.Fields(c.Run), " "))
		}
		if line, twice := lines[c.Name]; twice {
			p.fail(at, "a check %q is already on line %d; give this one another name", shorten(c.Name), line)
		}
		lines[c.Name] = at.Line
		all = append(all, c)
	}
	return all
}

// budget reads the budget of the team or of a member.
func (p *parser) budget(of *mapping) Budget {
	n := of.values["budget"]
	if n == nil {
		return Budget{}
	}
	m := p.mapping(n, "budget", "tokens", "usd", "time")
	if m == nil {
		return Budget{}
	}
	b := Budget{Tokens: m.integer("tokens", 0, 1, math.MaxInt64), Time: m.duration("time", 0)}
	if text := m.text("usd"); text != "" {
		micro, err := team.ParseDollars(text)
		switch {
		case err != nil:
			p.fail(m.at("usd"), "usd %v", err)
		case micro == 0:
			p.fail(m.at("usd"), "usd is an amount above zero such as 2.50; leave it out for any amount")
		}
		b.CostMicroUSD = micro
	}
	return b
}
