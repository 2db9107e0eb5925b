package codex

import (
	"encoding/json"
	"maps"

	"cadre/internal/agent"
)

// Reader is an [agent.Reader] of an app-server's messages: notifications, requests, and answers
// with a thread. It reads one thread: the first since the program introduced itself. The zero
// Reader is ready for use.
type Reader struct {
	decoder      decoder
	thread       string
	announced    bool // its start was reported
	reintroduced bool // the program has introduced itself since, and the next thread may be another one
}

// reading is the saved form of a Reader.
type reading struct {
	Thread       string           `json:"thread"`
	Told         bool             `json:"told"`
	Reintroduced bool             `json:"anew,omitempty"`
	Turn         string           `json:"turn,omitempty"`
	Over         bool             `json:"over"`
	Items        map[string]*seen `json:"items,omitempty"`
	Last         string           `json:"last,omitempty"`
	Spent        breakdown        `json:"spent"`
	Context      int              `json:"context"`
	Ours         bool             `json:"ours"`
}

// MarshalJSON implements [agent.Reader].
func (r *Reader) MarshalJSON() ([]byte, error) {
	d := &r.decoder
	return json.Marshal(reading{r.thread, r.announced, r.reintroduced, d.turn, d.turnOver, d.items, d.last, d.spent,
		d.context, d.counting})
}

// UnmarshalJSON implements [agent.Reader].
func (r *Reader) UnmarshalJSON(data []byte) error {
	var was reading
	if err := json.Unmarshal(data, &was); err != nil {
		return err
	}
	maps.DeleteFunc(was.Items, func(_ string, s *seen) bool { return s == nil })
	d := decoder{turn: was.Turn, turnOver: was.Over, items: was.Items, last: was.Last, spent: was.Spent,
		context: was.Context, counting: was.Ours}
	*r = Reader{d, was.Thread, was.Told, was.Reintroduced}
	return nil
}

// Line implements [agent.Reader].
func (r *Reader) Line(line []byte) []agent.Update {
	said := r.read(line)
	if r.thread == "" || r.announced {
		return said
	}
	r.announced = true
	return append([]agent.Update{agent.Started{Session: r.thread}}, said...)
}

func (r *Reader) read(line []byte) []agent.Update {
	var m rpc
	if agent.Parse(line, &m) != nil {
		return nil
	}
	switch {
	case m.Method == "":
		return r.answer(m.Result)
	case !r.inThread(m.Params):
		return nil
	case m.ID != nil:
		return updatesOf([]any{r.decoder.request(m.Method, m.Params)})
	}
	return updatesOf(r.decoder.decode(m.Method, m.Params))
}

// answer looks for a thread in an answer. If it is the known thread again, the answer has what
// happened in between.
func (r *Reader) answer(result json.RawMessage) []agent.Update {
	var got struct {
		Program string `json:"userAgent"`
		Thread  thread `json:"thread"`
	}
	switch agent.Parse(result, &got); {
	case got.Program != "":
		r.reintroduced = true
		return nil
	case got.Thread.ID == "":
		return nil
	case r.begins(got.Thread.ID):
		r.decoder.resume(&got.Thread)
		return nil
	case r.thread == got.Thread.ID:
		return updatesOf(r.decoder.missed(&got.Thread))
	}
	return nil
}

// begins reports whether the reader starts to read this thread now.
func (r *Reader) begins(thread string) bool {
	if r.thread == "" || r.reintroduced && r.thread != thread {
		*r = Reader{thread: thread}
		return true
	}
	r.reintroduced = false
	return false
}

// inThread reports whether a message belongs to the thread of this reader.
func (r *Reader) inThread(params json.RawMessage) bool {
	var p struct {
		Thread string `json:"threadId"`
	}
	agent.Parse(params, &p)
	if p.Thread != "" {
		r.begins(p.Thread)
	}
	return p.Thread == "" || p.Thread == r.thread
}

// updatesOf returns the updates among the contents.
func updatesOf(said []any) (all []agent.Update) {
	for _, one := range said {
		switch one := one.(type) {
		case agent.Update:
			all = append(all, one)
		case turnStarted:
			all = append(all, agent.TurnStarted{})
		case turnEnded:
			all = append(all, one.end)
		case planned:
			all = append(all, agent.PlanProposed{Plan: one.text})
		case permission:
			all = append(all, agent.PermissionAsked{Tool: one.tool, Input: one.input})
		case questions:
			all = append(all, agent.PermissionAsked{Tool: "AskUserQuestion", Input: "{}"})
		}
	}
	return all
}
