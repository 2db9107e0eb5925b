package tracing

import (
	"maps"
	"slices"
	"strconv"
	"time"

	"cadre/internal/agent/traceparent"
	"cadre/internal/team"
)

// provider names the maker of the models of an agent, by the conventions; "" for an agent that uses
// models of anybody.
func provider(agent string) string {
	switch agent {
	case team.Claude, team.ClaudeTmux:
		return "anthropic"
	case team.Codex:
		return "openai"
	case team.Gemini:
		return "gcp.gemini"
	}
	return ""
}

// describe adds what is known of a member.
func (o *open) describe(m team.Member) {
	o.member = m.Name
	o.set("gen_ai.operation.name", "invoke_agent")
	o.set("gen_ai.agent.name", m.Name)
	o.set("gen_ai.provider.name", provider(m.Agent))
	o.set("gen_ai.request.model", m.Model)
	o.set("cadre.agent", m.Agent)
	o.set("cadre.role", m.Role)
}

// beginSession begins the span of the member's present session, unless it has begun. It returns nil
// for a session whose span has ended.
func (h *History) beginSession(member string, at team.Time) *open {
	m, _ := h.state.Member(member)
	if o := h.sessions[member]; o != nil || m.Incarnation <= h.past[member] {
		return o
	}
	t := h.state.Team()
	o := begin(kindSession, traceparent.Session(t.ID, member, m.Incarnation), h.top, "invoke_agent "+member, at)
	o.describe(m)
	o.set("cadre.session", m.Incarnation)
	o.before = m.Usage
	h.sessions[m.Name] = o
	h.past[m.Name] = m.Incarnation
	return o
}

func (h *History) endSession(member string, at team.Time, outcome, reason string, failed bool) {
	for _, request := range slices.Sorted(maps.Keys(h.waits)) {
		if o := h.waits[request]; o.member == member && o.kind == kindPermission {
			h.answered(request, "dropped", "", at)
		}
	}
	o := h.sessions[member]
	if o == nil {
		return
	}
	h.settle(member)
	delete(h.sessions, member)
	m, _ := h.state.Member(member)
	o.used(m.Usage)
	h.end(o, at, outcome, reason, failed)
}

// within returns the span of the member's session, or the team's if it has none.
func (h *History) within(member string) traceparent.SpanID {
	if o := h.sessions[member]; o != nil {
		return o.ID
	}
	return h.top
}

func (h *History) submitted(member, request string, at team.Time) {
	for _, other := range slices.Sorted(maps.Keys(h.waits)) {
		if o := h.waits[other]; o.member == member && o.kind == kindPlan {
			h.answered(other, "replaced", "", at)
		}
	}
	o := begin(kindPlan, h.id("plan", request), h.within(member), "plan "+member, at)
	o.member = member
	o.set("gen_ai.operation.name", "plan")
	o.set("gen_ai.agent.name", member)
	h.waits[request] = o
}

func (h *History) asked(p team.Permission, at team.Time) {
	o := begin(kindPermission, h.id("permission", p.Request), h.within(p.Member), "permission "+p.Tool, at)
	o.member = p.Member
	o.set("gen_ai.agent.name", p.Member)
	o.set("gen_ai.tool.name", p.Tool)
	h.waits[p.Request] = o
}

// answered ends the wait for an answer to a plan or a request for permission.
func (h *History) answered(request, outcome, by string, at team.Time) {
	if o := h.waits[request]; o != nil {
		delete(h.waits, request)
		o.set("cadre.by", by)
		h.end(o, at, outcome, "", false)
	}
}

func (h *History) rejected(e *team.HookRejected, id traceparent.SpanID, at team.Time) {
	parent := h.within(e.Member)
	if a := h.attempts[e.Task]; a != nil && e.Hook == "TaskCompleted" {
		parent = a.ID
	}
	o := begin(kindHook, id, parent, "hook "+e.Hook, at)
	o.set("gen_ai.agent.name", e.Member)
	o.set("cadre.hook.event", e.Hook)
	o.set("cadre.hook.rejections", e.Count)
	h.end(o, at, "rejected", e.Feedback, false)
}

func (h *History) sent(m team.Message) {
	from := h.sessions[m.From]
	if from == nil || len(h.waiting) >= maxWaiting {
		return
	}
	h.waiting[m.Seq] = &sentMessage{from.ID, m.Type, max(1, len(m.Recipients))}
}

// delivered links the session of a recipient to those that sent the messages.
func (h *History) delivered(member string, seqs []int64, read bool) {
	to := h.sessions[member]
	for _, seq := range seqs {
		l := h.waiting[seq]
		if l == nil {
			continue
		}
		if to != nil && read {
			to.link(l.from, Attribute{"cadre.link", linkMessage}, Attribute{"cadre.message.id", seq},
				Attribute{"cadre.message.type", clean(l.kind)})
		}
		if l.left--; l.left <= 0 {
			delete(h.waiting, seq)
		}
	}
}

