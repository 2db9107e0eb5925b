package team

import (
	"fmt"
	"slices"
	"strconv"
)

// WantKind is what sort of thing should be true of the outside world.
type WantKind string

// The kinds of wants.
const (
	WantSession  WantKind = "session"  // a session runs for this incarnation of the member
	WantDelivery WantKind = "delivery" // the messages Seqs are in that session
	// the idle session looks at the task list: there is something for it
	WantWork   WantKind = "work"
	WantRetry  WantKind = "retry"  // the session goes on after its trouble Reason
	WantAccess WantKind = "access" // the session may do by itself what the state says
	// the session is ended, for Reason, and a fresh one goes on for it
	WantHandover   WantKind = "handover"
	WantExpirePlan WantKind = "expire_plan" // the plan Request is rejected because nobody answered
	// the session is ended, for Reason, and the member reported as stopped
	WantStop             WantKind = "stop"
	WantExpirePermission WantKind = "expire_permission" // the request is answered as timed out
	WantExpireShutdown   WantKind = "expire_shutdown"   // the member without a session is stopped
	WantBudgetCheck      WantKind = "budget_check"      // the time of the budget is over
	WantSave             WantKind = "save"              // what the zombie does is saved again and again
	// the zombie's session is ended, for Reason, until there is a lead again
	WantRest WantKind = "rest"
	// the zombie that waits for something gives its tasks back, for Reason
	WantYield    WantKind = "yield"
	WantMarkLate WantKind = "mark_late" // the lead is told of messages that wait for long
	WantBase     WantKind = "base"      // what the claimed Task starts from is recorded
	WantRecord   WantKind = "record"    // what the completed Task did is recorded
)

// Want is one thing that should be true of the outside world. Wants are derived from the state and
// never queued, so a restart finds them again; making one true twice under the same Key is the same
// as once.
type Want struct {
	Kind        WantKind
	Key         string
	Member      string
	Incarnation int64
	Seqs        []int64 // delivery: which messages, in order
	Request     string  // expire_permission, expire_plan
	Reason      string  // stop, retry, handover, rest, yield
	Task        string  // base, record
}

// Wants returns what should be true at that time, always in the same order, and the time at which
// more may be due though nothing happens; 0 for never. A session that runs although nothing wants
// it is to be ended.
func (s *State) Wants(now Time) (wants []Want, next Time) {
	if !s.Exists() || s.team.Status == TeamComplete || s.team.Status == TeamAborted || s.team.Released != (Released{}) {
		return nil, 0
	}
	due := func(at Time) bool {
		if at <= now {
			return true
		}
		if next == 0 || at < next {
			next = at
		}
		return false
	}
	wants = make([]Want, 0, 2*len(s.members))
	if b := s.team.Budget.Millis; b > 0 && s.team.Exhausted == "" && due(plus(s.team.CreatedAt, Time(b))) {
		wants = append(wants, Want{Kind: WantBudgetCheck, Key: "budget"})
	}
	for _, p := range s.permissions {
		if due(p.Deadline) {
			wants = append(wants, Want{Kind: WantExpirePermission, Key: "expire/" + p.Request, Member: p.Member,
				Request: p.Request})
		}
	}
	wants = append(wants, s.traceWants()...)
	for i := range s.members {
		m := &s.members[i]
		if !m.Status.Running() {
			continue
		}
		if p := m.Plan; p.State == "submitted" && p.Deadline != 0 && due(p.Deadline) {
			wants = append(wants, Want{Kind: WantExpirePlan, Key: "expire/" + p.Request, Member: m.Name,
				Request: p.Request})
		}
		seqs, then := s.late(m, now)
		if len(seqs) > 0 {
			wants = append(wants, Want{Kind: WantMarkLate, Key: fmt.Sprintf("late/%s/%d", m.Name, seqs[0]),
				Member: m.Name})
		}
		if then != 0 {
			due(then)
		}
		switch ends := m.Shutdown.Request != "" && (m.Shutdown.Answer == "approved" || due(m.Shutdown.Deadline)); {
		case ends:
			wants = append(wants, endWants(m, due)...)
		case m.Agent != External && s.team.Exhausted == "" && m.Setbacks < MaxSetbacks:
			wants = append(wants, s.lifeWants(m, due)...)
		}
	}
	return wants, next
}

