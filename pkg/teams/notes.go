package teams

import (
	"context"
	"time"

	"cadre/internal/inspect/history"
	"cadre/internal/team"
)

// Note is a text that all members of a team share: a decision, an interface that was agreed, who
// works where, what was tried.
type Note struct {
	Key       string // its name, such as decisions/api
	Text      string
	SetBy     string // who set it first: a member, or [User]
	SetAt     time.Time
	UpdatedBy string // who changed it last
	UpdatedAt time.Time
	// Seq is the number of its last change, among the changes of all notes of the team. A
	// [NoteEdit] names it.
	Seq int64
}

func noteOf(n team.Note) Note {
	return Note{n.Key, n.Text, n.SetBy, clock(n.SetAt), n.UpdatedBy, clock(n.UpdatedAt), n.Seq}
}

// NoteReader reads the notes of a team.
type NoteReader struct{ view *View }

// Notes returns a reader of the notes.
func (v *View) Notes() *NoteReader { return &NoteReader{v} }

// List returns the notes, sorted by their keys.
func (r *NoteReader) List(ctx context.Context) (notes []Note, err error) {
	err = r.view.look(ctx, func(s *team.State) {
		for _, n := range s.Notes() {
			notes = append(notes, noteOf(n))
		}
	})
	return notes, err
}

// Get returns the note with that key, or ErrNotFound.
func (r *NoteReader) Get(ctx context.Context, key string) (Note, error) {
	var n team.Note
	var missing error
	if err := r.view.look(ctx, func(s *team.State) { n, missing = s.NamedNote(key) }); err != nil {
		return Note{}, err
	}
	if missing != nil {
		return Note{}, public(missing)
	}
	return noteOf(n), nil
}

// At returns the note as it was after the change seq of it; see [NoteChange.Seq]. It reads the
// team's history. It returns ErrNotFound for a number that is not of a change of this note, and for
// its deletion.
func (r *NoteReader) At(ctx context.Context, key string, seq int64) (Note, error) {
	if err := r.view.look(ctx, func(*team.State) {}); err != nil {
		return Note{}, err
	}
	n, err := r.view.of.NoteAt(ctx, key, seq)
	if err != nil {
		return Note{}, public(err)
	}
	return noteOf(n), nil
}

// NoteChange is one change of a note.
type NoteChange struct {
	Seq    int64 // number of the change, among the changes of all notes of the team
	Record int64 // of the history; see [Event.Seq]
	By     string
	At     time.Time
	How    NoteChangeKind
	Text   string // that was set, appended or restored
	Bytes  int    // of the whole note after the change
}

// NoteChangeKind says how a note changed.
type NoteChangeKind string

// The kinds of changes of notes.
const (
	NoteWasSet      NoteChangeKind = history.NoteSet
	NoteWasAppended NoteChangeKind = history.NoteAppended
	NoteWasDeleted  NoteChangeKind = history.NoteDeleted
	NoteWasRestored NoteChangeKind = history.NoteRestored // with the team, from a checkpoint
)

func noteChangeOf(c history.NoteChange) NoteChange {
	return NoteChange{c.Seq, c.Record, c.By, clock(c.At), NoteChangeKind(c.How), c.Text, c.Bytes}
}

// Changes returns the changes of a note, the oldest first. It reads the team's history. It returns
// ErrNotFound for a key that no note ever had.
func (r *NoteReader) Changes(ctx context.Context, key string) (all []NoteChange, err error) {
	if err := r.view.look(ctx, func(*team.State) {}); err != nil {
		return nil, err
	}
	changes, err := r.view.of.NoteChanges(ctx, key)
	for _, c := range changes {
		all = append(all, noteChangeOf(c))
	}
	return all, public(err)
}

// Notes are the notes of a team, as one member uses them. A team has at most 500 notes, of 32 KiB
// each and 1 MiB together; what is over a limit returns ErrTooLarge.
type Notes struct {
	*NoteReader
	actor
}

// Notes returns the notes of the team, as the manager's actor uses them.
func (t *Team) Notes() *Notes { return &Notes{t.View.Notes(), t.me} }

// Notes returns the notes of the team, as this member uses them.
func (m *Teammate) Notes() *Notes { return &Notes{m.team.View.Notes(), m.actor} }

// NoteEdit sets or deletes a note.
type NoteEdit struct {
	Key  string
	Text string // for Set: all of the new text
	// IfSeq is the [Note.Seq] of the note as the writer has seen it: if the note changed since, the
	// call returns ErrConflict, and [Error.Note] is the present note. [NewNote] is for a note that
	// must not exist yet; 0 for any.
	IfSeq int64
}

// NewNote is the IfSeq of a note that must not exist yet.
const NewNote = -1

// ifSeq returns the number as the core has it.
func (e NoteEdit) ifSeq() *int64 {
	seq := e.IfSeq
	switch seq {
	case 0:
		return nil
	case NewNote:
		seq = 0
	}
	return &seq
}

// Set sets a note, or replaces its text, and returns the note.
func (n *Notes) Set(ctx context.Context, e NoteEdit) (Note, error) {
	if _, err := n.do(ctx, &team.SetNote{Key: e.Key, Text: e.Text, IfSeq: e.ifSeq()}); err != nil {
		return Note{}, err
	}
	return n.Get(ctx, e.Key)
}

// Append adds a text to a note, on a line of its own, or makes the note, and returns it. It never
// conflicts with the changes of others.
func (n *Notes) Append(ctx context.Context, key, text string) (Note, error) {
	if _, err := n.do(ctx, &team.AppendNote{Key: key, Text: text}); err != nil {
		return Note{}, err
	}
	return n.Get(ctx, key)
}

// Delete deletes a note. Its versions stay in the history. It returns ErrNotFound if there is no
// such note.
func (n *Notes) Delete(ctx context.Context, e NoteEdit) error {
	_, err := n.do(ctx, &team.DeleteNote{Key: e.Key, IfSeq: e.ifSeq()})
	return err
}
