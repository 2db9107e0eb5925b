package team

import (
	"fmt"
	"slices"
	"strconv"
)

// WantKind is a kind of thing that should be true of the outside world.
type WantKind string

// The kinds of wants.
const (
	WantSession  WantKind = "session"  // a session runs for this incarnation of the member
	WantDelivery WantKind = "delivery" // the messages Seqs are in that session
	// the idle session looks at the task list, which has work for it
	WantWork   WantKind = "work"
	WantRetry  WantKind = "retry"  // the session continues after its trouble Reason
	WantAccess WantKind = "access" // the session has the access that the state grants
	// the session ends, for Reason, and a fresh one replaces it
	WantHandover   WantKind = "handover"
	WantInterrupt  WantKind = "interrupt"   // the session's turn is interrupted
	WantExpirePlan WantKind = "expire_plan" // the plan Request is rejected for want of an answer
	// the session ends, for Reason, and the member is reported as stopped
	WantStop             WantKind = "stop"
	WantExpirePermission WantKind = "expire_permission" // the request is answered as timed out
	WantExpireShutdown   WantKind = "expire_shutdown"   // the member without a session is stopped
	WantBudgetCheck      WantKind = "budget_check"      // the time of a budget is checked
	WantSave             WantKind = "save"              // the zombie's work is saved at intervals
	// the zombie's session ends, for Reason, until a session leads again
	WantRest WantKind = "rest"
	// the zombie that waits for something returns its tasks, for Reason
	WantYield    WantKind = "yield"
	WantMarkLate WantKind = "mark_late" // the lead is notified of late messages
	WantBase     WantKind = "base"      // the starting point of the claimed Task is recorded
	WantRecord   WantKind = "record"    // the work of the completed Task is recorded
	// the member keeps its lease, and its session is not started yet, for Reason
	WantWait   WantKind = "wait"
	WantTurn   WantKind = "turn"   // the member is granted a turn
	WantExpand WantKind = "expand" // the group Task has its tasks, or is completed; see [ExpandTask]
)

// Want is one thing that should be true of the outside world. Wants are derived from the state and
// never queued, so a restart finds them again. Fulfilling a want twice under the same Key has the
// same effect as once.
type Want struct {
	Kind        WantKind
	Key         string
	Member      string
	Incarnation int64
	Seqs        []int64 // delivery: which messages, in order
	Request     string  // expire_permission, expire_plan
	Reason      string  // stop, retry, handover, rest, yield, wait
	Task        string  // base, record, expand
}

// Wants returns what should be true at that time, always in the same order. It also returns the
// time at which more may become due even if nothing happens; 0 for never. A running session that no
// want asks for must be ended.
func (s *State) Wants(now Time) (wants []Want, next Time) { return s.AppendWants(nil, now) }

// AppendWants appends [State.Wants] to wants.
func (s *State) AppendWants(wants []Want, now Time) (all []Want, next Time) {
	if !s.Exists() || s.team.Status == TeamComplete || s.team.Status == TeamAborted || s.team.Released != (Released{}) {
		return wants, 0
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
	wants = slices.Grow(wants, 2*len(s.members))
	if s.team.Exhausted == "" && s.budgetDue(due) {
		wants = append(wants, Want{Kind: WantBudgetCheck, Key: "budget"})
	}
	for _, p := range s.permissions {
		if due(p.Deadline) {
			wants = append(wants, Want{Kind: WantExpirePermission, Key: "expire/" + p.Request, Member: p.Member,
				Request: p.Request})
		}
	}
	wants = s.appendTraceWants(wants)
	wants = s.appendTurnWants(wants, now)
	wants = s.appendExpandWants(wants)
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
			wants = appendEndWants(wants, m, due)
		case m.Agent != External && s.team.Exhausted == "" && m.Exhausted == "" && m.Setbacks < MaxSetbacks:
			wants = s.appendLifeWants(wants, m, now, due)
		}
	}
	return wants, next
}

// budgetDue reports whether the time of a budget must be checked.
func (s *State) budgetDue(due func(Time) bool) (now bool) {
	if at := s.team.Budget.checkAt(s.team.CreatedAt, s.team.Alerted); at != 0 {
		now = due(at)
	}
	for i := range s.members {
		if m := &s.members[i]; m.Status.Running() && m.Exhausted == "" {
			if at := m.Budget.checkAt(m.BudgetSince(), m.Alerted); at != 0 {
				now = due(at) || now
			}
		}
	}
	return now
}

