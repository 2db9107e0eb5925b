// Package headless reads what agents print that are run once, with nobody who drives them: in a
// terminal, a script, CI.
//
//	codex exec --json PROMPT                        [Codex]
//	gemini --output-format stream-json -p PROMPT    [Gemini]
//	opencode run --format json PROMPT               [OpenCode]
//
// # Authority
//
// The package knows these three streams, a JSON object a line whose type says what it is, and makes
// updates of them. What an agent says to a driver of its own, in a protocol, is read by that
// driver's package; [Reader] tells the two apart.
//
// # What the streams have, and what not
//
//	a session     named by each line of opencode, and by the first of the others
//	a turn        begins with codex's word, with gemini's prompt, and with the first step of opencode; ends with a result, or the last step
//	a tool        as it begins and as it ends; of opencode when it has ended
//	usage         with the end of a turn, of opencode of each step; of codex it is the sum of its thread
//	an interrupt  is in none of them: the stream ends, which whoever reads it has to tell
//
// # Guarantees
//
//   - A tool begins before it ends, and a turn ends once. What a line says that is not known here
//     is nothing.
//   - A tool has the name that Claude Code has for its kind, and an input that is JSON.
package headless

import (
	"cmp"
	"encoding/json"
	"errors"
	"strings"

	"cadre/internal/agent"
	"cadre/internal/team"
)

// Reader is an [agent.Reader] for the lines of an agent, of whichever of its two kinds they are:
// messages to its driver, or what it prints without one. A line with a type and without a method is
// printed.
type Reader struct{ driven, printed agent.Reader }

// Or returns a reader that reads what is printed with the one, and everything else with the other.
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

// both is a Reader as it is saved.
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

// remembers is the reader of one stream by what it knows, which is saved.
type remembers[T any] struct{ state T }

// MarshalJSON implements [agent.Reader].
func (r *remembers[T]) MarshalJSON() ([]byte, error) { return json.Marshal(r.state) }

// UnmarshalJSON implements [agent.Reader].
func (r *remembers[T]) UnmarshalJSON(data []byte) error {
	var was T
	err := json.Unmarshal(data, &was)
	r.state = was
	return err
}

// turn is what a stream said of the turn that goes on.
type turn struct {
	Open  bool            `json:"open,omitempty"`
	Last  string          `json:"last,omitempty"`  // its last text
	Tools map[string]bool `json:"tools,omitempty"` // those that go on, by their ids
}

// begin begins a turn, unless one goes on.
func (t *turn) begin() []agent.Update {
	if t.Open {
		return nil
	}
	*t = turn{Open: true}
	return []agent.Update{agent.TurnStarted{}}
}

// text is a whole text of the agent.
func (t *turn) text(text string) []agent.Update {
	if text = strings.TrimSpace(text); text == "" {
		return nil
	}
	said := t.begin()
	t.Last = text
	return append(said, agent.Text{Text: text})
}

// tool begins a tool, unless it goes on.
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

// done ends a tool that goes on.
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

// problem is a failure by the agent's own words. status is 0 where it tells none.
func problem(status int, words string) *agent.Problem {
	if words = strings.TrimSpace(words); words == "" {
		words = "the turn failed"
	}
	return &agent.Problem{Kind: agent.KindOf(status, words), Text: words}
}

// used tells of what was spent, unless that is nothing.
func used(u team.Usage) []agent.Update {
	if u.Tokens() == 0 {
		return nil
	}
	return []agent.Update{agent.Used{Usage: u}}
}

// known is a tool of an agent's own, or of a server of its user's, by the name that Claude Code has
// for its kind, and its input with the file where Claude Code has it.
func known(tool string, input map[string]any, names map[string]string) (string, map[string]any) {
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
