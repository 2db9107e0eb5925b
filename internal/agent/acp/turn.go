package acp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	sdk "github.com/coder/acp-go-sdk"

	"cadre/internal/agent"
	"cadre/internal/team"
)

// Give hands a prompt over, in the way in which the agent takes one at the moment.
func (s *session) Give(ctx context.Context, p agent.Prompt) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.stopping || s.ctx.Err() != nil:
		return errEnded
	case s.running == 0:
		s.start([]agent.Prompt{p})
	case p.Urgent:
		s.waiting = append([]agent.Prompt{p}, s.waiting...)
		s.cancel = true
		go s.conn.Cancel(s.ctx, sdk.CancelNotification{SessionId: s.id})
	case s.agent.facts.midTurn == overlap && !s.cancel:
		s.start([]agent.Prompt{p})
	case s.agent.facts.midTurn == byHook && s.hook != nil && !s.cancel:
		s.pending = append(s.pending, p)
	default:
		s.waiting = append(s.waiting, p)
	}
	return nil
}

// start sends prompts as one. The caller holds mu.
func (s *session) start(prompts []agent.Prompt) {
	var texts []string
	for _, p := range prompts {
		texts = append(texts, p.Text)
	}
	text := s.preface + strings.Join(texts, "\n\n")
	preface := s.preface
	s.preface = ""
	alone := s.running == 0
	s.running++
	if alone {
		s.failure, s.cancel, s.last = nil, false, ""
		s.text.Reset()
		for _, p := range prompts {
			s.sent = append(s.sent, p.ID)
		}
	}
	s.asking.Go(func() {
		if alone {
			s.say(agent.TurnStarted{})
		}
		response, err := s.conn.Prompt(s.ctx, sdk.PromptRequest{SessionId: s.id, Prompt: []sdk.ContentBlock{sdk.TextBlock(text)}})
		s.answered(prompts, alone, preface, response, err)
	})
}

// answered takes the answer to a prompt: the last one ends the turn.
func (s *session) answered(prompts []agent.Prompt, alone bool, preface string, response sdk.PromptResponse, err error) {
	if s.ctx.Err() != nil {
		return
	}
	s.mu.Lock()
	var said []agent.Update
	if err == nil {
		if alone {
			said = s.receipts()
		} else {
			for _, p := range prompts {
				said = append(said, agent.Received{ID: p.ID})
			}
		}
		if used, ok := usageOf(response); ok {
			said = append(said, agent.Used{Usage: used})
		}
	} else {
		s.failure = problemOf(err)
		if !alone || len(s.sent) > 0 { // nothing shows that the agent has it: it goes with the next prompt
			s.sent = nil
			s.waiting = append(prompts, s.waiting...)
			s.preface = preface
		}
	}
	if s.running--; s.running > 0 {
		s.mu.Unlock()
		s.sayAll(said)
		return
	}
	said = append(said, s.flush()...)
	// What the hook gave is not in the agent's history: it stands before the next prompt, as what it is.
	if len(s.injected) > 0 {
		var texts []string
		for _, p := range s.injected {
			texts = append(texts, p.Text)
		}
		s.preface += "(For the record: during your last turn you were given this. You have dealt with it, or were about to.)\n" + strings.Join(texts, "\n\n") + "\n\n(What is new:)\n"
		s.injected = nil
	}
	end := agent.TurnEnded{Text: s.last, Problem: s.failure, Interrupted: s.cancel || err == nil && response.StopReason == sdk.StopReasonCancelled}
	switch {
	case end.Interrupted:
		end.Problem = nil
	case end.Problem != nil:
		end.Text = ""
	case response.StopReason == sdk.StopReasonRefusal:
		end.Problem = &agent.Problem{Kind: agent.ProblemModel, Text: "the model refused to go on"}
	case response.StopReason == sdk.StopReasonMaxTokens:
		end.Problem = &agent.Problem{Kind: agent.ProblemContext, Text: "the model has no tokens left"}
	}
	next := append(s.pending, s.waiting...)
	s.pending, s.waiting = nil, nil
	hold := end.Problem != nil // what waits goes with what comes next, after the team has seen to the trouble
	if hold {
		s.waiting, next = next, nil
	}
	s.cancel = false
	s.mu.Unlock()
	s.sayAll(append(said, end))
	if len(next) > 0 {
		s.mu.Lock()
		if s.running == 0 && !s.stopping {
			s.start(next)
		} else {
			s.waiting = append(next, s.waiting...)
		}
		s.mu.Unlock()
	}
}

func (s *session) sayAll(all []agent.Update) {
	for _, u := range all {
		s.say(u)
	}
}

