package acp

import (
	"bytes"
	"encoding/json"

	sdk "github.com/coder/acp-go-sdk"

	"cadre/internal/agent"
)

// Reader is an [agent.Reader] of an agent's messages, one a line. The driver's messages may stand
// between them, and are not needed. It reads one session: the first since the agent introduced
// itself.
type Reader struct {
	decoder *decoder
	session sdk.SessionId
	told    bool // its start was reported
	turn    bool
	before  spent // by the previous program
}

// spent is the total cost of a session, including earlier programs that ran it.
type spent struct {
	Session sdk.SessionId `json:"session,omitempty"`
	Cost    int64         `json:"cost,omitempty"`
}

// Reader returns a Reader for this agent's messages.
func (a Agent) Reader() *Reader { return &Reader{decoder: newDecoder(a.facts)} }

// reading is the saved form of a Reader.
type reading struct {
	Session sdk.SessionId            `json:"session"`
	Told    bool                     `json:"told"`
	Turn    bool                     `json:"turn"`
	Tools   map[sdk.ToolCallId]*tool `json:"tools,omitempty"`
	Text    string                   `json:"text,omitempty"`
	Message string                   `json:"message,omitempty"`
	Last    string                   `json:"last,omitempty"`
	Used    int                      `json:"used"`
	Cost    int64                    `json:"cost,omitempty"`
	Before  spent                    `json:"before,omitzero"`
}

// MarshalJSON implements [agent.Reader].
func (r *Reader) MarshalJSON() ([]byte, error) {
	d := r.decoder
	return json.Marshal(reading{r.session, r.told, r.turn, d.tools, d.text.String(), d.message, d.last, d.used,
		d.cost, r.before})
}

// UnmarshalJSON implements [agent.Reader].
func (r *Reader) UnmarshalJSON(data []byte) error {
	var was reading
	if err := json.Unmarshal(data, &was); err != nil {
		return err
	}
	d := newDecoder(r.decoder.facts)
	for id, t := range was.Tools {
		if t != nil {
			d.tools[id] = t
		}
	}
	d.text.WriteString(was.Text)
	d.message, d.last, d.used, d.cost = was.Message, was.Last, was.Used, was.Cost
	*r = Reader{d, was.Session, was.Told, was.Turn, was.Before}
	return nil
}

// Line implements [agent.Reader].
func (r *Reader) Line(line []byte) []agent.Update {
	said := r.read(line)
	if r.session == "" || r.told {
		return said
	}
	r.told = true
	return append([]agent.Update{agent.Started{Session: string(r.session)}}, said...)
}

func (r *Reader) read(line []byte) []agent.Update {
	var m struct {
		ID     json.RawMessage   `json:"id"`
		Method string            `json:"method"`
		Params json.RawMessage   `json:"params"`
		Result json.RawMessage   `json:"result"`
		Error  *sdk.RequestError `json:"error"`
	}
	if json.Unmarshal(line, &m) != nil {
		return nil
	}
	switch {
	case m.Method == sdk.AgentMethodSessionPrompt && r.mine(m.Params):
		return r.begin()
	case m.Method == sdk.ClientMethodSessionUpdate && r.mine(m.Params):
		var n sdk.SessionNotification
		if json.Unmarshal(m.Params, &n) != nil {
			return nil
		}
		said, shows := r.decoder.decode(n.Update)
		if shows == noSign && !r.turn {
			return said
		}
		return append(r.begin(), said...)
	case m.Method == sdk.ClientMethodSessionRequestPermission && r.mine(m.Params):
		var asked sdk.RequestPermissionRequest
		if json.Unmarshal(m.Params, &asked) != nil {
			return nil
		}
		tool, input, _ := r.decoder.permission(asked)
		return append(append(r.begin(), r.decoder.flush()...), agent.PermissionAsked{Tool: tool, Input: input})
	case m.Method != "":
		return nil
	case m.Error != nil:
		return r.end(sdk.PromptResponse{}, m.Error)
	case bytes.Contains(m.Result, []byte(`"stopReason"`)):
		var response sdk.PromptResponse
		if json.Unmarshal(m.Result, &response) != nil {
			return nil
		}
		return r.end(response, nil)
	}
	var began struct {
		Version int           `json:"protocolVersion"`
		Session sdk.SessionId `json:"sessionId"`
	}
	switch err := json.Unmarshal(m.Result, &began); {
	case err != nil:
	case began.Version > 0:
		before := r.before
		if r.session != "" {
			before = spent{r.session, r.decoder.cost}
		}
		*r = Reader{decoder: newDecoder(r.decoder.facts), before: before}
	case r.session == "":
		r.is(began.Session)
	}
	return nil
}

func (r *Reader) mine(params json.RawMessage) bool {
	var p struct {
		Session sdk.SessionId `json:"sessionId"`
	}
	json.Unmarshal(params, &p)
	if r.session == "" {
		r.is(p.Session)
	}
	return p.Session == r.session
}

// is records the session's id.
func (r *Reader) is(id sdk.SessionId) {
	r.session = id
	if id != "" && id == r.before.Session {
		r.decoder.cost = r.before.Cost
	}
}

// begin starts a turn, unless one is running. The driver's requests may be missing among the lines.
func (r *Reader) begin() []agent.Update {
	if r.turn {
		return nil
	}
	r.turn = true
	return []agent.Update{agent.TurnStarted{}}
}

// end handles the answer to a prompt. An error outside a turn may be about something else, as its
// code shows; otherwise it belongs to a turn that failed at its start.
func (r *Reader) end(response sdk.PromptResponse, refused *sdk.RequestError) []agent.Update {
	if refused != nil && !r.turn && (r.session == "" || outcomeOf(response, refused, false) == rejected) {
		return nil
	}
	said := append(r.begin(), r.decoder.flush()...)
	if used, ok := usageOf(response); ok && used.Tokens() > 0 {
		said = append(said, agent.Used{Usage: used})
	}
	end := agent.TurnEnded{Text: r.decoder.last, Interrupted: response.StopReason == sdk.StopReasonCancelled}
	switch {
	case refused != nil:
		end.Problem = problemOf(refused)
	case !end.Interrupted:
		end.Problem = stopOf(response)
	}
	if end.Problem != nil {
		end.Text = ""
	}
	r.turn = false
	r.decoder.begin()
	return append(said, end)
}
