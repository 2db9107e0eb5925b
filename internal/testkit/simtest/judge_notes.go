package simtest

import (
	"regexp"
	"slices"
	"strings"

	"cadre/internal/team"
)

// noteBook is what the judge knows of a note: the texts that it was set to and that were added to
// it since, and its last change. Each text of a history is written once.
type noteBook struct {
	texts []string
	seq   int64
}

// note checks a change of a note, and keeps it in the book.
func (j *judge) note(r *team.Record, e team.Event) {
	body := j.intentions[r.ID].Body // nil for a command of a session
	_, adds := body.(*team.AppendNote)
	switch e := e.(type) {
	case *team.NoteAppended:
		j.wrote[r.Actor+"/"+e.Key] = e.Seq
		b := j.notes[e.Key]
		if b == nil {
			b = &noteBook{}
			j.notes[e.Key] = b
		}
		if slices.Contains(b.texts, e.Text) {
			j.fail(noted, "%q was added to the note %s twice", e.Text, e.Key)
		}
		b.texts, b.seq = append(b.texts, e.Text), e.Seq
	case *team.NoteSet:
		j.wrote[r.Actor+"/"+e.Key] = e.Seq
		before := j.notes[e.Key]
		if before == nil {
			before = &noteBook{}
		}
		if set, is := body.(*team.SetNote); is && set.IfSeq != nil && *set.IfSeq != before.seq {
			j.fail(noted, "%s overwrote change %d of the note %s, and has seen change %d", r.Actor, before.seq, e.Key,
				*set.IfSeq)
		}
		if adds && len(before.texts) > 0 {
			j.fail(noted, "%q was to be added to the note %s, and replaced it", e.Text, e.Key)
		}
		j.notes[e.Key] = &noteBook{[]string{e.Text}, e.Seq}
	case *team.NoteDeleted:
		j.wrote[r.Actor+"/"+e.Key] = e.Seq
		delete(j.notes, e.Key)
	}
}

// noteTexts checks that the notes of the team are those of the book.
func (j *judge) noteTexts() {
	notes := j.truth.Notes()
	if len(notes) != len(j.notes) {
		j.fail(noted, "there are %d notes, and the history has %d", len(notes), len(j.notes))
	}
	for _, n := range notes {
		if b := j.notes[n.Key]; b == nil || n.Text != strings.Join(b.texts, "\n") || n.Seq != b.seq {
			j.fail(noted, "the note is %+v, and the history has %+v", n, b)
		}
	}
}

// lineOfNews is what news say of one note.
var lineOfNews = regexp.MustCompile(`(?m)^(The user|\S+) (?:wrote|deleted) the note (\S+)\.$`)

// noteNews checks what a message tells one of its recipients of notes: changes of others, each
// once.
func (j *judge) noteNews(m team.Message, n team.News) {
	for _, found := range lineOfNews.FindAllStringSubmatch(n.Text, -1) {
		by, key := found[1], found[2]
		if by == "The user" {
			by = team.User
		}
		change := j.wrote[by+"/"+key]
		told := n.Member + " of " + by + "/" + key
		switch {
		case by == n.Member:
			j.fail(noted, "#%d tells %s of its own change of the note %s", m.Seq, by, key)
		case change == 0 || change <= j.wrote[told]:
			j.fail(noted, "#%d tells %s of change %d of the note %s by %s, after change %d", m.Seq, n.Member, change,
				key,
				by, j.wrote[told])
		}
		j.wrote[told] = change
	}
}
