package tracing

import (
	"cmp"
	"maps"
	"slices"
	"strconv"

	"cadre/internal/agent/traceparent"
	"cadre/internal/team"
)

// History derives the spans of one team from its records. It belongs to one goroutine.
type History struct {
	state *team.State
	ended []Span // by the record that is being added

	run      *open              // the span of the team; nil while the team has ended
	top      traceparent.SpanID // the last span of the team
	sessions map[string]*open   // by member
	attempts map[string]*open   // by task
	// by task: attempts that ended in the middle of their member's turn. They are reported with the
	// turn's usage, when that has ended
	settling map[string]*open
	waits    map[string]*open // plans and permissions, by request
	merge    *open            // the consolidation

	past      map[string]int64              // by member: the number of its last session that ended
	completed map[string]traceparent.SpanID // by task: the attempt that completed it
	waiting   map[int64]*sentMessage        // messages of sessions that wait for their delivery
}

// open is a span that has not ended.
type open struct {
	Span
	kind   string
	member string
	before team.Usage // what was used before the span began
}

// sentMessage is a message on its way.
type sentMessage struct {
	from traceparent.SpanID // the session that sent it
	kind string
	left int // recipients that it was not delivered to
}

// maxWaiting bounds the messages that wait for their delivery. Later ones get no links.
const maxWaiting = 10_000

// NewHistory returns the history of a team before its first record.
func NewHistory() *History {
	return &History{state: &team.State{}, sessions: map[string]*open{}, attempts: map[string]*open{},
		settling: map[string]*open{}, waits: map[string]*open{}, past: map[string]int64{},
		completed: map[string]traceparent.SpanID{}, waiting: map[int64]*sentMessage{}}
}

// Trace returns the id of the team's trace, and the name of the team.
func (h *History) Trace() (id traceparent.TraceID, name string) {
	t := h.state.Team()
	return traceparent.Team(t.ID), t.Name
}

// Version tells the histories of a team apart: a team that was restored has another one, whose
// records begin with 1 again.
func (h *History) Version() string { return h.state.Team().Restored.ID }

// Add adds the next record and returns the spans that ended with it. Records that were added before
// change nothing.
func (h *History) Add(r *team.Record) []Span {
	if r.Seq <= h.state.Seq() {
		return nil
	}
	h.ended = nil
	h.state.Apply(r)
	t := h.state.Team()
	if t.ID == "" {
		return nil
	}
	if h.run == nil && !t.Ended() {
		h.begins(t, r)
	}
	for i, e := range r.Events {
		h.event(r, i, e)
	}
	if h.run != nil && t.Ended() {
		h.ends(t, r)
	}
	return h.ended
}

func (h *History) id(part ...string) traceparent.SpanID {
	return traceparent.Span(h.state.Team().ID, part...)
}

// begin returns a new span. Its parent is zero for the root.
func begin(kind string, id, parent traceparent.SpanID, name string, at team.Time) *open {
	o := &open{Span: Span{ID: id, Parent: parent, Name: words(name), Start: at}, kind: kind}
	o.set("cadre.span", kind)
	return o
}

// close gives a span its end, with an outcome and the reason for it.
func (o *open) close(at team.Time, outcome, reason string, failed bool) {
	o.End = max(o.Start, at) // a clock may have been set back
	if failed {
		o.Failed, o.Failure = true, words(reason)
		o.set("error.type", outcome)
	}
	o.set("cadre.outcome", outcome)
	o.set("cadre.reason", words(reason))
}

// end reports a span with that end.
func (h *History) end(o *open, at team.Time, outcome, reason string, failed bool) {
	o.close(at, outcome, reason, failed)
	h.ended = append(h.ended, o.Span)
}

// used adds what was used since the span began.
func (o *open) used(now team.Usage) {
	read, written := now.CacheReadTokens-o.before.CacheReadTokens, now.CacheWriteTokens-o.before.CacheWriteTokens
	o.set(usageInput, now.InputTokens-o.before.InputTokens+read+written)
	o.set(usageOutput, now.OutputTokens-o.before.OutputTokens)
	o.set(usageCacheRead, read)
	o.set(usageCacheWrite, written)
	o.set("cadre.cost_usd", float64(now.CostMicroUSD-o.before.CostMicroUSD)/1e6)
}

