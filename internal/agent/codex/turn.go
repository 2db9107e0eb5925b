package codex

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"time"

	"cadre/internal/agent"
	"cadre/internal/sys/proc"
	"cadre/internal/sys/sleep"
)

// handle handles the program's notifications and requests. It runs on the connection's reader, one
// message after the other.
func (s *session) handle(w *wire, m rpc) {
	if m.ID != nil {
		s.handleRequest(w, m)
		return
	}
	for _, said := range s.decoder.decode(m.Method, m.Params) {
		s.take(said)
	}
}

func (s *session) take(said any) {
	switch said := said.(type) {
	case turnStarted:
		s.mu.Lock()
		if s.turn == "" {
			s.ended = make(chan struct{})
		}
		s.turn, s.plan, s.interrupted, s.commands = said.id, "", false, map[string]bool{}
		s.mu.Unlock()
		s.say(agent.TurnStarted{})
	case turnEnded:
		s.endTurn(said)
	case received:
		s.mu.Lock()
		p, ok := s.given[said.client]
		delete(s.given, said.client)
		s.mu.Unlock()
		if ok {
			s.say(agent.Received{ID: p.id})
		}
	case planned:
		s.mu.Lock()
		s.plan = said.text
		s.mu.Unlock()
	case resolved:
		s.mu.Lock()
		delete(s.open, said.request)
		s.mu.Unlock()
	case agent.ToolStarted:
		if said.Tool == "Bash" {
			s.mu.Lock()
			s.commands[said.ID] = true
			s.mu.Unlock()
		}
		s.say(said)
	case agent.ToolFinished:
		s.mu.Lock()
		delete(s.commands, said.ID)
		s.mu.Unlock()
		s.say(said)
	case agent.Update:
		s.say(said)
	}
}

func (s *session) endTurn(t turnEnded) {
	s.mu.Lock()
	plan, writes, doubtful := s.plan, s.access.Writes, s.maybeTaken
	if t.end.Interrupted && !s.interrupted {
		t.end = agent.TurnEnded{Problem: &agent.Problem{Kind: agent.ProblemModel,
			Text: "codex ended the turn early by itself"}}
	}
	if s.turn != "" {
		s.turn = ""
		close(s.ended)
	}
	t.end.Continues = s.continues && t.end.Interrupted
	s.maybeTaken, s.continues = nil, false
	s.lastEnded = t.id
	var lost []string
	for client, p := range s.given {
		if p.turn == t.id { // the turn ended before it took the prompt
			lost = append(lost, p.id)
			delete(s.given, client)
		}
	}
	clear(s.open) // it no longer waits for answers
	s.mu.Unlock()
	if plan != "" && !writes && t.end.Problem == nil && !t.end.Interrupted {
		s.say(agent.PlanProposed{Plan: plan, Answer: s.answerPlan})
	}
	for _, id := range lost {
		s.say(agent.NotTaken{ID: id})
	}
	s.say(t.end)
	for _, p := range doubtful {
		s.giveAgain(p)
	}
}

// giveAgain gives a prompt again, unless the thread has it.
func (s *session) giveAgain(p agent.Prompt) {
	s.mu.Lock()
	_, missing := s.given[s.client(p)]
	s.mu.Unlock()
	if !missing {
		return
	}
	s.serving.Go(func() {
		ctx, cancel := context.WithTimeout(s.ctx, callTimeout)
		defer cancel()
		s.Give(ctx, p)
	})
}

// client returns the client's id of a prompt.
func (s *session) client(p agent.Prompt) string {
	return fmt.Sprintf("%d/%s", s.spec.Incarnation, p.ID)
}

// say sends an update. After the program has ended, it drops the update if the channel is full.
func (s *session) say(u agent.Update) {
	select {
	case s.updates <- u:
	case <-s.ctx.Done():
		select { // the last words are still needed
		case s.updates <- u:
		default:
		}
	}
}

// starting is the id of a requested turn that has no id yet.
const starting = "starting"

