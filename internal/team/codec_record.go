package team

import (
	"errors"
	"fmt"
)

// Version is the version of the records and snapshots that this package writes. It reads this
// version and every older one, and refuses a newer one with [ErrNewer].
const Version = 1

// ErrNewer says that a record or snapshot was written by a newer version of cadre.
var ErrNewer = errors.New("the team was written by a newer version of cadre; update it on this machine")

// Record is one accepted command: its events happen together. Its encoding leaves Seq out, because
// the journal knows it.
type Record struct {
	Seq    int64   // number of the record in the history, from 1
	ID     string  // id of the command; sending it again with the same id changes nothing
	Actor  string  // who sent the command: a member, @user, or @host:ID
	At     Time    // when the command was accepted
	Via    string  // how it came in, such as "token phone"; "" for a command of this machine's user or a member
	Events []Event // what changed, in order
}

// EventIn returns the first event of its kind in the record, and whether the record has one. A nil
// record has no events.
func EventIn[E Event](r *Record) (e E, ok bool) {
	if r != nil {
		for _, one := range r.Events {
			if e, ok = one.(E); ok {
				return e, true
			}
		}
	}
	return e, false
}

// Begin returns the records, encoded, that the commands make of an empty state, and the state after
// them. It returns the refusal of the first command that is refused.
func Begin(commands []Command) (*State, [][]byte, error) {
	s := &State{}
	var records [][]byte
	for _, c := range commands {
		d, err := Decide(s, c)
		if err != nil {
			return nil, nil, err
		}
		if d.Record != nil {
			records = append(records, AppendRecord(nil, d.Record))
			s.Apply(d.Record)
		}
	}
	return s, records, nil
}

// AppendRecord appends the record's encoding, one JSON object without a line break, to buf.
func AppendRecord(buf []byte, r *Record) []byte { return encode(r, false, buf) }

// DecodeRecord reads a record that [AppendRecord] wrote. The record keeps data, which must not
// change afterwards.
func DecodeRecord(seq int64, data string) (*Record, error) {
	r := &Record{Seq: seq}
	if err := decode(r, data); err != nil {
		return nil, fmt.Errorf("record %d: %w", seq, err)
	}
	return r, nil
}

// MarshalJSON writes the record with its seq.
func (r Record) MarshalJSON() ([]byte, error) { return encode(&r, true, nil), nil }

// UnmarshalJSON reads what MarshalJSON writes.
func (r *Record) UnmarshalJSON(data []byte) error { return unmarshal(r, data) }

func (r *Record) fields(c *coder) {
	if c.view {
		c.int("seq", &r.Seq)
	}
	c.version()
	c.str("id", &r.ID)
	c.str("actor", &r.Actor)
	c.int("at", (*int64)(&r.At))
	c.str("via", &r.Via)
	list(c, "events", &r.Events, func(e *Event) {
		c.tagged.event = *e
		if c.object(&c.tagged); c.err == nil && c.tagged.event == nil && c.mode == reading {
			c.fail("an event without a kind")
		}
		*e = c.tagged.event
	})
}

// version writes the version, or refuses one that is newer than ours.
func (c *coder) version() {
	v := int64(Version)
	if c.int("v", &v); v > Version && c.err == nil {
		c.err = fmt.Errorf("version %d: %w", v, ErrNewer)
	}
}

// tagged is an event with its kind as the first field.
type tagged struct{ event Event }

func (t *tagged) fields(c *coder) {
	var name string
	if t.event != nil {
		name = t.event.Kind()
	}
	c.str("kind", &name)
	if c.mode == reading {
		made := newEvent(name)
		switch {
		case made != nil:
			t.event = made
		case name == "" && c.byName == nil: // not the first field: look it up by name
			return
		default:
			c.fail("unknown kind of event " + brief(name))
			return
		}
	}
	t.event.fields(c)
}