// begins begins the span of a team that was created, restored or opened again.
func (h *History) begins(t team.Team, r *team.Record) {
	first := r.Seq == 1
	id, parent, at := h.id("team"), traceparent.SpanID{}, r.At
	if first {
		at = cmp.Or(t.CreatedAt, at)
	} else {
		id, parent = h.id("team", r.ID), id
	}
	h.run = begin(kindTeam, id, parent, "invoke_workflow "+t.Name, at)
	h.top = id
	h.run.set("gen_ai.operation.name", "invoke_workflow")
	h.run.set("gen_ai.agent.name", t.Name)
	h.run.set("gen_ai.workflow.name", t.Name)
	if !first {
		h.run.before = t.Usage
	}
}

// ends ends the span of the team, and all that nothing will end any more. Nothing records the end
// of the lead's session then.
func (h *History) ends(t team.Team, r *team.Record) {
	outcome, reason := string(t.Status), ""
	if e, is := team.EventIn[*team.TeamStatusChanged](r); is {
		reason = e.Reason
	}
	if t.CleanedUp && t.Status != team.TeamComplete && t.Status != team.TeamAborted {
		outcome = "removed"
	}
	for _, request := range slices.Sorted(maps.Keys(h.waits)) {
		h.answered(request, teamEnded, "", r.At)
	}
	for _, task := range slices.Sorted(maps.Keys(h.attempts)) {
		h.endAttempt(task, r.At, teamEnded, "", false)
	}
	for _, member := range slices.Sorted(maps.Keys(h.sessions)) {
		h.endSession(member, r.At, teamEnded, "", false)
	}
	if h.merge != nil {
		h.end(h.merge, r.At, teamEnded, "", false)
		h.merge = nil
	}
	h.run.used(t.Usage)
	h.end(h.run, r.At, outcome, reason, outcome == string(team.TeamAborted))
	h.run = nil
	clear(h.waiting)
}

func (h *History) event(r *team.Record, i int, e team.Event) {
	switch e := e.(type) {
	case *team.TeamRestored:
		h.restored(r)
	case *team.MemberAttached:
		h.beginSession(e.Member, r.At)
	case *team.MemberStarted:
		if o := h.beginSession(e.Member, r.At); o != nil {
			o.set("gen_ai.conversation.id", e.Session)
		}
	case *team.MemberDetached:
		h.endSession(e.Member, r.At, "detached", e.Reason, false)
	case *team.MemberStopped:
		h.endSession(e.Member, r.At, "stopped", e.Reason, false)
	case *team.MemberFailed:
		h.endSession(e.Member, r.At, "failed", e.Reason, true)
	case *team.MemberStatusChanged:
		if e.Status != team.Active {
			h.settle(e.Member)
		}
	case *team.MemberTroubled:
		if o := h.sessions[e.Member]; o != nil && e.Setbacks > 0 {
			var s Span
			s.set("cadre.trouble", e.Trouble)
			o.event(Event{"trouble", r.At, s.Attributes})
		}
	case *team.RateLimited:
		if o := h.sessions[e.By]; o != nil {
			var s Span
			s.set("cadre.trouble", team.TroubleLimit)
			o.event(Event{"trouble", r.At, s.Attributes})
		}
	case *team.PlanSubmitted:
		h.submitted(e.Member, e.Request, r.At)
	case *team.PlanAnswered:
		outcome := "rejected"
		if e.Approved {
			outcome = "approved"
		} else if e.By == "" {
			outcome = "timed_out"
		}
		h.answered(e.Request, outcome, e.By, r.At)
	case *team.PermissionRequested:
		h.asked(e.Permission, r.At)
	case *team.PermissionAnswered:
		h.answered(e.Request, e.Outcome, e.By, r.At)
	case *team.HookRejected:
		h.rejected(e, h.id("hook", r.ID, strconv.Itoa(i)), r.At)
	case *team.MessageSent:
		h.sent(e.Message)
	case *team.MessagesDelivered:
		h.delivered(e.Member, e.Seqs, true)
	case *team.MessagesReturned:
		h.delivered(e.Member, e.Seqs, false)
	default:
		if !h.taskEvent(r, e) {
			h.consolidationEvent(r, i, e)
		}
	}
}

// restored begins what the team of a lost history had open. Its sessions have ended with it.
func (h *History) restored(r *team.Record) {
	for t := range h.state.Tasks() {
		if t.Status == team.InProgress {
			h.claimed(t.ID, t.Owner, t.Fence, cmp.Or(t.StartedAt, r.At))
		}
	}
	for _, p := range h.state.Permissions() {
		h.asked(p, cmp.Or(p.AskedAt, r.At))
	}
	for _, m := range h.state.Members() {
		if m.Plan.State == "submitted" {
			h.submitted(m.Name, m.Plan.Request, cmp.Or(m.Plan.AskedAt, r.At))
		}
	}
}
