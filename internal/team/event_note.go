package team

import "slices"

// The events of notes.
type (
	// NoteSet sets the note Key to the Text. Seq numbers the changes of all notes of the team.
	NoteSet struct {
		Key, Text string
		Seq       int64
	}
	// NoteAppended adds the Text to the note Key, on a line of its own, and makes the note if there
	// is none.
	NoteAppended struct {
		Key, Text string
		Seq       int64
	}
	// NoteDeleted deletes the note Key.
	NoteDeleted struct {
		Key string
		Seq int64
	}
)

// Kind returns the event's name in the journal.
func (*NoteSet) Kind() string { return "note_set" }

// Kind returns the event's name in the journal.
func (*NoteAppended) Kind() string { return "note_appended" }

// Kind returns the event's name in the journal.
func (*NoteDeleted) Kind() string { return "note_deleted" }

func (e *NoteSet) fields(c *coder) {
	c.str("key", &e.Key)
	c.str("text", &e.Text)
	c.int("seq", &e.Seq)
}

func (e *NoteAppended) fields(c *coder) {
	c.str("key", &e.Key)
	c.str("text", &e.Text)
	c.int("seq", &e.Seq)
}

func (e *NoteDeleted) fields(c *coder) {
	c.str("key", &e.Key)
	c.int("seq", &e.Seq)
}

func (e *NoteSet) apply(s *State, r *Record) {
	s.changeNote(e.Key, e.Seq, r, func(n *Note) { n.Text = e.Text; own(&n.Text) })
}

func (e *NoteAppended) apply(s *State, r *Record) {
	s.changeNote(e.Key, e.Seq, r, func(n *Note) {
		n.Text = e.To(n.Text)
		own(&n.Text)
	})
}

func (e *NoteDeleted) apply(s *State, r *Record) {
	s.noteSeq = max(s.noteSeq, e.Seq)
	i, ok := s.noteIndex(e.Key)
	if !ok {
		return
	}
	end := NoteEnd{Key: s.notes[i].Key, By: s.known(r.Actor), Seq: e.Seq}
	own(&end.Key)
	ends := append(slices.DeleteFunc(slices.Clone(s.noteEnds), func(e NoteEnd) bool { return e.Key == end.Key }), end)
	s.noteEnds = ends[max(0, len(ends)-recentNoteEnds):]
	if s.notes = slices.Delete(s.notes, i, i+1); len(s.notes) == 0 {
		s.notes = nil
	}
}

// changeNote applies f to the note, which may be new.
func (s *State) changeNote(key string, seq int64, r *Record, f func(*Note)) {
	s.noteSeq = max(s.noteSeq, seq)
	by := s.known(r.Actor)
	i, ok := s.noteIndex(key)
	if !ok {
		n := Note{Key: key, SetBy: by, SetAt: r.At}
		own(&n.Key)
		s.notes = slices.Insert(s.notes, i, n)
	}
	n := &s.notes[i]
	if ok && n.UpdatedBy != by {
		n.otherBy, n.otherSeq = n.UpdatedBy, n.Seq
	}
	f(n)
	n.UpdatedBy, n.UpdatedAt, n.Seq = by, r.At, seq
}

// NoteChanged returns the number of the change of a note that the record has; 0 if it has none.
func NoteChanged(r *Record) int64 {
	for _, e := range r.Events {
		switch e := e.(type) {
		case *NoteSet:
			return e.Seq
		case *NoteAppended:
			return e.Seq
		case *NoteDeleted:
			return e.Seq
		}
	}
	return 0
}

// To returns a text with the appended one behind it.
func (e *NoteAppended) To(text string) string { return appended(text, e.Text) }

// appended returns a text with another one on a line of its own behind it.
func appended(text, more string) string {
	if text == "" || text[len(text)-1] == '\n' {
		return text + more
	}
	return text + "\n" + more
}
