package model

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"

	"cadre/internal/observe/protocol"
	"cadre/internal/team"
)

// recordChanges makes a record of the difference between the state and the present knowledge.
func (s *observedTeam) recordChanges(id, actor string, at stamp) {
	if !s.exists() {
		s.events = nil
		clear(s.board.dirty)
		clear(s.roster.dirty)
		return
	}
	if t := s.lifetime.Name; t != "" && !s.founding() && s.state.Team().Observed == unnamed && t != unnamed &&
		s.options.Name != unnamed {
		s.emit(&team.MemberDescribed{Member: s.lead(), Team: t})
	}
	said := s.events
	s.events = nil
	if len(said) > 0 {
		if _, ok := said[0].(*team.TeamCreated); ok {
			s.emit(said[0])
			said = said[1:]
		}
	}
	people := slices.Sorted(maps.Keys(s.roster.dirty))
	members := make([]team.Member, len(people))
	for i, name := range people {
		members[i] = s.recordJoin(name)
	}
	s.emit(said...)
	for i, name := range people {
		if members[i].Name != "" {
			s.recordStatus(s.roster.People[name], members[i], said)
		}
	}
	clear(s.roster.dirty)
	if len(s.board.dirty) > 0 {
		s.recordTasks(actor)
	}
	s.commit(id, actor, at)
	if s.reportUsage(); len(s.events) > 0 { // usage of a team or a member that exists only now
		s.commit(s.recordID("usage"), actor, at)
	}
}

// recordJoin adds a teammate, or new details about it. It returns the member before any change of
// its status, or a zero member if it has not joined.
func (s *observedTeam) recordJoin(name string) team.Member {
	p := s.roster.People[name]
	if !p.Joined.V || name == s.lead() {
		return team.Member{}
	}
	a := p.About.V
	have, ok := s.state.Member(name)
	if !ok {
		m := team.Member{Name: name, Agent: team.External, Model: a.Model, Role: a.Type, Prompt: a.Prompt,
			Color: a.Color, Session: a.AgentID,
			Status: team.Active, Plan: team.Plan{Required: a.Planned}, Incarnation: 1}
		s.emit(&team.MemberSpawned{Member: m})
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
		s.emit(&more)
	}
	return have
}

// recordStatus emits the change of a member's status. have is the member before the events in said.
func (s *observedTeam) recordStatus(p *person, have team.Member, said []team.Event) {
	end := p.end()
	switch {
	case end != "":
		if have.Status.Running() {
			s.emit(ending(p, have.Name, end))
		}
		return
	case have.Status == team.ShuttingDown, have.Status.Running() &&
		agrees(said, have.Name): // it has come back since, and that was read first
		s.emit(ending(p, have.Name, shutdown))
		have.Status = team.Stopped
	}
	if !have.Status.Running() {
		back := have
		back.Status, back.Plan, back.Shutdown = team.Active, team.Plan{Required: p.About.V.Planned}, team.Shutdown{}
		if s.roster.pending(p) {
			back.Shutdown = team.Shutdown{Request: p.Asked.V, Reason: p.Reason, Deadline: p.Asked.When.At + noDeadline}
		}
		s.emit(&team.MemberReturned{Member: back})
		have.Status = team.Active
	}
	switch {
	case p.Doing.V == idle && have.Status != team.Idle:
		s.emit(&team.MemberStatusChanged{Member: have.Name, Status: team.Idle, Summary: p.Detail})
	case p.Doing.V == active && have.Status != team.Active:
		s.emit(&team.MemberStatusChanged{Member: have.Name, Status: team.Active})
	}
}

// ending returns the event for a member's end.
func ending(p *person, name, end string) team.Event {
	switch end {
	case failed:
		return &team.MemberFailed{Member: name, Reason: p.Fault}
	case left:
		return &team.MemberStopped{Member: name, Reason: "it was removed from the roster"}
	}
	return &team.MemberStopped{Member: name, Reason: team.AsAsked}
}

// agrees reports whether the events say that the member agreed to shut down.
func agrees(said []team.Event, name string) bool {
	return slices.ContainsFunc(said, func(e team.Event) bool {
		a, ok := e.(*team.ShutdownAnswered)
		return ok && a.Member == name && a.Approved
	})
}

// recordTasks updates the tasks of the state to the board. New tasks come first, so that others can
// depend on them.
func (s *observedTeam) recordTasks(actor string) {
	b := s.board
	ids := slices.DeleteFunc(slices.Sorted(maps.Keys(b.dirty)), func(id string) bool { return b.Tasks[id] == nil })
	clear(b.dirty)
	protocol.SortTasks(ids)
	fresh := map[string]team.Task{}
	for _, id := range ids {
		e := b.Tasks[id]
		have, ok := s.state.Task(id)
		if !e.visible() || ok && !skipped(have) {
			continue
		}
		n := protocol.TaskNumber(id)
		if n-1 > s.taskCount {
			if n-1-s.taskCount > team.MaxSkipped {
				s.warn("ignored task %s, because its number is too far beyond the others", id)
				continue
			}
			s.emit(&team.TasksSkipped{Through: int64(n - 1)})
		}
		s.taskCount = max(s.taskCount, n)
		t := team.Task{ID: id, Subject: e.Subject.V, Description: e.Description.V, ActiveForm: e.ActiveForm.V,
			Status: team.Pending, Metadata: metadata(e, nil),
			CreatedBy: e.CreatedBy}
		fresh[id] = t
		s.emit(&team.TaskCreated{Task: t})
	}
	for _, id := range ids {
		have, ok := fresh[id]
		if !ok {
			if have, ok = s.state.Task(id); !ok || skipped(have) {
				continue
			}
		}
		s.recordTask(b.Tasks[id], have, actor)
	}
}

// skipped reports whether a task of the state is only a placeholder for one that was not seen.
func skipped(t team.Task) bool { return t.Status == team.Deleted && t.CreatedAt == 0 }

func (s *observedTeam) recordTask(e *entry, have team.Task, actor string) {
	if !e.visible() {
		if have.Status != team.Deleted {
			s.emit(&team.TaskDeleted{Task: have.ID, Unblocked: s.unblocked(&have)})
		}
		return
	}
	owner, status := e.Owner.V, team.TaskStatus(cmp.Or(e.Status.V, string(team.Pending)))
	if have.Status == team.Deleted {
		s.emit(&team.TaskReleased{Task: have.ID, Owner: owner, Reason: "it returned to the queue"})
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
	want := s.board.blockedBy(e)
	for _, id := range want {
		if !slices.Contains(have.BlockedBy, id) {
			change.AddBlockedBy = append(change.AddBlockedBy, id)
		}
	}
	for _, id := range have.BlockedBy {
		if edge, ok := e.BlockedBy[id]; ok && !edge.V && s.board.Tasks[id].visible() {
			change.RemoveBlockedBy = append(change.RemoveBlockedBy, id)
		}
	}
	if changed || len(change.AddBlockedBy)+len(change.RemoveBlockedBy) > 0 {
		s.emit(&change)
	}
	switch {
	case claims:
		s.emit(&team.TaskClaimed{Task: have.ID, Member: owner, Fence: have.Fence + 1})
	case releases:
		s.emit(&team.TaskReleased{Task: have.ID, Owner: owner})
	case status == team.Completed && have.Status != team.Completed:
		s.emit(&team.TaskCompleted{Task: have.ID, By: cmp.Or(owner, actor), Unblocked: s.unblocked(&have)})
	}
}

// metadata returns the entry's metadata that differs from have; nil for no difference.
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
