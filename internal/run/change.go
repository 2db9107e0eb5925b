package run

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"cadre/internal/host"
	"cadre/internal/run/teamfile"
	"cadre/internal/team"
)

// The effects of a changed part of a team file.
const (
	ChangeAdd    = "add"    // a task is added, a member is spawned
	ChangeUpdate = "change" // the named keys get their new values
	ChangeRemove = "remove" // a task is deleted, a member is asked to end
	ChangeKeep   = "keep"   // a task stays as it is, for the reason Why
	ChangeRedo   = "redo"   // a completed task is done again
	ChangeRefuse = "refuse" // it cannot be changed now
)

// Change is one difference between a team file and the unfinished team that was made from it.
type Change struct {
	What string      `json:"what"`           // team, parameter, member or task
	Name string      `json:"name"`           // name of the team, parameter, member or task
	Does string      `json:"does"`           // what happens to it: add, change, remove, keep, redo or refuse
	Keys []KeyChange `json:"keys,omitempty"` // the keys that changed
	// why it is refused or kept, what its redo leaves as it is, or that it failed before or was
	// skipped
	Why string `json:"why,omitempty"`

	hints  []team.Hint
	agreed bool // the person asked for it, or the file said so when it was applied
}

// Skipped reports whether it is a task that never ran, and is to run if it still can.
func (c Change) Skipped() bool { return c.Why == wasSkipped }

// KeyChange is a key of the file that changed.
type KeyChange struct {
	Key  string `json:"key"`            // name of the key
	From string `json:"from,omitempty"` // its value in the team; "" for the default
	To   string `json:"to,omitempty"`   // its value in the file; "" for the default
}

// Changes are the differences between a team file and the team, in the order in which they are
// applied.
type Changes struct {
	Team string
	Path string // of the team file
	All  []Change

	commands []team.Body
}

// Asks reports whether a person must agree before the changes are applied. A change that the person
// asked for by name needs no second answer.
func (c Changes) Asks() bool {
	return slices.ContainsFunc(c.All, func(one Change) bool {
		return !one.agreed && (one.Does != ChangeRedo || len(one.Keys) > 0)
	})
}

// Refused returns why the changes cannot be applied now; nil where they can.
func (c Changes) Refused() error {
	var why []string
	var hints []team.Hint
	for _, one := range c.All {
		if one.Does == ChangeRefuse {
			why = append(why, one.Why)
			hints = append(hints, one.hints...)
		}
	}
	if len(why) == 0 {
		return nil
	}
	return team.Refuse(team.NotReady, "the changes of %s cannot be applied to team %s: %s", c.Path, c.Team,
		strings.Join(why, "; ")).With(hints...)
}

// Compare returns what is different between the team file and the team that was made from an
// earlier version of it, and what becomes of each difference. facts are the file's facts as they
// are now. hosted says whether a process runs the team's sessions. redo names completed tasks to do
// again.
//
// Only changes of the file count: a key that has not changed in the file is left alone, even if its
// value in the team was changed by hand.
func Compare(s *team.State, f *teamfile.File, facts []team.Fact, hosted bool, redo []string) (Changes, error) {
	c := &comparison{state: s, file: f, team: s.Team(), facts: facts, hosted: hosted, redo: map[string]bool{},
		tasks: map[string]team.Task{}, removed: map[string]team.Task{}}
	c.out.Team, c.out.Path = f.Name, c.team.Origin
	c.lead, _ = s.Member(c.team.Lead)
	for t := range s.Tasks() {
		if id := fileID(t); id != "" {
			c.tasks[id] = t
		}
	}
	var undone []team.Task
	for _, name := range redo {
		t, named := c.tasks[name] // in a file a name of digits is a name, too
		var err error
		if !named {
			t, err = s.Find(name)
		}
		if err != nil {
			return Changes{}, err
		}
		if t.Status == team.Completed || t.Expanded {
			c.redo[t.ID] = true
		} else {
			undone = append(undone, t)
		}
	}
	if c.team.OriginDigest == f.Digest() { // a team from before digests would seem changed
		c.redoneAlone()
	} else {
		c.ofParameters()
		c.ofTeam()
		c.ofMembers()
		c.ofTasks()
	}
	c.undone(undone)
	c.out.commands = slices.Concat(c.settings, c.members, c.redone, c.unlinks, c.deletions, c.additions, c.revisions,
		c.links)
	return c.out, nil
}

