package tools

import (
	"fmt"
	"slices"
	"strings"

	"cadre/internal/team"
)

// Notes are the tools of notes, for [Options.Without].
var Notes = []string{noteWrite, noteRead, noteList}

const (
	noteWrite = "NoteWrite"
	noteRead  = "NoteRead"
	noteList  = "NoteList"

	mostNotes   = 200 // notes that a list shows
	mostOfANote = 100 // characters of a note in a list
)

func (c *call) noteWrite(in *noteWriting) (string, error) {
	key, text := strings.TrimSpace(in.Key.value()), in.Text.value()
	switch {
	case in.Append.on && in.Delete.on:
		return "", mistake("Nothing was written: give either append or delete, not both.")
	case in.Append.on && in.IfSeq.n != nil:
		return "", mistake("Nothing was written: append never conflicts, so it takes no ifSeq.")
	case in.Delete.on && text != "":
		return "", mistake("Nothing was deleted: a note that is deleted gets no text.")
	case in.Append.on:
		return c.noteAppend(key, text)
	case in.Delete.on:
		if _, err := c.do(&team.DeleteNote{Key: key, IfSeq: in.IfSeq.n}); err != nil {
			return "", err
		}
		return fmt.Sprintf("Note %s was deleted.", noteKey(key)), nil
	}
	r, err := c.do(&team.SetNote{Key: key, Text: text, IfSeq: in.IfSeq.n})
	if err != nil {
		return "", err
	}
	if r == nil {
		return fmt.Sprintf("Note %s has this text already.", noteKey(key)), nil
	}
	return fmt.Sprintf("Note %s is at change %d now.", noteKey(key), team.NoteChanged(r)), nil
}

// noteAppend adds a text to a note, also one that the note ends with already.
func (c *call) noteAppend(key, text string) (string, error) {
	r, err := c.do(&team.AppendNote{Key: key, Text: text})
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("Added. Note %s is at change %d now.", noteKey(key), team.NoteChanged(r)), nil
}

func (c *call) noteRead(in *noteReading) (string, error) {
	var n team.Note
	var err error
	c.view(func(s *team.State) { n, err = s.NamedNote(strings.TrimSpace(in.Key.value())) })
	if err != nil {
		return "", err
	}
	return shownNote(n), nil
}

// shownNote returns all of a note.
func shownNote(n team.Note) string {
	by := "by " + author(n.UpdatedBy)
	if n.SetBy != n.UpdatedBy {
		by += ", set first by " + author(n.SetBy)
	}
	return fmt.Sprintf("Note %s (change %d, %s):\n%s", noteKey(n.Key), n.Seq, by, block(n.Text))
}

// author names who changed a note.
func author(name string) string {
	if name == team.User {
		return "the user"
	}
	return name
}

// noteKey returns the key of a note for use within our words.
func noteKey(key string) string { return team.Inline(line(key, team.MaxNoteKey)) }

func (c *call) noteList(in *noteListing) (string, error) {
	under := strings.TrimSpace(in.Under.value())
	var notes []team.Note
	c.view(func(s *team.State) { notes = s.Notes() })
	notes = slices.DeleteFunc(notes, func(n team.Note) bool { return !strings.HasPrefix(n.Key, under) })
	switch {
	case len(notes) == 0 && under != "":
		return "No such notes. NoteList without under shows all.", nil
	case len(notes) == 0:
		return "No notes yet. NoteWrite sets one.", nil
	}
	var lines []string
	for _, n := range notes[:min(len(notes), mostNotes)] {
		lines = append(lines, fmt.Sprintf("%s (change %d, %s, %s): %s", noteKey(n.Key), n.Seq, author(n.UpdatedBy),
			team.Count(len(n.Text), "byte"), team.Quoted(line(n.Text, mostOfANote))))
	}
	if more := len(notes) - mostNotes; more > 0 {
		lines = append(lines, fmt.Sprintf("and %d more; name the beginning of their keys with under.", more))
	}
	return strings.Join(lines, "\n"), nil
}

// conflicting shows the note that a refusal carries.
func conflicting(now *team.Note) string {
	return "\n" + shownNote(*now) + "\nTo write it all the same, take in what is new there, and give ifSeq " +
		fmt.Sprint(now.Seq) + "."
}

// noteNews says which notes others changed since the caller was told of changes with its mail.
func (c *call) noteNews() string {
	var news []string
	c.view(func(s *team.State) { news = s.NoteNews(c.me) })
	if len(news) == 0 {
		return ""
	}
	return "\nThe notes of the team have changed:\n- " + strings.Join(news, "\n- ")
}
