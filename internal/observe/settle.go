package observe

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"cadre/internal/team"
)

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// emit puts events into the record that is being made.
func (o *Observer) emit(events ...team.Event) { o.events = append(o.events, events...) }

// anID is the id of a record that comes from no call: no line makes two of a kind for one member at
// one time.
func (o *Observer) anID(kind string) string { return fmt.Sprintf("observed-%d-%s", o.lines, kind) }

// settle makes a record of what the state lacks of what is known by now.
func (o *Observer) settle(id, actor string, at stamp) {
	if !o.here() {
		o.events = nil
		clear(o.board.dirty)
		clear(o.roster.dirty)
		return
	}
	if t := o.epoch.Name; t != "" && !o.founding() && o.s.Team().Observed == unnamed && t != unnamed &&
		o.options.Name != unnamed {
		o.emit(&team.MemberDescribed{Member: o.lead(), Team: t})
	}
	said := o.events
	o.events = nil
	if len(said) > 0 {
		if _, ok := said[0].(*team.TeamCreated); ok {
			o.emit(said[0])
			said = said[1:]
		}
	}
	people := sortedKeys(o.roster.dirty)
	members := make([]team.Member, len(people))
	for i, name := range people {
		members[i] = o.settleJoin(name)
	}
	o.emit(said...)
	for i, name := range people {
		if members[i].Name != "" {
			o.settleStatus(o.roster.People[name], members[i], said)
		}
	}
	clear(o.roster.dirty)
	if len(o.board.dirty) > 0 {
		o.settleTasks(actor)
	}
	o.commit(id, actor, at)
	if o.account(); len(o.events) > 0 { // of a team, or a member, that is there only now
		o.commit(o.anID("usage"), actor, at)
	}
}

// commit closes the record.
func (o *Observer) commit(id, actor string, at stamp) {
	o.mailed = 0
	if len(o.events) == 0 {
		return
	}
	r := &team.Record{Seq: o.s.Seq() + 1, ID: id, Actor: actor, At: at.At, Events: o.events}
	o.events = nil
	o.s.Apply(r)
	o.out.Records = append(o.out.Records, r)
	o.out.Notices = append(o.out.Notices, NoticesOf(o.s, r, o.observed())...)
}

// observed is the session that is observed: the lead's, else that of the teammate who was heard
// first; "" where no line has said it.
func (o *Observer) observed() string {
	if lead, _ := o.s.Member(o.lead()); lead.Session != unknownSession {
		return first(lead.Session, o.epoch.Mate)
	}
	return o.epoch.Mate
}

// settleJoin adds a teammate, or says what is known anew of it. It returns how it is before
// anything of its status is said; nobody if it has not joined.
func (o *Observer) settleJoin(name string) team.Member {
	p := o.roster.People[name]
	if !p.Joined.V || name == o.lead() {
		return team.Member{}
	}
	a := p.About.V
	have, ok := o.s.Member(name)
	if !ok {
		m := team.Member{Name: name, Agent: team.External, Model: a.Model, Role: a.Type, Prompt: a.Prompt,
			Color: a.Color, Session: a.AgentID,
			Status: team.Active, Plan: team.Plan{Required: a.Planned}, Incarnation: 1}
		o.emit(&team.MemberSpawned{Member: m})
		return m
	}
	more := team.MemberDescribed{Member: name}
	for _, part := range []struct {
		to         *string
		want, have string
	}{{&more.Model, a.Model, have.Model}, {&more.Role, a.Type, have.Role}, {&more.Prompt, a.Prompt, have.Prompt},
		{&more.Color, a.Color, have.Color},
		{&more.Session, a.AgentID, have.Session}} {
		if part.want != "" && part.want != part.have {
			*part.to = part.want
		}
	}
	if more != (team.MemberDescribed{Member: name}) {
		o.emit(&more)
	}
	return have
}

// settleStatus says what became of a member that was as have says before the events that are said
// now.
func (o *Observer) settleStatus(p *person, have team.Member, said []team.Event) {
	end := p.end()
	switch {
	case end != "":
		if have.Status.Running() {
			o.emit(ending(p, have.Name, end))
		}
		return
	case have.Status == team.ShuttingDown, have.Status.Running() &&
		agrees(said, have.Name): // and has come back since, which was read first
		o.emit(ending(p, have.Name, shutdown))
		have.Status = team.Stopped
	}
	if !have.Status.Running() {
		back := have
		back.Status, back.Plan, back.Shutdown = team.Active, team.Plan{Required: p.About.V.Planned}, team.Shutdown{}
		if o.roster.pending(p) {
			back.Shutdown = team.Shutdown{Request: p.Asked.V, Reason: p.Reason, Deadline: p.Asked.When.At + century}
		}
		o.emit(&team.MemberReturned{Member: back})
		have.Status = team.Active
	}
	switch {
	case p.Doing.V == idle && have.Status != team.Idle:
		o.emit(&team.MemberStatusChanged{Member: have.Name, Status: team.Idle, Summary: p.Detail})
	case p.Doing.V == active && have.Status != team.Active:
		o.emit(&team.MemberStatusChanged{Member: have.Name, Status: team.Active})
	}
}

// ending is the event of a member's end.
func ending(p *person, name, end string) team.Event {
	switch end {
	case failed:
		return &team.MemberFailed{Member: name, Reason: p.Fault}
	case left:
		return &team.MemberStopped{Member: name, Reason: "it is not on the roster any more"}
	}
	return &team.MemberStopped{Member: name, Reason: team.AsAsked}
}

