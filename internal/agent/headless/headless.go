// Package headless reads the output of agents that run once without a driver: in a terminal, a
// script, or CI.
//
//	codex exec --json PROMPT                        [Codex]
//	gemini --output-format stream-json -p PROMPT    [Gemini]
//	opencode run --format json PROMPT               [OpenCode]
//
// # Authority
//
// The package turns these three streams into updates. Each line is one JSON object with a type. The
// messages of an agent to its driver are read by that driver's package; [Reader] recognises which
// of the two a line is.
//
// # What the streams contain
//
//	a session     named by each line of opencode, and by the first line of the others
//	a turn        starts with codex's event, gemini's prompt, or opencode's first step; ends with a result, or the last step
//	a tool        reported at its start and its end; by opencode at its end only
//	usage         reported at the end of a turn, by opencode of each step; codex reports the total of its thread
//	an interrupt  not reported: the stream ends, which the caller has to detect
//
// # Guarantees
//
//   - A tool starts before it ends, and a turn ends once. Unknown lines are ignored.
//   - A tool has Claude Code's name for its kind, and an input that is JSON.
package headless

import (
	"cmp"
	"encoding/json"
	"errors"
	"strings"

	"cadre/internal/agent"
	"cadre/internal/team"
)

// Reader is an [agent.Reader] for an agent's lines of either kind: messages to its driver, or
// output without one. A line with a type and without a method is output.
type Reader struct{ driven, printed agent.Reader }

// Or returns a reader that uses printed for output lines and driven for all others.
func Or(driven, printed agent.Reader) *Reader { return &Reader{driven, printed} }

// Line implements [agent.Reader].
func (r *Reader) Line(line []byte) []agent.Update {
	var kind struct {
		Type, Method json.RawMessage
	}
	if agent.Parse(line, &kind) == nil && kind.Type != nil && kind.Method == nil {
		return r.printed.Line(line)
	}
	return r.driven.Line(line)
}

// both is the saved form of a Reader.
type both struct {
	Driven  json.RawMessage `json:"driven"`
	Printed json.RawMessage `json:"printed"`
}

// MarshalJSON implements [agent.Reader].
func (r *Reader) MarshalJSON() ([]byte, error) {
	driven, err := r.driven.MarshalJSON()
	if err != nil {
		return nil, err
	}
	printed, err := r.printed.MarshalJSON()
	if err != nil {
		return nil, err
	}
	return json.Marshal(both{driven, printed})
}

// UnmarshalJSON implements [agent.Reader].
func (r *Reader) UnmarshalJSON(data []byte) error {
	var was both
	if err := json.Unmarshal(data, &was); err != nil {
		return err
	}
	return errors.Join(r.driven.UnmarshalJSON(was.Driven), r.printed.UnmarshalJSON(was.Printed))
}

// persistent saves and loads the state of a reader.
type persistent[T any] struct{ state T }

// MarshalJSON implements [agent.Reader].
func (r *persistent[T]) MarshalJSON() ([]byte, error) { return json.Marshal(r.state) }

// UnmarshalJSON implements [agent.Reader].
func (r *persistent[T]) UnmarshalJSON(data []byte) error {
	var was T
	err := json.Unmarshal(data, &was)
	r.state = was
	return err
}

// turn is the state of the turn in progress.
type turn struct {
	Open  bool            `json:"open,omitempty"`
	Last  string          `json:"last,omitempty"`  // its last text
	Tools map[string]bool `json:"tools,omitempty"` // ids of the tools in progress
}

// begin starts a turn, unless one is in progress.
func (t *turn) begin() []agent.Update {
	if t.Open {
		return nil
	}
	*t = turn{Open: true}
	return []agent.Update{agent.TurnStarted{}}
}

// text records a whole text of the agent.
func (t *turn) text(text string) []agent.Update {
	if text = strings.TrimSpace(text); text == "" {
		return nil
	}
	said := t.begin()
	t.Last = text
	return append(said, agent.Text{Text: text})
}

// tool starts a tool, unless it is in progress.
func (t *turn) tool(id, name string, input map[string]any) []agent.Update {
	said := t.begin()
	if t.Tools[id] {
		return said
	}
	if t.Tools == nil {
		t.Tools = map[string]bool{}
	}
	t.Tools[id] = true
	text, err := agent.JSON(input)
	if err != nil || input == nil {
		text = "{}"
	}
	return append(said, agent.ToolStarted{ID: id, Tool: name, Input: text})
}

// done ends a tool that is in progress.
func (t *turn) done(id string, failed bool, output string) []agent.Update {
	if !t.Tools[id] {
		return nil
	}
	delete(t.Tools, id)
	return []agent.Update{agent.ToolFinished{ID: id, Failed: failed, Output: output}}
}

// end ends the turn.
func (t *turn) end(problem *agent.Problem) []agent.Update {
	said := t.begin()
	end := agent.TurnEnded{Text: t.Last, Problem: problem}
	if problem != nil {
		end.Text = ""
	}
	*t = turn{}
	return append(said, end)
}

// problem returns a failure with the agent's own words. status is 0 if it is unknown.
func problem(status int, words string) *agent.Problem {
	if words = strings.TrimSpace(words); words == "" {
		words = "the turn failed"
	}
	return &agent.Problem{Kind: agent.KindOf(status, words), Text: words}
}

// used reports usage, unless it is zero.
func used(u team.Usage) []agent.Update {
	if u.Tokens() == 0 {
		return nil
	}
	return []agent.Update{agent.Used{Usage: u}}
}

// claudeTool returns Claude Code's name for a tool, and the input with the file in file_path, as
// Claude Code has it. names maps the agent's own tools; any other is a tool of an MCP server.
func claudeTool(tool string, input map[string]any, names map[string]string) (string, map[string]any) {
	name := names[tool]
	if server, rest, ok := strings.Cut(strings.TrimPrefix(tool, "mcp_"), "_"); name == "" && ok {
		name = "mcp__" + server + "__" + rest
	}
	for _, key := range []string{"filePath", "absolute_path"} {
		if file, ok := input[key]; ok && input["file_path"] == nil {
			input["file_path"] = file
			delete(input, key)
		}
	}
	return cmp.Or(name, tool), input
}
