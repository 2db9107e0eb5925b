package team

import (
	"strings"
	"unicode/utf8"
)

// Outline is a team without its tasks, which are most of a snapshot. It decides commands about
// notes, and shows the notes, as the [State] does. Reading it takes a fraction of the time.
//
// It applies every record. What it shows follows from events that do not depend on tasks;
// TestOutline compares it with the state.
type Outline struct{ s *State }

// DecodeOutline reads the outline of a state that [AppendSnapshot] wrote after the record seq. It
// does not look at the tasks: whoever calls it has verified the checksum of the snapshot. A
// snapshot whose fields have another order is read as a whole.
func DecodeOutline(seq int64, data string) (*Outline, error) {
	s := &State{}
	c := coder{mode: reading, in: data, first: true}
	s.seq = seq // it bounds the commands to expect
	if c.take('{') {
		s.fieldsBeforeTasks(&c)
	}
	if read := data[:c.pos]; c.err == nil && strings.HasPrefix(data[c.pos:], tasksBegin) && utf8.ValidString(read) {
		if s.derive() == nil {
			return &Outline{s}, nil
		}
	}
	s, err := DecodeSnapshot(seq, data)
	return &Outline{s}, err
}

// Outline returns the outline of the state. It shares the state's memory.
func (s *State) Outline() *Outline { return &Outline{s} }

// Seq returns the seq of the last record that was applied.
func (o *Outline) Seq() int64 { return o.s.seq }

// Apply is [State.Apply].
func (o *Outline) Apply(r *Record) bool { return o.s.Apply(r) }

// Decide is the function [Decide], and refuses commands about anything but notes.
func (o *Outline) Decide(c Command) (Decision, error) {
	switch c.Body.(type) {
	case *SetNote, *AppendNote, *DeleteNote:
		return Decide(o.s, c)
	}
	return Decision{}, refuse(Invalid, "the outline of a team decides commands about notes only")
}

// Overdue reports whether [State.Overdue] has commands.
func (o *Outline) Overdue(now Time) bool {
	bodies, _ := o.s.Overdue(now)
	return len(bodies) > 0
}

// Team returns the fields of the team as a whole, without those about the lead's report, which
// depend on tasks.
func (o *Outline) Team() Team {
	t := o.s.team
	t.ReportAsked, t.LastWords = false, ""
	return t
}

// Notes is [State.Notes].
func (o *Outline) Notes() []Note { return o.s.Notes() }

// Note is [State.Note].
func (o *Outline) Note(key string) (Note, bool) { return o.s.Note(key) }

// NamedNote is [State.NamedNote].
func (o *Outline) NamedNote(key string) (Note, error) { return o.s.NamedNote(key) }
