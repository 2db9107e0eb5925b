// Package utf8text finds the characters that a cut through UTF-8 text has split.
//
// # Authority
//
// The output of a program arrives in pieces, and is kept in part. Either may end in the middle of a
// character. This package says where the whole characters are. The caller decides what happens to
// the rest: it waits for more, or drops it.
package utf8text

import "unicode/utf8"

// Whole returns the length of b without an incomplete character at its end.
func Whole(b []byte) int {
	for i := len(b) - 1; i >= max(0, len(b)-utf8.UTFMax); i-- {
		if utf8.RuneStart(b[i]) {
			if !utf8.FullRune(b[i:]) {
				return i
			}
			break
		}
	}
	return len(b)
}

// First returns the index of the first character that begins in b. If none begins in its first
// bytes, b is not UTF-8, and First returns 0.
func First(b []byte) int {
	for i := range min(len(b), utf8.UTFMax) {
		if utf8.RuneStart(b[i]) {
			return i
		}
	}
	return 0
}
