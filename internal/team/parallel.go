package team

import (
	"cmp"
	"fmt"
	"slices"
)

// TurnGranted lets the member start a turn, in a team that limits how many run at a time. It ends
// with that turn.
type TurnGranted struct{ Member string }

// Kind returns the event's name in the journal.
func (*TurnGranted) Kind() string { return "turn_granted" }

func (e *TurnGranted) fields(c *coder) { c.str("member", &e.Member) }

func (e *TurnGranted) apply(s *State, r *Record) {
	if m := s.alive(e.Member); m != nil {
		m.Turn = r.Seq
	}
}

// GrantTurn lets a member start a turn if one is free and nobody is before it. Otherwise it changes
// nothing.
type GrantTurn struct{ Member string }

func (b *GrantTurn) decide(d *decision) error {
	if !d.isHost() && d.Actor != User {
		return refuse(Denied, "only a host grants turns")
	}
	m, err := d.running(b.Member)
	if err != nil {
		return err
	}
	if first, _ := d.turns(d.At); slices.Contains(first, m) {
		d.emit(&TurnGranted{Member: m.Name})
	}
	return nil
}

// takesTurns reports whether the turns of the member count. The lead's do not: teammates may wait
// for its answer, and it for theirs.
func (s *State) takesTurns(m *Member) bool {
	return s.team.MaxParallel > 0 && m.Agent != External && m.Name != s.team.Lead && m.Status.Running()
}

// awaitsAnswer reports whether the member only waits, for a permission or for the approval of its
// plan. It holds no turn meanwhile, because the one who answers may need one.
func (s *State) awaitsAnswer(m *Member) bool {
	return m.Plan.State == "submitted" ||
		slices.ContainsFunc(s.permissions, func(p Permission) bool { return p.Member == m.Name })
}

// AwaitsAnswer reports whether the member only waits for an answer to a request of its own.
func (s *State) AwaitsAnswer(member string) bool {
	m := s.member(member)
	return m != nil && s.awaitsAnswer(m)
}

// wouldStart reports whether the member would start a turn now if one were free.
func (s *State) wouldStart(m *Member) bool {
	switch m.Status {
	case Spawning:
		return true
	case Idle:
		return m.Handover == "" && (s.wakes(m) || s.work(m) != nil)
	case Blocked:
		return m.Handover == "" && (m.Limited != 0 || m.RetryAt != 0 || s.wakes(m))
	}
	return false
}

// turns returns the members that may be granted a turn now, and those that wait for one behind
// them: by the priority of their tasks, then by the time that they wait.
func (s *State) turns(now Time) (first, others []*Member) {
	free := s.team.MaxParallel
	if free == 0 {
		return nil, nil
	}
	for i := range s.members {
		switch m := &s.members[i]; {
		case !s.takesTurns(m):
		case s.hasTurn(m, now):
			free--
		case s.wouldStart(m) && m.RetryAt <= now && s.limitedUntil(m) <= now && s.runs(m):
			others = append(others, m)
		}
	}
	slices.SortStableFunc(others, func(a, b *Member) int {
		return cmp.Or(s.urgency(b)-s.urgency(a), cmp.Compare(a.Since, b.Since))
	})
	n := min(max(0, int(free)), len(others))
	return others[:n], others[n:]
}

// runs reports whether the team lets the member have a session at all.
func (s *State) runs(m *Member) bool {
	return s.team.Exhausted == "" && m.Exhausted == "" && m.Setbacks < MaxSetbacks
}

// hasTurn reports whether the member has one of the team's turns. A grant counts only while the
// member has a use for it, and the newest ones count: a member that was granted a turn and found
// nothing to do must not start another one later, beside those that have turns then. A member that
// waits for a rate limit, in its turn or before it, leaves its turn to others.
func (s *State) hasTurn(m *Member, now Time) bool {
	if !s.takesTurns(m) || s.awaitsAnswer(m) {
		return false
	}
	if s.inTurn(m, now) {
		return true
	}
	if m.Turn == 0 || !s.usesGrant(m, now) {
		return false
	}
	before := int64(0)
	for i := range s.members {
		o := &s.members[i]
		if o != m && s.takesTurns(o) && !s.awaitsAnswer(o) &&
			(s.inTurn(o, now) || o.Turn > m.Turn && s.usesGrant(o, now)) {
			before++
		}
	}
	return before < s.team.MaxParallel
}

// inTurn reports whether the member's session works now. One that was refused for a rate limit, and
// tries again by itself, waits until then.
func (s *State) inTurn(m *Member, now Time) bool {
	if m.Status != Active && m.Status != ShuttingDown {
		return false
	}
	l := s.rateLimit(m.Pool)
	return l == nil || now >= l.Until || !s.waitsFor(m, l)
}

// usesGrant reports whether the member would start the turn that it was granted now.
func (s *State) usesGrant(m *Member, now Time) bool {
	return s.wouldStart(m) && s.limitedUntil(m) <= now
}

// urgency returns how urgent the member's next turn is: the priority of the task that it has or
// would take, and for mail that of most tasks.
func (s *State) urgency(m *Member) int {
	if held := s.holds(m.Name); len(held) > 0 {
		return priorityIndex(held[0].Priority)
	}
	if t := s.next(m); t != nil {
		return priorityIndex(t.Priority)
	}
	return priorityIndex("medium")
}

// MayStart reports whether the member may start a turn now, as far as rate limits and the number of
// turns at a time are concerned.
func (s *State) MayStart(member string, now Time) bool {
	m := s.member(member)
	return m != nil && (m.Status == Active || s.limitedUntil(m) <= now && (!s.takesTurns(m) || s.hasTurn(m, now)))
}

// WaitsForTurn reports whether the member waits because as many others have a turn as the team
// allows at a time.
func (s *State) WaitsForTurn(member string, now Time) bool {
	m := s.member(member)
	if m == nil || s.over() {
		return false
	}
	_, others := s.turns(now)
	return slices.Contains(others, m)
}

// appendTurnWants appends the turns that are to be granted.
func (s *State) appendTurnWants(wants []Want, now Time) []Want {
	first, _ := s.turns(now)
	for _, m := range first {
		wants = append(wants, Want{Kind: WantTurn, Key: fmt.Sprintf("turn/%s/%d/%d", m.Name, m.Incarnation, m.Turn),
			Member: m.Name, Incarnation: m.Incarnation})
	}
	return wants
}
