package team

import (
	"cmp"
	"maps"
	"slices"
	"strings"
)

// Apply brings the state from the record before r to r. It reports whether it did: a record that
// was applied before changes nothing. Records must come in the order of their seqs without a gap.
// Apply panics on a gap, because every later answer would be wrong.
func (s *State) Apply(r *Record) bool {
	if r.Seq <= s.seq {
		return false
	}
	if r.Seq != s.seq+1 {
		panic("team: a record was skipped")
	}
	s.seq = r.Seq
	for _, e := range r.Events {
		e.apply(s, r)
	}
	s.team.UpdatedAt = max(s.team.UpdatedAt, r.At)
	s.recent.add(strings.Clone(r.ID), r.Seq) // the id is part of the record's line, which is longer
	return true
}

func (e *TeamCreated) apply(s *State, r *Record) {
	if s.team.ID != "" || e.Team.ID == "" {
		return
	}
	s.team = e.Team
	s.team.Lead = e.Lead.Name
	s.team.CreatedAt = r.At
	s.join(e.Lead, r)
}

func (s *State) join(m Member, r *Record) {
	if s.team.ID == "" || s.member(m.Name) != nil {
		return
	}
	m.JoinedAt, m.Since = r.At, r.At
	m.Inbox = nil
	m.Told = s.latest()
	m.Told.Changes++
	m.Change = m.Told.Changes
	if s.named == nil {
		s.named = map[string]int{}
	}
	s.named[m.Name] = len(s.members)
	s.members = append(s.members, m)
}

func (e *TeamStatusChanged) apply(s *State, r *Record) {
	s.team.Status = e.Status
	switch ending := e.Status == TeamConsolidating || e.Status == TeamComplete; {
	case !ending:
		s.team.EndingAt = 0
	case s.team.EndingAt == 0:
		s.team.EndingAt = cmp.Or(s.FinishedAt(), r.At) // it had ended before an attempt that was abandoned
	}
	if e.Report != "" {
		s.team.Report = e.Report
	}
}

func (e *TeamCleanedUp) apply(s *State, _ *Record)   { s.team.CleanedUp = true }
func (e *DelegateChanged) apply(s *State, _ *Record) { s.team.Delegate = e.On }
func (e *BudgetExhausted) apply(s *State, _ *Record) { s.team.Exhausted = e.What }

func (e *BudgetChanged) apply(s *State, _ *Record) {
	s.team.Budget = e.Budget
	s.team.Exhausted, s.team.Alerted = "", e.Alerted
}

func (e *BudgetAlerted) apply(s *State, _ *Record) {
	told := &s.team.Alerted
	if e.Member != "" {
		m := s.member(e.Member)
		if m == nil {
			return
		}
		told = &m.Alerted
	}
	*told = append(slices.DeleteFunc(slices.Clone(*told), func(a Alerted) bool { return a.What == e.What }),
		Alerted{e.What, e.Percent})
}

func (e *MemberBudgetChanged) apply(s *State, _ *Record) {
	if m := s.member(e.Member); m != nil {
		m.Budget, m.Exhausted, m.Alerted = e.Budget, "", e.Alerted
	}
}

func (e *MemberBudgetExhausted) apply(s *State, _ *Record) {
	if m := s.member(e.Member); m != nil {
		m.Exhausted = e.What
	}
}

func (e *ReportAsked) apply(s *State, _ *Record) { s.team.ReportAsked = true }

func (e *ReportGiven) apply(s *State, _ *Record) { s.team.LastWords = e.Text }

// reopenReport forgets the request for the lead's report, and the report: there is new work.
func (s *State) reopenReport() { s.team.ReportAsked, s.team.LastWords = false, "" }

func (e *MemberSpawned) apply(s *State, r *Record) {
	s.join(e.Member, r)
	s.reopenReport()
	if s.team.Status == TeamPending {
		s.team.Status = TeamActive
	}
}

