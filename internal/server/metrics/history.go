package metrics

import (
	"strings"

	"cadre/internal/team"
)

// history is what the records of one team add up to.
type history struct {
	first   string // id of record 1, which tells histories apart
	counted int64  // seq of the last record that is in sums
	sums    sums
	*running
}

// running is what continues with the next record. A history that was forgotten has none.
type running struct {
	state    *team.State
	queued   map[string]team.Time  // tasks that wait to be claimed: since when they can be
	claimed  map[string]attempt    // tasks in progress
	sent     map[int64]sentMessage // messages that recipients still wait for
	asked    map[string]team.Time  // permission requests without an answer
	sessions map[string]team.Time  // members whose session runs: since when
}

type attempt struct {
	member string
	since  team.Time
}

type sentMessage struct {
	at      team.Time
	waiting int // recipients
}

// sums only grow.
type sums struct {
	models                       []modelUsage
	messages                     int64
	sessions, ended              int64
	sessionTime                  int64 // milliseconds of the sessions that ended
	completed, failed            int64 // tasks
	created, spawned             int64 // teams, teammates
	taskTime, taskWait           histogram
	deliveryTime, permissionWait histogram
}

// merge adds the sums of another team, without those of models.
func (s *sums) merge(o *sums) {
	s.messages += o.messages
	s.sessions += o.sessions
	s.ended += o.ended
	s.sessionTime += o.sessionTime
	s.completed += o.completed
	s.failed += o.failed
	s.created += o.created
	s.spawned += o.spawned
	s.taskTime.merge(&o.taskTime)
	s.taskWait.merge(&o.taskWait)
	s.deliveryTime.merge(&o.deliveryTime)
	s.permissionWait.merge(&o.permissionWait)
}

func (h *history) seq() int64 {
	if h.running == nil {
		return 0
	}
	return h.state.Seq()
}

func (h *history) forget() { h.running = nil }

// add adds the record after the last one.
func (h *history) add(r *team.Record) {
	if h.running == nil {
		h.running = &running{state: &team.State{}, queued: map[string]team.Time{}, claimed: map[string]attempt{},
			sent: map[int64]sentMessage{}, asked: map[string]team.Time{}, sessions: map[string]team.Time{}}
	}
	var before sums
	s := &h.sums
	if r.Seq <= h.counted { // the team was forgotten and is back
		s = &before
	}
	messages, held := h.state.MessageCount(), h.heldBack(r)
	h.state.Apply(r)
	s.messages += h.state.MessageCount() - messages
	for _, e := range r.Events {
		h.count(s, e, r)
	}
	for _, id := range held {
		if h.claimable(id) {
			h.queue(id, r.At)
		}
	}
	h.counted = max(h.counted, r.Seq)
}

// heldBack returns the tasks that nobody can claim now, and that the record may release by a change
// of their fields.
func (h *history) heldBack(r *team.Record) (ids []string) {
	see := func(all ...string) {
		for _, id := range all {
			if !h.claimable(id) && h.pending(id) {
				ids = append(ids, id)
			}
		}
	}
	for _, e := range r.Events {
		switch e := e.(type) {
		case *team.TaskUpdated:
			see(e.Task)
			see(e.RemoveBlocks...)
		case *team.TaskRevised:
			see(e.Task.ID)
		}
	}
	return ids
}

func (h *history) pending(id string) bool {
	t, ok := h.state.Task(id)
	return ok && t.Status == team.Pending
}

func (h *history) claimable(id string) bool {
	t, ok := h.state.Task(id)
	return ok && t.Status == team.Pending && len(t.Blocked()) == 0 && !t.OutOfRetries()
}

// queue records that the task can be claimed from now on, or once its blockers are done.
func (h *history) queue(id string, at team.Time) {
	h.queued[strings.Clone(id)] = at // an id is part of its record, which would be kept as long
	delete(h.claimed, id)
}

func (h *history) unblock(ids []string, at team.Time) {
	for _, id := range ids {
		h.queue(id, at)
	}
}

// leave records that the task is not in the queue any more.
func (h *history) leave(id string) {
	delete(h.queued, id)
	delete(h.claimed, id)
}

// count adds an event of a record that was applied.
func (h *history) count(s *sums, e team.Event, r *team.Record) {
	switch e := e.(type) {
	case *team.TeamCreated:
		s.created++
	case *team.TeamRestored:
		s.created++
		h.restore(s, e, r)
	case *team.MemberSpawned:
		s.spawned++
	case *team.UsageReported:
		// a team in the team counts what its own members use
		if m, _ := h.state.Member(e.Member); !m.IsTeam() {
			s.use(m.Model, r.At, e.Usage)
		}
	case *team.MemberStarted, *team.MemberDetached, *team.MemberStopped, *team.MemberFailed, *team.TeamStatusChanged:
		h.countSession(s, e, r)
	case *team.PermissionRequested:
		h.asked[strings.Clone(e.Permission.Request)] = r.At
	case *team.PermissionAnswered:
		// without By it was a rule, or the end of the session that asked
		if at, ok := h.asked[e.Request]; ok && (e.By != "" || e.Outcome == "timed_out") {
			s.permissionWait.observe(permissionBounds, r.At.Sub(at))
		}
		delete(h.asked, e.Request)
	case *team.MessageSent, *team.MessagesDelivered, *team.MessagesReturned:
		h.countMail(s, e, r)
	default:
		h.countTask(s, e, r)
	}
}

