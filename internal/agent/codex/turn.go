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
)

// see takes what the program says by itself. It runs on the connection's reader, one message after
// the other.
func (s *session) see(w *wire, m rpc) {
	if m.ID != nil {
		s.asked(w, m)
		return
	}
	for _, said := range s.words.decode(m.Method, m.Params) {
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
		s.turn, s.plan, s.interrupted = said.id, "", false
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
	case agent.Update:
		s.say(said)
	}
}

func (s *session) endTurn(t turnEnded) {
	s.mu.Lock()
	plan, writes, doubtful := s.plan, s.access.Writes, s.doubtful
	if t.end.Interrupted && !s.interrupted {
		t.end = agent.TurnEnded{Problem: &agent.Problem{Kind: agent.ProblemModel,
			Text: "codex broke the turn off by itself"}}
	}
	if s.turn != "" {
		s.turn = ""
		close(s.ended)
	}
	t.end.GoesOn = s.goesOn && t.end.Interrupted
	s.doubtful, s.goesOn = nil, false
	s.over = t.id
	var lost []string
	for client, p := range s.given {
		if p.turn == t.id { // it was handed over, and the turn ended before it came to it
			lost = append(lost, p.id)
			delete(s.given, client)
		}
	}
	clear(s.open) // what it asked is not waited for any more
	s.mu.Unlock()
	if plan != "" && !writes && t.end.Problem == nil && !t.end.Interrupted {
		s.say(agent.PlanProposed{Plan: plan, Answer: s.answerPlan})
	}
	for _, id := range lost {
		s.say(agent.NotTaken{ID: id})
	}
	s.say(t.end)
	for _, p := range doubtful {
		s.again(p)
	}
}