// redoneAlone has completed tasks done again, although the file has not changed since it was
// applied. Changes of a kept task then take effect.
func (c *comparison) redoneAlone() {
	for _, f := range c.file.Tasks {
		if t, there := c.tasks[f.ID]; there && c.redo[t.ID] && t.FileDigests != nil {
			c.reviseTask(f, t)
			delete(c.redo, t.ID)
		}
	}
	for i := range c.out.All {
		c.out.All[i].agreed = true
	}
	for t := range c.state.Tasks() {
		if c.redo[t.ID] {
			c.again(t, nil)
		}
	}
}

// undone says of tasks to do again that they are not completed, unless more is said of them.
func (c *comparison) undone(tasks []team.Task) {
	for _, t := range tasks {
		if !slices.ContainsFunc(c.out.All, func(one Change) bool { return one.What == "task" && one.Name == t.Called() }) {
			c.found(Change{What: "task", Name: t.Called(), Does: ChangeKeep, agreed: true,
				Why: "it is not completed, so there is nothing to do again"})
		}
	}
}

// comparison is one call of Compare. It collects commands in the order in which they must run: a
// task needs its owner, and a dependency must be removed before the opposite one is added.
type comparison struct {
	state   *team.State
	file    *teamfile.File
	team    team.Team
	lead    team.Member
	facts   []team.Fact
	hosted  bool                 // a process runs the team's sessions
	redo    map[string]bool      // by id
	tasks   map[string]team.Task // by name
	removed map[string]team.Task // by id: tasks that the file no longer has and that are deleted
	out     Changes

	parameters json.RawMessage // their values, if they changed; null for none

	settings, members, redone, unlinks, deletions, additions, revisions, links []team.Body
}

func (c *comparison) found(one Change) { c.out.All = append(c.out.All, one) }

func (c *comparison) refuse(what, name, why string, hints ...team.Hint) {
	c.found(Change{What: what, Name: name, Does: ChangeRefuse, Why: why, hints: hints})
}

// differences describes the changed keys.
func differences(keys []string, from, to said) (all []KeyChange) {
	for _, key := range keys {
		all = append(all, KeyChange{Key: key, From: from.shown(key), To: to.shown(key)})
	}
	return all
}

// fields returns the fields of the core that the keys stand for, each once.
func fields(keys []string, names map[string]string) (all []string) {
	for _, key := range keys {
		group, _, _ := strings.Cut(key, ".")
		field := names[key]
		if field == "" {
			field = names[group]
		}
		if field != "" && !slices.Contains(all, field) {
			all = append(all, field)
		}
	}
	return all
}

func (c *comparison) ofTeam() {
	f, t := c.file, c.team
	now, state := saidOfTeam(f), teamOfState(t, c.lead)
	keys := changed(recorded(t.FileDigests, state), now)
	if slices.Contains(keys, "lead") {
		c.refuse("team", t.Name, fmt.Sprintf("%s leads team %s for its life, and the file names %s", t.Lead,
			t.Name, f.Lead),
			team.Hint{Action: team.ActForceCleanUp, Team: t.Name})
		return
	}
	if len(keys) > 0 {
		c.found(Change{What: "team", Name: t.Name, Does: ChangeUpdate, Keys: differences(keys, state, now)})
	}
	to := team.Team{Goal: f.Goal, Hooks: Hooks(f.Hooks), Permissions: t.Permissions, HandoverAt: int64(f.Handover),
		MaxTeammates: int64(f.MaxTeammates), MaxParallel: int64(f.MaxParallel), MaxDepth: int64(f.MaxDepth),
		Timing: t.Timing,
		Checks: checks(f.Checks), Commands: namedCommands(f.Commands), Clean: f.Clean,
		Changes: f.CheckChanges, Remote: f.Remote, OriginDigest: f.Digest(), FileDigests: now.digests()}
	var limits []string
	for _, key := range keys {
		switch key {
		case "permissions.allow":
			to.Permissions.Allow = f.Permissions.Allow
		case "permissions.policy":
			to.Permissions.Policy = f.Permissions.Policy
		case "permissions.timeout":
			to.Permissions.Timeout = f.Permissions.Timeout
		case "permissions.mode":
			c.settings = append(c.settings, c.modes(cmp.Or(f.Permissions.Mode, "default"))...)
		case "delegate":
			c.settings = append(c.settings, &team.SetDelegate{On: f.Delegate})
		}
		if limit := budgetKeys[key]; limit != "" {
			limits = append(limits, limit)
		}
		if period := periods(&to.Timing)[key]; period != nil {
			*period = *periods((*team.Timing)(&f.Liveness))[key]
		}
	}
	if len(limits) > 0 {
		c.settings = append(c.settings, &team.SetBudget{Budget: team.Budget(f.Budget), Only: limits})
	}
	if now := c.factsAfter(keys); now != nil {
		c.settings = append(c.settings, &team.RecordFacts{Facts: now})
	}
	set := fields(keys, map[string]string{"goal": "goal",
		"hooks": "hooks", "checks": "checks", "commands": "commands", "clean": "clean", "withCheckChanges": "changes",
		"permissions.allow": "permissions", "permissions.policy": "permissions", "permissions.timeout": "permissions",
		"handover": "handoverAt", "maxTeammates": "maxTeammates", "maxParallel": "maxParallel", "maxDepth": "maxDepth", "remote": "remote",
		"liveness": "timing"})
	if c.parameters != nil {
		to.Metadata, set = map[string]json.RawMessage{team.ParametersKey: c.parameters}, append(set, "metadata")
	}
	c.settings = append(c.settings, &team.ReviseTeam{To: to, Fields: set})
}

