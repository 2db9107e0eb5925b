package observe

import (
	"encoding/json"
	"slices"
	"strings"

	"cadre/internal/team"
)

// fact takes something that happened: a call and its result.
//
// A fact of the session itself is its team's if it leads one, else its own list's. A teammate's is
// its team's; one of whom it is not known yet who it is, or whose team has not shown itself, is
// held until that is known.
func (o *Observer) fact(f fact) {
	if f.Mail != nil {
		o.letters(f.Mail)
		return
	}
	by := &f.Call.By
	out := outcomeOf(f.Call.Tool, &f.Result, func(name string) bool {
		return name == o.lead() ||
			o.roster.isMember(name)
	})
	if by.Agent != "" && by.Member == "" {
		if sender := out.Routing.Sender; sender != "" { // it signs its messages
			o.named(by.Agent, sender)
		}
		by.Member = o.sideMember(by.Agent)
	}
	var own *board // the list of a session that turns out to be a teammate's
	if who, of := out.signed(f.Call.Tool); by.Agent == "" && by.Member == "" && by.Session != "" && who != "" &&
		who != o.lead() && !o.leads(by.Session, f.Call.Source) {
		one := o.session(by.Session)
		one.Team, one.Member, own = of, who, one.Board
		by.Team, by.Member = of, who
	}
	switch {
	case by.Agent != "" && by.Member == "":
		o.hold(f)
		return
	case by.Member != "" && o.waits(*by, f.Result.At, f.Call.Source):
		o.hold(f)
		return
	case by.Member != "" && !o.joins(*by, f.Result.At, f.Call.Source):
		return
	}
	if by.Agent != "" {
		o.aloud(&f)
	}
	if own != nil {
		o.board.join(own)
		o.session(by.Session).Board = newBoard()
	}
	if o.s != nil && o.s.Remembers(f.Call.ID) { // it was journaled, and what was saved beside the journal is older
		o.counts.Duplicates++
		return
	}
	if !out.ok {
		o.counts.Failed++
		if f.Call.Tool == "TaskList" && !f.Result.IsError {
			o.warn("%s: a list of tasks in a form that is not known", f.Call.Source)
		}
		if f.Call.Tool != "TaskGet" { // which says that there is no such task
			return
		}
	}
	b := o.session(by.Session).Board
	inTeam := by.Member != "" || o.leads(by.Session, f.Call.Source) && !o.precedes(f.Result.At)
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

// asked is since when the result holds, if it may be older than what came meanwhile: since the
// call.
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

func (o *Observer) created(f *fact, out *outcome) {
	var in struct {
		TeamName    string `json:"team_name"`
		Description string `json:"description"`
	}
	_ = json.Unmarshal(f.Call.Input, &in)
	name := first(out.TeamName, in.TeamName)
	switch {
	case name == "" || f.Call.By.Member != "" || !o.wanted(name, f.Result.At):
	case !o.here() || o.succeeds(name, f.Call.By.Session, f.Result.At):
		o.found(name, f.Call.By.Session, f.Call.Source, f.Result.At, in.Description)
	case o.strangeLead(f.Call.By.Session):
		o.past(name, f.Result.At)
	case o.called(name) && o.epoch.LeadSession == "" && o.epoch.LeadSource == "":
		o.led(f.Call.By.Session, f.Call.Source, f.Result.At)
	case !o.called(name):
		o.past(name, f.Result.At)
	}
}

func (o *Observer) deleted(f *fact, out *outcome, inTeam bool) {
	if !inTeam || f.Call.By.Member != "" || !o.here() || !o.called(out.TeamName) {
		return
	}
	o.settle(f.Call.ID, o.lead(), f.Result.At)
	o.ended(f.Call.ID, f.Result.At, "its lead deleted it")
}

func (o *Observer) spawned(f *fact, out *outcome) {
	var in spawnInput
	if lenient(json.Unmarshal(f.Call.Input, &in)) != nil {
		return
	}
	if one := o.session(f.Call.By.Session); out.Status != spawned {
		if in.Name != "" && !slices.Contains(one.Background, in.Name) && len(one.Background) < maxBackground {
			one.Background = append(one.Background, in.Name)
		}
		return // a subagent
	}
	o.aloud(f)
	name, of := first(out.Name, in.Name), first(out.TeamName, in.TeamName)
	own := of != "" && of == implicit(f.Call.By.Session) && f.Call.By.Member == ""
	switch {
	case own && o.wanted(of, f.Result.At) && (!o.here() || o.succeeds(of, f.Call.By.Session, f.Result.At)):
		o.found(of, f.Call.By.Session, f.Call.Source, f.Result.At, "")
	case o.here() && (o.leads(f.Call.By.Session, f.Call.Source) || f.Call.By.Session != "" &&
		f.Call.By.Session == o.epoch.Within):
		if o.precedes(f.Result.At) {
			return
		}
		if !o.called(of) {
			o.warn("%s was spawned into %s, and %s is observed", name, of, o.epoch.Name)
			return
		}
		if o.epoch.LeadSession == "" && f.Call.By.Member == "" {
			o.led(f.Call.By.Session, f.Call.Source, f.Result.At)
		}
	case o.here() && f.Call.By.Member != "": // a teammate spawns another
	case own:
		o.past(of, f.Result.At)
		return
	default:
		o.warn("%s was spawned into %s, whose creation was not seen", name, first(of, "a team"))
		return
	}
	p := o.roster.at(name)
	if p == nil || name == o.lead() {
		return
	}
	p.Joined.learn(true, f.Result.At)
	p.About.learn(about{AgentID: first(out.AgentID, name+"@"+of), Type: first(out.AgentType, in.Type),
		Model: first(out.Model, in.Model), Color: out.Color,
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
	// What it was created with holds as long as nobody says otherwise: that may have been read
	// before.
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
	}{{&e.Subject, in.Subject}, {&e.Description, in.Description}, {&e.ActiveForm, in.ActiveForm},
		{&e.Owner, in.Owner}} {
		if set.from != nil {
			set.to.learn(*set.from, at)
		}
	}
	who := value(in.Owner)
	if in.Owner == nil && slices.Contains(out.Updated, "owner") { // who begins a task of nobody owns it
		who = actor
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
	who = first(who, e.Owner.V, actor) // its owner then, as far as the call says it: it may have another by now
	p := o.roster.People[who]
	switch {
	case p == nil || !p.Joined.V:
	case status == string(team.InProgress):
		o.roster.at(who).Doing.learn(active, at)
	case status == string(team.Completed):
		if src := o.sources[f.Call.Source]; src != nil && p.Began.before(f.Call.At) && !slices.ContainsFunc(src.Arms,
			func(a arm) bool { return a.Member == who }) {
			src.Arms = append(src.Arms, arm{Member: who, After: f.Call.ModelMsg, When: at})
		}
	}
}

func (o *Observer) taskGot(f *fact, out *outcome, b *board) {
	var in taskInput
	_ = lenient(json.Unmarshal(f.Call.Input, &in))
	switch {
	case out.missing || !out.structured && strings.TrimSpace(f.Result.R) == "Task not found":
		if b.Tasks[in.TaskID] != nil {
			b.exists(in.TaskID, false, f.asked())
		}
	case out.Task != nil && out.ok:
		b.got(out.Task, f.asked())
		// In 2.1.47 each spawn takes a task, which TaskList hides and TaskGet does not.
		if p, e := o.roster.People[out.Task.Subject], b.Tasks[out.Task.ID]; p != nil && e != nil &&
			p.About.V.Prompt != "" && p.About.V.Prompt == out.Task.Description {
			e.Hidden = true
		}
	}
}