func (h *history) countTask(s *sums, e team.Event, r *team.Record) {
	switch e := e.(type) {
	case *team.TaskCreated:
		h.queue(e.Task.ID, r.At)
	case *team.TaskClaimed:
		if since, ok := h.queued[e.Task]; ok {
			s.taskWait.observe(waitBounds, r.At.Sub(since))
		}
		delete(h.queued, e.Task)
		h.claimed[strings.Clone(e.Task)] = attempt{strings.Clone(e.Member), r.At}
	case *team.TaskUpdated:
		if a, ok := h.claimed[e.Task]; ok && e.Owner != nil && *e.Owner != a.member {
			h.queue(e.Task, r.At)
		}
	case *team.TaskReleased:
		h.queue(e.Task, r.At)
	case *team.TaskRolledBack:
		h.queue(e.Task, r.At)
	case *team.TaskFailed:
		if t, ok := h.state.Task(e.Task); ok && t.OutOfRetries() {
			s.failed++
			h.leave(e.Task)
		} else {
			h.queue(e.Task, r.At)
		}
		h.unblock(e.Unblocked, r.At)
	case *team.TaskCompleted:
		s.completed++
		if a, ok := h.claimed[e.Task]; ok {
			s.taskTime.observe(taskBounds, r.At.Sub(a.since))
		}
		h.leave(e.Task)
		h.unblock(e.Unblocked, r.At)
	case *team.TaskSkipped:
		h.leave(e.Task)
		h.unblock(e.Unblocked, r.At)
	case *team.TaskSubmitted:
		h.leave(e.Task)
	case *team.TaskRejected:
		h.queue(e.Task, r.At)
	case *team.TaskDeleted:
		h.leave(e.Task)
		h.unblock(e.Unblocked, r.At)
	}
}

func (h *history) countMail(s *sums, e team.Event, r *team.Record) {
	taken := func(seqs []int64, delivered bool) {
		for _, seq := range seqs {
			l, ok := h.sent[seq]
			if !ok {
				continue
			}
			if delivered {
				s.deliveryTime.observe(deliveryBounds, r.At.Sub(l.at))
			}
			if l.waiting--; l.waiting <= 0 {
				delete(h.sent, seq)
			} else {
				h.sent[seq] = l
			}
		}
	}
	switch e := e.(type) {
	case *team.MessageSent:
		h.sent[e.Message.Seq] = sentMessage{r.At, max(1, len(e.Message.Recipients))}
	case *team.MessagesDelivered:
		taken(e.Seqs, true)
	case *team.MessagesReturned:
		taken(e.Seqs, false)
	}
}

func (h *history) countSession(s *sums, e team.Event, r *team.Record) {
	end := func(member string) {
		if since, ok := h.sessions[member]; ok {
			s.ended++
			s.sessionTime += max(0, int64(r.At-since))
			delete(h.sessions, member)
		}
	}
	switch e := e.(type) {
	case *team.MemberStarted:
		if since, ok := h.sessions[e.Member]; ok { // its end was not recorded
			s.ended++
			s.sessionTime += max(0, int64(r.At-since))
		}
		s.sessions++
		h.sessions[strings.Clone(e.Member)] = r.At
	case *team.MemberDetached:
		end(e.Member)
	case *team.MemberStopped:
		end(e.Member)
	case *team.MemberFailed:
		end(e.Member)
	case *team.TeamStatusChanged:
		if e.Status == team.TeamComplete || e.Status == team.TeamAborted { // the lead's session has no event of its own
			end(h.state.Team().Lead)
		}
	}
}

// restore adds what a checkpoint kept of the history before this one.
func (h *history) restore(s *sums, e *team.TeamRestored, r *team.Record) {
	for t := range h.state.Tasks() {
		switch t.Status {
		case team.Completed:
			s.completed++
		case team.InProgress:
			h.claimed[t.ID] = attempt{t.Owner, t.StartedAt}
		}
		if t.OutOfRetries() {
			s.failed++
		}
	}
	for _, p := range h.state.Permissions() {
		if p.AskedAt > 0 {
			h.asked[p.Request] = p.AskedAt
		}
	}
	for i := range e.Messages {
		h.sent[e.Messages[i].Seq] = sentMessage{at: e.Messages[i].SentAt}
	}
	rest := h.state.Team().Usage
	for _, m := range h.state.Members() {
		if m.Name != h.state.Team().Lead {
			s.spawned++
		}
		for _, seq := range m.Inbox {
			l := h.sent[seq]
			l.waiting++
			h.sent[seq] = l
		}
		if m.Usage != (team.Usage{}) {
			rest = less(rest, m.Usage)
		}
		if m.Usage != (team.Usage{}) && !m.IsTeam() {
			s.use(m.Model, r.At, m.Usage)
		}
	}
	if rest != (team.Usage{}) {
		s.use("", r.At, rest)
	}
}

// less returns a without b, and at least 0 of each.
func less(a, b team.Usage) team.Usage {
	return team.Usage{InputTokens: max(0, a.InputTokens-b.InputTokens),
		OutputTokens:     max(0, a.OutputTokens-b.OutputTokens),
		CacheReadTokens:  max(0, a.CacheReadTokens-b.CacheReadTokens),
		CacheWriteTokens: max(0, a.CacheWriteTokens-b.CacheWriteTokens),
		CostMicroUSD:     max(0, a.CostMicroUSD-b.CostMicroUSD)}
}