// agrees reports whether the member is said to agree to shut down.
func agrees(said []team.Event, name string) bool {
	return slices.ContainsFunc(said, func(e team.Event) bool {
		a, ok := e.(*team.ShutdownAnswered)
		return ok && a.Member == name && a.Approved
	})
}

// settleTasks brings the tasks of the state to what the board knows: first those that are new, so
// that every other can wait for them.
func (o *Observer) settleTasks(actor string) {
	b := o.board
	ids := slices.DeleteFunc(sortedKeys(b.dirty), func(id string) bool { return b.Tasks[id] == nil })
	clear(b.dirty)
	sortTasks(ids)
	fresh := map[string]team.Task{}
	for _, id := range ids {
		e := b.Tasks[id]
		have, ok := o.s.Task(id)
		if !e.visible() || ok && !skipped(have) {
			continue
		}
		n := taskNumber(id)
		if n-1 > o.placed {
			if n-1-o.placed > team.MaxSkipped {
				o.warn("task %s is too far beyond the others to be believed", id)
				continue
			}
			o.emit(&team.TasksSkipped{Through: int64(n - 1)})
		}
		o.placed = max(o.placed, n)
		t := team.Task{ID: id, Subject: e.Subject.V, Description: e.Description.V, ActiveForm: e.ActiveForm.V,
			Status: team.Pending, Metadata: metadata(e, nil),
			CreatedBy: e.CreatedBy}
		fresh[id] = t
		o.emit(&team.TaskCreated{Task: t})
	}
	for _, id := range ids {
		have, ok := fresh[id]
		if !ok {
			if have, ok = o.s.Task(id); !ok || skipped(have) {
				continue
			}
		}
		o.settleTask(b.Tasks[id], have, actor)
	}
}

// skipped reports whether a task of the state is only the place of one that was not seen.
func skipped(t team.Task) bool { return t.Status == team.Deleted && t.CreatedAt == 0 }

func (o *Observer) settleTask(e *entry, have team.Task, actor string) {
	if !e.visible() {
		if have.Status != team.Deleted {
			o.emit(&team.TaskDeleted{Task: have.ID, Unblocked: o.unblocked(&have)})
		}
		return
	}
	owner, status := e.Owner.V, team.TaskStatus(first(e.Status.V, string(team.Pending)))
	if have.Status == team.Deleted {
		o.emit(&team.TaskReleased{Task: have.ID, Owner: owner, Reason: "it is on the list again"})
		have.Status, have.Owner = team.Pending, owner
	}
	change := team.TaskUpdated{Task: have.ID, Metadata: metadata(e, have.Metadata)}
	changed := len(change.Metadata) > 0
	set := func(to **string, want known[string], have string) {
		if want.Some && want.V != have {
			*to, changed = &want.V, true
		}
	}
	set(&change.Subject, e.Subject, have.Subject)
	set(&change.Description, e.Description, have.Description)
	set(&change.ActiveForm, e.ActiveForm, have.ActiveForm)
	claims := status == team.InProgress && (have.Status != team.InProgress || have.Owner != owner)
	releases := status == team.Pending && have.Status != team.Pending
	if owner != have.Owner && !claims && !releases {
		change.Owner, changed = &owner, true
	}
	want := o.board.blockedBy(e)
	for _, id := range want {
		if !slices.Contains(have.BlockedBy, id) {
			change.AddBlockedBy = append(change.AddBlockedBy, id)
		}
	}
	for _, id := range have.BlockedBy {
		if edge, ok := e.BlockedBy[id]; ok && !edge.V && o.board.Tasks[id].visible() {
			change.RemoveBlockedBy = append(change.RemoveBlockedBy, id)
		}
	}
	if changed || len(change.AddBlockedBy)+len(change.RemoveBlockedBy) > 0 {
		o.emit(&change)
	}
	switch {
	case claims:
		o.emit(&team.TaskClaimed{Task: have.ID, Member: owner, Fence: have.Fence + 1})
	case releases:
		o.emit(&team.TaskReleased{Task: have.ID, Owner: owner})
	case status == team.Completed && have.Status != team.Completed:
		o.emit(&team.TaskCompleted{Task: have.ID, By: first(owner, actor), Unblocked: o.unblocked(&have)})
	}
}

// unblocked are the tasks that wait for t alone.
func (o *Observer) unblocked(t *team.Task) []string {
	var ids []string
	if t.Status != team.Pending && t.Status != team.InProgress {
		return nil
	}
	for _, id := range t.Blocks {
		if w, ok := o.s.Task(id); ok && w.Status == team.Pending && len(w.Blocked()) == 1 {
			ids = append(ids, id)
		}
	}
	return ids
}

// metadata is what of the entry's differs from have; nil for nothing.
func metadata(e *entry, have map[string]json.RawMessage) map[string]json.RawMessage {
	var all map[string]json.RawMessage
	for key, k := range e.Metadata {
		was, ok := have[key]
		if gone := k.V == "null"; gone && !ok || !gone && ok && string(was) == k.V {
			continue
		}
		if all == nil {
			all = map[string]json.RawMessage{}
		}
		all[key] = json.RawMessage(k.V)
	}
	return all
}
