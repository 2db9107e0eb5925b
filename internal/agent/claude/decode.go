package claude

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"cadre/internal/agent"
	"cadre/internal/team"
)

// These are the contents of a line that are not an [agent.Update].
type (
	// receipt reports that the user line with that uuid is in the agent's context.
	receipt struct{ uuid string }
	// asked is a request of the agent to its driver. The agent waits for the answer with its id.
	asked struct {
		id      string
		request request
	}
	// withdrawn reports that the agent no longer waits for an answer to the request with that id.
	withdrawn struct{ id string }
	// answered is the answer to a request of ours.
	answered struct {
		id    string
		error string
	}
	// working reports that a turn is running.
	working struct{}
)

// request is a request of the agent to its driver. Subtype determines which fields it has.
type request struct {
	Subtype    string          `json:"subtype"`
	ToolName   string          `json:"tool_name"`
	Input      json.RawMessage `json:"input"`
	ToolUseID  string          `json:"tool_use_id"`
	CallbackID string          `json:"callback_id"`
	ServerName string          `json:"server_name"`
	Message    json.RawMessage `json:"message"`
	Reason     string          `json:"decision_reason_type"` // why it asks: rule, mode, …
}

// line is one line of the stream. Its shapes were recorded from Claude Code 2.1.197 and 2.1.329.
type line struct {
	Type      string          `json:"type"`
	Subtype   string          `json:"subtype"`
	UUID      string          `json:"uuid"`
	Parent    string          `json:"parent_tool_use_id"`
	IsReplay  bool            `json:"isReplay"`
	Message   json.RawMessage `json:"message"`
	RequestID string          `json:"request_id"`
	Request   request         `json:"request"`
	Response  struct {
		Subtype   string `json:"subtype"`
		RequestID string `json:"request_id"`
		Error     string `json:"error"`
	} `json:"response"`

	// Event of a stream_event, in the form of the Messages API.
	Event struct {
		Type  string `json:"type"`
		Delta struct {
			Type string `json:"type"`
			Text string `json:"text"`
		} `json:"delta"`
	} `json:"event"`

	// Fields of a result.
	IsError        bool     `json:"is_error"`
	Result         string   `json:"result"`
	TerminalReason string   `json:"terminal_reason"`
	Errors         []string `json:"errors"`
	// since the program started, or, in later versions, since the session started
	ModelUsage spending `json:"modelUsage"`
	Since      spending `json:"model_usage_since_last_result"` // in later versions
	Status     int      `json:"api_error_status"`

	// Fields of an init.
	KeySource string `json:"apiKeySource"`

	// Fields of an api_retry.
	Attempt     int    `json:"attempt"`
	MaxRetries  int    `json:"max_retries"`
	ErrorStatus int    `json:"error_status"`
	Error       string `json:"error"`
	// before the retry, in milliseconds and parts of them
	Delay float64 `json:"retry_delay_ms"`

	// Fields of a rate_limit_event.
	RateLimit struct {
		Status   string `json:"status"`
		ResetsAt int64  `json:"resetsAt"` // in seconds since 1970
	} `json:"rate_limit_info"`
}

// spending is the usage of each model, by the member and its subagents.
type spending map[string]struct {
	Input      int64   `json:"inputTokens"`
	Output     int64   `json:"outputTokens"`
	CacheRead  int64   `json:"cacheReadInputTokens"`
	CacheWrite int64   `json:"cacheCreationInputTokens"`
	Cost       float64 `json:"costUSD"`
	Window     int64   `json:"contextWindow"`
}

func (s spending) sum() (u team.Usage) {
	cost := 0.0
	for _, m := range s {
		u.InputTokens += m.Input
		u.OutputTokens += m.Output
		u.CacheReadTokens += m.CacheRead
		u.CacheWriteTokens += m.CacheWrite
		cost += m.Cost
	}
	u.CostMicroUSD = int64(cost*1e6 + 0.5)
	return u
}

// message is the message in a line of the agent or of the user.
type message struct {
	ID      string          `json:"id"`
	Model   string          `json:"model"`
	Content json.RawMessage `json:"content"` // a text, or blocks
	Usage   Usage           `json:"usage"`
}

