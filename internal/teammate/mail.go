package teammate

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

// look takes in what the files say now, and gives the agent what is new.
func (m *member) look(ctx context.Context) error {
	if err := m.replica.Refresh(ctx); err != nil {
		if errors.Is(err, errOff) || team.CodeOf(err) == team.Finished {
			return err
		}
		m.show("%v", err)
		return nil
	}
	if m.session != nil && !m.begun { // it is looked again when that says what it knows already
		return nil
	}
	waiting, err := m.o.Team.Waiting(ctx, m.o.Name)
	if err != nil { // the follower says so too, and when the file is mended there is a change
		return nil
	}
	m.forget(waiting)
	var mail []team.Message
	var keys []string
	var opening string
	for _, e := range waiting {
		if m.onTheWay[e.Key()] {
			continue
		}
		if m.seen[number(e)] {
			m.settle(ctx, e.Key())
			continue
		}
		msg, forAgent := m.read(ctx, e)
		switch {
		case !forAgent:
			m.settle(ctx, e.Key())
			continue
		case !m.opened && m.spawnedWith(ctx, e):
			if m.seen[0] {
				m.opened = true
				m.settle(ctx, e.Key())
				continue
			}
			opening = e.Text
		default:
			mail = append(mail, msg)
		}
		keys = append(keys, e.Key())
	}
	if len(keys) > 0 {
		m.give(ctx, keys, opening, mail)
	} else if !m.looked {
		m.active(ctx, false)
	}
	m.looked = true
	m.offer(ctx)
	return nil
}

// forget drops what is known of entries that are not in the inbox any more.
func (m *member) forget(waiting []teamfiles.Entry) {
	for key := range m.onTheWay {
		if !slices.ContainsFunc(waiting, func(e teamfiles.Entry) bool { return e.Key() == key }) {
			delete(m.onTheWay, key)
		}
	}
}

// number is that of an entry in its letter, the same for whoever reads it: a session is resumed by
// other processes.
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

