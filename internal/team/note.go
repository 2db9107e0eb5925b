package team

import (
	"cmp"
	"slices"
	"strings"
)

// Limits on the notes of a team.
const (
	MaxNotes     = 500
	MaxNote      = 32 << 10 // bytes of the text of one note
	MaxNotesText = 1 << 20  // bytes of the texts of all notes together
	MaxNoteKey   = 128      // bytes of a key
)

// Note is a text that all members share, under a key: a decision, an interface that was agreed,
// what was tried. The state has the present notes; the journal has their older versions.
type Note struct {
	Key       string // its name: parts of letters, digits, _, - and ., with / between them
	Text      string // all of it
	SetBy     string // who set it first: a member, or @user
	SetAt     Time   // when it was set first
	UpdatedBy string // who changed it last
	UpdatedAt Time   // when it changed last
	Seq       int64  // number of its last change, among the changes of all notes of the team

	// the last change by another than UpdatedBy, so that each member can be told what others
	// changed
	otherBy  string
	otherSeq int64
}

// NoteEnd says that a note was deleted.
type NoteEnd struct {
	Key string
	By  string // who deleted it
	Seq int64  // number of the deletion, among the changes of all notes
}

// notebook is the part of the state about notes.
type notebook struct {
	notes    []Note    // by key
	noteSeq  int64     // number of the last change of a note
	noteEnds []NoteEnd // the last deletions of notes; the list is replaced, never changed
}

// recentNoteEnds is how many of the last deletions a team can tell its members of.
const recentNoteEnds = 50

func (n *Note) fields(c *coder) {
	c.str("key", &n.Key)
	c.str("text", &n.Text)
	c.str("setBy", &n.SetBy)
	c.int("setAt", (*int64)(&n.SetAt))
	c.str("updatedBy", &n.UpdatedBy)
	c.int("updatedAt", (*int64)(&n.UpdatedAt))
	c.int("seq", &n.Seq)
	if !c.view {
		c.str("otherBy", &n.otherBy)
		c.int("otherSeq", &n.otherSeq)
	}
}

func (n *NoteEnd) fields(c *coder) {
	c.str("key", &n.Key)
	c.str("by", &n.By)
	c.int("seq", &n.Seq)
}

// MarshalJSON writes the note as one JSON object.
func (n Note) MarshalJSON() ([]byte, error) { return encode(&n, true, nil), nil }

// UnmarshalJSON reads what MarshalJSON writes.
func (n *Note) UnmarshalJSON(data []byte) error { return unmarshal(n, data) }

// ChangedBy returns who changed the note last, other than the reader, and the number of that
// change. It returns 0 if nobody else ever changed it.
func (n *Note) ChangedBy(reader string) (by string, seq int64) {
	if n.UpdatedBy != reader {
		return n.UpdatedBy, n.Seq
	}
	return n.otherBy, n.otherSeq
}

// ValidNoteKey reports whether a note may have this key: parts with / between them, such as
// decisions/api. Each part is a letter or digit, then letters, digits, _, - or dots.
func ValidNoteKey(key string) bool {
	if len(key) > MaxNoteKey {
		return false
	}
	for part := range strings.SplitSeq(key, "/") {
		if part == "" || strings.ContainsRune("_-.", rune(part[0])) {
			return false
		}
		for i := range len(part) {
			b := part[i]
			letter := b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z'
			if !letter && !(b >= '0' && b <= '9') && b != '_' && b != '-' && b != '.' {
				return false
			}
		}
	}
	return true
}

// Notes returns the notes of the team, by their keys.
func (s *State) Notes() []Note { return slices.Clone(s.notes) }

// NoteSeq returns the number of the last change of a note; 0 if none was ever set.
func (s *State) NoteSeq() int64 { return s.noteSeq }

// Note returns the note with that key.
func (s *State) Note(key string) (n Note, ok bool) {
	i, ok := s.noteIndex(key)
	if ok {
		n = s.notes[i]
	}
	return n, ok
}

// NamedNote is [State.Note], and refuses a key that no note has.
func (s *State) NamedNote(key string) (Note, error) {
	if n, ok := s.Note(key); ok {
		return n, nil
	}
	return Note{}, s.noNote(key)
}

func (s *State) noNote(key string) error {
	return Refuse(NotFound, "team %s has no note %q", s.team.Name, brief(key)).With(s.team.hint(ActShowNotes))
}

func (s *State) noteIndex(key string) (i int, ok bool) {
	return slices.BinarySearchFunc(s.notes, key, func(n Note, key string) int { return strings.Compare(n.Key, key) })
}

// NotesHeld returns how many notes the team has, and the bytes of their texts together.
func (s *State) NotesHeld() (notes, size int) {
	for i := range s.notes {
		size += len(s.notes[i].Text)
	}
	return len(s.notes), size
}

// inOrder sorts notes by their keys. Of several with one key it keeps the one that changed last.
func inOrder(notes []Note) []Note {
	slices.SortStableFunc(notes, func(a, b Note) int {
		return cmp.Or(strings.Compare(a.Key, b.Key), cmp.Compare(b.Seq, a.Seq))
	})
	return slices.CompactFunc(notes, func(a, b Note) bool { return a.Key == b.Key })
}

// bySeq returns the notes in the order in which they changed last.
func bySeq(notes []Note) []Note {
	return slices.SortedStableFunc(slices.Values(notes), func(a, b Note) int { return cmp.Compare(a.Seq, b.Seq) })
}
