// Package lineedit edits a line that a person types at a terminal.
//
// # Authority
//
// The package knows keys, pastes and what is shown of a line. It touches no terminal: its caller
// reads the keys, draws the line, and decides what the line means.
//
// # Guarantees
//
//   - The text never has a character that controls a terminal, whatever was typed or pasted.
//   - A paste that the terminal marks is one text, with its line breaks: CR and CRLF become LF. It
//     never ends the line.
//   - The key Escape swallows no later key.
package lineedit

import (
	"slices"
	"strings"
	"unicode/utf8"

	"cadre/internal/render/sanitize"
)

// Line is a line that a person types. A pasted line break stays in it, and is shown as ↵. The zero
// Line is empty.
type Line struct {
	text []rune
	at   int // where the cursor is
}

// Set replaces the text, with the cursor at its end.
func (l *Line) Set(text string) {
	l.text = []rune(sanitize.Lines(text))
	l.at = len(l.text)
}

func (l *Line) String() string { return string(l.text) }

// size returns the length of the text in bytes.
func (l *Line) size() (bytes int) {
	for _, r := range l.text {
		bytes += max(utf8.RuneLen(r), 1)
	}
	return bytes
}

// Empty reports whether there is no text.
func (l *Line) Empty() bool { return len(l.text) == 0 }

// Before returns the text before the cursor.
func (l *Line) Before() string { return string(l.text[:l.at]) }

// pasted makes what terminals send for a line break in a paste a line break, and a tab a space.
var pasted = strings.NewReplacer("\r\n", "\n", "\r", "\n", "\t", " ")

// Insert inserts text at the cursor.
func (l *Line) Insert(text string) {
	added := []rune(sanitize.Lines(pasted.Replace(text)))
	l.text = slices.Insert(l.text, l.at, added...)
	l.at += len(added)
}

// Left moves the cursor before the character before it, with its combining marks.
func (l *Line) Left() { l.at = l.before() }

// Right moves the cursor behind the character at it, with its combining marks.
func (l *Line) Right() { l.at = l.after() }

// Home moves the cursor to the beginning.
func (l *Line) Home() { l.at = 0 }

// End moves the cursor to the end.
func (l *Line) End() { l.at = len(l.text) }

// Backspace removes the character before the cursor.
func (l *Line) Backspace() { l.Cut(l.before(), l.at) }

// Delete removes the character at the cursor.
func (l *Line) Delete() { l.Cut(l.at, l.after()) }

// CutBefore removes everything before the cursor.
func (l *Line) CutBefore() { l.Cut(0, l.at) }

// CutAfter removes everything behind the cursor.
func (l *Line) CutAfter() { l.Cut(l.at, len(l.text)) }

// CutWord removes the word before the cursor.
func (l *Line) CutWord() {
	from := l.at
	for from > 0 && l.text[from-1] == ' ' {
		from--
	}
	for from > 0 && l.text[from-1] != ' ' {
		from--
	}
	l.Cut(from, l.at)
}

// Cut removes the characters with these indices, and leaves the cursor there.
func (l *Line) Cut(from, to int) {
	l.text = append(l.text[:from:from], l.text[to:]...)
	l.at = from
}

// before returns the index at which the character before the cursor begins.
func (l *Line) before() int {
	at := l.at
	for at > 0 {
		at--
		if !joins(l.text[at]) && (at == 0 || l.text[at-1] != joiner) {
			break
		}
	}
	return at
}

// after returns the index behind the character at the cursor.
func (l *Line) after() int {
	at := min(l.at+1, len(l.text))
	for at < len(l.text) && (joins(l.text[at]) || l.text[at-1] == joiner) {
		at++
	}
	return at
}

// joiner joins the characters before and after it into one picture.
const joiner = '\u200d'

// joins reports whether the character is part of the one before it.
func joins(r rune) bool { return r == joiner || r != '\n' && sanitize.Columns(r) == 0 }

// Shown returns the part of the text around the cursor that fits in width columns: what is before
// the cursor, in that many columns, and what is behind it.
func (l *Line) Shown(width int) (before string, columns int, after string) {
	from := l.at
	for from > 0 && columns+columnsOf(l.text[from-1]) < width { // the cursor needs a column behind the text
		from--
		columns += columnsOf(l.text[from])
	}
	for from < l.at && joins(l.text[from]) { // the base character is hidden, so its marks are, too
		from++
	}
	to := l.at
	for used := columns; to < len(l.text); to++ {
		if used += columnsOf(l.text[to]); used > width {
			break
		}
	}
	return visible(l.text[from:l.at]), columns, visible(l.text[l.at:to])
}

func visible(text []rune) string { return strings.ReplaceAll(string(text), "\n", "↵") }

// columnsOf returns the highest number of columns that a terminal gives to the character.
func columnsOf(r rune) int {
	if r == '\n' {
		return 1
	}
	return sanitize.Columns(r)
}