// receipts are those of prompts that the agent now shows to have. The caller holds mu.
func (s *session) receipts() (all []agent.Update) {
	for _, id := range s.sent {
		all = append(all, agent.Received{ID: id})
	}
	s.sent = nil
	return all
}

// flush ends the text that was being said. The caller holds mu.
func (s *session) flush() []agent.Update {
	text := strings.TrimSpace(s.text.String())
	s.text.Reset()
	if text == "" {
		return nil
	}
	s.last = text
	return []agent.Update{agent.Text{Text: text}}
}

// forHook is what the hook adds to the next call of the model: all that came during this turn.
func (s *session) forHook() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.pending {
		s.sent = append(s.sent, p.ID)
	}
	s.injected = append(s.injected, s.pending...)
	s.pending = nil
	var texts []string
	for _, p := range s.injected {
		texts = append(texts, p.Text)
	}
	return strings.Join(texts, "\n\n")
}

// tool is one that the agent uses.
type tool struct {
	name, input, title string
	given              map[string]any // its input, as the agent gave it
	kind               sdk.ToolKind
	said, ended        bool
}

// whole reports whether what is known of the tool is all that there is: some agents tell of a tool before they have its input.
func (*session) whole(t *tool) bool {
	if t.kind == sdk.ToolKindExecute {
		return t.given["command"] != nil || t.given["cmd"] != nil || !strings.Contains(" bash shell ", " "+t.title+" ")
	}
	return t.kind != "" || len(t.given) > 0
}

// client takes what the agent says by itself.
type client struct{ *session }

// SessionUpdate takes one update.
func (c client) SessionUpdate(_ context.Context, n sdk.SessionNotification) error {
	u := n.Update
	c.mu.Lock()
	if c.loading {
		switch {
		case u.UserMessageChunk != nil && u.UserMessageChunk.Content.Text != nil:
			c.replayed = append(c.replayed, u.UserMessageChunk.Content.Text.Text)
		case u.ToolCall != nil:
			c.replayed = append(c.replayed, contentOf(u.ToolCall.Content, u.ToolCall.RawOutput))
		case u.ToolCallUpdate != nil:
			c.replayed = append(c.replayed, contentOf(u.ToolCallUpdate.Content, u.ToolCallUpdate.RawOutput))
		}
		c.mu.Unlock()
		return nil
	}
	var said []agent.Update
	switch {
	case u.AgentMessageChunk != nil && u.AgentMessageChunk.Content.Text != nil:
		text := u.AgentMessageChunk.Content.Text.Text
		if noise := c.agent.facts.noise; noise != "" && strings.HasPrefix(text, noise) {
			break
		}
		said = c.receipts()
		c.text.WriteString(text)
	case u.AgentThoughtChunk != nil:
		said = c.receipts()
	case u.ToolCall != nil:
		said = append(c.receipts(), c.flush()...)
		said = append(said, c.toolSaid(u.ToolCall.ToolCallId, u.ToolCall.Kind, u.ToolCall.Title, u.ToolCall.RawInput, u.ToolCall.Status, u.ToolCall.Content, u.ToolCall.RawOutput)...)
	case u.ToolCallUpdate != nil:
		t := u.ToolCallUpdate
		said = append(said, c.toolSaid(t.ToolCallId, value(t.Kind), value(t.Title), t.RawInput, value(t.Status), t.Content, t.RawOutput)...)
	case u.UsageUpdate != nil && u.UsageUpdate.Size > 0:
		used := agent.Used{Context: min(100, u.UsageUpdate.Used*100/u.UsageUpdate.Size)}
		said = append(said, used)
	}
	c.mu.Unlock()
	c.sayAll(said)
	return nil
}

func value[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}

// toolSaid is what an update of a tool says. The caller holds mu.
func (s *session) toolSaid(id sdk.ToolCallId, kind sdk.ToolKind, title string, input any, status sdk.ToolCallStatus, content []sdk.ToolCallContent, output any) (said []agent.Update) {
	t := s.tools[id]
	if t == nil {
		t = &tool{}
		s.tools[id] = t
	}
	if kind != "" {
		t.kind = kind
	}
	if title != "" && t.title == "" {
		t.title = title
	}
	ends := status == sdk.ToolCallStatusCompleted || status == sdk.ToolCallStatusFailed
	if !t.said {
		if given, ok := input.(map[string]any); ok && len(given) > 0 {
			t.given = given
		}
		if t.name, t.input = s.toolOf(t.kind, t.title, t.given); ends || s.whole(t) && status != "" {
			t.said = true
			said = append(said, agent.ToolStarted{ID: string(id), Tool: t.name, Input: t.input})
		}
	}
	if ends && !t.ended {
		t.ended = true
		said = append(said, agent.ToolFinished{ID: string(id), Failed: status == sdk.ToolCallStatusFailed, Output: contentOf(content, output)})
		delete(s.tools, id)
	}
	return said
}