// ofParameters finds the parameters that have other values than the team was made with.
func (c *comparison) ofParameters() {
	was, now := c.team.Metadata[team.ParametersKey], c.file.Metadata[team.ParametersKey]
	if string(was) == string(now) {
		return
	}
	before, usual := map[string]string{}, map[string]string{}
	for _, s := range SettingsOf(c.team) {
		before[s.Name] = s.Text
	}
	for _, p := range c.file.Parameters {
		usual[p.Name] = p.Default
	}
	for _, p := range parametersOf(c.file) {
		from, set := before[p.Name]
		if delete(before, p.Name); !set {
			from = usual[p.Name]
		}
		if from != p.Value {
			c.found(Change{What: "parameter", Name: p.Name, Does: ChangeUpdate,
				Keys: []KeyChange{{Key: "value", From: from, To: p.Value}}})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(before)) { // the file no longer has it
		c.found(Change{What: "parameter", Name: name, Does: ChangeUpdate,
			Keys: []KeyChange{{Key: "value", From: before[name]}}})
	}
	if c.parameters = now; now == nil {
		c.parameters = json.RawMessage("null")
	}
}

// budgetKeys maps the keys of a budget to the limits of the core.
var budgetKeys = map[string]string{"budget.tokens": "tokens", "budget.usd": "cost", "budget.time": "time"}

// periods maps the keys of a file's liveness to the periods.
func periods(t *team.Timing) map[string]*time.Duration {
	return map[string]*time.Duration{"liveness.beat": &t.Beat, "liveness.offline": &t.Offline,
		"liveness.leadLost": &t.LeadLost, "liveness.zombie": &t.Zombie, "liveness.blocked": &t.Blocked,
		"liveness.undelivered": &t.Undelivered, "liveness.stale": &t.Stale, "liveness.checkpoint": &t.Checkpoint}
}

// modes puts the lead into the mode, and the teammates that have the lead's mode.
func (c *comparison) modes(mode string) []team.Body { return modes(c.state, mode) }

// factsAfter returns the facts of the team with those of the file that changed; nil for no change.
func (c *comparison) factsAfter(keys []string) []team.Fact {
	after, differs := slices.Clone(c.team.Facts), false
	for _, key := range keys {
		name, is := strings.CutPrefix(key, "facts.")
		if !is {
			continue
		}
		differs = true
		after = slices.DeleteFunc(after, func(f team.Fact) bool { return f.Name == name })
		for _, f := range c.facts {
			if f.Name == name {
				after = append(after, f)
			}
		}
	}
	if !differs {
		return nil
	}
	return append([]team.Fact{}, after...)
}

var memberFields = map[string]string{"agent": "agent", "model": "model", "role": "role", "prompt": "prompt",
	"command": "program", "args": "args", "env": "env", "planApproval": "plan",
	"file": "nested", "template": "nested", "goal": "nested", "leader": "nested", "set": "nested"}

func (c *comparison) ofMembers() {
	inFile := map[string]bool{}
	if c.file.Lead == c.team.Lead {
		c.revise(c.lead, c.file.Leader)
	}
	for _, m := range c.file.Members {
		inFile[m.Name] = true
		there, ok := c.state.Member(m.Name)
		switch {
		case !ok:
			c.found(Change{What: "member", Name: m.Name, Does: ChangeAdd})
			c.members = append(c.members, spawn(m))
		case !c.ofFile(there):
			c.refuse("member", m.Name, "member "+m.Name+" joined team "+c.team.Name+" without the file; give the one "+
				"in the file another name")
		default:
			c.revise(there, m)
		}
	}
	for _, m := range c.state.Members() {
		if m.Name == c.team.Lead || inFile[m.Name] || m.Dropped || !c.ofFile(m) {
			continue
		}
		c.found(Change{What: "member", Name: m.Name, Does: ChangeRemove})
		for _, m := range c.line(m) {
			c.drop(m)
		}
	}
}

// ofFile reports whether the member comes from the team file.
func (c *comparison) ofFile(m team.Member) bool {
	if c.team.FileDigests == nil { // made before digests were recorded
		return m.JoinedAt == c.team.CreatedAt && m.Name != c.team.Lead
	}
	return m.FileDigests != nil
}

// line returns the member and those that were spawned to replace it.
func (c *comparison) line(m team.Member) []team.Member {
	all := []team.Member{m}
	for _, other := range c.state.Members() {
		if origin, _, is := strings.Cut(other.Name, againMark); is && strings.HasPrefix(m.Name, origin) &&
			(m.Name == origin || len(other.Name) == team.MaxName) && !c.ofFile(other) {
			all = append(all, other)
		}
	}
	return all
}

// drop asks the member to end. It is not replaced.
func (c *comparison) drop(m team.Member) {
	c.members = append(c.members, &team.ReviseMember{To: team.Member{Name: m.Name, Dropped: true,
		FileDigests: m.FileDigests}, Fields: []string{"dropped"}})
	if !m.Status.Running() {
		return
	}
	if m.Shutdown.Request != "" {
		return
	}
	request := &team.RequestShutdown{Member: m.Name,
		Reason: "The team file no longer has you. Please finish and shut down."}
	if m.Host == "" && m.Agent != team.External { // no session has to end first
		c.members = append(c.members, request, &team.ExpireShutdown{Member: m.Name})
		return
	}
	request.Deadline = host.Dismissal(c.state, m.Name).Deadline
	c.members = append(c.members, request)
}

// bound returns the first of the keys that says where a member works; "" for none.
func bound(keys []string) string {
	for _, key := range keys {
		if key == "isolation" || key == "runsOn" {
			return key
		}
	}
	return ""
}

// revise compares a member with the file.
func (c *comparison) revise(m team.Member, f teamfile.Member) {
	now, state := saidOfMember(f), saidOfMember(memberOfState(m, c.lead))
	keys := changedMember(m, f, now, state)
	if len(keys) == 0 && !m.Dropped {
		return
	}
	external := func(agent string) bool { return agent == "" || agent == team.External }
	switch {
	case bound(keys) != "":
		c.refuse("member", m.Name, fmt.Sprintf("the %s of %s cannot change, because its work is where it "+
			"works; give the new member another name", bound(keys), m.Name))
		return
	case slices.Contains(keys, "agent") && external(m.Agent) != external(f.Agent):
		c.refuse("member", m.Name, fmt.Sprintf("the agent of %s cannot change from %s to %s; give the new member "+
			"another name", m.Name, m.Agent, cmp.Or(f.Agent, team.External)))
		return
	}
	does := ChangeUpdate
	if m.Dropped {
		does = ChangeAdd
	}
	c.found(Change{What: "member", Name: m.Name, Does: does, Keys: differences(keys, state, now)})
	var limits []string
	for _, key := range keys {
		if limit := budgetKeys[key]; limit != "" {
			limits = append(limits, limit)
		}
	}
	for i, one := range c.line(m) {
		to := team.Member{Name: one.Name, Agent: f.Agent, Model: f.Model, Role: f.Role, Prompt: f.Prompt,
			Program: f.Command, Args: f.Args, Env: f.Env, Nested: NestedOf(f),
			Plan: team.Plan{Required: f.PlanApproval}}
		if one.Name == c.team.Lead {
			to.Agent, to.Role = cmp.Or(f.Agent, team.External), cmp.Or(f.Role, "lead")
		}
		set := fields(keys, memberFields)
		if one.Dropped {
			set = append(set, "dropped")
		}
		if i == 0 {
			to.FileDigests = now.digests()
		}
		c.members = append(c.members, &team.ReviseMember{To: to, Fields: set})
		if !one.Status.Running() {
			continue
		}
		if one.Dropped && one.Shutdown.Answer != "approved" && one.Shutdown.Request != "" {
			c.members = append(c.members, &team.WithdrawShutdown{Member: one.Name})
		}
		if one.Agent != team.Shell && slices.Contains(keys, "permissionMode") {
			c.members = append(c.members, &team.SetMode{Member: one.Name, Spawns: true,
				Mode: cmp.Or(f.Mode, c.file.Permissions.Mode, c.lead.PermissionMode)})
		}
		if len(limits) > 0 && one.Name != c.team.Lead {
			c.members = append(c.members, &team.SetBudget{Member: one.Name, Budget: team.Budget(f.Budget),
				Only: limits})
		}
	}
}
