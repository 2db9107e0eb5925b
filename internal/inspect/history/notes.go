package history

import (
	"cmp"
	"iter"

	"cadre/internal/team"
)

// NoteChange is one change of a note.
type NoteChange struct {
	Seq    int64     `json:"seq"`            // number of the change, among the changes of all notes of the team
	Record int64     `json:"record"`         // number of the record in the history
	By     string    `json:"by"`             // who changed it: a member, or @user
	At     team.Time `json:"at"`             // when it changed
	How    string    `json:"how"`            // set, appended, deleted, or restored with the team from a checkpoint
	Text   string    `json:"text,omitempty"` // the text that was set, appended or restored
	Bytes  int       `json:"bytes"`          // of the whole note after the change

	setBy string    // who set a restored note first
	setAt team.Time // and when
}

// How a note changed.
const (
	NoteSet      = "set"
	NoteAppended = "appended"
	NoteDeleted  = "deleted"
	NoteRestored = "restored"
)

// NoteChanges returns the changes of a note, the oldest first. Each record is read: the history is
// the only place with the older versions of notes.
func NoteChanges(source iter.Seq2[*team.Record, error], key string) (all []NoteChange, err error) {
	err = eachChange(source, key, func(c NoteChange, _ string) bool {
		all = append(all, c)
		return true
	})
	return all, err
}

// AllNoteChanges returns the changes of every note that the team ever had, by the keys.
func AllNoteChanges(source iter.Seq2[*team.Record, error]) (map[string][]NoteChange, error) {
	all, texts := map[string][]NoteChange{}, map[string]string{}
	for r, err := range source {
		if err != nil {
			return nil, err
		}
		for _, e := range r.Events {
			for _, key := range changedNotes(e) {
				c, text, _ := noteChange(e, key, texts[key])
				c.of(r, text)
				all[key], texts[key] = append(all[key], c), text
			}
		}
	}
	return all, nil
}

// of completes a change, which is of that record and leads to that text.
func (c *NoteChange) of(r *team.Record, text string) {
	if c.Record, c.Bytes = r.Seq, len(text); c.By == "" {
		c.By, c.At = r.Actor, r.At
	}
}

// changedNotes returns the keys of the notes that the event changes.
func changedNotes(e team.Event) (keys []string) {
	switch e := e.(type) {
	case *team.NoteSet:
		return []string{e.Key}
	case *team.NoteAppended:
		return []string{e.Key}
	case *team.NoteDeleted:
		return []string{e.Key}
	case *team.TeamRestored:
		for _, n := range e.Notes {
			keys = append(keys, n.Key)
		}
	}
	return keys
}

// NoteAt returns a note as it was after the change seq of it. It refuses a change that the note
// does not have, and its deletion.
func NoteAt(source iter.Seq2[*team.Record, error], key string, seq int64) (n team.Note, err error) {
	var last NoteChange
	err = eachChange(source, key, func(c NoteChange, text string) bool {
		switch last = c; {
		case c.How == NoteDeleted:
			n = team.Note{}
			return c.Seq != seq
		case n.Key == "":
			n = team.Note{Key: key, SetBy: cmp.Or(c.setBy, c.By), SetAt: cmp.Or(c.setAt, c.At)}
		}
		n.Text, n.UpdatedBy, n.UpdatedAt, n.Seq = text, c.By, c.At, c.Seq
		return c.Seq != seq
	})
	switch {
	case err != nil:
		return team.Note{}, err
	case last.Record == 0:
		return team.Note{}, team.Refuse(team.NotFound, "the team never had a note %q", key)
	case last.Seq != seq:
		return team.Note{}, team.Refuse(team.NotFound, "the note %q has no change %d", key, seq)
	case last.How == NoteDeleted:
		return team.Note{}, team.Refuse(team.NotFound, "change %d of the note %s is its deletion", seq, key)
	}
	return n, nil
}

// eachChange calls see with each change of the note, and with its text after that, until see
// returns false or the source has an error.
func eachChange(source iter.Seq2[*team.Record, error], key string, see func(c NoteChange, text string) bool) error {
	text := ""
	for r, err := range source {
		if err != nil {
			return err
		}
		for _, e := range r.Events {
			c, next, is := noteChange(e, key, text)
			if !is {
				continue
			}
			c.of(r, next)
			if text = next; !see(c, text) {
				return nil
			}
		}
	}
	return nil
}

// noteChange returns what the event changes of the note, whose text is before, and the text after
// it. is reports whether it changes the note.
func noteChange(e team.Event, key, before string) (c NoteChange, text string, is bool) {
	switch e := e.(type) {
	case *team.NoteSet:
		return NoteChange{Seq: e.Seq, How: NoteSet, Text: e.Text}, e.Text, e.Key == key
	case *team.NoteAppended:
		if e.Key == key { // else the texts are not put together
			return NoteChange{Seq: e.Seq, How: NoteAppended, Text: e.Text}, e.To(before), true
		}
	case *team.NoteDeleted:
		return NoteChange{Seq: e.Seq, How: NoteDeleted}, "", e.Key == key
	case *team.TeamRestored:
		for _, n := range e.Notes {
			if n.Key == key {
				return NoteChange{Seq: n.Seq, By: n.UpdatedBy, At: n.UpdatedAt, How: NoteRestored,
					Text: n.Text, setBy: n.SetBy, setAt: n.SetAt}, n.Text, true
			}
		}
	}
	return c, "", false
}
