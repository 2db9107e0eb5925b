package guest

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"cadre/internal/agent"
	"cadre/internal/agent/envelope"
	"cadre/internal/claude/teamfiles"
	"cadre/internal/render/sanitize"
	"cadre/internal/team"
)

// look reads the files and gives the agent what is new.
func (m *member) look(ctx context.Context) error {
	if err := m.replica.Refresh(ctx); err != nil {
		if errors.Is(err, errNotListed) || team.CodeOf(err) == team.Finished {
			return err
		}
		m.show("%v", err)
		return nil
	}
	if m.session != nil && !m.started { // the session first reports what it knows; then there is another look
		return nil
	}
	waiting, err := m.o.Team.Waiting(ctx, m.o.Name)
	if err != nil { // the follower reports it too, and a corrected file is a change
		return nil
	}
	m.forget(waiting)
	var mail []team.Message
	var keys []string
	var opening string
	for _, e := range waiting {
		if m.inFlight[e.Key()] {
			continue
		}
		if m.seen[number(e)] {
			m.acknowledge(ctx, e.Key())
			continue
		}
		msg, forAgent := m.read(ctx, e)
		switch {
		case !forAgent:
			m.acknowledge(ctx, e.Key())
			continue
		case !m.opened && m.spawnedWith(ctx, e):
			if m.seen[0] {
				m.opened = true
				m.acknowledge(ctx, e.Key())
				continue
			}
			opening = e.Text
		default:
			mail = append(mail, msg)
		}
		keys = append(keys, e.Key())
	}
	if len(keys) > 0 {
		m.deliver(ctx, keys, opening, mail)
	} else if !m.looked {
		m.active(ctx, false)
	}
	m.looked = true
	m.offerTask(ctx)
	return nil
}

// forget removes the keys of entries that are no longer in the inbox.
func (m *member) forget(waiting []teamfiles.Entry) {
	for key := range m.inFlight {
		if !slices.ContainsFunc(waiting, func(e teamfiles.Entry) bool { return e.Key() == key }) {
			delete(m.inFlight, key)
		}
	}
}

// number returns the number that an entry has in an envelope. It depends on the entry alone,
// because other processes may resume the session.
func number(e teamfiles.Entry) int64 {
	sum := sha256.Sum256([]byte(e.Key()))
	return int64(binary.BigEndian.Uint64(sum[:])>>16) + 1
}

// spawnedWith reports whether an entry is the prompt that the member was spawned with.
func (m *member) spawnedWith(ctx context.Context, e teamfiles.Entry) bool {
	if e.From != m.replica.lead() || m.o.LeadKey != nil && !m.o.LeadKey.Signed(e) {
		return false
	}
	c, err := m.o.Team.Config(ctx)
	entry := c.Member(m.o.Name)
	return err == nil && entry != nil && entry.Prompt != nil && *entry.Prompt == e.Text
}

// read turns an entry into a message for the agent, or carries out what the entry asks of this
// program. Only the lead's entries can ask this program for something.
func (m *member) read(ctx context.Context, e teamfiles.Entry) (msg team.Message, forAgent bool) {
	msg = team.Message{Seq: number(e), From: e.From, To: m.o.Name, Type: team.TypeMessage,
		Priority: "normal", Body: e.Text}
	fromLead := e.From == m.replica.lead()
	if fromLead && m.o.LeadKey != nil && !m.o.LeadKey.Signed(e) {
		msg.From, fromLead = "an unknown sender that claims to be "+e.From, false
	}
	// any program can write the files, so no sender in them counts as the user or the team
	if !team.ValidName(msg.From) && msg.From == e.From {
		msg.From = "a sender without a name"
	}
	said := teamfiles.Parse(e.Text)
	if said == nil {
		return msg, true
	}
	if a, ok := said.(*teamfiles.Assignment); ok {
		msg.Type, msg.Ref, msg.Body = team.TypeTaskAssignment, a.TaskID,
			strings.TrimSpace(fmt.Sprintf("Task %s is yours: %s\n%s", a.TaskID, a.Subject, a.Description))
		return msg, e.From != m.o.Name
	}
	if !fromLead {
		_, unknown := said.(*teamfiles.Unknown)
		return msg, unknown // text that only looks like a program's message is a colleague's text
	}
	switch said := said.(type) {
	case *teamfiles.ShutdownRequest:
		return m.shutdown(ctx, msg, said)
	case *teamfiles.PermissionResponse:
		reason := said.Error
		if said.Subtype != "success" && reason == "" {
			reason = "the lead denied it"
		}
		m.answer(said.RequestID, said.Subtype == "success", reason)
	case *teamfiles.PlanResponse:
		return m.planAnswered(ctx, msg, said)
	case *teamfiles.ModeRequest:
		m.setMode(ctx, said.Mode)
	case *teamfiles.Unknown:
		return msg, true
	}
	return msg, false
}