func (e *MemberAttached) apply(s *State, _ *Record) {
	if m := s.alive(e.Member); m != nil {
		m.Host, m.Lease, m.Pool = e.Host, e.Lease, e.Pool
		own(&m.Pool)
		m.moveTo(e.Machine, e.Note)
	}
}

// become sets the member's status.
func (m *Member) become(status MemberStatus, at Time) {
	if m.Status != status {
		m.Status, m.Since = status, at
	}
}

func (e *MemberStarted) apply(s *State, r *Record) {
	if m := s.alive(e.Member); m != nil {
		if m.Session != e.Session {
			m.SessionCost = 0
			m.Told = s.latest() // it looks at the team as it is now
		}
		m.Session, m.Summary, m.Context, m.Offline = e.Session, "", 0, 0
		if m.Status == Spawning {
			m.become(Active, r.At)
		}
	}
}

func (e *MemberStatusChanged) apply(s *State, r *Record) {
	if m := s.alive(e.Member); m != nil {
		if e.Status == Active && m.Status != Active { // the interrupted turn is over
			m.Interrupt = 0
		}
		if m.Summary = e.Summary; m.Status != ShuttingDown {
			m.become(e.Status, r.At)
		}
		if e.Status != Blocked {
			m.Limited = 0
		}
		if e.Status != Active {
			m.Turn = 0
		}
		if e.Status == Idle {
			m.Setbacks, m.RetryAt, m.Note = 0, 0, ""
			s.setStrikes(hookKey("TeammateIdle", e.Member, ""), 0)
		}
	}
}

func (e *MemberDetached) apply(s *State, r *Record) {
	if m := s.alive(e.Member); m != nil {
		m.Host, m.Summary, m.Note = "", e.Reason, e.Note
		m.Pool, m.Limited, m.Turn = "", 0, 0          // the next session may be in another pool
		m.Handover, m.Interrupt, m.Offline = "", 0, 0 // they belonged to the session that ended
		m.become(Spawning, r.At)
		if e.Fresh {
			m.Session = ""
		}
		m.Incarnation++
		m.Shutdown = Shutdown{}
		s.dropPermissions(m.Name)
	}
}

func (e *MemberStopped) apply(s *State, r *Record) { s.end(e.Member, Stopped, e.Reason, r.At) }
func (e *MemberFailed) apply(s *State, r *Record)  { s.end(e.Member, Failed, e.Reason, r.At) }

// alive returns the member of that name, nil if it has ended. No later record undoes an end.
func (s *State) alive(name string) *Member {
	if m := s.member(name); m != nil && m.Status.Running() {
		return m
	}
	return nil
}

func (s *State) end(member string, status MemberStatus, reason string, at Time) {
	if m := s.member(member); m != nil {
		if m.Status.Running() {
			m.Change = s.latest().Changes + 1
		}
		m.become(status, at)
		m.Summary, m.Host = reason, ""
		m.Shutdown, m.Handover, m.Interrupt, m.RetryAt, m.Offline = Shutdown{}, "", 0, 0, 0
		m.Pool, m.Limited, m.Turn = "", 0, 0
		s.dropPermissions(member)
	}
}

func (s *State) dropPermissions(member string) {
	s.permissions = slices.DeleteFunc(s.permissions, func(p Permission) bool { return p.Member == member })
}

func (e *ModeChanged) apply(s *State, _ *Record) {
	if m := s.member(e.Member); m != nil {
		m.PermissionMode, m.OwnMode = e.Mode, e.Own
	}
}

func (e *ShutdownRequested) apply(s *State, _ *Record) {
	if m := s.alive(e.Member); m != nil {
		m.Shutdown = Shutdown{Request: e.Request, Reason: e.Reason, Deadline: e.Deadline}
	}
	s.requestSeq++
}

func (e *ShutdownAnswered) apply(s *State, r *Record) {
	if m := s.alive(e.Member); m != nil {
		if m.Shutdown.Answer = "rejected"; e.Approved {
			m.Shutdown.Answer = "approved"
			m.become(ShuttingDown, r.At)
		}
	}
}

