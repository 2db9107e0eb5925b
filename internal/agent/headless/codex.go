package headless

import (
	"cmp"
	"strings"

	"cadre/internal/agent"
	"cadre/internal/sys/lazyregexp"
	"cadre/internal/team"
)

// Codex reads codex exec --json. The zero Codex is ready for use.
type Codex struct{ persistent[codexState] }

// codexState is the saved state of the thread.
type codexState struct {
	Thread string      `json:"thread,omitempty"`
	Turn   turn        `json:"turn"`
	Spent  codexTokens `json:"spent"` // by the thread, as far as codex reported it
}

// codexTokens are running totals. The input includes tokens from the cache.
type codexTokens struct {
	Input      int64 `json:"input_tokens"`
	Cached     int64 `json:"cached_input_tokens"`
	CacheWrite int64 `json:"cache_write_input_tokens"`
	Output     int64 `json:"output_tokens"`
}

type codexItem struct {
	ID       string `json:"id"`
	Type     string `json:"type"`
	Text     string `json:"text"`
	Status   string `json:"status"`
	Command  string `json:"command"`
	Output   string `json:"aggregated_output"`
	ExitCode int    `json:"exit_code"`
	Changes  []struct {
		Path string `json:"path"`
		Kind string `json:"kind"`
	} `json:"changes"`
	Server string         `json:"server"`
	Tool   string         `json:"tool"`
	Args   map[string]any `json:"arguments"`
	Query  string         `json:"query"`
}

// Line implements [agent.Reader].
func (c *Codex) Line(line []byte) []agent.Update {
	var m struct {
		Type    string      `json:"type"`
		Thread  string      `json:"thread_id"`
		Item    codexItem   `json:"item"`
		Usage   codexTokens `json:"usage"`
		Message string      `json:"message"`
		Error   struct {
			Message string `json:"message"`
		} `json:"error"`
	}
	if agent.Parse(line, &m) != nil {
		return nil
	}
	t := &c.state.Turn
	switch m.Type {
	case "thread.started":
		return c.started(m.Thread)
	case "turn.started":
		return t.begin()
	case "item.started":
		name, input := m.Item.tool()
		if name == "" {
			return nil
		}
		return t.tool(m.Item.ID, name, input)
	case "item.completed":
		return c.completed(&m.Item)
	case "turn.completed":
		return append(c.spends(m.Usage), t.end(nil)...)
	case "turn.failed":
		return t.end(problem(0, m.Error.Message))
	case "error":
		return c.failed(m.Message)
	}
	return nil
}

// started handles the start of a codex process, with a new or an earlier thread. A turn of an
// earlier process is over.
func (c *Codex) started(thread string) []agent.Update {
	if thread == "" {
		return nil
	}
	same := thread == c.state.Thread
	if !same {
		c.state.Spent = codexTokens{}
	}
	c.state.Thread, c.state.Turn = thread, turn{}
	return []agent.Update{agent.Started{Session: thread, Resumed: same}}
}

func (c *Codex) completed(i *codexItem) []agent.Update {
	t := &c.state.Turn
	if i.Type == "agent_message" {
		return t.text(i.Text)
	}
	name, input := i.tool()
	if name == "" {
		return nil
	}
	failed := i.Status == "failed" || i.Status == "declined" || i.ExitCode != 0
	return append(t.tool(i.ID, name, input), t.done(i.ID, failed, i.Output)...)
}

// tool returns Claude Code's name for the tool's kind, and the tool's input. The input has a
// file_path only if the tool changes a single file.
func (i *codexItem) tool() (name string, input map[string]any) {
	switch i.Type {
	case "command_execution":
		return "Bash", map[string]any{"command": i.Command}
	case "file_change":
		input = map[string]any{"changes": i.Changes}
		if len(i.Changes) == 1 {
			input["file_path"] = i.Changes[0].Path
		}
		return "Edit", input
	case "mcp_tool_call":
		return "mcp__" + i.Server + "__" + i.Tool, i.Args
	case "web_search":
		return "WebSearch", map[string]any{"query": i.Query}
	}
	return "", nil
}

// spends returns what the thread has spent since the last report. A smaller total means that the
// count has started over.
func (c *Codex) spends(sum codexTokens) []agent.Update {
	was := c.state.Spent
	if sum.Input < was.Input || sum.Output < was.Output {
		was = codexTokens{}
	}
	c.state.Spent = sum
	cached, written := max(0, sum.Cached-was.Cached), max(0, sum.CacheWrite-was.CacheWrite)
	return used(team.Usage{InputTokens: max(0, sum.Input-was.Input-cached-written), CacheReadTokens: cached,
		CacheWriteTokens: written, OutputTokens: max(0, sum.Output-was.Output)})
}

// reconnects matches the message of a retry, which usually has the reason.
var reconnects = lazyregexp.New(`^Reconnecting\.\.\. \d+/\d+(?: \((?s:(.*))\))?$`)

// failed handles an error. It ignores an error during a turn, which is reported again at the turn's
// end. An error between turns is not reported again.
func (c *Codex) failed(words string) []agent.Update {
	t := &c.state.Turn
	switch again := reconnects().FindStringSubmatch(strings.TrimSpace(words)); {
	case again != nil:
		return append(t.begin(), agent.Retrying{Problem: *problem(0, cmp.Or(again[1], again[0]))})
	case t.Open || c.state.Thread == "":
		return nil
	}
	return t.end(problem(0, words))
}