// appendEndWants appends the wants of a member that must end: it agreed to a shutdown, or the
// deadline has passed.
func appendEndWants(wants []Want, m *Member, due func(Time) bool) []Want {
	if m.Agent == External || m.Host == "" {
		if !due(m.Shutdown.Deadline) {
			return wants
		}
		return append(wants, Want{Kind: WantExpireShutdown, Key: "expire/" + m.Shutdown.Request, Member: m.Name})
	}
	reason := AsAsked
	switch {
	case m.Shutdown.Answer == "approved":
	case m.RetryAt != 0 || m.Limited != 0:
		reason = LeftAlone
	default:
		reason = AtDeadline
	}
	return append(wants, Want{Kind: WantStop, Key: "stop/" + m.Shutdown.Request, Member: m.Name,
		Incarnation: m.Incarnation, Reason: reason})
}

// appendLifeWants appends the wants of a member that should have a session. While no session leads
// the team, the member's session rests after a time.
func (s *State) appendLifeWants(wants []Want, m *Member, now Time, due func(Time) bool) []Want {
	patient := m.RetryAt != 0 && !due(m.RetryAt)
	if m.Status == Spawning && m.Host == "" && patient {
		return wants
	}
	wait := Want{Kind: WantWait, Key: fmt.Sprintf("wait/%s/%d", m.Name, m.Incarnation), Member: m.Name,
		Incarnation: m.Incarnation}
	switch until := s.limitedUntil(m); {
	case until != 0 && !due(until):
		wait.Reason = "its model is rate limited"
		if patient = true; m.Status == Spawning && m.Host != "" {
			return append(wants, wait)
		}
	case m.Status != Active && s.takesTurns(m) && !s.hasTurn(m, now):
		wait.Reason = "it waits for a free turn"
		if patient = true; m.Status == Spawning {
			return append(wants, wait)
		}
	}
	if !s.orphaned(m) {
		return s.appendSessionWants(wants, m, patient)
	}
	if alone := s.team.Timing.OrDefaults().Zombie; due(s.team.LeadLost.Add(alone)) {
		if m.Host == "" {
			return wants
		}
		return append(wants, Want{Kind: WantRest, Key: fmt.Sprintf("rest/%s/%d", m.Name, m.Incarnation),
			Member: m.Name, Incarnation: m.Incarnation, Reason: "there has been no lead for " + Span(alone)})
	}
	wants = s.appendSessionWants(wants, m, patient)
	if m.Status != Spawning {
		wants = s.appendZombieWants(wants, m, due)
	}
	return wants
}

// Overdue returns the commands that end what is overdue and that no host handles. These are
// requests whose deadline has passed, members without a session whose shutdown is overdue, budgets
// whose time has passed, and groups of tasks that need nothing from outside. Every process sends
// them before a command of its own, and while it waits. So a budget ends at its time, and not at
// the next look of a host. Overdue also returns the time at which more becomes overdue even if
// nothing happens; 0 for never.
func (s *State) Overdue(now Time) (bodies []Body, next Time) {
	if !s.Exists() || s.team.Status == TeamComplete || s.team.Status == TeamAborted || s.team.Released != (Released{}) {
		return nil, 0
	}
	due := func(at Time) bool {
		if at > now && (next == 0 || at < next) {
			next = at
		}
		return at <= now
	}
	if s.team.Exhausted == "" && s.budgetDue(due) {
		bodies = append(bodies, &CheckBudget{})
	}
	bodies = append(bodies, s.overdueGroups()...)
	for _, p := range s.permissions {
		if due(p.Deadline) {
			bodies = append(bodies, &ExpirePermission{Request: p.Request})
		}
	}
	for i := range s.members {
		m := &s.members[i]
		if !m.Status.Running() {
			continue
		}
		if p := m.Plan; p.State == "submitted" && p.Deadline != 0 && due(p.Deadline) {
			bodies = append(bodies, &ExpirePlan{Request: p.Request})
		}
		seqs, then := s.late(m, now)
		if len(seqs) > 0 {
			bodies = append(bodies, &MarkLate{Member: m.Name})
		}
		if then != 0 {
			due(then)
		}
		if m.Shutdown.Request != "" && (m.Agent == External || m.Host == "") && due(m.Shutdown.Deadline) {
			bodies = append(bodies, &ExpireShutdown{Member: m.Name})
		}
	}
	return bodies, next
}