// toolOf is the kind of tool by Claude Code's name for it, and its input.
func (s *session) toolOf(kind sdk.ToolKind, title string, input any) (string, string) {
	in := map[string]any{}
	if given, ok := input.(map[string]any); ok {
		for k, v := range given {
			in[k] = v
		}
	}
	if name := s.agent.facts.teamTool(title); name != "" {
		text, _ := json.Marshal(in)
		return name, string(text)
	}
	rename := func(to string, from ...string) {
		for _, key := range from {
			if v, ok := in[key]; ok && in[to] == nil {
				in[to] = v
			}
		}
	}
	name := title
	switch kind {
	case sdk.ToolKindExecute:
		name = "Bash"
		rename("command", "cmd")
		if in["command"] == nil {
			in["command"] = title
		}
	case sdk.ToolKindEdit, sdk.ToolKindDelete, sdk.ToolKindMove:
		name = "Edit"
		rename("file_path", "filePath", "path", "absolute_path")
	case sdk.ToolKindRead:
		name = "Read"
		rename("file_path", "filePath", "path", "absolute_path")
	case sdk.ToolKindSearch:
		name = "Grep"
	case sdk.ToolKindFetch:
		name = "WebFetch"
	case sdk.ToolKindThink:
		name = "TodoWrite"
	}
	text, err := json.Marshal(in)
	if err != nil {
		return name, "{}"
	}
	return name, string(text)
}

// contentOf is the text of a tool's result.
func contentOf(content []sdk.ToolCallContent, output any) string {
	var parts []string
	for _, c := range content {
		if c.Content != nil && c.Content.Content.Text != nil {
			parts = append(parts, c.Content.Content.Text.Text)
		}
	}
	if len(parts) == 0 && output != nil {
		switch o := output.(type) {
		case string:
			parts = append(parts, o)
		default:
			if text, err := json.Marshal(o); err == nil {
				parts = append(parts, string(text))
			}
		}
	}
	return strings.Join(parts, "\n")
}

// RequestPermission answers a request of the agent: the team's own tools may be used, what the gate refuses may not, and the rest is asked.
func (c client) RequestPermission(ctx context.Context, r sdk.RequestPermissionRequest) (sdk.RequestPermissionResponse, error) {
	c.mu.Lock()
	kind, title, input := value(r.ToolCall.Kind), value(r.ToolCall.Title), r.ToolCall.RawInput
	if t := c.tools[r.ToolCall.ToolCallId]; t != nil {
		if kind == "" {
			kind = t.kind
		}
		if title == "" {
			title = t.title
		}
		if given, ok := input.(map[string]any); (!ok || len(given) == 0) && len(t.given) > 0 {
			input = t.given
		}
	}
	name, text := c.toolOf(kind, title, input)
	said := append(c.receipts(), c.flush()...)
	c.mu.Unlock()
	c.sayAll(said)

	choose := func(kinds ...sdk.PermissionOptionKind) (sdk.RequestPermissionResponse, error) {
		for _, k := range kinds {
			for _, o := range r.Options {
				if o.Kind == k {
					return sdk.RequestPermissionResponse{Outcome: sdk.NewRequestPermissionOutcomeSelected(o.OptionId)}, nil
				}
			}
		}
		return sdk.RequestPermissionResponse{Outcome: sdk.NewRequestPermissionOutcomeCancelled()}, nil
	}
	allow := func() (sdk.RequestPermissionResponse, error) {
		return choose(sdk.PermissionOptionKindAllowOnce, sdk.PermissionOptionKindAllowAlways)
	}
	deny := func() (sdk.RequestPermissionResponse, error) {
		return choose(sdk.PermissionOptionKindRejectOnce, sdk.PermissionOptionKindRejectAlways)
	}
	if c.agent.facts.teamTool(title) != "" {
		return allow()
	}
	if c.spec.Gate != nil {
		if err := c.spec.Gate(name, text); err != nil {
			c.note(fmt.Sprintf("%s was denied: %s", name, err))
			return deny()
		}
	}
	c.mu.Lock()
	skip := c.access.Mode == "bypassPermissions" && c.access.Writes
	c.mu.Unlock()
	if skip {
		return allow()
	}
	answer := make(chan bool, 1)
	c.say(agent.PermissionAsked{Tool: name, Input: text, Answer: func(allowed bool, reason string) {
		if !allowed && reason != "" {
			c.note(fmt.Sprintf("%s was denied: %s", name, reason))
		}
		answer <- allowed
	}})
	select {
	case allowed := <-answer:
		if allowed {
			return allow()
		}
		return deny()
	case <-ctx.Done():
	case <-c.ctx.Done():
	}
	return sdk.RequestPermissionResponse{Outcome: sdk.NewRequestPermissionOutcomeCancelled()}, nil
}