// shutdown asks the agent to end, and sets the deadline by which it is ended.
func (m *member) shutdown(ctx context.Context, msg team.Message, r *teamfiles.ShutdownRequest) (team.Message, bool) {
	msg.Type, msg.Ref, msg.Body = team.TypeShutdownRequest, r.RequestID, r.Reason
	if msg.Body == "" {
		msg.Body = "Please finish and shut down."
	}
	pending := ""
	m.replica.View(func(s *team.State) { me, _ := s.Member(m.o.Name); pending = me.Shutdown.Request })
	if pending != r.RequestID {
		m.deadline = time.After(m.o.Within)
		deadline := now().Add(m.o.Within)
		m.try(ctx, func(ctx context.Context) error {
			return m.replica.updateSelf(ctx, func(s *self) {
				s.shutdown = team.Shutdown{Request: r.RequestID, Reason: r.Reason, Deadline: deadline}
			})
		})
	}
	if m.session == nil { // there is no session to ask
		m.deadline = time.After(0)
		return msg, false
	}
	return msg, true
}

// planAnswered passes the lead's answer on to the session that waits for it.
func (m *member) planAnswered(ctx context.Context, msg team.Message, r *teamfiles.PlanResponse) (team.Message, bool) {
	state := "rejected"
	if r.Approved {
		state = "approved"
	}
	submitted := false
	m.try(ctx, func(ctx context.Context) error {
		return m.replica.updateSelf(ctx, func(s *self) {
			if submitted = (s.plan.State == "submitted" || s.plan.State == state) && (s.plan.Request == r.RequestID ||
				!strings.HasPrefix(r.RequestID, "plan_approval-")); submitted {
				s.plan.State, s.plan.Feedback = state, r.Feedback
			}
		})
	})
	if !submitted {
		return msg, false
	}
	if r.Approved && r.Mode != "" {
		m.setMode(ctx, r.Mode)
	}
	m.setAccess(ctx)
	m.show("the plan is %s%s", state, after(": ", r.Feedback))
	if m.proposal != nil { // the agent waits for the answer in its own way
		m.proposal(r.Approved, r.Feedback)
		m.proposal = nil
		return msg, false
	}
	msg.Type, msg.Ref, msg.Body = team.TypePlanResponse, r.RequestID,
		strings.TrimSuffix("Your plan is "+state+".\n"+envelope.Quote(r.Feedback), "\n> ")
	return msg, true
}

// setMode changes what the member may do without asking. A member that was not started to skip
// permissions never gets to skip them.
func (m *member) setMode(ctx context.Context, mode string) {
	if !slices.Contains(team.PermissionModes, mode) || mode == "bypassPermissions" && m.o.Spec.Access.Mode != mode {
		m.show("the permission mode was not changed: %q is not available to this session", mode)
		return
	}
	m.try(ctx, func(ctx context.Context) error { return m.replica.updateSelf(ctx, func(s *self) { s.mode = mode }) })
	m.setAccess(ctx)
}

func (m *member) setAccess(ctx context.Context) {
	if m.session == nil {
		return
	}
	if err := m.session.SetAccess(ctx, m.replica.access()); err != nil && !errors.Is(err, errors.ErrUnsupported) {
		m.show("%v", err)
	}
}

// deliver gives the agent new input, as one prompt. If the session has to be started first, the
// prompt follows after the start.
func (m *member) deliver(ctx context.Context, keys []string, opening string, mail []team.Message) {
	if m.session == nil {
		if m.retry != nil { // the retry starts the session, and the mail waits for it
			return
		}
		if err := m.start(ctx); err != nil {
			m.failures = min(m.failures+1, maxFailures-1)
			m.sessionFailed(ctx, err)
			for _, key := range keys { // the start was for these; later mail causes another start
				m.inFlight[key] = true
			}
		}
		return
	}
	id := ""
	m.replica.View(func(s *team.State) { id = s.Team().ID })
	var parts []string
	if opening != "" {
		m.opened = true
		m.show("%s:\n%s", m.replica.lead(), sanitize.Block(opening))
		parts = append(parts, envelope.Mark(id, m.o.Name)+"\n"+envelope.Harmless(opening))
	}
	for _, one := range mail {
		m.show("%s:\n%s", one.From, sanitize.Block(one.Body))
	}
	if len(mail) > 0 {
		parts = append(parts, envelope.Batch(id, m.o.Name, mail))
	}
	m.prompt(ctx, agent.Prompt{Text: strings.Join(parts, "\n\n"), Mail: mail}, keys)
}