// answerPlan gives the lead's answer as a new prompt, because the program's turn ended with its
// plan.
func (s *session) answerPlan(approved bool, feedback string) {
	text := "The plan is rejected; revise it and present it again.\n" + feedback
	if approved {
		s.mu.Lock()
		s.access.Writes = true
		s.mu.Unlock()
		text = "The plan is approved; carry it out now.\n" + feedback
	}
	s.serving.Go(func() {
		ctx, cancel := context.WithTimeout(s.ctx, callTimeout)
		defer cancel()
		s.Give(ctx, agent.Prompt{ID: fmt.Sprintf("plan-%d", time.Now().UnixNano()), Text: text})
	})
}

// Give gives a prompt: it starts a turn, or goes into the running one. If the connection breaks in
// the meantime, the thread shows whether the prompt was taken.
func (s *session) Give(ctx context.Context, p agent.Prompt) error {
	s.giveMu.Lock()
	defer s.giveMu.Unlock()
	client := s.client(p)
	s.mu.Lock()
	if s.stopping {
		s.mu.Unlock()
		return errEnded
	}
	s.given[client] = given{id: p.ID}
	s.continues = s.continues || p.Urgent && s.turn != ""
	s.mu.Unlock()
	if p.Urgent {
		s.interruptAndWait(ctx)
	}
	s.endReadOnlyTurn(ctx)
	for {
		w, err := s.connected(ctx)
		if err == nil {
			err = s.submit(ctx, w, client, p.Text)
		}
		switch refused := (*rpcError)(nil); {
		case err == nil:
			return nil
		case errors.Is(err, errTurnOver):
			return s.forgetPrompt(client, err)
		case errors.Is(err, errBroken):
			if _, err := s.connected(ctx); err != nil {
				return s.forgetPrompt(client, err)
			}
			if s.taken(client, p) {
				return nil
			}
		case errors.As(err, &refused):
			if !s.awaitTurnChange(ctx) { // the turn has just ended, or has just started
				return s.forgetPrompt(client, err)
			}
		default:
			return s.forgetPrompt(client, err)
		}
	}
}

// taken reports whether a prompt whose answer was lost is done: it is in the thread, or may still
// get there, because a turn is running. The turn's end shows which.
func (s *session) taken(client string, p agent.Prompt) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, missing := s.given[client]
	if missing && s.turn != "" {
		s.maybeTaken = append(s.maybeTaken, p)
	}
	return !missing || s.turn != ""
}

func (s *session) forgetPrompt(client string, err error) error {
	s.mu.Lock()
	delete(s.given, client)
	s.refusals = 0
	s.mu.Unlock()
	return err
}

// maxRefusals bounds how often a prompt is sent again because its turn had changed by then.
const maxRefusals = 5

// awaitTurnChange waits briefly until the stream shows which turn is running.
func (s *session) awaitTurnChange(ctx context.Context) bool {
	s.mu.Lock()
	s.refusals++
	again := s.refusals <= maxRefusals
	s.mu.Unlock()
	return sleep.For(ctx, 50*time.Millisecond) == nil && again
}