func (e *ShutdownWithdrawn) apply(s *State, _ *Record) {
	if m := s.member(e.Member); m != nil {
		m.Shutdown = Shutdown{}
	}
}

func (e *PlanSubmitted) apply(s *State, r *Record) {
	if m := s.member(e.Member); m != nil {
		m.Plan.State, m.Plan.Request, m.Plan.Text, m.Plan.Feedback, m.Plan.Deadline, m.Plan.AskedAt = "submitted",
			e.Request, e.Plan, "", e.Deadline, r.At
	}
	s.requestSeq++
}

func (e *PlanAnswered) apply(s *State, r *Record) {
	outcome := "rejected"
	if e.Approved {
		outcome = "approved"
	}
	if m := s.member(e.Member); m != nil {
		m.Plan.Text, m.Plan.Feedback, m.Plan.Deadline, m.Plan.AskedAt = "", e.Feedback, 0, 0
		m.Plan.State = outcome
	}
	s.remember(Answer{Request: e.Request, Outcome: outcome, By: e.By, At: r.At})
}

func (e *PermissionRequested) apply(s *State, r *Record) {
	p := e.Permission
	p.AskedAt = r.At
	s.permissions = append(s.permissions, p)
	s.requestSeq++
}

func (e *PermissionAnswered) apply(s *State, r *Record) {
	s.remember(Answer{Request: e.Request, Outcome: e.Outcome, By: e.By, At: r.At})
	s.permissions = slices.DeleteFunc(s.permissions, func(p Permission) bool { return p.Request == e.Request })
}

func (e *UsageReported) apply(s *State, _ *Record) {
	s.team.Usage.add(e.Usage)
	if m := s.member(e.Member); m != nil {
		m.Usage.add(e.Usage)
		m.SessionCost = plus(m.SessionCost, e.Usage.CostMicroUSD)
		if e.Context > 0 {
			m.Context = e.Context
		}
	}
	if t := s.task(e.Task); t != nil {
		t.Usage.add(e.Usage)
	}
}

func (e *HookRejected) apply(s *State, r *Record) {
	s.setStrikes(e.Key, e.Count)
	if e.Count >= MaxStrikes {
		s.stuck(Rejection{Key: e.Key, Hook: e.Hook, Member: e.Member, Task: e.Task,
			Feedback: clipTo(e.Feedback, MaxSubject), At: r.At})
	}
}

func hookKey(hook, member, about string) string { return hook + "/" + member + "/" + about }

func (s *State) setStrikes(key string, n int64) {
	if n == 0 {
		s.passed(key)
	}
	if n == 0 || n >= MaxStrikes {
		delete(s.strikes, key)
		return
	}
	if s.strikes == nil {
		s.strikes = map[string]int64{}
	}
	s.strikes[key] = n
}

func (e *TaskCreated) apply(s *State, r *Record) {
	t := e.Task
	i := taskIndex(t.ID)
	switch {
	case i == len(s.tasks):
		s.tasks = append(roomy(s.tasks), Task{})
	case i >= 0 && i < len(s.tasks) && s.tasks[i].skipped():
		s.counts[statusIndex(Deleted)]--
	default:
		return
	}
	s.reopenReport()
	t.own(s)
	t.CreatedAt, t.UpdatedAt = r.At, r.At
	blockedBy := t.BlockedBy
	t.BlockedBy, t.Blocks, t.blockage = nil, s.tasks[i].Blocks, blockage{} // others may wait for a skipped task
	s.tasks[i] = t
	s.name(i)
	added := &s.tasks[i]
	for _, id := range blockedBy {
		if b := s.task(id); b != nil && b != added && (len(b.Blocks) == 0 || b.Blocks[len(b.Blocks)-1] != t.ID) {
			b.Blocks = append(b.Blocks, t.ID)
			added.BlockedBy = append(added.BlockedBy, b.ID)
			added.blockage.count(b.blockage.counted, +1)
		}
	}
	s.counts[statusIndex(t.Status)]++
	s.reindex(i)
	s.setStrikes(hookKey("TaskCreated", r.Actor, t.Subject), 0)
	s.leftByTask(added, r)
}

