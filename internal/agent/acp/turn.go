package acp

import (
	"context"
	"errors"
	"time"

	sdk "github.com/coder/acp-go-sdk"

	"cadre/internal/agent"
)

// Give passes a prompt to the agent, in the way that is possible at the moment.
func (s *session) Give(_ context.Context, p agent.Prompt) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopping || s.ctx.Err() != nil {
		return errEnded
	}
	send, cancel := s.queue.give(p, s.decoder.busy())
	if send != nil {
		s.start(send)
	}
	if cancel {
		s.withdraw()
		wait, done := s.pen.queue()
		s.asking.Go(func() {
			defer done()
			wait(s.ctx)
			s.conn.Cancel(s.ctx, sdk.CancelNotification{SessionId: s.id})
		})
	}
	return nil
}

// Interrupt ends the turn.
func (s *session) Interrupt(ctx context.Context) error {
	s.mu.Lock()
	if s.queue.running == 0 {
		s.mu.Unlock()
		return nil
	}
	s.queue.cancel(s.decoder.busy())
	s.withdraw()
	wait, done := s.pen.queue()
	s.mu.Unlock()
	defer done()
	wait(ctx)
	return s.conn.Cancel(ctx, sdk.CancelNotification{SessionId: s.id})
}

// withdraw takes back the open questions of the turn: the agent waits for that before it ends a
// cancelled turn. The caller holds mu.
func (s *session) withdraw() {
	select {
	case <-s.cancelled:
	default:
		close(s.cancelled)
	}
}

// sees handles what an update shows about the agent, and sends prompts that waited for it. The
// caller holds mu.
func (s *session) sees(shown sign) []agent.Update {
	said := arrived(s.queue.sees(shown))
	if next := s.queue.onTop(); next != nil && !s.stopping && s.ctx.Err() == nil {
		s.start(next)
	}
	return said
}

// start sends a prompt, after the earlier ones. The caller holds mu.
func (s *session) start(p *post) {
	if p.first {
		s.failure, s.cancelled = nil, make(chan struct{})
		select {
		case <-s.reasons: // of the previous turn
		default:
		}
		s.decoder.begin()
	}
	wait, done := s.pen.queue()
	s.asking.Go(func() {
		defer done()
		if p.first {
			s.say(agent.TurnStarted{})
		}
		wait(s.ctx)
		response, err := s.conn.Prompt(s.ctx, sdk.PromptRequest{SessionId: s.id,
			Prompt: []sdk.ContentBlock{sdk.TextBlock(p.text)}})
		if err == nil || s.ctx.Err() == nil && !s.cut(err) {
			s.answered(p, response, err)
		}
	})
}

// cut reports whether an error comes from a connection that breaks because the agent ends. The
// transcript then knows what became of the prompt.
func (s *session) cut(err error) bool {
	if !broken(err) {
		return false
	}
	select {
	case <-s.conn.Done():
		return true
	case <-s.ctx.Done():
		return true
	case <-time.After(breakTimeout):
		return false
	}
}

// broken reports whether an error is the SDK's error for a broken connection.
func broken(err error) bool {
	answer := (*sdk.RequestError)(nil)
	if !errors.As(err, &answer) || answer.Code != internalError {
		return false
	}
	data, ok := answer.Data.(map[string]any)
	return ok && len(data) == 1 && data["error"] != nil
}

// answered handles the answer to a prompt; the last one ends the turn.
func (s *session) answered(p *post, response sdk.PromptResponse, err error) {
	var failure *agent.Problem
	if err != nil {
		failure = s.reason(err)
	}
	s.mu.Lock()
	how := outcomeOf(response, err, s.queue.cancelled)
	received, back, over := s.queue.answer(p, how)
	said := append(arrived(received), givenBack(back)...)
	if used, ok := usageOf(response); ok && err == nil && used.Tokens() > 0 {
		said = append(said, agent.Used{Usage: used})
	}
	if failure != nil {
		s.failure = failure
	}
	if !over {
		s.mu.Unlock()
		s.sayAll(said)
		return
	}
	said = append(said, s.decoder.flush()...)
	end := agent.TurnEnded{Text: s.decoder.last, Problem: s.failure, Interrupted: s.queue.cancelled || how == stopped}
	switch {
	case end.Interrupted:
		end.Problem, how = nil, max(how, stopped)
	case end.Problem != nil:
		how = failed
	default:
		if end.Problem = stopOf(response); end.Problem == nil {
			s.whole = s.began
		}
	}
	if end.Problem != nil {
		end.Text = ""
	}
	next, lost := s.queue.end(how, end.Problem != nil)
	end.Continues = end.Interrupted && len(next) > 0
	said = append(said, givenBack(ids(lost))...)
	s.mu.Unlock()
	s.sayAll(append(said, end))
	s.mu.Lock()
	defer s.mu.Unlock()
	if next := s.queue.goOn(next); next != nil && !s.stopping && s.ctx.Err() == nil {
		s.start(next)
	}
}

// stopOf returns why the model stopped early; nil if it finished.
func stopOf(response sdk.PromptResponse) *agent.Problem {
	switch response.StopReason {
	case sdk.StopReasonRefusal:
		return &agent.Problem{Kind: agent.ProblemModel, Text: "the model refused to continue"}
	case sdk.StopReasonMaxTokens:
		return &agent.Problem{Kind: agent.ProblemContext, Text: "the model has no tokens left"}
	}
	return nil
}

// outcomeOf returns the turn's outcome. An agent may answer a cancelled turn with an error, and a
// turn that had ended by then as usual.
func outcomeOf(response sdk.PromptResponse, err error, cancelled bool) outcome {
	refused := (*sdk.RequestError)(nil)
	switch {
	case err == nil && response.StopReason == sdk.StopReasonCancelled, err != nil && cancelled:
		return stopped
	case err == nil:
		return done
	case errors.As(err, &refused) && refused.Code <= -32600 && refused.Code > internalError, errors.As(err, &refused) &&
		refused.Code == authRequired:
		return rejected
	}
	return failed
}

// These are codes of errors.
const (
	internalError  = -32603
	methodNotFound = -32601
	invalidRequest = -32600
	authRequired   = -32000 // the agent is not logged in
)

func arrived(ids []string) (all []agent.Update) {
	for _, id := range ids {
		all = append(all, agent.Received{ID: id})
	}
	return all
}

func givenBack(ids []string) (all []agent.Update) {
	for _, id := range ids {
		all = append(all, agent.NotTaken{ID: id})
	}
	return all
}

func (s *session) sayAll(all []agent.Update) {
	for _, u := range all {
		s.say(u)
	}
}

// note tells the model why a tool was denied: the protocol has no place for the reason.
func (s *session) note(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if send := s.queue.explain("(" + text + ")"); send != nil {
		s.start(send)
	}
}

// forHook returns the messages that the hook adds to the next call of the model. If the history's
// beginning was the same for a whole turn and is different now, the history was shortened.
func (s *session) forHook(call coming) handout {
	s.mu.Lock()
	if call.Session != s.id {
		s.mu.Unlock()
		return handout{}
	}
	began := call.Began
	shortened := s.whole != "" && began != "" && began != s.whole
	s.began = began
	if shortened {
		s.whole = began
	}
	add := s.queue.hand()
	s.mu.Unlock()
	if shortened {
		s.say(agent.Compacted{})
	}
	return add
}
