package run

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"cadre/internal/run/teamfile"
	"cadre/internal/team"
)

// said lists the keys that a team file sets for the team, a member or a task, in order, with their
// values. It leaves out keys with their default.
type said []saidKey

type saidKey struct {
	key, value string
	shown      string // the value for people
}

// saidVersion is the first entry of all digests. Digests with another one are not compared.
const saidVersion = "v=1"

// add adds the key unless the value is its default.
func (s *said) add(key string, value any, defaults ...any) {
	text := ""
	switch v := value.(type) {
	case string:
		text = v
	case time.Duration:
		if v != 0 { // the value is recorded, so its form must not change
			*s = append(*s, saidKey{key, v.String(), team.Span(v)})
		}
		return
	case []string:
		if len(v) > 0 {
			*s = append(*s, saidKey{key, strings.Join(v, "\x00"), strings.Join(v, ", ")})
		}
		return
	default:
		data, err := json.Marshal(v)
		if text = string(data); err != nil || slices.Contains(none, text) {
			text = ""
		}
	}
	if text == "" || len(defaults) > 0 && text == defaults[0] {
		return
	}
	*s = append(*s, saidKey{key, text, text})
}

// none lists the JSON of values that count as left out.
var none = []string{"null", "[]", "{}", "0", "false", `""`}

// digests returns the list in the form that is recorded with the team.
func (s said) digests() []string {
	all := []string{saidVersion}
	for _, one := range s {
		sum := sha256.Sum256([]byte(one.value))
		all = append(all, one.key+"="+hex.EncodeToString(sum[:6]))
	}
	return all
}

// shown returns the value of the key, for people; "" for none.
func (s said) shown(key string) string {
	for _, one := range s {
		if one.key == key {
			return one.shown
		}
	}
	return ""
}

// changed returns the keys that differ between recorded digests and the present list.
func changed(recorded []string, now said) (keys []string) {
	before := map[string]string{}
	for _, one := range recorded {
		if at := strings.LastIndexByte(one, '='); at >= 0 {
			before[one[:at]] = one[at+1:]
		}
	}
	for _, one := range now.digests() {
		at := strings.LastIndexByte(one, '=')
		if before[one[:at]] != one[at+1:] {
			keys = append(keys, one[:at])
		}
		delete(before, one[:at])
	}
	return append(keys, slices.Sorted(maps.Keys(before))...)
}

// changedMember returns the keys of a member that differ between the team and the file. A team from
// before templates had digests has none to compare with.
func changedMember(m team.Member, f teamfile.Member, now, state said) []string {
	keys := changed(recorded(m.FileDigests, state), now)
	if n := m.Nested; n != nil && n.Digest == "" && n.Template == f.Nested.Template {
		keys = slices.DeleteFunc(keys, func(key string) bool { return key == "template" })
	}
	return keys
}

// recorded returns the digests that the team has of the file, or those of the state where the team
// was made before digests were recorded.
func recorded(digests []string, state said) []string {
	if len(digests) > 0 && digests[0] == saidVersion {
		return digests
	}
	return state.digests()
}

// TeamDigests returns the digests of what the file says of the team itself, as a new team keeps
// them.
func TeamDigests(f *teamfile.File) []string { return saidOfTeam(f).digests() }

// MemberDigests returns the digests of what the file says of a member.
func MemberDigests(m teamfile.Member) []string { return saidOfMember(m).digests() }

func saidOfTask(t teamfile.Task) (s said) {
	s.add("subject", t.Subject, t.ID)
	s.add("description", t.Description)
	s.add("run", t.Run)
	s.add("in", t.In)
	s.add("dir", t.Dir)
	s.env(t.Env)
	s.add("when", t.When)
	s.demands(t)
	if f := t.ForEach; f != nil {
		key := "forEach"
		if len(f.Matrix) > 0 {
			key = "matrix"
		}
		s.add(key, saidOfItems(f))
	}
	s.add("blockedBy", t.BlockedBy)
	s.add("paths", t.Paths)
	if v := t.Verify; v.By != "" {
		s.add("verify", fmt.Sprintf("%s, %d, %s, %d", v.By, v.Count, v.Rule, v.Rounds))
	}
	s.add("owner", t.Owner)
	s.add("role", t.Role)
	s.add("priority", t.Priority, team.DefaultPriority)
	s.add("timeout", t.Timeout)
	s.add("retries", t.Retries)
	for _, key := range slices.Sorted(maps.Keys(t.Metadata)) {
		s.add("metadata."+key, string(t.Metadata[key]))
	}
	return s
}

