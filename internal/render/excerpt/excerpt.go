// Package excerpt shortens texts that are too long for where they are shown, recorded or told.
//
// # Authority
//
// How a text is cut, and nothing else: how long it may be, and whether it is harmless, is the
// caller's affair. [render.Cut] cuts for a terminal, whose columns are no characters.
//
// # Guarantees
//
//   - A result is valid UTF-8 where the text was, whatever character the cut falls into.
//   - A text that fits comes back as it is.
//   - What was cut ends with the mark that the caller chose, so that nobody takes it for the whole.
package excerpt

import (
	"strings"
	"unicode/utf8"
)

// Mark is what stands for the rest of a text.
const Mark = "…"

// Bytes is a text of at most n bytes, or its first n bytes and then the mark.
func Bytes(s string, n int, mark string) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + mark
}

// Characters is a text of at most n characters, the [Mark] of a longer one among them.
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

// Line is the text on one line, each of its spaces and line breaks one space, in at most n bytes
// and the [Mark].
func Line(s string, n int) string { return Bytes(strings.Join(strings.Fields(s), " "), n, Mark) }
