package search

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"cadre/internal/team"
)

// Part is a part of an excerpt, on one line.
type Part struct {
	Text  string `json:"text"`
	Found bool   `json:"found,omitempty"` // it is a word that was searched for
}

// How many bytes of a text an excerpt has before and after the first word that was found.
const (
	shownBefore = 60
	shownAfter  = 120
)

// Excerpt returns the part of the text around the first word that was found, on one line.
func (m *Match) Excerpt() (parts []Part) {
	from, to := m.Around(shownBefore, shownAfter)
	add := func(text string, found bool) {
		if text != "" {
			parts = append(parts, Part{text, found})
		}
	}
	if from > 0 {
		add("… ", false)
	}
	at := from
	for _, span := range m.Spans {
		if span.From >= at && span.To <= to {
			add(flat(m.Text[at:span.From]), false)
			add(flat(m.Text[span.From:span.To]), true)
			at = span.To
		}
	}
	rest := flat(m.Text[at:to])
	if to == len(m.Text) {
		rest = strings.TrimRight(rest, " ")
	}
	add(rest, false)
	if to < len(m.Text) {
		add(" …", false)
	}
	return parts
}

// flat returns a part of a text on one line, and keeps a space at its ends.
func flat(text string) string {
	text = strings.Join(strings.Fields("|"+text+"|"), " ")
	return text[1 : len(text)-1]
}

// Around returns the part of the text around the first word that was found: from so many bytes
// before it to so many after it, in whole characters.
func (m *Match) Around(before, after int) (from, to int) {
	if len(m.Spans) == 0 {
		return 0, len(m.Text)
	}
	from, to = max(0, m.Spans[0].From-before), min(len(m.Text), m.Spans[0].To+after)
	for from > 0 && !utf8.RuneStart(m.Text[from]) {
		from--
	}
	for to < len(m.Text) && !utf8.RuneStart(m.Text[to]) {
		to++
	}
	return from, to
}

// Title says what the text is, and whose. task is what to call its task.
func (m *Match) Title(task string) string {
	by := " by " + who(m.By)
	switch {
	case m.Kind == Message && task != "":
		return "message of " + who(m.By) + " to " + m.recipients() + ", task " + task
	case m.Kind == Message:
		return "message of " + who(m.By) + " to " + m.recipients()
	case m.Kind == Note:
		return fmt.Sprintf("note %s, change %d,%s", team.Inline(m.Note), m.Seq, by)
	case m.Failed:
		return "failure of task " + task + by
	case m.Kind == Result:
		return "result of task " + task + by
	case m.Kind == Task:
		return "task " + task + by
	}
	return string(m.Kind) + by
}

// mostRecipients bounds how many recipients a title names.
const mostRecipients = 5

// recipients names the recipients of a message, or the first of them.
func (m *Match) recipients() string {
	var all []string
	for _, name := range m.To[:min(len(m.To), mostRecipients)] {
		all = append(all, who(name))
	}
	if more := len(m.To) - mostRecipients; more > 0 {
		all = append(all, fmt.Sprintf("%d more", more))
	}
	return strings.Join(all, ", ")
}

func who(name string) string {
	if name == team.User {
		return "the user"
	}
	return name
}