// taskEvent handles an event about a task. It reports whether it is one.
func (h *History) taskEvent(r *team.Record, e team.Event) bool {
	switch e := e.(type) {
	case *team.TaskClaimed:
		h.claimed(e.Task, e.Member, e.Fence, r.At)
	case *team.TaskCompleted:
		if a := h.attempts[e.Task]; a != nil {
			h.completed[e.Task] = a.ID
		}
		h.endAttempt(e.Task, r.At, "completed", "", false)
	case *team.TaskSubmitted:
		if a := h.attempts[e.Task]; a != nil {
			h.completed[e.Task] = a.ID
		}
		h.endAttempt(e.Task, r.At, "submitted", "", false)
	case *team.TaskFailed:
		h.endAttempt(e.Task, r.At, "failed", e.Reason, true)
	case *team.TaskReleased:
		h.endAttempt(e.Task, r.At, "released", e.Reason, false)
	case *team.TaskDeleted:
		h.endAttempt(e.Task, r.At, "deleted", "", false)
	case *team.TaskRolledBack:
		h.endAttempt(e.Task, r.At, "rolled_back", "", false)
	case *team.TaskUpdated:
		if a := h.attempts[e.Task]; a != nil && e.Owner != nil && *e.Owner != a.member {
			h.endAttempt(e.Task, r.At, "reassigned", "", false)
		}
	default:
		return false
	}
	return true
}

func (h *History) claimed(task, member string, fence int64, at team.Time) {
	h.endAttempt(task, at, "released", "", false)
	h.settle(member)
	if o := h.settling[task]; o != nil {
		h.settle(o.member)
	}
	m, _ := h.state.Member(member)
	t, _ := h.state.Task(task)
	id := h.id("attempt", task, strconv.FormatInt(fence, 10))
	o := begin(kindAttempt, id, h.top, "invoke_agent "+member+" task", at)
	o.describe(m)
	o.set("cadre.task.id", t.ID)
	o.set("cadre.task.name", words(t.Name))
	o.set("cadre.task.subject", words(t.Subject))
	o.set("cadre.task.attempt", t.Attempts)
	o.before = t.Usage
	if s := h.sessions[member]; s != nil {
		o.link(s.ID, Attribute{"cadre.link", linkSession})
	}
	for _, id := range t.BlockedBy {
		if done, is := h.completed[id]; is {
			o.link(done, Attribute{"cadre.link", linkDependency}, Attribute{"cadre.task.id", id})
		}
	}
	h.attempts[t.ID] = o
}

func (h *History) endAttempt(task string, at team.Time, outcome, reason string, failed bool) {
	o := h.attempts[task]
	if o == nil {
		return
	}
	delete(h.attempts, task)
	o.close(at, outcome, reason, failed)
	h.settling[task] = o
	if h.sessions[o.member] == nil {
		h.settle(o.member)
	}
}

// settle reports the attempts of the member that have ended: all of their usage is known.
func (h *History) settle(member string) {
	for _, task := range slices.Sorted(maps.Keys(h.settling)) {
		if o := h.settling[task]; o.member == member {
			delete(h.settling, task)
			t, _ := h.state.Task(task)
			o.used(t.Usage)
			h.ended = append(h.ended, o.Span)
		}
	}
}

func (h *History) consolidationEvent(r *team.Record, i int, e team.Event) {
	switch e := e.(type) {
	case *team.ConsolidationBegan:
		h.merge = begin(kindConsolidation, h.id("consolidation", r.ID), h.top, "consolidation", r.At)
		h.merge.set("cadre.consolidation.attempt", e.Attempt)
	case *team.CheckPassed:
		h.checked(r, i, e.Check, e.Took, false)
	case *team.CheckFailed:
		h.checked(r, i, e.Check, e.Took, true)
	case *team.TeamConsolidated:
		if h.merge != nil {
			h.end(h.merge, r.At, "done", "", false)
			h.merge = nil
		}
	case *team.ConsolidationAbandoned:
		if h.merge != nil {
			h.end(h.merge, r.At, "abandoned", e.Reason, true)
			h.merge = nil
		}
	}
}

func (h *History) checked(r *team.Record, i int, name string, took time.Duration, failed bool) {
	parent := h.top
	if h.merge != nil {
		parent = h.merge.ID
	}
	o := begin(kindCheck, h.id("check", r.ID, strconv.Itoa(i)), parent, "check "+name, r.At.Add(-max(0, took)))
	o.set("cadre.check", words(name))
	outcome := "passed"
	if failed {
		outcome = "failed"
	}
	h.end(o, r.At, outcome, "", failed)
}
