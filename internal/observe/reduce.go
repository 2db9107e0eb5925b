package observe

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"cadre/internal/team"
)

// fact takes something that happened: a call and its result.
//
// A fact of the session itself is its team's if it leads one, else its own list's. A teammate's is its team's; one of whom it is not known yet who it is, or
// whose team has not shown itself, is held until that is known.
func (o *Observer) fact(f fact) {
	if f.Mail != nil {
		o.letters(f.Mail)
		return
	}
	by := &f.Call.By
	out := outcomeOf(f.Call.Tool, &f.Result, func(name string) bool { return name == o.lead() || o.roster.isMember(name) })
	if by.Agent != "" && by.Member == "" {
		if sender := out.Routing.Sender; sender != "" { // it signs its messages
			o.named(by.Agent, sender)
		}
		by.Member = o.sideMember(by.Agent)
	}
	switch {
	case by.Agent != "" && by.Member == "":
		o.hold(f)
		return
	case by.Member != "" && !o.here() && by.Team == "":
		o.hold(f)
		return
	case by.Member != "" && !o.joins(*by, f.Result.At):
		return
	}
	if o.s != nil && o.s.Remembers(f.Call.ID) { // it was journaled, and what was saved beside the journal is older
		o.counts.Duplicates++
		return
	}
	if !out.ok {
		o.counts.Failed++
		if f.Call.Tool != "TaskGet" { // which says that there is no such task
			return
		}
	}
	b := o.session(by.Session).Board
	inTeam := by.Member != "" || o.leads(by.Session, f.Call.Source)
	if inTeam {
		b = o.board
	}
	actor := first(by.Member, o.lead())
	switch f.Call.Tool {
	case "TeamCreate":
		o.created(&f, out)
	case "TeamDelete":
		o.deleted(&f, out, inTeam)
	case "Task", "Agent":
		o.spawned(&f, out)
	case "TaskCreate":
		o.taskCreated(&f, out, b, actor)
	case "TaskUpdate":
		o.taskUpdated(&f, out, b, inTeam, actor)
	case "TaskList":
		b.listed(out.Tasks, f.asked())
	case "TaskGet":
		o.taskGot(&f, out, b)
	case "SendMessage":
		if inTeam && o.here() {
			o.sent(&f, out, actor)
		}
	case "ExitPlanMode":
		if inTeam && out.Awaiting && by.Member != "" {
			o.planned(by.Member, out.PlanID, out.Plan, f.Result.At)
		}
	}
	o.settle(f.Call.ID, actor, f.Result.At)
}

// asked is since when the result holds, if it may be older than what came meanwhile: since the call.
func (f *fact) asked() stamp {
	if f.Result.At.before(f.Call.At) {
		return f.Result.At
	}
	return f.Call.At
}

func (o *Observer) sideMember(agent string) string {
	if one := o.sides[agent]; one != nil {
		return one.Member
	}
	return ""
}

func (o *Observer) hold(f fact) {
	if o.held = append(o.held, f); len(o.held) > maxHeld {
		o.held = o.held[1:]
		o.counts.Dropped++
	}
}

// leads reports whether the session leads the team: it made it, or has had it from its start, or comes from where that one came from.
func (o *Observer) leads(session, source string) bool {
	if !o.here() {
		return false
	}
	e := &o.epoch
	switch {
	case session != "" && (e.LeadSession == session || implicit(session) == e.Name):
		return true
	case e.LeadSource == anySource:
		return true
	}
	return e.LeadSource != "" && e.LeadSource == source
}

// anySource leads a team that was read back and whose lead's session is not known.
const anySource = "*"

// joins reports whether a teammate's doings are the observed team's. A teammate that names its team shows that there is one.
func (o *Observer) joins(by speaker, at stamp) bool {
	if o.here() {
		if !o.called(by.Team) || len(o.epoch.Gone) > 0 && at.before(o.epoch.Founded) { // of the team before
			return false
		}
	} else {
		if by.Team == "" || !o.wanted(by.Team, at) {
			return false
		}
		o.found(by.Team, "", "", at, "")
	}
	if p := o.roster.at(by.Member); p != nil && !p.Joined.V {
		p.Joined.learn(true, at)
		p.Doing.assume(active)
		o.retry = true
	}
	return true
}