// again hands a prompt over that may not have been taken, unless it was.
func (s *session) again(p agent.Prompt) {
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

// client is the client's id of a prompt.
func (s *session) client(p agent.Prompt) string {
	return fmt.Sprintf("%d/%s", s.spec.Incarnation, p.ID)
}

// say gives an update to whoever reads them. The end of the program lets go of one that nobody
// takes.
func (s *session) say(u agent.Update) {
	select {
	case s.updates <- u:
	case <-s.ctx.Done():
		select { // the last words are still wanted
		case s.updates <- u:
		default:
		}
	}
}

// starting stands for the turn that was asked for and has no id yet.
const starting = "starting"

// answerPlan goes on after the lead's answer: the program's turn ends with its plan.
func (s *session) answerPlan(approved bool, feedback string) {
	text := "The plan is rejected; revise it and lay it out again.\n" + feedback
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

// Give hands a prompt over: it starts a turn, or goes into the one that runs. When the connection
// breaks meanwhile, the thread says whether it was taken.
func (s *session) Give(ctx context.Context, p agent.Prompt) error {
	s.giving.Lock()
	defer s.giving.Unlock()
	client := s.client(p)
	s.mu.Lock()
	if s.stopping {
		s.mu.Unlock()
		return errEnded
	}
	s.given[client] = given{id: p.ID}
	s.goesOn = s.goesOn || p.Urgent && s.turn != ""
	s.mu.Unlock()
	if p.Urgent {
		s.interruptAndWait(ctx)
	}
	s.endLooking(ctx)
	for {
		w, err := s.connected(ctx)
		if err == nil {
			err = s.hand(ctx, w, client, p.Text)
		}
		switch refused := (*rpcError)(nil); {
		case err == nil:
			return nil
		case errors.Is(err, errOver):
			return s.untaken(client, err)
		case errors.Is(err, errBroken):
			if _, err := s.connected(ctx); err != nil {
				return s.untaken(client, err)
			}
			if s.taken(client, p) {
				return nil
			}
		case errors.As(err, &refused):
			if !s.settle(ctx) { // the turn has just ended, or has just begun
				return s.untaken(client, err)
			}
		default:
			return s.untaken(client, err)
		}
	}
}

// taken reports whether a prompt whose answer was lost with the connection needs no more: it is in
// the thread, or may be about to be, because a turn runs; the turn's end shows which.
func (s *session) taken(client string, p agent.Prompt) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, missing := s.given[client]
	if missing && s.turn != "" {
		s.doubtful = append(s.doubtful, p)
	}
	return !missing || s.turn != ""
}

func (s *session) untaken(client string, err error) error {
	s.mu.Lock()
	delete(s.given, client)
	s.refusals = 0
	s.mu.Unlock()
	return err
}

// maxRefusals bounds how often a prompt is handed over anew because the turn that it was for was
// another one by then.
const maxRefusals = 5

// settle gives the stream a moment to say which turn runs.
func (s *session) settle(ctx context.Context) bool {
	s.mu.Lock()
	s.refusals++
	again := s.refusals <= maxRefusals
	s.mu.Unlock()
	select {
	case <-time.After(50 * time.Millisecond):
	case <-ctx.Done():
		return false
	}
	return again
}

func (s *session) hand(ctx context.Context, w *wire, client, text string) error {
	s.mu.Lock()
	turn := s.turn
	s.mu.Unlock()
	if turn != "" && turn != starting {
		err := w.call(ctx, "turn/steer", object{"threadId": s.thread, "expectedTurnId": turn,
			"clientUserMessageId": client, "input": input(text)}, nil)
		if err == nil {
			err = s.handed(client, turn)
		}
		return err
	}
	s.mu.Lock()
	if s.turn == "" {
		s.turn, s.ended, s.plan = starting, make(chan struct{}), ""
	}
	access := s.access
	s.looks = !access.Writes
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
		return s.handed(client, got.Turn.ID)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.turn == starting {
		s.turn = ""
		close(s.ended)
	}
	return err
}

// errOver says that a turn which took a prompt over has ended without coming to it.
var errOver = errors.New("the turn ended before the prompt was in it")

// handed notes into which turn a prompt was handed, which may have ended meanwhile.
func (s *session) handed(client, turn string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refusals = 0
	p, missing := s.given[client]
	switch {
	case !missing:
		return nil
	case turn != "" && turn == s.over:
		return errOver
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

// lookingTime is how long a turn that can only look may take to end once the session may write.
const lookingTime = 10 * time.Second

// endLooking waits for the end of a turn that was started to look around, where the session may
// write since. A turn keeps its policy: told in it that its plan is approved, the agent would fail
// to carry the plan out.
func (s *session) endLooking(ctx context.Context) {
	s.mu.Lock()
	ended, outdated := s.ended, s.turn != "" && s.looks && s.access.Writes
	s.mu.Unlock()
	if !outdated {
		return
	}
	select {
	case <-ended:
		return
	case <-time.After(lookingTime):
	case <-ctx.Done():
		return
	case <-s.ctx.Done():
		return
	}
	s.mu.Lock()
	s.goesOn = true
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
	s.mu.Unlock()
	return w.call(ctx, "turn/interrupt", object{"threadId": s.thread, "turnId": turn}, nil)
}

// SetAccess holds from the next turn on, because a turn keeps the policy that it was started with.
// What the team's rules forbid holds at once: a turn that runs is interrupted for that, and the
// next one continues its work.
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
	s.goesOn = true
	s.mu.Unlock()
	s.interruptAndWait(ctx)
	return s.Give(ctx, agent.Prompt{ID: fmt.Sprintf("access-%d", time.Now().UnixNano()), Text: "What you may do has " +
		"changed: some of it is for others now. Go on within that."})
}

func (s *session) Stop(ctx context.Context) error {
	s.mu.Lock()
	s.stopping = true
	s.mu.Unlock()
	s.interruptAndWait(ctx) // so that the turn is saved as one that was interrupted
	return s.child.Stop(ctx, proc.Ladder{Term: time.Second})
}

// open is a request of the program that waits for its answer. An answer is lost with a connection
// that breaks; on the next one the program asks again, under the same id.
type open struct {
	wire   *wire  // on which it was asked last
	answer object // nil while there is none
}

// asked deals with a request of the program.
func (s *session) asked(w *wire, m rpc) {
	id := string(m.ID)
	s.mu.Lock()
	o, again := s.open[id]
	if !again {
		o = &open{}
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
	switch r := s.words.request(m.Method, m.Params).(type) {
	case permission:
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
		s.say(agent.PermissionAsked{Tool: r.tool, Input: r.input, Ruled: ruled(environment(s.spec), s.spec.Dir),
			Answer: func(allowed bool, reason string) {
				if allowed || reason == "" {
					decide(allowed)
					return
				}
				s.refuse(w, r.tool, reason, func() { decide(false) })
			}})
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
			answers[q] = object{"answers": []string{agent.Nobody}}
		}
		answer(object{"answers": answers})
	case elicitation:
		answer(object{"action": "decline", "content": nil, "_meta": nil})
	default:
		s.answer(id, object{"error": object{"code": -32601, "message": "cadre knows no " + m.Method}})
	}
}

// refuse declines a request once the reason is on its way to the model. The protocol's answer has
// no place for a reason, so it goes into the turn that runs.
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
		// The refusal itself reaches the model in any case.
		_ = w.call(ctx, "turn/steer", object{"threadId": s.thread, "expectedTurnId": turn,
			"clientUserMessageId": client,
			"input":               input(fmt.Sprintf("(%s was denied: %s)", tool, reason))}, nil)
	})
}

// reasonTimeout bounds how long a refusal waits for its reason.
const reasonTimeout = 5 * time.Second

// answer answers a request of the program, unless it waits no more.
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