// endWants are those of a member that is to end: it agreed to, or its deadline is over.
func endWants(m *Member, due func(Time) bool) []Want {
	if m.Agent == External || m.Host == "" {
		if !due(m.Shutdown.Deadline) {
			return nil
		}
		return []Want{{Kind: WantExpireShutdown, Key: "expire/" + m.Shutdown.Request, Member: m.Name}}
	}
	reason := AsAsked
	switch {
	case m.Shutdown.Answer == "approved":
	case m.RetryAt != 0:
		reason = LeftAlone
	default:
		reason = AtDeadline
	}
	return []Want{{Kind: WantStop, Key: "stop/" + m.Shutdown.Request, Member: m.Name, Incarnation: m.Incarnation,
		Reason: reason}}
}

// lifeWants are those of a member that a session is to run for. While nobody leads the team, the
// session rests after a time.
func (s *State) lifeWants(m *Member, due func(Time) bool) []Want {
	patient := m.RetryAt != 0 && !due(m.RetryAt)
	if m.Status == Spawning && m.Host == "" && patient {
		return nil
	}
	alone := Time(s.team.Timing.OrDefaults().Zombie)
	switch orphaned := s.orphaned(m); {
	case orphaned && due(plus(s.team.LeadLost, alone)):
		if m.Host == "" {
			return nil
		}
		return []Want{{Kind: WantRest, Key: fmt.Sprintf("rest/%s/%d", m.Name, m.Incarnation), Member: m.Name,
			Incarnation: m.Incarnation, Reason: "there has been no lead for " + span(alone)}}
	case orphaned && m.Status != Spawning:
		return append(s.sessionWants(m, patient), s.zombieWants(m, due)...)
	}
	return s.sessionWants(m, patient)
}

// Overdue returns the commands that end what nobody ended in time and no host sees to: requests
// whose deadline has passed, and members without a session that were to shut down by now.
func (s *State) Overdue(now Time) (due []Body) {
	if !s.Exists() || s.team.Status == TeamComplete || s.team.Status == TeamAborted || s.team.Released != (Released{}) {
		return nil
	}
	for _, p := range s.permissions {
		if p.Deadline <= now {
			due = append(due, &ExpirePermission{Request: p.Request})
		}
	}
	for i := range s.members {
		if p := s.members[i].Plan; p.State == "submitted" && p.Deadline != 0 && p.Deadline <= now &&
			s.members[i].Status.Running() {
			due = append(due, &ExpirePlan{Request: p.Request})
		}
		if seqs, _ := s.late(&s.members[i], now); len(seqs) > 0 && s.members[i].Status.Running() {
			due = append(due, &MarkLate{Member: s.members[i].Name})
		}
		if m := &s.members[i]; m.Shutdown.Request != "" && m.Shutdown.Deadline <= now && m.Status.Running() &&
			(m.Agent == External || m.Host == "") {
			due = append(due, &ExpireShutdown{Member: m.Name})
		}
	}
	return due
}

// zombieWants is what a member without a lead is to have besides its session.
func (s *State) zombieWants(m *Member, due func(Time) bool) []Want {
	session := fmt.Sprintf("%s/%d", m.Name, m.Incarnation)
	wants := []Want{{Kind: WantSave, Key: fmt.Sprintf("save/%s/%d", session, s.team.LeadLost), Member: m.Name,
		Incarnation: m.Incarnation}}
	// one that holds a task and is not at it waits: for better times, an answer, an approval
	waits := m.Status == Blocked || m.Status == Idle
	if patience := Time(s.team.Timing.OrDefaults().Blocked); waits && len(s.holds(m.Name)) > 0 &&
		due(plus(max(m.Since, s.team.LeadLost), patience)) {
		wants = append(wants, Want{Kind: WantYield, Key: fmt.Sprintf("yield/%s/%d", session, m.Since), Member: m.Name,
			Incarnation: m.Incarnation,
			Reason:      "it was blocked for " + span(patience) + " without a lead"})
	}
	return wants
}

