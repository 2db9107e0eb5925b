package headless

import (
	"cmp"

	"cadre/internal/agent"
	"cadre/internal/team"
)

// OpenCode reads opencode run --format json. The zero OpenCode is ready for use.
type OpenCode struct{ persistent[openCodeState] }

// openCodeState is the saved state of the session.
type openCodeState struct {
	Session string `json:"session,omitempty"`
	Turn    turn   `json:"turn"`
}

type openCodePart struct {
	Text  string `json:"text"`
	Tool  string `json:"tool"`
	Call  string `json:"callID"`
	State struct {
		Status   string         `json:"status"`
		Input    map[string]any `json:"input"`
		Output   string         `json:"output"`
		Error    string         `json:"error"`
		Metadata struct {
			Exit int `json:"exit"`
		} `json:"metadata"`
	} `json:"state"`
	Reason string `json:"reason"`
	Tokens struct {
		Input     int64 `json:"input"` // without tokens from the cache
		Output    int64 `json:"output"`
		Reasoning int64 `json:"reasoning"`
		Cache     struct {
			Read  int64 `json:"read"`
			Write int64 `json:"write"`
		} `json:"cache"`
	} `json:"tokens"`
}

// Line implements [agent.Reader].
func (o *OpenCode) Line(line []byte) []agent.Update {
	var m struct {
		Type    string       `json:"type"`
		Session string       `json:"sessionID"`
		Part    openCodePart `json:"part"`
		Error   struct {
			Name string `json:"name"`
			Data struct {
				Message string `json:"message"`
				Status  int    `json:"statusCode"`
			} `json:"data"`
		} `json:"error"`
	}
	if agent.Parse(line, &m) != nil || m.Session == "" {
		return nil
	}
	said, t := o.enter(m.Session), &o.state.Turn
	switch m.Type {
	case "step_start":
		return append(said, t.begin()...)
	case "text":
		return append(said, t.text(m.Part.Text)...)
	case "tool_use":
		name, input := claudeTool(m.Part.Tool, m.Part.State.Input, openCodeTools)
		return append(append(said, t.tool(m.Part.Call, name, input)...), t.done(m.Part.Call, m.Part.failed(),
			cmp.Or(m.Part.State.Output, m.Part.State.Error))...)
	case "step_finish":
		return append(append(said, m.Part.used()...), o.step(m.Part.Reason)...)
	case "error":
		return append(said, t.end(problem(m.Error.Data.Status, cmp.Or(m.Error.Data.Message, m.Error.Name)))...)
	}
	return said
}

// enter reports a session when it first appears. A turn of the previous session is over.
func (o *OpenCode) enter(session string) []agent.Update {
	if session == o.state.Session {
		return nil
	}
	o.state = openCodeState{Session: session}
	return []agent.Update{agent.Started{Session: session}}
}

// step ends a step, and the turn with it unless another step follows.
func (o *OpenCode) step(reason string) []agent.Update {
	t := &o.state.Turn
	switch reason {
	case "tool-calls", "unknown", "":
		return t.begin()
	case "length":
		return t.end(&agent.Problem{Kind: agent.ProblemContext, Text: "the model has no tokens left"})
	case "content-filter":
		return t.end(&agent.Problem{Kind: agent.ProblemModel, Text: "the model refused to continue"})
	}
	return t.end(nil)
}

// failed reports whether the tool failed. For opencode, a command that exits with a status other
// than 0 is completed.
func (p *openCodePart) failed() bool { return p.State.Status == "error" || p.State.Metadata.Exit != 0 }

func (p *openCodePart) used() []agent.Update {
	n := p.Tokens
	return used(team.Usage{InputTokens: max(0, n.Input), CacheReadTokens: max(0, n.Cache.Read),
		CacheWriteTokens: max(0, n.Cache.Write), OutputTokens: max(0, n.Output) + max(0, n.Reasoning)})
}

// openCodeTools maps opencode's tools to Claude Code's names for their kinds.
var openCodeTools = map[string]string{
	"bash": "Bash", "write": "Write", "edit": "Edit", "apply_patch": "Edit", "patch": "Edit", "multiedit": "Edit",
	"read": "Read", "list": "LS", "glob": "Glob", "grep": "Grep",
	"webfetch": "WebFetch", "websearch": "WebSearch", "task": "Task", "todowrite": "TodoWrite", "todoread": "TodoRead",
	"skill": "Skill",
}
