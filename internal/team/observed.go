package team

import "strconv"

// Events of observed teams. No command of ours causes them.

// CheckOurs refuses a team that is only observed: our commands do not change it, and we run no
// session for it.
func (t *Team) CheckOurs() error {
	if t.Observed == "" {
		return nil
	}
	return Refuse(Denied, "team %s is only observed: its own agents decide what happens in it", t.Name).
		With(t.hint(ActShowTeam), t.hint(ActCleanUp))
}

func (e *MemberReturned) fields(c *coder) { c.sub("member", false, &e.Member) }

func (e *MemberDescribed) fields(c *coder) {
	c.str("member", &e.Member)
	c.str("model", &e.Model)
	c.str("role", &e.Role)
	c.str("prompt", &e.Prompt)
	c.str("color", &e.Color)
	c.str("session", &e.Session)
	c.str("team", &e.Team)
}

func (e *TasksSkipped) fields(c *coder) { c.int("through", &e.Through) }

func (e *GapNoticed) fields(c *coder) {
	c.str("source", &e.Source)
	c.str("reason", &e.Reason)
}

func (e *MemberReturned) apply(s *State, r *Record) {
	m := s.member(e.Member.Name)
	if m == nil || m.Status.Running() || m.Name == s.team.Lead {
		return
	}
	m.become(e.Member.Status, r.At)
	m.Change = s.latest().Changes + 1
	m.Model, m.Role, m.Prompt, m.Color, m.Session = e.Member.Model, e.Member.Role, e.Member.Prompt, e.Member.Color,
		e.Member.Session
	m.PermissionMode, m.Plan, m.Shutdown, m.Summary = e.Member.PermissionMode, e.Member.Plan, e.Member.Shutdown, ""
	m.Incarnation++
}

func (e *MemberDescribed) apply(s *State, _ *Record) {
	m := s.member(e.Member)
	if m == nil {
		return
	}
	for _, part := range []struct {
		to   *string
		from string
	}{{&m.Model, e.Model}, {&m.Role, e.Role}, {&m.Prompt, e.Prompt}, {&m.Color, e.Color}, {&m.Session, e.Session}} {
		if part.from != "" {
			*part.to = part.from
		}
	}
	if t := &s.team; e.Team != "" && t.Observed != "" {
		if t.Name == t.Observed {
			t.Name = e.Team
		}
		t.Observed = e.Team
	}
}

// MaxSkipped limits the ids that one event skips. A name far beyond all other tasks is a mistake,
// and no reason to reserve places for millions.
const MaxSkipped = 1 << 14

// skipped reports whether t only reserves the place of a task that this journal does not have.
func (t *Task) skipped() bool { return t.Status == Deleted && t.CreatedAt == 0 }

func (e *TasksSkipped) apply(s *State, _ *Record) {
	if e.Through-int64(len(s.tasks)) > MaxSkipped {
		return
	}
	for int64(len(s.tasks)) < e.Through {
		s.tasks = append(s.tasks, Task{ID: strconv.Itoa(len(s.tasks) + 1), Status: Deleted})
		s.counts[statusIndex(Deleted)]++
	}
}

func (*GapNoticed) apply(*State, *Record) {}
