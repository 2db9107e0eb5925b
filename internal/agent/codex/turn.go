package codex

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"cadre/internal/agent"
	"cadre/internal/proc"
)

// see takes what the program says by itself. It runs on the connection's reader, one message after the other.
func (s *session) see(m rpc) {
	if m.ID != nil {
		s.asked(m)
		return
	}
	s.mu.Lock()
	d := s.decoder()
	s.mu.Unlock()
	for _, said := range d.decode(m.Method, m.Params) {
		s.take(said)
	}
}

// decoder is kept over connections: a turn goes on when one breaks.
func (s *session) decoder() *decoder {
	if s.words == nil {
		s.words = &decoder{}
	}
	return s.words
}

func (s *session) take(said any) {
	switch said := said.(type) {
	case turnStarted:
		s.mu.Lock()
		fresh := s.turn != said.id
		if s.turn == "" || fresh {
			s.turn, s.ended, s.plan = said.id, make(chan struct{}), ""
		}
		s.mu.Unlock()
		if fresh {
			s.say(agent.TurnStarted{})
		}
	case turnEnded:
		s.mu.Lock()
		plan := s.plan
		if s.turn == said.id || s.turn == starting {
			s.turn = ""
			close(s.ended)
		}
		writes := s.access.Writes
		s.mu.Unlock()
		if plan != "" && !writes && said.end.Problem == nil && !said.end.Interrupted {
			s.say(agent.PlanProposed{Plan: plan, Answer: s.answerPlan})
		}
		s.say(said.end)
	case received:
		s.mu.Lock()
		id, ok := s.given[said.client]
		delete(s.given, said.client)
		s.mu.Unlock()
		if ok {
			s.say(agent.Received{ID: id})
		}
	case planned:
		s.mu.Lock()
		s.plan = said.text
		s.mu.Unlock()
	case agent.ToolStarted:
		if said.Tool == "Edit" {
			s.mu.Lock()
			s.edits[said.ID] = said.Input
			s.mu.Unlock()
		}
		s.say(said)
	case agent.Update:
		s.say(said)
	}
}

// say gives an update to whoever reads them. The end of the program lets go of one that nobody takes.
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

// Give hands a prompt over: it starts a turn, or goes into the one that runs. When the connection breaks meanwhile, the thread says whether it was taken.
func (s *session) Give(ctx context.Context, p agent.Prompt) error {
	s.giving.Lock()
	defer s.giving.Unlock()
	client := fmt.Sprintf("%d/%s", s.spec.Incarnation, p.ID)
	s.mu.Lock()
	if s.stopping {
		s.mu.Unlock()
		return errEnded
	}
	s.given[client] = p.ID
	s.mu.Unlock()
	if p.Urgent {
		s.interruptAndWait(ctx)
	}
	for {
		w, err := s.connected(ctx)
		if err == nil {
			err = s.hand(ctx, w, client, p.Text)
		}
		switch refused := (*rpcError)(nil); {
		case err == nil:
			return nil
		case errors.Is(err, errBroken):
			if _, err := s.connected(ctx); err != nil {
				return s.untaken(client, err)
			}
			s.mu.Lock()
			_, missing := s.given[client]
			s.mu.Unlock()
			if !missing {
				return nil // it is in the thread
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

func (s *session) untaken(client string, err error) error {
	s.mu.Lock()
	delete(s.given, client)
	s.refusals = 0
	s.mu.Unlock()
	return err
}

// maxRefusals bounds how often a prompt is handed over anew because the turn that it was for was another one by then.
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
		err := w.call(ctx, "turn/steer", object{"threadId": s.thread, "expectedTurnId": turn, "clientUserMessageId": client, "input": input(text)}, nil)
		if err == nil {
			s.mu.Lock()
			s.refusals = 0
			s.mu.Unlock()
		}
		return err
	}
	s.mu.Lock()
	if s.turn == "" {
		s.turn, s.ended, s.plan = starting, make(chan struct{}), ""
	}
	access := s.access
	s.mu.Unlock()
	approval, sandbox := policy(access, s.spec.Gate)
	mode := object{"mode": "default", "settings": object{"model": s.model, "reasoning_effort": nil, "developer_instructions": nil}}
	if !access.Writes {
		mode["mode"] = "plan"
	}
	var got struct {
		Turn struct {
			ID string `json:"id"`
		} `json:"turn"`
	}
	err := w.call(ctx, "turn/start", object{"threadId": s.thread, "clientUserMessageId": client, "input": input(text), "approvalPolicy": approval, "sandboxPolicy": sandbox,
		"collaborationMode": mode}, &got)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		if s.turn == starting {
			s.turn = ""
			close(s.ended)
		}
		return err
	}
	s.refusals = 0
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
	return w.call(ctx, "turn/interrupt", object{"threadId": s.thread, "turnId": turn}, nil)
}

// SetAccess holds from the next turn on.
func (s *session) SetAccess(_ context.Context, a agent.Access) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.access = a
	return nil
}

