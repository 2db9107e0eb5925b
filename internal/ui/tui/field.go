package tui

import (
	"strings"

	tea "charm.land/bubbletea/v2"

	"cadre/internal/render/sanitize"
)

// field is a line that a person types. A pasted line break stays in it, and is shown as ↵.
type field struct {
	text []rune
	at   int // where the cursor is
}

// set replaces the text, with the cursor at its end.
func (f *field) set(text string) {
	f.text = []rune(sanitize.Lines(text))
	f.at = len(f.text)
}

func (f *field) String() string { return string(f.text) }

func (f *field) empty() bool { return len(f.text) == 0 }

// pasted makes what terminals send for a line break in a paste a line break, and a tab a space.
var pasted = strings.NewReplacer("\r\n", "\n", "\r", "\n", "\t", " ")

// insert inserts text at the cursor.
func (f *field) insert(text string) {
	added := []rune(sanitize.Lines(pasted.Replace(text)))
	f.text = append(f.text[:f.at:f.at], append(added, f.text[f.at:]...)...)
	f.at += len(added)
}

// before returns the index at which the character before the cursor begins, with its combining
// marks.
func (f *field) before() int {
	at := f.at
	for at > 0 {
		at--
		if !joins(f.text[at]) && (at == 0 || f.text[at-1] != joiner) {
			break
		}
	}
	return at
}

// after returns the index behind the character at the cursor, with its combining marks.
func (f *field) after() int {
	at := min(f.at+1, len(f.text))
	for at < len(f.text) && (joins(f.text[at]) || f.text[at-1] == joiner) {
		at++
	}
	return at
}

// joiner joins the characters before and after it into one picture.
const joiner = '\u200d'

// joins reports whether the character is part of the one before it.
func joins(r rune) bool { return r == joiner || r != '\n' && sanitize.Columns(r) == 0 }

// press edits the text. It reports whether the key is an editing key.
func (f *field) press(msg tea.KeyPressMsg) bool {
	switch msg.String() {
	case "left":
		f.at = f.before()
	case "right":
		f.at = f.after()
	case "home", "ctrl+a":
		f.at = 0
	case "end", "ctrl+e":
		f.at = len(f.text)
	case "backspace", "ctrl+h":
		from := f.before()
		f.cut(from, f.at)
	case "delete", "ctrl+d":
		f.cut(f.at, f.after())
	case "ctrl+u":
		f.cut(0, f.at)
	case "ctrl+k":
		f.cut(f.at, len(f.text))
	case "ctrl+w":
		from := f.at
		for from > 0 && f.text[from-1] == ' ' {
			from--
		}
		for from > 0 && f.text[from-1] != ' ' {
			from--
		}
		f.cut(from, f.at)
	default:
		if msg.Text == "" || msg.Mod&^tea.ModShift != 0 {
			return false
		}
		f.insert(msg.Text)
	}
	return true
}

func (f *field) cut(from, to int) {
	f.text = append(f.text[:from:from], f.text[to:]...)
	f.at = from
}

// shown returns the part of the text around the cursor that fits in width columns, and the column
// of the cursor in that part.
func (f *field) shown(width int) (text string, cursor int) {
	from := f.at
	for from > 0 && cursor+columns(f.text[from-1]) < width { // the cursor needs a column behind the text
		from--
		cursor += columns(f.text[from])
	}
	for from < f.at && joins(f.text[from]) { // the base character is hidden, so its marks are, too
		from++
	}
	var b strings.Builder
	used := 0
	for _, r := range f.text[from:] {
		if used += columns(r); used > width {
			break
		}
		if r == '\n' {
			r = '↵'
		}
		b.WriteRune(r)
	}
	return b.String(), cursor
}

// columns returns the highest number of columns that a terminal gives to the character.
func columns(r rune) int {
	if r == '\n' {
		return 1
	}
	return sanitize.Columns(r)
}