// change applies f to the task and updates what is derived from it.
func (s *State) change(id string, r *Record, f func(t *Task)) {
	t := s.task(id)
	if t == nil {
		return
	}
	before := t.Status
	f(t)
	t.UpdatedAt = r.At
	if t.Status != InProgress {
		t.Holds = nil
	}
	s.counts[statusIndex(before)]--
	s.counts[statusIndex(t.Status)]++
	s.reindex(taskIndex(id))
}

func (e *TaskClaimed) apply(s *State, r *Record) {
	if t := s.task(e.Task); t != nil && t.OutOfRetries() {
		s.reopenReport()
	}
	s.change(e.Task, r, func(t *Task) {
		t.Status, t.Owner, t.Fence, t.StartedAt = InProgress, s.known(e.Member), e.Fence, r.At
		t.Failure, t.FailedBy, t.LastWords = "", "", ""
		t.Holds = t.Paths
		t.Attempts++
		if t.Verify != nil && !slices.Contains(t.Workers, e.Member) {
			t.Workers = append(slices.Clip(t.Workers), s.known(e.Member))
		}
	})
	if m := s.alive(e.Member); m != nil && m.Status == Idle && m.Agent != External { // its session is about to begin
		m.Status, m.Interrupt = Active, 0
	}
}

func (e *TaskReleased) apply(s *State, r *Record) {
	if t := s.task(e.Task); t != nil && (t.OutOfRetries() || t.Status == Completed) {
		s.reopenReport()
	}
	s.change(e.Task, r, func(t *Task) {
		if t.Status == Completed { // a result that no longer stands
			t.CompletedAt, t.CompletedBy, t.Result, t.Failures = 0, "", "", 0
			t.Saved, t.Work, t.Skipped = nil, nil, ""
			t.Verified, t.Verdict, t.LastWords = nil, "", ""
		}
		s.released(t, r.Actor)
		t.Submission = nil
		t.Status, t.StartedAt = Pending, 0
		t.Owner, t.Assigned = s.known(e.Owner), e.Owner != ""
		t.Fence++
		if t.Failure != "" { // it had failed after its last retry
			t.Failures, t.Failure, t.FailedBy = 0, "", ""
		}
	})
}

func (e *TaskFailed) apply(s *State, r *Record) {
	s.change(e.Task, r, func(t *Task) {
		t.Status, t.StartedAt = Pending, 0
		t.Failure, t.FailedBy, t.Result = e.Reason, s.known(e.By), e.Result
		own(&t.Failure, &t.Result)
		t.anew()
		t.Submission = nil
		t.Failures++
		t.Fence++
		if !t.Assigned {
			t.Owner = ""
		}
	})
}

func (e *TaskCompleted) apply(s *State, r *Record) {
	s.change(e.Task, r, func(t *Task) {
		t.Status, t.Result, t.CompletedBy, t.CompletedAt = Completed, e.Result, s.known(e.By), r.At
		t.Failure, t.FailedBy, t.Saved, t.Rejected, t.Skipped = "", "", nil, nil, ""
		t.Workers = nil
		t.Verified, t.Verdict = nil, constant(e.Verdict, Verdicts...)
		for _, name := range e.Verified {
			t.Verified = append(t.Verified, s.known(name))
		}
		if t.Submission != nil { // it was claimed before that
			t.StartedAt, t.Submission = t.Submission.StartedAt, nil
		}
		own(&t.Result)
		s.setStrikes(hookKey("TaskCompleted", e.By, t.ID), 0)
	})
	s.childrenOver(e.Task)
}

func (e *TaskDeleted) apply(s *State, r *Record) {
	s.change(e.Task, r, func(t *Task) { t.Status, t.Submission = Deleted, nil })
	s.leftOut(e.Task, r)
	s.childrenOver(e.Task)
}