func (s *session) submit(ctx context.Context, w *wire, client, text string) error {
	s.mu.Lock()
	turn := s.turn
	s.mu.Unlock()
	if turn != "" && turn != starting {
		err := w.call(ctx, "turn/steer", object{"threadId": s.thread, "expectedTurnId": turn,
			"clientUserMessageId": client, "input": input(text)}, nil)
		if err == nil {
			err = s.submitted(client, turn)
		}
		return err
	}
	s.mu.Lock()
	if s.turn == "" {
		s.turn, s.ended, s.plan = starting, make(chan struct{}), ""
	}
	access := s.access
	s.readOnlyTurn = !access.Writes
	s.mu.Unlock()
	approval, sandbox := policy(access, s.spec.Gate)
	mode := object{"mode": "default", "settings": object{"model": s.model, "reasoning_effort": nil,
		"developer_instructions": nil}}
	if !access.Writes {
		mode["mode"] = "plan"
	}
	var got struct {
		Turn struct {
			ID string `json:"id"`
		} `json:"turn"`
	}
	err := w.call(ctx, "turn/start", object{"threadId": s.thread, "clientUserMessageId": client, "input": input(text),
		"approvalPolicy": approval, "sandboxPolicy": sandbox,
		"collaborationMode": mode}, &got)
	if err == nil {
		return s.submitted(client, got.Turn.ID)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.turn == starting {
		s.turn = ""
		close(s.ended)
	}
	return err
}

// errTurnOver reports that a turn that had accepted a prompt has ended without taking it.
var errTurnOver = errors.New("the turn ended before it took the prompt")

// submitted records the turn that a prompt was sent to, which may have ended in the meantime.
func (s *session) submitted(client, turn string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refusals = 0
	p, missing := s.given[client]
	switch {
	case !missing:
		return nil
	case turn != "" && turn == s.lastEnded:
		return errTurnOver
	}
	p.turn = turn
	s.given[client] = p
	return nil
}

func (s *session) interruptAndWait(ctx context.Context) {
	s.mu.Lock()
	turn, ended := s.turn, s.ended
	s.mu.Unlock()
	if turn == "" || s.Interrupt(ctx) != nil {
		return
	}
	select {
	case <-ended:
	case <-time.After(callTimeout):
	case <-ctx.Done():
	case <-s.ctx.Done():
	}
}

// readOnlyGrace is how long a read-only turn may take to end once the session may write.
const readOnlyGrace = 10 * time.Second

// endReadOnlyTurn waits for the end of a read-only turn when the session may write. A turn keeps
// its policy: if the agent learned in it that its plan is approved, it would fail to carry the plan
// out.
func (s *session) endReadOnlyTurn(ctx context.Context) {
	s.mu.Lock()
	ended, outdated := s.ended, s.turn != "" && s.readOnlyTurn && s.access.Writes
	s.mu.Unlock()
	if !outdated {
		return
	}
	select {
	case <-ended:
		return
	case <-time.After(readOnlyGrace):
	case <-ctx.Done():
		return
	case <-s.ctx.Done():
		return
	}
	s.mu.Lock()
	s.continues = true
	s.mu.Unlock()
	s.interruptAndWait(ctx)
}

func (s *session) Interrupt(ctx context.Context) error {
	s.mu.Lock()
	turn := s.turn
	s.mu.Unlock()
	if turn == "" || turn == starting {
		return nil
	}
	w, err := s.connected(ctx)
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.interrupted = s.turn == turn
	commands := maps.Clone(s.commands)
	s.mu.Unlock()
	err = w.call(ctx, "turn/interrupt", object{"threadId": s.thread, "turnId": turn}, nil)
	if err == nil && len(commands) > 0 {
		err = s.endCommands(ctx, w, commands)
	}
	return err
}

// endCommands ends these commands of an interrupted turn. Codex lets them run on in the background.
// Commands of earlier turns, such as a server that the agent started, are left alone.
func (s *session) endCommands(ctx context.Context, w *wire, commands map[string]bool) error {
	var list struct {
		Data []struct {
			Item    string `json:"itemId"`
			Process string `json:"processId"`
		} `json:"data"`
	}
	err := w.call(ctx, "thread/backgroundTerminals/list", object{"threadId": s.thread}, &list)
	for _, one := range list.Data {
		if err == nil && commands[one.Item] {
			err = w.call(ctx, "thread/backgroundTerminals/terminate", object{"threadId": s.thread,
				"processId": one.Process}, nil)
		}
	}
	// an older Codex cannot do it; the turn is interrupted all the same
	if _, refused := errors.AsType[*rpcError](err); refused {
		return nil
	}
	return err
}

// SetAccess applies from the next turn on, because a turn keeps the policy that it was started
// with. What the team's rules forbid applies at once: a running turn is interrupted for that, and
// the next one continues its work.
func (s *session) SetAccess(ctx context.Context, a agent.Access) error {
	s.mu.Lock()
	before := s.access
	s.access = a
	runs := s.turn != ""
	s.mu.Unlock()
	forbids := !a.Writes && before.Writes || a.Gated && !before.Gated
	if !runs || !forbids {
		return nil
	}
	s.mu.Lock()
	s.continues = true
	s.mu.Unlock()
	s.interruptAndWait(ctx)
	return s.Give(ctx, agent.Prompt{ID: fmt.Sprintf("access-%d", time.Now().UnixNano()),
		Text: "Your permissions have changed, and some tools may now be denied. Continue with what is allowed."})
}

func (s *session) Stop(ctx context.Context) error {
	s.mu.Lock()
	s.stopping = true
	s.mu.Unlock()
	s.interruptAndWait(ctx) // so that the turn is saved as an interrupted one
	return s.child.Stop(ctx, proc.Ladder{Term: time.Second})
}

// openRequest is a request of the program without an answer. An answer is lost when its connection
// breaks; on the next one the program asks again, under the same id.
type openRequest struct {
	wire   *wire  // the connection of the last question
	answer object // nil until there is one
}

// handleRequest handles a request of the program.
func (s *session) handleRequest(w *wire, m rpc) {
	id := string(m.ID)
	s.mu.Lock()
	o, again := s.open[id]
	if !again {
		o = &openRequest{}
		s.open[id] = o
	}
	o.wire = w
	said := o.answer
	s.mu.Unlock()
	if again {
		if said != nil {
			s.send(w, id, said)
		}
		return
	}
	answer := func(result object) { s.answer(id, object{"result": result}) }
	switch r := s.decoder.request(m.Method, m.Params).(type) {
	case permission:
		s.askPermission(w, r, answer)
	case call:
		s.serving.Go(func() {
			text, failed := "The team has no tools here.", true
			if s.spec.Tools != nil {
				text, failed = s.spec.Tools.Call(s.ctx, r.tool, r.input)
			}
			answer(object{"contentItems": []object{{"type": "inputText", "text": text}}, "success": !failed})
		})
	case questions:
		answers := object{}
		for _, q := range r.ids {
			answers[q] = object{"answers": []string{agent.NoPerson}}
		}
		answer(object{"answers": answers})
	case elicitation:
		answer(object{"action": "decline", "content": nil, "_meta": nil})
	default:
		s.answer(id, object{"error": object{"code": -32601, "message": "cadre does not know " + m.Method}})
	}
}

// askPermission asks the gate, and then the team, for a permission.
func (s *session) askPermission(w *wire, r permission, answer func(object)) {
	decide := func(allowed bool) {
		word := "decline"
		if allowed {
			word = "accept"
		}
		if r.elicits {
			answer(object{"action": word, "content": object{}, "_meta": nil})
		} else {
			answer(object{"decision": word})
		}
	}
	if s.spec.Gate != nil {
		if err := s.spec.Gate(r.tool, r.input); err != nil {
			s.refuse(w, r.tool, err.Error(), func() { decide(false) })
			return
		}
	}
	s.say(agent.PermissionAsked{Tool: r.tool, Input: r.input, Ruled: rulesMayAsk(environment(s.spec), s.spec.Dir),
		Answer: func(allowed bool, reason string) {
			if allowed || reason == "" {
				decide(allowed)
				return
			}
			s.refuse(w, r.tool, reason, func() { decide(false) })
		}})
}

// refuse denies a request after it has sent the reason to the model. The protocol's answer has no
// place for a reason, so the reason goes into the running turn.
func (s *session) refuse(w *wire, tool, reason string, decline func()) {
	s.mu.Lock()
	turn := s.turn
	s.reasons++
	client := fmt.Sprintf("%d/reason-%d", s.spec.Incarnation, s.reasons)
	s.mu.Unlock()
	s.serving.Go(func() {
		defer decline()
		if turn == "" || turn == starting {
			return
		}
		ctx, cancel := context.WithTimeout(s.ctx, reasonTimeout)
		defer cancel()
		// The denial itself reaches the model in any case.
		_ = w.call(ctx, "turn/steer", object{"threadId": s.thread, "expectedTurnId": turn,
			"clientUserMessageId": client,
			"input":               input(fmt.Sprintf("(%s was denied: %s)", tool, reason))}, nil)
	})
}

// reasonTimeout bounds how long a denial waits for its reason to be sent.
const reasonTimeout = 5 * time.Second

// answer answers a request of the program, unless the program no longer waits for it.
func (s *session) answer(id string, words object) {
	s.mu.Lock()
	o := s.open[id]
	if o == nil || o.answer != nil {
		s.mu.Unlock()
		return
	}
	o.answer = words
	w := o.wire
	s.mu.Unlock()
	s.send(w, id, words)
}

func (s *session) send(w *wire, id string, words object) {
	ctx, cancel := context.WithTimeout(s.ctx, callTimeout)
	defer cancel()
	message := object{"id": json.RawMessage(id)}
	maps.Copy(message, words)
	w.send(ctx, message)
}