// env adds the variables of a task. People are not shown those with values of parameters, which are
// changes of their own.
func (s *said) env(all []string) {
	before := len(*s)
	if s.add("env", all); len(*s) > before {
		own := slices.DeleteFunc(slices.Clone(all), func(v string) bool {
			return strings.HasPrefix(v, team.ParameterVariable(""))
		})
		(*s)[before].shown = strings.Join(own, ", ")
	}
}

// saidOfItems says for which items a task makes tasks.
func saidOfItems(f *team.ForEach) string {
	var words []string
	add := func(name string, values []json.RawMessage) {
		var texts []string
		for _, v := range values {
			texts = append(texts, string(v))
		}
		words = append(words, name+"["+strings.Join(texts, ", ")+"]")
	}
	for _, a := range f.Matrix {
		add(a.Name+": ", a.Values)
	}
	switch {
	case len(f.Exclude) > 0:
		add("exclude: ", f.Exclude)
	case f.Glob != "":
		return "glob: " + f.Glob
	case f.Run != "":
		return "run: " + f.Run
	case len(f.Matrix) == 0:
		add("", f.Items)
	}
	return strings.Join(words, ", ")
}

func saidOfMember(m teamfile.Member) (s said) {
	s.add("agent", m.Agent)
	s.add("model", m.Model)
	s.add("role", m.Role)
	s.add("prompt", m.Prompt)
	s.add("command", m.Command)
	s.add("args", m.Args)
	s.add("env", m.Env)
	s.add("planApproval", m.PlanApproval)
	s.add("permissionMode", m.Mode)
	s.add("isolation", m.Isolation)
	s.add("runsOn", m.RunsOn)
	switch n, text := m.Nested, m.Nested.Digest[:min(len(m.Nested.Digest), 12)]; { // another text is another team
	case n.File != "" || n.Path != "":
		s.add("file", cmp.Or(n.Path, n.File)+" "+text)
	case n.Template != "":
		s.add("template", strings.TrimSpace(n.Template+" "+text))
	}
	s.add("set", wordsOf(m.Nested.Set))
	s.add("goal", m.Nested.Goal)
	s.add("leader", m.Nested.Lead)
	s.budget(m.Budget)
	return s
}

func (s *said) budget(b teamfile.Budget) {
	s.add("budget.tokens", b.Tokens)
	s.add("budget.usd", float64(b.CostMicroUSD)/1e6)
	s.add("budget.time", b.Time)
}

// saidOfTeam leaves out what is read from the file at each run: the report, and whether the run
// consolidates.
func saidOfTeam(f *teamfile.File) (s said) {
	s.add("goal", f.Goal)
	s.add("lead", f.Lead, team.DefaultLead)
	s.add("delegate", f.Delegate)
	var hooks, checks []string
	for _, h := range Hooks(f.Hooks) {
		hooks = append(hooks, timed(h.Event+": "+h.Command, h.Timeout))
	}
	for _, c := range f.Checks {
		text := c.Name
		if c.Run != c.Name {
			text += ": " + c.Run
		}
		checks = append(checks, timed(text, c.Timeout))
	}
	s.add("hooks", hooks)
	s.add("checks", checks)
	s.namedCommands(f.Commands)
	s.add("clean", f.Clean)
	s.add("withCheckChanges", f.CheckChanges)
	s.add("permissions.mode", f.Permissions.Mode, "default")
	s.add("permissions.allow", f.Permissions.Allow)
	s.add("permissions.policy", f.Permissions.Policy)
	s.add("permissions.timeout", f.Permissions.Timeout)
	s.add("handover", f.Handover)
	s.add("maxTeammates", f.MaxTeammates)
	s.add("maxParallel", f.MaxParallel)
	s.add("maxDepth", f.MaxDepth)
	s.add("remote", f.Remote)
	s.budget(f.Budget)
	s.add("liveness.beat", f.Liveness.Beat)
	s.add("liveness.offline", f.Liveness.Offline)
	s.add("liveness.leadLost", f.Liveness.LeadLost)
	s.add("liveness.zombie", f.Liveness.Zombie)
	s.add("liveness.blocked", f.Liveness.Blocked)
	s.add("liveness.undelivered", f.Liveness.Undelivered)
	s.add("liveness.stale", f.Liveness.Stale)
	s.add("liveness.checkpoint", f.Liveness.Checkpoint)
	for _, fact := range f.Facts {
		s.add("facts."+fact.Name, fact.Path)
	}
	return s
}