// maxDelay bounds the delay before a retry that is believed, in milliseconds.
const maxDelay = 30 * 24 * 3600 * 1000

// synthetic is the model of texts that the program itself writes, such as the words of an error.
const synthetic = "<synthetic>"

// decoder turns the lines of one session into their contents. It keeps what it needs to interpret
// later lines.
type decoder struct {
	last   string     // the last text of the turn
	error  string     // the kind of the program's last error, in its own word
	spent  team.Usage // up to the last result, for a program that reports only totals
	full   int64      // tokens in the context at the last call of the model
	window int64      // how many tokens fit; 0 before the first result
	call   string     // id of the model's last message, one for each call
	told   team.Usage // reported so far in this turn
	resets time.Time  // when the limit that it has reached ends; zero for no limit
	renews bool       // it is logged in with an account, whose token it renews by itself after one refusal
}

// decode returns the contents of a line, in order; nothing for a line that is not part of the
// protocol, or is not needed.
func (d *decoder) decode(data []byte) []any {
	var l line
	if agent.Parse(data, &l) != nil {
		return nil
	}
	switch l.Type {
	case "control_request":
		return []any{asked{l.RequestID, l.Request}}
	case "control_cancel_request":
		return []any{withdrawn{l.RequestID}}
	case "control_response":
		return []any{answered{l.Response.RequestID, errorOf(&l)}}
	case "system":
		return d.system(&l)
	case "rate_limit_event":
		if d.resets = (time.Time{}); l.RateLimit.Status == "rejected" && l.RateLimit.ResetsAt > 0 {
			d.resets = time.Unix(l.RateLimit.ResetsAt, 0)
		}
	case "stream_event": // a subagent's text is not the member's
		if delta := l.Event.Delta; l.Parent == "" && delta.Type == "text_delta" && delta.Text != "" {
			return []any{agent.TextPart{Text: delta.Text}}
		}
	case "assistant":
		return d.assistant(&l)
	case "user":
		if l.IsReplay {
			return []any{working{}, receipt{l.UUID}}
		}
		return results(&l)
	case "result":
		return d.result(&l)
	}
	return nil
}

func errorOf(l *line) string {
	if l.Response.Subtype == "error" && l.Response.Error == "" {
		return "refused"
	}
	return l.Response.Error
}

func (d *decoder) system(l *line) []any {
	switch l.Subtype {
	case "init": // at the beginning of every turn
		d.renews = l.KeySource == "none"
		return []any{working{}}
	case "compact_boundary":
		d.full = 0
		return []any{agent.Compacted{}}
	case "api_retry":
		what := "API error: " + strings.ReplaceAll(l.Error, "_", " ")
		switch {
		case l.ErrorStatus != 0:
			what = fmt.Sprintf("API error: %d %s", l.ErrorStatus, strings.ReplaceAll(l.Error, "_", " "))
		case l.Error == "unknown" || l.Error == "":
			what = "API error: no answer from the model's server"
		}
		kind := kindOf(l.Error, l.ErrorStatus, "")
		if kind == agent.ProblemLogin && d.renews && l.Attempt <= 1 {
			kind = agent.ProblemModel
		}
		if kind != agent.ProblemLogin { // no retry helps after a failed login
			what += fmt.Sprintf("; it tries again (%d of %d)", l.Attempt, l.MaxRetries)
		}
		return []any{working{}, agent.Retrying{Problem: agent.Problem{Kind: kind, Text: what,
			After: time.Duration(max(0, min(l.Delay, maxDelay)) * float64(time.Millisecond))}}}
	}
	return nil
}

func (d *decoder) assistant(l *line) []any {
	var m message
	if l.Parent != "" || agent.Parse(l.Message, &m) != nil { // a subagent's text is not the member's
		return nil
	}
	said := []any{working{}}
	if d.error = l.Error; m.Model != synthetic {
		if u := m.Usage; u.Input+u.CacheRead+u.CacheWrite > 0 {
			d.full = u.Input + u.CacheRead + u.CacheWrite + u.Output
		}
		if m.ID != d.call { // the usage at the call's start; the turn's result has the rest
			used := m.Usage.Team()
			d.call, d.told = m.ID, Sum(d.told, used)
			said = append(said, d.used(used))
		}
	}
	for _, b := range Blocks(m.Content) {
		switch b.Type {
		case "text":
			if strings.TrimSpace(b.Text) == "" {
				break
			}
			if d.last = b.Text; m.Model != synthetic {
				said = append(said, agent.Text{Text: b.Text})
			}
		case "tool_use":
			said = append(said, agent.ToolStarted{ID: b.ID, Tool: toolName(b.Name), Input: string(b.Input)})
		}
	}
	return said
}