// found begins the observation of a team. A lead's own list of tasks becomes the team's where the team is one that its session has from its start.
func (o *Observer) found(name, session, source string, at stamp, goal string) {
	o.s, o.placed, o.mailed = &team.State{}, 0, 0
	o.board, o.roster, o.mail = newBoard(), newRoster(), newMailbag()
	o.epoch = epoch{Name: name, LeadSession: session, LeadSource: source, Founded: at, Gone: o.epoch.Gone}
	id := o.options.ID
	if id == "" || len(o.epoch.Gone) > 0 {
		id = fmt.Sprintf("%s-%08x", word(name), uint32(hash(fmt.Sprint(first(o.options.ID, session), len(o.epoch.Gone)))))
	}
	dir := ""
	if one := o.sessions[session]; one != nil {
		dir = one.Dir
	}
	o.emit(&team.TeamCreated{Team: team.Team{ID: id, Name: first(o.options.Name, name), Observed: name, Status: team.TeamPending, Goal: goal, Dir: dir},
		Lead: team.Member{Name: o.options.Lead, Agent: team.External, Status: team.Active, Session: session, Incarnation: 1}})
	for _, id := range slices.Clone(o.order) {
		if implicit(id) == name {
			o.board.join(o.sessions[id].Board)
			o.sessions[id].Board = newBoard()
		}
	}
	o.retry, o.unbilled = true, true
}

// word is what of a name can be the beginning of a team's id, which is the name of a folder somewhere: the name was chosen by an agent, and may be a path, or of any length.
func word(name string) string {
	name = strings.Map(func(r rune) rune {
		if !team.ValidName("a" + string(r)) {
			return '-'
		}
		return r
	}, name)
	const suffix = len("-01234567")
	if name = strings.TrimLeft(name, "-_"); len(name) > longestName-suffix {
		name = name[:longestName-suffix]
	}
	return first(name, "team")
}

// longestName is how long the name of a team of ours may be.
const longestName = 64

// led says that the session leads the team, which was known through its teammates alone until now.
func (o *Observer) led(session, source string, at stamp) {
	o.epoch.LeadSession, o.epoch.LeadSource = session, source
	if at.before(o.epoch.Founded) {
		o.epoch.Founded = at
	}
	o.emit(&team.MemberDescribed{Member: o.lead(), Session: session})
	o.unbilled = true
}

func (o *Observer) created(f *fact, out *outcome) {
	var in struct {
		TeamName    string `json:"team_name"`
		Description string `json:"description"`
	}
	_ = json.Unmarshal(f.Call.Input, &in)
	name := first(out.TeamName, in.TeamName)
	switch {
	case name == "" || f.Call.By.Member != "" || !o.wanted(name, f.Result.At):
	case !o.here():
		o.found(name, f.Call.By.Session, f.Call.Source, f.Result.At, in.Description)
	case o.called(name) && o.epoch.LeadSession == "" && o.epoch.LeadSource == "":
		o.led(f.Call.By.Session, f.Call.Source, f.Result.At)
	}
}

func (o *Observer) deleted(f *fact, out *outcome, inTeam bool) {
	if !inTeam || f.Call.By.Member != "" || !o.here() || !o.called(out.TeamName) {
		return
	}
	o.settle(f.Call.ID, o.lead(), f.Result.At)
	o.over(f.Call.ID, "its lead deleted it", f.Result.At)
}

// over says that the team ended.
func (o *Observer) over(id, reason string, at stamp) {
	for _, m := range o.s.Members() {
		if m.Name != o.lead() && m.Status.Running() {
			o.emit(&team.MemberStopped{Member: m.Name, Reason: "its team ended"})
		}
	}
	o.emit(&team.TeamStatusChanged{Status: team.TeamComplete, Reason: reason}, &team.TeamCleanedUp{})
	if o.epoch.Gone == nil {
		o.epoch.Gone = map[string]stamp{}
	}
	o.epoch.Gone[o.epoch.Name] = at
	o.commit(id, o.lead(), at)
	o.board, o.roster = newBoard(), newRoster()
	for _, one := range o.spent {
		one.Before = one.most()
	}
}

func (o *Observer) spawned(f *fact, out *outcome) {
	var in spawnInput
	if lenient(json.Unmarshal(f.Call.Input, &in)) != nil || out.Status != spawned {
		return // a subagent
	}
	name, of := first(out.Name, in.Name), first(out.TeamName, in.TeamName)
	switch {
	case o.here() && o.leads(f.Call.By.Session, f.Call.Source):
		if !o.called(of) {
			o.warn("%s was spawned into %s, and %s is observed", name, of, o.epoch.Name)
			return
		}
		if o.epoch.LeadSession == "" && f.Call.By.Member == "" {
			o.led(f.Call.By.Session, f.Call.Source, f.Result.At)
		}
	case o.here() && f.Call.By.Member != "": // a teammate spawns another
	case !o.here() && of != "" && of == implicit(f.Call.By.Session) && f.Call.By.Member == "" && o.wanted(of, f.Result.At):
		o.found(of, f.Call.By.Session, f.Call.Source, f.Result.At, "")
	default:
		o.warn("%s was spawned into %s, whose creation was not seen", name, first(of, "a team"))
		return
	}
	p := o.roster.at(name)
	if p == nil || name == o.lead() {
		return
	}
	p.Joined.learn(true, f.Result.At)
	p.About.learn(about{AgentID: first(out.AgentID, name+"@"+of), Type: first(out.AgentType, in.Type), Model: first(out.Model, in.Model), Color: out.Color,
		Prompt: in.Prompt, Planned: out.PlanMode || in.Mode == "plan"}, f.Result.At)
	p.Ended.learn("", f.Result.At)
	p.Doing.learn(active, f.Result.At)
	if len(o.roster.Spawns) < maxPeople {
		o.roster.Spawns[f.Call.ID] = name
	}
	o.identify()
	o.retry = true
}