// read turns an entry into a message for the agent, or does what it asks the program for. What is
// for the program counts from the lead alone.
func (m *member) read(ctx context.Context, e teamfiles.Entry) (msg team.Message, forAgent bool) {
	msg = team.Message{Seq: number(e), From: e.From, To: m.o.Name, Type: team.TypeMessage,
		Priority: "normal", Body: e.Text}
	fromLead := e.From == m.replica.lead()
	if fromLead && m.o.LeadKey != nil && !m.o.LeadKey.Signed(e) {
		msg.From, fromLead = "somebody who claims to be "+e.From, false
	}
	// the files are anybody's to write, and nobody in them is the user or the team
	if !team.ValidName(msg.From) && msg.From == e.From {
		msg.From = "somebody without a name"
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
		return msg, unknown // what only looks like one of the program's is a colleague's text
	}
	switch said := said.(type) {
	case *teamfiles.ShutdownRequest:
		return m.shutdown(ctx, msg, said)
	case *teamfiles.PermissionResponse:
		reason := said.Error
		if said.Subtype != "success" && reason == "" {
			reason = "the lead said no"
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

// shutdown has the agent asked to end, and sees to it that it does.
func (m *member) shutdown(ctx context.Context, msg team.Message, r *teamfiles.ShutdownRequest) (team.Message, bool) {
	msg.Type, msg.Ref, msg.Body = team.TypeShutdownRequest, r.RequestID, r.Reason
	if msg.Body == "" {
		msg.Body = "Please finish and shut down."
	}
	pending := ""
	m.replica.View(func(s *team.State) { me, _ := s.Member(m.o.Name); pending = me.Shutdown.Request })
	if pending != r.RequestID {
		m.deadline = time.After(m.o.Within)
		deadline := now() + team.Time(m.o.Within.Milliseconds())
		m.try(ctx, func(ctx context.Context) error {
			return m.replica.know(ctx, func(s *self) {
				s.shutdown = team.Shutdown{Request: r.RequestID, Reason: r.Reason, Deadline: deadline}
			})
		})
	}
	if m.session == nil { // nobody is there to ask
		m.deadline = time.After(0)
		return msg, false
	}
	return msg, true
}

// planAnswered passes the lead's answer on to whoever waits for it.
func (m *member) planAnswered(ctx context.Context, msg team.Message, r *teamfiles.PlanResponse) (team.Message, bool) {
	state := "rejected"
	if r.Approved {
		state = "approved"
	}
	submitted := false
	m.try(ctx, func(ctx context.Context) error {
		return m.replica.know(ctx, func(s *self) {
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
	if m.proposal != nil { // the agent's own way to ask waits for it
		m.proposal(r.Approved, r.Feedback)
		m.proposal = nil
		return msg, false
	}
	msg.Type, msg.Ref, msg.Body = team.TypePlanResponse, r.RequestID,
		strings.TrimSuffix("Your plan is "+state+".\n"+envelope.Quote(r.Feedback), "\n> ")
	return msg, true
}

// setMode changes what the member may do by itself; nothing makes it skip permissions that was not
// started so.
func (m *member) setMode(ctx context.Context, mode string) {
	if !slices.Contains(team.PermissionModes, mode) || mode == "bypassPermissions" && m.o.Spec.Access.Mode != mode {
		m.show("the permission mode stays as it is: %q is not for this session", mode)
		return
	}
	m.try(ctx, func(ctx context.Context) error { return m.replica.know(ctx, func(s *self) { s.mode = mode }) })
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

// give gives the agent what is new, as one prompt. One that has to be started for it gets it when
// it has begun.
func (m *member) give(ctx context.Context, keys []string, opening string, mail []team.Message) {
	if m.session == nil {
		if m.retry != nil { // it is tried again by itself, and the mail waits
			return
		}
		if err := m.start(ctx); err != nil {
			m.failures = min(m.failures+1, mostFailures-1)
			m.down(ctx, err)
			for _, key := range keys { // it was tried for these; what comes later has it tried again
				m.onTheWay[key] = true
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
	m.hand(ctx, agent.Prompt{Text: strings.Join(parts, "\n\n"), Mail: mail}, keys)
}

// hand gives the session a prompt. What it does not take waits in the inbox.
func (m *member) hand(ctx context.Context, p agent.Prompt, keys []string) {
	m.prompts++
	p.ID = fmt.Sprintf("prompt-%d", m.prompts)
	m.given[p.ID] = keys
	for _, key := range keys {
		m.onTheWay[key] = true
	}
	if err := m.session.Give(ctx, p); err != nil {
		m.giveBack(p.ID)
		m.show("%v", err)
	}
}

// giveBack takes note that a prompt did not arrive.
func (m *member) giveBack(id string) {
	for _, key := range m.given[id] {
		delete(m.onTheWay, key)
	}
	delete(m.given, id)
}

func (m *member) settle(ctx context.Context, keys ...string) {
	if len(keys) > 0 {
		m.try(ctx, func(ctx context.Context) error { return m.o.Team.Settle(ctx, m.o.Name, keys...) })
	}
}

// offer wakes a session that takes tasks by itself when there is one for it.
func (m *member) offer(ctx context.Context) {
	if _, worker := m.o.Agent.(agent.Worker); !worker || m.session == nil || m.worked {
		return
	}
	has := false
	m.replica.View(func(s *team.State) { has = s.HasWork(m.o.Name) })
	if has {
		m.hand(ctx, agent.Prompt{}, nil)
	}
}

// ask puts a question before the lead, and before the person at the pane.
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
		return m.replica.tellLead(ctx, &teamfiles.PermissionRequest{RequestID: id, Agent: m.o.Name, Tool: u.Tool,
			ToolUseID: "toolu_" + rand.Text(), Description: m.o.AgentName + " asks to use " + u.Tool,
			Input: input, Suggestions: json.RawMessage("[]")})
	})
	if !asked && m.o.Input == nil {
		u.Answer(false, "nobody could be asked")
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

// answer answers a question that is open.
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

// propose lays the session's plan before the lead.
func (m *member) propose(ctx context.Context, u agent.PlanProposed) {
	id := m.replica.planID()
	sent := m.try(ctx, func(ctx context.Context) error {
		if err := m.replica.submit(ctx, id, u.Plan); err != nil {
			return err
		}
		return m.replica.know(ctx, func(s *self) {
			s.plan.State, s.plan.Request,
				s.plan.Text = "submitted", id, u.Plan
		})
	})
	if !sent {
		u.Answer(false, "the plan could not be laid before the lead; try again")
		return
	}
	m.proposal = u.Answer
	m.show("the plan is with the lead")
}

// typed is what the person at the pane wrote: the answer to the oldest question, or something for
// the agent.
func (m *member) typed(ctx context.Context, line string) {
	line = strings.TrimSpace(line)
	if len(m.asked) > 0 {
		yes := slices.Contains([]string{"y", "yes"}, strings.ToLower(line))
		if no := slices.Contains([]string{"", "n", "no"}, strings.ToLower(line)); yes || no {
			reason := ""
			if no {
				reason = "the person at its pane said no"
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
	m.hand(ctx, agent.Prompt{Text: line}, nil)
}