// sessionWants is what the member's session is to have. One that is left alone after a trouble
// keeps its session, and gets nothing.
func (s *State) sessionWants(m *Member, patient bool) []Want {
	session := "/" + m.Name + "/" + strconv.FormatInt(m.Incarnation, 10)
	want := func(kind WantKind, key string) Want {
		return Want{Kind: kind, Key: string(kind) + session + key, Member: m.Name, Incarnation: m.Incarnation}
	}
	wants := append(make([]Want, 0, 4), want(WantSession, ""))
	if m.Status == Spawning {
		return wants
	}
	if m.Handover != "" {
		w := want(WantHandover, "")
		w.Reason = m.Handover
		return append(wants, w)
	}
	wants = append(wants, want(WantAccess, "/"+m.PermissionMode+"/"+strconv.FormatBool(s.Writes(m.Name))+"/"+
		strconv.FormatBool(s.Gated(m.Name))))
	if patient {
		return wants
	}
	if m.Status == Blocked && m.RetryAt != 0 {
		// the first setback after a good turn is another one than the first before it
		w := want(WantRetry, fmt.Sprintf("/%d", m.RetryAt))
		w.Reason = m.Summary
		wants = append(wants, w)
	}
	if s.wakes(m) {
		ripe := s.ripe(m)
		w := want(WantDelivery, fmt.Sprintf("/%d-%d", ripe[0], ripe[len(ripe)-1]))
		if m.Resent > 0 {
			w.Key += fmt.Sprintf("/again-%d", m.Resent)
		}
		w.Seqs = slices.Clone(ripe)
		wants = append(wants, w)
	}
	if m.Status == Idle && !s.orphaned(m) && s.team.Status != TeamConsolidating && m.Shutdown.Request == "" &&
		s.AllowsTool(m.Name, "TaskClaim") == nil {
		if t := s.next(m); t != nil {
			wants = append(wants, want(WantWork, fmt.Sprintf("/%s/%d", t.ID, t.Fence)))
		}
	}
	return wants
}

// wakes reports whether one of the messages in the inbox is worth a turn.
func (s *State) wakes(m *Member) bool {
	return slices.ContainsFunc(m.Inbox, func(seq int64) bool {
		msg := s.messages[seq]
		return msg != nil && !msg.Quiet && !s.held(msg)
	})
}

// Wakes reports whether the member has mail that is worth a turn.
func (s *State) Wakes(member string) bool {
	m := s.member(member)
	return m != nil && s.wakes(m)
}

// News returns the numbers of the messages for the member that are worth a turn, in order.
func (s *State) News(member string) (seqs []int64) {
	if m := s.member(member); m != nil {
		for _, seq := range m.Inbox {
			if msg := s.messages[seq]; msg != nil && !msg.Quiet && !s.held(msg) {
				seqs = append(seqs, seq)
			}
		}
	}
	return seqs
}

// Busy reports whether the member's session, which is ours, does something or is about to. One that
// is asked to end is waited for.
func (s *State) Busy(member string) bool {
	m := s.member(member)
	switch {
	case m == nil || !m.Status.Running() || m.Setbacks >= MaxSetbacks:
		return false
	case m.RetryAt != 0 && m.Status != Active &&
		m.Name != s.team.Lead: // it is tried again if there is something for it
		return s.next(m) != nil || s.wakes(m)
	case m.Agent == Shell && len(s.holds(m.Name)) > 0: // it begins
		return true
	}
	return m.Status != Idle || m.Shutdown.Request != "" || m.Handover != "" || m.Plan.State == "submitted" || s.wakes(m)
}

// Expects reports whether news for the member may still come: from others on the team that do
// something or are about to, and from sessions outside, of which nobody can tell.
func (s *State) Expects(member string) bool {
	if s.over() {
		return false
	}
	return slices.ContainsFunc(s.members, func(m Member) bool {
		return m.Name != member && m.Status.Running() && (m.Agent == External || s.Busy(m.Name) ||
			s.team.Exhausted == "" && s.next(&m) != nil)
	})
}