func (e *MessageSent) apply(s *State, r *Record) {
	msg := e.Message
	if msg.Seq <= s.messageSeq {
		return
	}
	msg.SentAt = r.At
	s.messageSeq = msg.Seq
	s.lastMail = append(s.lastMail, r.Seq)
	s.lastMail = slices.Delete(s.lastMail, 0, max(0, len(s.lastMail)-RecentMail))
	to := msg.Recipients
	if len(to) == 0 {
		to = []string{msg.To}
	}
	for _, name := range to {
		if m := s.member(name); m != nil && (len(m.Inbox) == 0 || m.Inbox[len(m.Inbox)-1] != msg.Seq) {
			m.Inbox = append(m.Inbox, msg.Seq)
			msg.waiting++
		}
	}
	if msg.To == ParentName && s.team.Parent.Team != "" && s.member(ParentName) == nil {
		s.team.Outbox = append(slices.Clip(s.team.Outbox), msg.Seq) // a new list, because readers may hold the old one
		msg.waiting++
		if msg.Asks() {
			s.team.Parent.Asked = msg.Seq
		}
	}
	for _, n := range msg.News {
		if m := s.member(n.Member); m != nil {
			m.Told = Told{max(m.Told.Tasks, n.Told.Tasks), max(m.Told.Changes, n.Told.Changes),
				max(m.Told.Notes, n.Told.Notes)}
		}
	}
	if msg.waiting > 0 {
		if s.messages == nil {
			s.messages = map[int64]*Message{}
		}
		s.messages[msg.Seq] = &msg
	}
}

func (e *MessagesDelivered) apply(s *State, _ *Record) {
	if m := s.member(e.Member); m != nil {
		s.takeMail(m, e.Seqs)
		for _, seq := range e.Seqs {
			m.DeliveredSeq = max(m.DeliveredSeq, seq)
		}
		if m.Status == Idle || m.runs() { // the message that it waited for
			m.Interrupt = 0
		}
	}
}

func (e *MessagesRead) apply(s *State, _ *Record) {
	if m := s.member(e.Member); m != nil {
		m.ReadSeq = max(m.ReadSeq, e.Through)
	}
}

func (e *MessagesReturned) apply(s *State, _ *Record) {
	if m := s.member(e.Member); m != nil {
		s.takeMail(m, e.Seqs)
	}
}

// takeMail takes these messages out of the inbox of m. A message that is in no other inbox leaves
// the state.
func (s *State) takeMail(m *Member, seqs []int64) {
	m.Late = notIn(m.Late, seqs)
	if len(seqs) <= len(m.Inbox) && slices.Equal(seqs, m.Inbox[:len(seqs)]) { // nearly always: mail is taken in order
		s.unwait(seqs)
		m.Inbox = m.Inbox[len(seqs):]
		return
	}
	gone := make(map[int64]bool, len(seqs))
	for _, seq := range seqs {
		gone[seq] = true
	}
	kept := m.Inbox[:0:0]
	for _, seq := range m.Inbox {
		if gone[seq] {
			s.unwait([]int64{seq})
		} else {
			kept = append(kept, seq)
		}
	}
	m.Inbox = kept
}

// notIn returns a new list without those seqs, because readers may hold the old one.
func notIn(list, gone []int64) []int64 {
	if len(list) == 0 {
		return nil
	}
	var kept []int64
	for _, seq := range list {
		if !slices.Contains(gone, seq) {
			kept = append(kept, seq)
		}
	}
	return kept
}

func (s *State) unwait(seqs []int64) {
	for _, seq := range seqs {
		if msg := s.messages[seq]; msg != nil {
			if msg.waiting--; msg.waiting <= 0 {
				delete(s.messages, seq)
			}
		}
	}
}

func sortedSeqs(m map[int64]*Message) []int64 {
	return slices.Sorted(maps.Keys(m))
}
