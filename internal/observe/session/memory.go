package session

import (
	"encoding/json"
	"fmt"

	"cadre/internal/observe"
	"cadre/internal/team"
)

// memory is the saved form of an observer.
type memory struct {
	V       int               `json:"v"`
	Agent   string            `json:"agent"`
	Seq     int64             `json:"seq"`
	State   json.RawMessage   `json:"state,omitempty"`
	Reader  json.RawMessage   `json:"reader,omitempty"`
	Tools   map[string]string `json:"tools,omitempty"`
	Turn    bool              `json:"turn,omitempty"`
	Updates int64             `json:"updates"`
	Last    team.Time         `json:"last"`
	Counts  observe.Counts    `json:"counts"`
}

const memoryVersion = 1

// Save encodes the observer's knowledge as one JSON object.
func (o *Observer) Save() (saved []byte, err error) {
	m := memory{V: memoryVersion, Agent: o.o.Agent, Tools: o.tools, Turn: o.turn, Updates: o.updates, Last: o.last,
		Counts: o.counts}
	if o.s != nil {
		m.Seq, m.State = o.s.Seq(), team.AppendSnapshot(nil, o.s)
	}
	if o.o.Reader != nil {
		if m.Reader, err = json.Marshal(o.o.Reader); err != nil {
			return nil, err
		}
	}
	return json.Marshal(m)
}

// Restore returns an observer with the knowledge that [Observer.Save] saved, with a reader of the
// same kind. newer is the journal's state, or nil. It replaces the saved state if it is newer,
// because the journal is written more often. If another agent or a team was observed, the error is
// [observe.ErrOther].
func Restore(options Options, saved []byte, newer *team.State) (*Observer, error) {
	o := New(options)
	if len(saved) > 0 {
		if err := o.restore(saved); err != nil {
			return nil, fmt.Errorf("restore the saved observation: %w", err)
		}
	}
	if newer != nil {
		if _, there := newer.Member(options.Agent); !there {
			return nil, observe.ErrOther
		}
		o.s, o.last = newer, max(o.last, newer.Team().UpdatedAt)
	}
	return o, nil
}

func (o *Observer) restore(saved []byte) error {
	var m memory
	switch err := json.Unmarshal(saved, &m); {
	case err != nil:
		return err
	case m.Agent != o.o.Agent:
		return observe.ErrOther
	case m.V > memoryVersion:
		return observe.ErrNewer
	}
	if len(m.State) > 0 {
		s, err := team.DecodeSnapshot(m.Seq, string(m.State))
		if err != nil {
			return err
		}
		o.s = s
	}
	if o.o.Reader != nil && len(m.Reader) > 0 {
		if err := json.Unmarshal(m.Reader, o.o.Reader); err != nil {
			return err
		}
	}
	for id, what := range m.Tools {
		o.tools[id] = what
	}
	o.turn, o.updates, o.last, o.counts = m.Turn, m.Updates, m.Last, m.Counts
	return nil
}
