// Package excerpt shortens texts that are too long for a place where they are shown, recorded or
// sent.
//
// # Authority
//
// The package decides only how a text is cut. The caller decides how long it may be and whether it
// is harmless. [render.Cut] cuts for a terminal, whose columns are not characters.
//
// # Guarantees
//
//   - A result of valid UTF-8 is valid UTF-8, even if the cut falls within a character.
//   - A text that fits is returned unchanged.
//   - A shortened text ends with the caller's mark, so that readers see that it is shortened.
package excerpt

import (
	"strings"
	"unicode/utf8"
)

// Mark stands for the rest of a text.
const Mark = "…"

// Bytes returns a text of at most n bytes as it is, and of a longer one the first n bytes with the
// mark behind them.
func Bytes(s string, n int, mark string) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + mark
}

// Characters returns a text of at most n characters. A longer text ends with [Mark], which counts
// as one of them.
func Characters(s string, n int) string {
	if len(s) <= n || utf8.RuneCountInString(s) <= n {
		return s
	}
	count := 0
	for at := range s {
		if count++; count == n {
			return s[:at] + Mark
		}
	}
	return s
}

// Line returns the text on one line of at most n bytes and the [Mark]. Each run of spaces and line
// breaks becomes one space.
func Line(s string, n int) string { return Bytes(strings.Join(strings.Fields(s), " "), n, Mark) }

// FirstLine returns the first line of a text that is not empty, without the white space around it.
func FirstLine(s string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(s), "\n")
	return line
}

// LastLines returns the last n lines of s that are not empty at its end, and how many lines it left
// out before them.
func LastLines(s string, n int) (last string, left int) {
	lines := strings.Split(strings.TrimRight(s, "\n"), "\n")
	left = max(0, len(lines)-n)
	return strings.Join(lines[left:], "\n"), left
}