// note goes before the next prompt: the protocol has no place for the reason of a refusal.
func (s *session) note(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.preface += "(" + text + ")\n\n"
}

// usageOf is what the answer to a prompt says of its cost.
func usageOf(r sdk.PromptResponse) (team.Usage, bool) {
	if u := r.Usage; u != nil {
		return team.Usage{InputTokens: int64(u.InputTokens), OutputTokens: int64(u.OutputTokens), CacheReadTokens: int64(value(u.CachedReadTokens)), CacheWriteTokens: int64(value(u.CachedWriteTokens))}, true
	}
	var meta struct {
		Quota struct {
			Count struct {
				Input  int64 `json:"input_tokens"`
				Output int64 `json:"output_tokens"`
			} `json:"token_count"`
		} `json:"quota"`
	}
	text, err := json.Marshal(r.Meta)
	if err != nil || json.Unmarshal(text, &meta) != nil || meta.Quota.Count.Input+meta.Quota.Count.Output == 0 {
		return team.Usage{}, false
	}
	return team.Usage{InputTokens: meta.Quota.Count.Input, OutputTokens: meta.Quota.Count.Output}, true
}

// wordsOf are the agent's own words for an error.
func wordsOf(err error) string {
	var refused *sdk.RequestError
	if !errors.As(err, &refused) {
		return err.Error()
	}
	words := refused.Message
	switch data := refused.Data.(type) {
	case string:
		words += ": " + data
	case map[string]any:
		for _, key := range []string{"details", "message", "error"} {
			if text, ok := data[key].(string); ok && !strings.Contains(words, text) {
				words += ": " + text
			}
		}
	}
	return words
}

// problemOf tells what helps from the code, which is an HTTP status where an agent passes one on, else from what it says.
func problemOf(err error) *agent.Problem {
	p := &agent.Problem{Text: wordsOf(err)}
	p.Kind = kindOf(p.Text)
	if refused := (*sdk.RequestError)(nil); errors.As(err, &refused) {
		switch refused.Code {
		case 401, 403:
			p.Kind = agent.ProblemLogin
		case 429, 529:
			p.Kind = agent.ProblemLimit
		}
	}
	return p
}

// kindOf tells what helps from what the agent says.
func kindOf(words string) agent.ProblemKind {
	text := strings.ToLower(words)
	has := func(all ...string) bool {
		for _, w := range all {
			if strings.Contains(text, w) {
				return true
			}
		}
		return false
	}
	switch {
	case has("context window", "context length", "too long", "token limit", "exceeds the maximum number of tokens"):
		return agent.ProblemContext
	case has("authenticat", "unauthorized", "401", "403", "api key", "log in", "login", "permission_denied"):
		return agent.ProblemLogin
	case has("429", "rate limit", "quota", "resource_exhausted", "resource exhausted", "overloaded", "too many requests"):
		return agent.ProblemLimit
	}
	return agent.ProblemModel
}

// The client offers the agent no files and no terminals: it has its own.

func (client) ReadTextFile(context.Context, sdk.ReadTextFileRequest) (r sdk.ReadTextFileResponse, err error) {
	return r, sdk.NewMethodNotFound("fs/read_text_file")
}

func (client) WriteTextFile(context.Context, sdk.WriteTextFileRequest) (r sdk.WriteTextFileResponse, err error) {
	return r, sdk.NewMethodNotFound("fs/write_text_file")
}

func (client) CreateTerminal(context.Context, sdk.CreateTerminalRequest) (r sdk.CreateTerminalResponse, err error) {
	return r, sdk.NewMethodNotFound("terminal/create")
}

func (client) KillTerminal(context.Context, sdk.KillTerminalRequest) (r sdk.KillTerminalResponse, err error) {
	return r, sdk.NewMethodNotFound("terminal/kill")
}

func (client) TerminalOutput(context.Context, sdk.TerminalOutputRequest) (r sdk.TerminalOutputResponse, err error) {
	return r, sdk.NewMethodNotFound("terminal/output")
}

func (client) ReleaseTerminal(context.Context, sdk.ReleaseTerminalRequest) (r sdk.ReleaseTerminalResponse, err error) {
	return r, sdk.NewMethodNotFound("terminal/release")
}

func (client) WaitForTerminalExit(context.Context, sdk.WaitForTerminalExitRequest) (r sdk.WaitForTerminalExitResponse, err error) {
	return r, sdk.NewMethodNotFound("terminal/wait_for_exit")
}