func (s *session) Stop(ctx context.Context) error {
	s.mu.Lock()
	s.stopping = true
	s.mu.Unlock()
	s.interruptAndWait(ctx) // so that the turn is saved as one that was interrupted
	return s.child.Stop(ctx, proc.Ladder{Term: time.Second})
}

// nobody is what the agent is told that asks a person.
const nobody = "Nobody sits at this terminal. Ask your lead, or a colleague, with SendMessage, and end your turn: the answer comes as a message."

// asked deals with a request of the program.
func (s *session) asked(m rpc) {
	var p struct {
		Command   string          `json:"command"`
		ItemID    string          `json:"itemId"`
		Tool      string          `json:"tool"`
		Arguments json.RawMessage `json:"arguments"`
		Reason    string          `json:"reason"`
		GrantRoot string          `json:"grantRoot"`
		Questions []struct {
			ID string `json:"id"`
		} `json:"questions"`
	}
	json.Unmarshal(m.Params, &p)
	s.mu.Lock()
	w := s.wire
	s.mu.Unlock()
	answer := func(result any) {
		ctx, cancel := context.WithTimeout(s.ctx, callTimeout)
		defer cancel()
		if w == nil {
			return
		}
		w.send(ctx, object{"id": m.ID, "result": result})
	}
	decide := func(tool, input string) {
		if s.spec.Gate != nil && s.spec.Gate(tool, input) != nil {
			answer(object{"decision": "decline"})
			return
		}
		s.say(agent.PermissionAsked{Tool: tool, Input: input, Answer: func(allow bool, _ string) {
			if allow {
				answer(object{"decision": "accept"})
			} else {
				answer(object{"decision": "decline"})
			}
		}})
	}
	switch m.Method {
	case "item/commandExecution/requestApproval":
		text, _ := json.Marshal(object{"command": p.Command, "description": p.Reason})
		decide("Bash", string(text))
	case "item/fileChange/requestApproval":
		decide("Edit", s.change(p.ItemID))
	case "item/tool/call":
		s.serving.Go(func() {
			text, failed := "The team has no tools here.", true
			if s.spec.Tools != nil {
				text, failed = s.spec.Tools.Call(s.ctx, p.Tool, p.Arguments)
			}
			answer(object{"contentItems": []object{{"type": "inputText", "text": text}}, "success": !failed})
		})
	case "item/tool/requestUserInput":
		answers := object{}
		for _, q := range p.Questions {
			answers[q.ID] = object{"answers": []string{nobody}}
		}
		answer(object{"answers": answers})
	case "mcpServer/elicitation/request":
		answer(object{"action": "decline", "content": nil, "_meta": nil})
	default:
		if w != nil {
			w.send(s.ctx, object{"id": m.ID, "error": object{"code": -32601, "message": "cadre knows no " + m.Method}})
		}
	}
}

// change is the input of the edit that is asked about, as it was said to have started.
func (s *session) change(itemID string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if in, ok := s.edits[itemID]; ok {
		return in
	}
	return "{}"
}
