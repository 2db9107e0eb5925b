package engine

import (
	"context"
	"errors"
	"io"
	"strings"
	"unicode/utf8"

	"cadre/internal/inspect/history"
	"cadre/internal/replica"
	"cadre/internal/sys/regularfile"
	"cadre/internal/team"
)

// LookAtNotes calls see with the outline of the team. It takes a fraction of the time of Look.
func (e *Engine) LookAtNotes(ctx context.Context, name string, see func(*team.Outline) error) error {
	t, n, err := e.openNotes(ctx, name)
	if err != nil {
		return err
	}
	if n == nil {
		defer t.Close()
		t.View(func(s *team.State) { err = see(s.Outline()) })
		return err
	}
	defer n.Close()
	return see(n.Outline())
}

// openNotes opens the notes of the team, or the whole team where its state is in memory anyway.
func (e *Engine) openNotes(ctx context.Context, name string) (*Team, *replica.Notes, error) {
	if e.Shared != nil || e.Memory != nil {
		t, err := e.Look(ctx, name)
		return t, nil, err
	}
	t, j, err := e.place(name)
	if err != nil {
		return nil, nil, err
	}
	n, err := replica.OpenNotes(ctx, e.timed(j), replica.Options{Log: e.Note, Stamp: e.Stamp})
	return t, n, err
}

// WriteNote sends a command about the note with that key to the team as the actor. It returns the
// note before and after it; a note that does not exist has no key. It takes a fraction of the time
// of Act.
func (e *Engine) WriteNote(ctx context.Context, name, actor, key string, body team.Body) (before, after team.Note,
	err error) {
	ctx, cancel := busy(ctx, name)
	defer cancel()
	t, n, err := e.openNotes(ctx, name)
	if err != nil {
		return before, after, err
	}
	if n == nil || n.Overdue() {
		if n == nil {
			err = t.Close()
		} else {
			err = n.Close()
		}
		if err != nil {
			return before, after, err
		}
		return e.writeNoteOf(ctx, name, actor, key, body)
	}
	defer n.Close()
	of := n.Outline().Team()
	if err := of.CheckOurs(); err != nil {
		return before, after, err
	}
	e.tellElsewhere(of)
	if err := t.current(); err != nil {
		return before, after, err
	}
	before, _ = n.Outline().Note(key)
	r, err := n.Do(ctx, team.Command{Actor: actor, Body: body})
	if err != nil {
		return before, after, err
	}
	after, _ = n.Outline().Note(key)
	if r != nil && n.SnapshotDue() {
		e.tidy(ctx, name)
	}
	return before, after, nil
}

// writeNoteOf is WriteNote with the whole state of the team.
func (e *Engine) writeNoteOf(ctx context.Context, name, actor, key string, body team.Body) (before, after team.Note,
	err error) {
	make := func(s *team.State) (team.Body, error) {
		before, _ = s.Note(key)
		return body, nil
	}
	err = e.ActOn(ctx, name, actor, make, func(t *Team, r *team.Record) (err error) {
		if _, deletes := body.(*team.DeleteNote); !deletes {
			after, err = t.NoteAfter(ctx, key, r)
		}
		return err
	})
	return before, after, err
}

// tidy saves the snapshot that is due, and updates the projections. The command before it has
// happened whatever becomes of it.
func (e *Engine) tidy(ctx context.Context, name string) {
	t, err := e.openAny(ctx, name)
	if err != nil {
		e.Note(err.Error())
		return
	}
	t.SaveSnapshot(ctx)
	if err := t.Close(); err != nil {
		e.Note(err.Error())
	}
}

// NoteAfter returns a note as it was after the change that the record has, and the present note for
// a record without one, or none. Others may have changed or deleted it since.
func (t *Team) NoteAfter(ctx context.Context, key string, r *team.Record) (n team.Note, err error) {
	seq := int64(0)
	if r != nil {
		seq = team.NoteChanged(r)
	}
	t.View(func(s *team.State) { n, err = s.NamedNote(key) })
	if seq == 0 || err == nil && n.Seq == seq {
		return n, err
	}
	return t.NoteAt(ctx, key, seq)
}

// NoteAt returns a note of the team as it was after the change seq of it. It refuses a change that
// the note does not have.
func (t *Team) NoteAt(ctx context.Context, key string, seq int64) (team.Note, error) {
	return history.NoteAt(t.Read(ctx, 0), key, seq)
}

// NoteChanges returns the changes of a note of the team, the oldest first. It refuses a key that no
// note ever had.
func (t *Team) NoteChanges(ctx context.Context, key string) (all []history.NoteChange, err error) {
	if all, err = history.NoteChanges(t.Read(ctx, 0), key); err == nil && all == nil {
		t.View(func(s *team.State) { _, err = s.NamedNote(key) })
	}
	return all, err
}

// NoteText returns the text for a note from a file without the line break at its end, or from in
// where the path is -.
func NoteText(path string, in io.Reader) (string, error) {
	const most = team.MaxNote + 1 // with that line break
	var data []byte
	var err error
	if path == "-" {
		data, err = io.ReadAll(io.LimitReader(in, most+1))
	} else {
		data, err = regularfile.Read(path, most)
	}
	if _, large := errors.AsType[*regularfile.TooLargeError](err); large || len(data) > most {
		return "", team.Refuse(team.TooLarge, "the text has more than the %d bytes of a note; shorten it, or put it into "+
			"a file and name the file in a note", team.MaxNote)
	}
	if err == nil && !utf8.Valid(data) {
		return "", team.Refuse(team.Invalid, "the text of a note has to be UTF-8, and that of %s is not",
			map[bool]string{true: "standard input", false: path}[path == "-"])
	}
	return strings.TrimSuffix(string(data), "\n"), err
}
