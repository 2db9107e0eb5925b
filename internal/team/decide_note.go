package team

import "strings"

// SetNote sets a note, or replaces its text. The user and every member of the team may.
type SetNote struct {
	Key, Text string
	// the number of the change that the sender has seen last: if the note changed since, the
	// command is refused with the present note. 0 is for a note that must not exist yet; nil
	// replaces any
	IfSeq *int64
}

// AppendNote adds a text to a note, on a line of its own, and makes the note if it does not
// exist. It never conflicts with the changes of others.
type AppendNote struct{ Key, Text string }

// DeleteNote deletes a note. Its versions stay in the history.
type DeleteNote struct {
	Key   string
	IfSeq *int64 // as in [SetNote]
}

func (b *SetNote) decide(d *decision) error {
	old, err := d.writesNote(b.Key, b.IfSeq)
	if err != nil {
		return err
	}
	text := strings.ToValidUTF8(b.Text, "\uFFFD") // as it is recorded, which may be longer
	if err := d.checkNote(b.Key, old.Text, text, text); err != nil {
		return err
	}
	if text != old.Text {
		d.emit(&NoteSet{Key: b.Key, Text: text, Seq: d.noteSeq + 1})
	}
	return nil
}

func (b *AppendNote) decide(d *decision) error {
	old, err := d.writesNote(b.Key, nil)
	if err != nil {
		return err
	}
	text := strings.ToValidUTF8(b.Text, "\uFFFD")
	if err := d.checkNote(b.Key, old.Text, text, appended(old.Text, text)); err != nil {
		return err
	}
	d.emit(&NoteAppended{Key: b.Key, Text: text, Seq: d.noteSeq + 1})
	return nil
}

func (b *DeleteNote) decide(d *decision) error {
	old, err := d.writesNote(b.Key, b.IfSeq)
	if err != nil {
		return err
	}
	if old.Key == "" {
		return d.noNote(b.Key)
	}
	d.emit(&NoteDeleted{Key: b.Key, Seq: d.noteSeq + 1})
	return nil
}

// writesNote checks who changes a note, and that the note is as the sender has seen it. It returns
// the note, or an empty one.
func (d *decision) writesNote(key string, ifSeq *int64) (Note, error) {
	if d.isHost() {
		return Note{}, refuse(Denied, "a host writes no notes of its own")
	}
	old, known := d.Note(key)
	switch {
	case ifSeq == nil || *ifSeq == old.Seq:
		return old, nil
	case *ifSeq < 0:
		return old, refuse(Invalid, "%d is not the number of a change of a note; 0 is for a note that does not exist "+
			"yet", *ifSeq)
	case !known:
		return old, Refuse(Conflict, "the note %s does not exist: it was deleted after change %d, or never set",
			brief(key), *ifSeq).With(d.team.hint(ActShowNotes))
	case *ifSeq == 0:
		return old, conflictingNote(old, "the note %s exists already, since change %d by %s", key, old.Seq,
			strings.TrimPrefix(old.UpdatedBy, "@"))
	}
	return old, conflictingNote(old, "the note %s was changed by %s: it is at change %d, and not at %d", key,
		strings.TrimPrefix(old.UpdatedBy, "@"), old.Seq, *ifSeq)
}

// conflictingNote refuses the change of a note, and carries the note as it is.
func conflictingNote(now Note, format string, args ...any) error {
	err := Refuse(Conflict, format, args...)
	err.Note = &now
	return err
}

// checkNote refuses a key that is not one, a text without words, and what is over a limit. written
// is the text of the command, and next what the note would be.
func (d *decision) checkNote(key, old, written, next string) error {
	remove := Hint{Action: ActDeleteNote, Team: d.team.Name, Note: key}
	_, known := d.Note(key)
	switch {
	case !ValidNoteKey(key):
		return refuse(Invalid, "%q cannot be the key of a note: a key has parts of letters, digits, _, - and ., with "+
			"/ between them, such as decisions/api, and at most %d bytes", brief(key), MaxNoteKey)
	case strings.TrimSpace(written) == "" && known:
		return Refuse(Invalid, "the text for the note %s is empty", key).With(remove)
	case strings.TrimSpace(written) == "":
		return refuse(Invalid, "the text for the note %s is empty; write what the others must know", key)
	case len(next) > MaxNote:
		return refuse(TooLarge, "the note %s would have %d bytes, of at most %d; shorten it, put a part into another "+
			"note, or put the text into a file and name it", key, len(next), MaxNote)
	case !known && len(d.notes) >= MaxNotes:
		return Refuse(TooLarge, "team %s has %d notes, and cannot have more; delete one, or add to an existing one",
			d.team.Name, len(d.notes)).With(d.team.hint(ActShowNotes))
	}
	_, all := d.NotesHeld()
	if all += len(next) - len(old); all > MaxNotesText && len(next) > len(old) {
		return Refuse(TooLarge, "the notes of team %s would have %d bytes together, of at most %d; shorten some, or "+
			"delete them", d.team.Name, all, MaxNotesText).With(d.team.hint(ActShowNotes))
	}
	return nil
}