func (o *Observer) taskCreated(f *fact, out *outcome, b *board, actor string) {
	var in taskInput
	if lenient(json.Unmarshal(f.Call.Input, &in)) != nil || out.Task == nil {
		return
	}
	e := b.exists(out.Task.ID, true, f.Result.At)
	if e == nil {
		o.warn("a task with the id %.40q", out.Task.ID)
		return
	}
	// What it was created with holds as long as nobody says otherwise: that may have been read before.
	e.Subject.assume(first(out.Task.Subject, value(in.Subject)))
	e.Description.assume(first(value(in.Description), out.Task.Description))
	e.ActiveForm.assume(value(in.ActiveForm))
	e.Status.assume(string(team.Pending))
	e.Owner.assume(value(in.Owner))
	e.meta(in.Metadata, stamp{})
	e.CreatedBy = actor
	for _, id := range in.AddBlockedBy {
		b.blocks(id, out.Task.ID, true, f.Result.At)
	}
	for _, id := range in.AddBlocks {
		b.blocks(out.Task.ID, id, true, f.Result.At)
	}
}

func value(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

func (o *Observer) taskUpdated(f *fact, out *outcome, b *board, inTeam bool, actor string) {
	var in taskInput
	if lenient(json.Unmarshal(f.Call.Input, &in)) != nil {
		return
	}
	at, status := f.Result.At, value(in.Status)
	if out.Change != nil && out.Change.To != "" {
		status = out.Change.To
	}
	if status == string(team.Deleted) {
		if b.Tasks[in.TaskID] != nil {
			b.exists(in.TaskID, false, at)
		}
		return
	}
	e := b.at(in.TaskID)
	if e == nil {
		return
	}
	for _, set := range []struct {
		to   *known[string]
		from *string
	}{{&e.Subject, in.Subject}, {&e.Description, in.Description}, {&e.ActiveForm, in.ActiveForm}, {&e.Owner, in.Owner}} {
		if set.from != nil {
			set.to.learn(*set.from, at)
		}
	}
	if in.Owner == nil && slices.Contains(out.Updated, "owner") { // who begins a task of nobody owns it
		e.Owner.learn(actor, at)
	}
	e.meta(in.Metadata, at)
	for _, id := range in.AddBlockedBy {
		b.blocks(id, in.TaskID, true, at)
	}
	for _, id := range in.AddBlocks {
		b.blocks(in.TaskID, id, true, at)
	}
	switch team.TaskStatus(status) {
	case team.Pending, team.InProgress, team.Completed:
		e.Status.learn(status, at)
	default:
		return
	}
	if !inTeam {
		return
	}
	who := e.Owner.V
	if who == "" {
		who = actor
	}
	p := o.roster.People[who]
	switch {
	case p == nil || !p.Joined.V:
	case status == string(team.InProgress):
		o.roster.at(who).Doing.learn(active, at)
	case status == string(team.Completed):
		if src := o.sources[f.Call.Source]; src != nil && !slices.ContainsFunc(src.Arms, func(a arm) bool { return a.Member == who }) {
			src.Arms = append(src.Arms, arm{Member: who, After: f.Call.ModelMsg, When: at})
		}
	}
}

func (o *Observer) taskGot(f *fact, out *outcome, b *board) {
	var in taskInput
	_ = lenient(json.Unmarshal(f.Call.Input, &in))
	switch {
	case out.Task == nil && (out.Keys["task"] || strings.TrimSpace(f.Result.R) == "Task not found"):
		if b.Tasks[in.TaskID] != nil {
			b.exists(in.TaskID, false, f.asked())
		}
	case out.Task != nil && out.ok:
		b.got(out.Task, f.asked())
		// In 2.1.47 each spawn takes a task, which TaskList hides and TaskGet does not.
		if p, e := o.roster.People[out.Task.Subject], b.Tasks[out.Task.ID]; p != nil && e != nil && p.About.V.Prompt != "" && p.About.V.Prompt == out.Task.Description {
			e.Hidden = true
		}
	}
}