// results returns the tools whose results a user line carries.
func results(l *line) (said []any) {
	var m message
	if l.Parent != "" || agent.Parse(l.Message, &m) != nil {
		return nil
	}
	for _, b := range Blocks(m.Content) {
		if b.Type == "tool_result" {
			said = append(said, agent.ToolFinished{ID: b.ToolUseID, Failed: b.IsError, Output: TextOf(b.Content)})
		}
	}
	return said
}

func (d *decoder) result(l *line) []any {
	for _, m := range l.ModelUsage {
		d.window = max(d.window, m.Window)
	}
	said := []any{d.used(minus(d.usage(l), d.told))}
	d.told = team.Usage{}
	end := agent.TurnEnded{Text: d.last}
	if l.Result != "" && !l.IsError {
		end.Text = l.Result
	}
	switch {
	case l.TerminalReason == "prompt_too_long":
		end.Problem = &agent.Problem{Kind: agent.ProblemContext, Text: wordsOf(l, d.last)}
	case strings.HasPrefix(l.TerminalReason, "aborted"), l.Subtype == "error_during_execution" &&
		l.TerminalReason == "":
		end.Interrupted = true
	case l.IsError || strings.HasPrefix(l.Subtype, "error"):
		// the model's text does not describe the problem
		end.Problem = &agent.Problem{Kind: kindOf(d.error, l.Status, wordsOf(l, "")), Text: wordsOf(l, d.last),
			Until: d.resets}
	}
	if end.Problem != nil {
		end.Text = ""
	}
	d.last, d.error = "", ""
	return append(said, end)
}

// usage returns the usage since the last result.
func (d *decoder) usage(l *line) team.Usage {
	if l.Since != nil {
		return l.Since.sum()
	}
	all, before := l.ModelUsage.sum(), d.spent
	d.spent = all
	return minus(all, before)
}

// used reports additional usage.
func (d *decoder) used(u team.Usage) agent.Used {
	said := agent.Used{Usage: u}
	if d.window > 0 {
		said.Context = int(100 * max(0, min(1, float64(d.full)/float64(d.window))))
	}
	return said
}

// minus returns the part of u that is not in v, and at least zero: a call of the model may be
// reported twice, and usage never decreases.
func minus(u, v team.Usage) team.Usage {
	return team.Usage{InputTokens: max(0, u.InputTokens-v.InputTokens),
		OutputTokens:     max(0, u.OutputTokens-v.OutputTokens),
		CacheReadTokens:  max(0, u.CacheReadTokens-v.CacheReadTokens),
		CacheWriteTokens: max(0, u.CacheWriteTokens-v.CacheWriteTokens),
		CostMicroUSD:     max(0, u.CostMicroUSD-v.CostMicroUSD)}
}

// wordsOf returns the program's own words for an error.
func wordsOf(l *line, last string) string {
	for _, words := range []string{l.Result, strings.Join(l.Errors, "; "), last,
		strings.ReplaceAll(l.Subtype, "_", " ")} {
		if words != "" {
			return words
		}
	}
	return "the turn failed"
}

// kindOf classifies an error by the program's word for it, or by the HTTP status, or by its text.
func kindOf(word string, status int, text string) agent.ProblemKind {
	switch word {
	case "authentication_failed", "billing_error", "oauth_org_not_allowed", "account_on_hold":
		return agent.ProblemLogin
	case "rate_limit", "overloaded", "max_output_tokens_rate_limit":
		return agent.ProblemLimit
	}
	return agent.KindOf(status, text)
}

// toolName returns the team's name for a tool: its own without the name of the server.
func toolName(name string) string {
	return strings.TrimPrefix(name, teamPrefix)
}

const teamPrefix = "mcp__" + agent.ToolServerName + "__"