// appendZombieWants appends the wants of a member without a lead, besides its session.
func (s *State) appendZombieWants(wants []Want, m *Member, due func(Time) bool) []Want {
	session := fmt.Sprintf("%s/%d", m.Name, m.Incarnation)
	wants = append(wants, Want{Kind: WantSave, Key: fmt.Sprintf("save/%s/%d", session, s.team.LeadLost),
		Member: m.Name, Incarnation: m.Incarnation})
	// a member that holds a task and is not working on it waits for a retry, an answer or an
	// approval
	waits := m.Status == Blocked || m.Status == Idle
	if patience := s.team.Timing.OrDefaults().Blocked; waits && len(s.holds(m.Name)) > 0 &&
		due(max(m.Since, s.team.LeadLost).Add(patience)) {
		wants = append(wants, Want{Kind: WantYield, Key: fmt.Sprintf("yield/%s/%d", session, m.Since), Member: m.Name,
			Incarnation: m.Incarnation,
			Reason:      "it was blocked for " + Span(patience) + " without a lead"})
	}
	return wants
}

// appendSessionWants appends the wants of the member's session. While a trouble pauses it, it keeps
// its session and gets nothing.
func (s *State) appendSessionWants(wants []Want, m *Member, patient bool) []Want {
	session := "/" + m.Name + "/" + strconv.FormatInt(m.Incarnation, 10)
	want := func(kind WantKind, key string) Want {
		return Want{Kind: kind, Key: string(kind) + session + key, Member: m.Name, Incarnation: m.Incarnation}
	}
	wants = append(wants, want(WantSession, ""))
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
	if m.Interrupt != 0 && m.Status == Active {
		wants = append(wants, want(WantInterrupt, fmt.Sprintf("/%d", m.Interrupt)))
	}
	if patient {
		return wants
	}
	if m.Status == Blocked && m.Limited != 0 {
		w := want(WantRetry, fmt.Sprintf("/limit-%d", m.Limited))
		w.Reason = m.Summary
		wants = append(wants, w)
	} else if m.Status == Blocked && m.RetryAt != 0 {
		// the first setback after a good turn must have another key than the setback before that
		// turn
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
	if m.Status == Idle {
		if t := s.work(m); t != nil {
			wants = append(wants, want(WantWork, fmt.Sprintf("/%s/%d", t.ID, t.Fence)))
		}
	}
	return wants
}

// work returns the task that the idle member is given; nil for none.
func (s *State) work(m *Member) *Task {
	if m.Interrupt != 0 || s.orphaned(m) || s.team.Status == TeamConsolidating || m.Shutdown.Request != "" ||
		s.AllowsTool(m.Name, "TaskClaim") != nil {
		return nil
	}
	return s.next(m)
}

// wakes reports whether a message in the inbox should start a turn.
func (s *State) wakes(m *Member) bool {
	return slices.ContainsFunc(m.Inbox, func(seq int64) bool {
		msg := s.messages[seq]
		return msg != nil && !msg.Quiet && !s.held(msg) && !m.forChild(msg)
	})
}

// Wakes reports whether the member has mail that should start a turn.
func (s *State) Wakes(member string) bool {
	m := s.member(member)
	return m != nil && s.wakes(m)
}

// News returns the numbers of the member's messages that should start a turn, in order.
func (s *State) News(member string) (seqs []int64) {
	if m := s.member(member); m != nil {
		for _, seq := range m.Inbox {
			if msg := s.messages[seq]; msg != nil && !msg.Quiet && !s.held(msg) && !m.forChild(msg) {
				seqs = append(seqs, seq)
			}
		}
	}
	return seqs
}

// Busy reports whether the member's session, one of ours, does something or is about to. A session
// that was asked to end still counts.
func (s *State) Busy(member string) bool {
	m := s.member(member)
	switch {
	case m == nil || !m.Status.Running() || m.Setbacks >= MaxSetbacks:
		return false
	case m.Exhausted != "": // its session ends
		return m.Host != "" || m.Shutdown.Request != ""
	case m.RetryAt != 0 && m.Status != Active &&
		m.Name != s.team.Lead: // it is tried again if there is work for it
		return s.HasWork(member) || s.wakes(m)
	case m.runs() && len(s.holds(m.Name)) > 0: // it is about to run it
		return true
	}
	return m.Status != Idle || m.Shutdown.Request != "" || m.Handover != "" || m.Plan.State == "submitted" || s.wakes(m)
}

// Expects reports whether news for the member may still come: from other members that work or are
// about to, or from external sessions, whose activity is unknown.
func (s *State) Expects(member string) bool {
	if s.over() {
		return false
	}
	return slices.ContainsFunc(s.members, func(m Member) bool {
		return m.Name != member && m.Status.Running() && (m.Agent == External || s.Busy(m.Name) ||
			s.team.Exhausted == "" && s.HasWork(m.Name))
	})
}