func timed(text string, timeout time.Duration) string {
	if timeout != 0 {
		text += " (" + timeout.String() + ")"
	}
	return text
}

// taskOfState returns the task as a team file would have it.
func taskOfState(s *team.State, t team.Task) teamfile.Task {
	f := teamfile.Task{ID: fileID(t), Subject: t.Subject, Description: t.Description, Run: t.Run, In: t.In, Dir: t.Dir,
		Env: t.Env, When: t.When, Paths: t.Paths, Metadata: maps.Clone(t.Metadata), Role: t.Role, Priority: t.Priority,
		Timeout: t.Timeout, Retries: int(t.Retries), ForEach: t.ForEach}
	delete(f.Metadata, team.FileIDKey)
	demandsOfState(&f, t)
	if v := t.Verify; v != nil {
		f.Verify = teamfile.Verify{By: v.By, Count: int(v.Count), Rule: v.Rule, Rounds: int(v.Rounds)}
	}
	if t.Assigned {
		f.Owner = t.Owner
	}
	for _, id := range t.BlockedBy {
		if b, ok := s.Task(id); ok && b.Of != t.ID {
			f.BlockedBy = append(f.BlockedBy, fileID(b))
		}
	}
	return f
}

// memberOfState returns the member as a team file would have it.
func memberOfState(m, lead team.Member) teamfile.Member {
	f := teamfile.Member{Name: m.Name, Agent: m.Agent, Role: m.Role, Prompt: m.Prompt, Model: m.Model,
		Command: m.Program, Args: m.Args, Env: m.Env, PlanApproval: m.Plan.Required, Isolation: m.Isolation,
		RunsOn: m.RunsOn, Budget: teamfile.Budget(m.Budget)}
	if n := m.Nested; n != nil {
		f.Nested = teamfile.Nested{Path: n.File, Digest: n.Digest, Template: n.Template, Goal: n.Goal, Lead: n.Leader}
		f.Nested.Set, _ = teamfile.ParseSettings(n.Set) // it was made from settings
	}
	if m.PermissionMode != lead.PermissionMode {
		f.Mode = m.PermissionMode
	}
	if m.Name == lead.Name {
		if f.Name = ""; f.Agent == team.External {
			f.Agent = ""
		}
		if f.Role == "lead" {
			f.Role = ""
		}
	}
	return f
}

// teamOfState returns the team as a team file would have it.
func teamOfState(t team.Team, lead team.Member) (s said) {
	f := &teamfile.File{Goal: t.Goal, Lead: t.Lead, Delegate: t.Delegate, Clean: t.Clean, CheckChanges: t.Changes,
		Permissions: teamfile.Permissions{Mode: lead.PermissionMode, Allow: t.Permissions.Allow,
			Policy: t.Permissions.Policy, Timeout: t.Permissions.Timeout},
		Handover: int(t.HandoverAt), MaxTeammates: int(t.MaxTeammates), MaxParallel: int(t.MaxParallel),
		MaxDepth: int(t.MaxDepth), Remote: t.Remote, Budget: teamfile.Budget(t.Budget), Liveness: teamfile.Liveness(t.Timing)}
	for _, fact := range t.Facts {
		f.Facts = append(f.Facts, teamfile.Fact{Name: fact.Name, Path: fact.Path})
	}
	f.Hooks = teamfile.Hooks{}
	for _, h := range t.Hooks {
		f.Hooks[h.Event] = append(f.Hooks[h.Event], teamfile.HookGroup{
			Hooks: []teamfile.HookCommand{{Command: h.Command, Timeout: h.Timeout}}})
	}
	for _, c := range t.Checks {
		f.Checks = append(f.Checks, teamfile.Check{Name: c.Name, Run: c.Command, Timeout: c.Timeout})
	}
	for _, c := range t.Commands {
		f.Commands = append(f.Commands, teamfile.Command(c))
	}
	return saidOfTeam(f)
}