// prompt gives the session a prompt. If the session does not take it, its mail stays in the inbox.
func (m *member) prompt(ctx context.Context, p agent.Prompt, keys []string) {
	m.prompts++
	p.ID = fmt.Sprintf("prompt-%d", m.prompts)
	m.given[p.ID] = keys
	for _, key := range keys {
		m.inFlight[key] = true
	}
	if err := m.session.Give(ctx, p); err != nil {
		m.returnToInbox(p.ID)
		m.show("%v", err)
	}
}

// returnToInbox records that a prompt did not arrive, so that its mail is delivered again.
func (m *member) returnToInbox(id string) {
	for _, key := range m.given[id] {
		delete(m.inFlight, key)
	}
	delete(m.given, id)
}

func (m *member) acknowledge(ctx context.Context, keys ...string) {
	if len(keys) > 0 {
		m.try(ctx, func(ctx context.Context) error { return m.o.Team.MarkDelivered(ctx, m.o.Name, keys...) })
	}
}

// offerTask wakes a session that takes tasks by itself when there is a task for it.
func (m *member) offerTask(ctx context.Context) {
	if _, worker := m.o.Agent.(agent.Worker); !worker || m.session == nil || m.worked {
		return
	}
	has := false
	m.replica.View(func(s *team.State) { has = s.HasWork(m.o.Name) })
	if has {
		m.prompt(ctx, agent.Prompt{}, nil)
	}
}

// ask asks the lead, and the person at the pane, for a permission.
func (m *member) ask(ctx context.Context, u agent.PermissionAsked) {
	if allow, reason, ruled := m.replica.ruling(u.Tool, u.Input, !u.Ruled && m.reads(u.Tool, u.Input)); ruled {
		u.Answer(allow, reason)
		return
	}
	id := fmt.Sprintf("perm-%d-%s", now(), strings.ToLower(rand.Text()[:7]))
	input := json.RawMessage(u.Input)
	if !json.Valid(input) || !strings.HasPrefix(strings.TrimSpace(u.Input), "{") {
		input, _ = json.Marshal(map[string]string{"input": u.Input})
	}
	asked := m.try(ctx, func(ctx context.Context) error {
		return m.replica.notifyLead(ctx, &teamfiles.PermissionRequest{RequestID: id, Agent: m.o.Name, Tool: u.Tool,
			ToolUseID: "toolu_" + rand.Text(), Description: m.o.AgentName + " asks to use " + u.Tool,
			Input: input, Suggestions: json.RawMessage("[]")})
	})
	if !asked && m.o.Input == nil {
		u.Answer(false, "the request could not be sent to the lead, and no person is at the pane")
		return
	}
	timer := time.AfterFunc(m.o.Patience, func() {
		select {
		case m.expired <- id:
		case <-m.gone:
		}
	})
	m.questions[id] = func(allow bool, reason string) {
		timer.Stop()
		u.Answer(allow, reason)
	}
	m.asked = append(m.asked, id)
	m.show("? %s asks to use %s: %s [y/N]", m.o.Name, u.Tool, u.Input)
}

// answer answers an open question.
func (m *member) answer(id string, allow bool, reason string) {
	answer, open := m.questions[id]
	if !open {
		return
	}
	delete(m.questions, id)
	m.asked = slices.DeleteFunc(m.asked, func(one string) bool { return one == id })
	answer(allow, reason)
	word := "denied"
	if allow {
		word = "allowed"
	}
	m.show("%s%s", word, after(": ", reason))
}

// propose submits the session's plan to the lead.
func (m *member) propose(ctx context.Context, u agent.PlanProposed) {
	id := m.replica.planID()
	sent := m.try(ctx, func(ctx context.Context) error {
		if err := m.replica.submit(ctx, id, u.Plan); err != nil {
			return err
		}
		return m.replica.updateSelf(ctx, func(s *self) {
			s.plan.State, s.plan.Request,
				s.plan.Text = "submitted", id, u.Plan
		})
	})
	if !sent {
		u.Answer(false, "the plan could not be sent to the lead; try again")
		return
	}
	m.proposal = u.Answer
	m.show("the plan waits for the lead's approval")
}

// typed handles a line from the person at the pane: the answer to the oldest question, or text for
// the agent.
func (m *member) typed(ctx context.Context, line string) {
	line = strings.TrimSpace(line)
	if len(m.asked) > 0 {
		yes := slices.Contains([]string{"y", "yes"}, strings.ToLower(line))
		if no := slices.Contains([]string{"", "n", "no"}, strings.ToLower(line)); yes || no {
			reason := ""
			if no {
				reason = "the person at its pane denied it"
			}
			m.answer(m.asked[0], yes, reason)
			return
		}
	}
	if line == "" {
		return
	}
	if m.session == nil {
		if err := m.start(ctx); err != nil {
			m.show("✗ %v", err)
			return
		}
	}
	m.prompt(ctx, agent.Prompt{Text: line}, nil)
}
