package codex

import (
	"encoding/json"

	"cadre/internal/agent"
)

// Reader makes updates of what an app-server says to somebody else who drives it, a line of JSON each: notifications, requests, and the answers in which a
// thread is. It reads along and answers nothing: the Answer of an update is nil. The zero Reader is ready for use, for one thread.
type Reader struct {
	decoder decoder
	thread  string
	told    bool // that it runs
}

// Line reads one line. What it cannot read says nothing.
func (r *Reader) Line(line []byte) []agent.Update {
	said := r.read(line)
	if r.thread == "" || r.told {
		return said
	}
	r.told = true
	return append([]agent.Update{agent.Started{Session: r.thread}}, said...)
}

func (r *Reader) read(line []byte) []agent.Update {
	var m rpc
	if parse(line, &m) != nil {
		return nil
	}
	switch {
	case m.Method == "":
		return r.answer(m.Result)
	case !r.mine(m.Params):
		return nil
	case m.ID != nil:
		return public([]any{r.decoder.request(m.Method, m.Params)})
	}
	return public(r.decoder.decode(m.Method, m.Params))
}

// answer looks for a thread in an answer. One that is there again has what happened while nobody read along.
func (r *Reader) answer(result json.RawMessage) []agent.Update {
	var got struct {
		Thread thread `json:"thread"`
	}
	switch parse(result, &got); {
	case got.Thread.ID == "":
		return nil
	case r.thread == "":
		r.thread = got.Thread.ID
		r.decoder.resume(&got.Thread)
		return nil
	case r.thread == got.Thread.ID:
		return public(r.decoder.missed(&got.Thread))
	}
	return nil
}

// mine reports whether a message is of the thread that is read: the first that was seen.
func (r *Reader) mine(params json.RawMessage) bool {
	var p struct {
		Thread string `json:"threadId"`
	}
	parse(params, &p)
	if r.thread == "" {
		r.thread = p.Thread
	}
	return p.Thread == "" || p.Thread == r.thread
}

// public are the updates that the decoder's words are.
func public(said []any) (all []agent.Update) {
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
