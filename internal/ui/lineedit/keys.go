package lineedit

import (
	"bytes"
	"strings"
	"unicode/utf8"
)

// Keys edits a line by the bytes that a terminal sends for keys. The zero Keys has an empty line.
type Keys struct {
	Line
	Most    int    // bytes of the longest line; the rest of a longer paste is dropped; 0 for no bound
	pending []byte // of an incomplete sequence, character or paste
	pasting bool
}

// These enclose a paste, if the terminal was asked to mark pastes.
var (
	pasteBegins = []byte("\x1b[200~")
	pasteEnds   = []byte("\x1b[201~")
)

// Type handles bytes of the terminal, and returns the lines that Enter ended. A line of a paste that the
// terminal does not mark ends like one that was typed.
func (k *Keys) Type(data []byte) (entered []string) {
	b := append(k.pending, data...)
	k.pending = nil
	for len(b) > 0 {
		n, end := k.next(b)
		if n == 0 { // incomplete
			k.pending = append([]byte(nil), b...)
			return entered
		}
		if end {
			entered = append(entered, k.String())
			k.Set("")
		}
		b = b[n:]
	}
	return entered
}

// next handles one key, or a part of a paste. It returns how many bytes that was; 0 if it is incomplete.
func (k *Keys) next(b []byte) (n int, end bool) {
	switch {
	case k.pasting:
		return k.paste(b), false
	case bytes.HasPrefix(b, pasteBegins):
		k.pasting = true
		return len(pasteBegins), false
	case b[0] == '\x1b':
		return k.sequence(b), false
	case b[0] == '\r' || b[0] == '\n':
		return 1, true
	case b[0] < ' ' || b[0] == '\x7f':
		k.control(b[0])
		return 1, false
	}
	for n < len(b) && b[n] >= ' ' && b[n] != '\x7f' {
		n++
	}
	if n == len(b) {
		n = wholeRunes(b)
	}
	k.insert(string(b[:n]))
	return n, false
}

// wholeRunes returns the length of b without an incomplete character at its end.
func wholeRunes(b []byte) int {
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

// paste inserts a part of a paste, up to its end. What may be the beginning of the end waits.
func (k *Keys) paste(b []byte) int {
	at := bytes.Index(b, pasteEnds)
	if at == 0 {
		k.pasting = false
		return len(pasteEnds)
	}
	if at < 0 {
		at = len(b)
		for i := range pasteEnds {
			if bytes.HasSuffix(b, pasteEnds[:i]) {
				at = len(b) - i
			}
		}
		if at > 0 && b[at-1] == '\r' { // a LF may follow, which belongs to it
			at--
		}
		at = wholeRunes(b[:at])
	}
	k.insert(string(b[:at]))
	return at
}

// insert inserts text, as far as the line may have it.
func (k *Keys) insert(text string) {
	if room := k.Most - len(k.String()); k.Most > 0 && len(text) > room {
		text = strings.ToValidUTF8(text[:max(room, 0)], "")
	}
	k.Insert(text)
}

// control handles a control character.
func (k *Keys) control(b byte) {
	switch b {
	case 'A' & 0x1f:
		k.Home()
	case 'B' & 0x1f:
		k.Left()
	case 'D' & 0x1f:
		k.Delete()
	case 'E' & 0x1f:
		k.End()
	case 'F' & 0x1f:
		k.Right()
	case 'H' & 0x1f, '\x7f':
		k.Backspace()
	case 'K' & 0x1f:
		k.CutAfter()
	case 'U' & 0x1f:
		k.CutBefore()
	case 'W' & 0x1f:
		k.CutWord()
	case '\t':
		k.insert(" ")
	}
}

// sequence handles an escape sequence: a key without a character, or one with Alt, which does nothing.
func (k *Keys) sequence(b []byte) int {
	if len(b) < 2 {
		return 0
	}
	if b[1] != '[' && b[1] != 'O' {
		if b[1] == '\x1b' { // Escape, and then another sequence
			return 1
		}
		if !utf8.FullRune(b[1:]) {
			return 0
		}
		_, n := utf8.DecodeRune(b[1:])
		return 1 + n
	}
	end := 2
	for end < len(b) && b[end] >= ' ' && b[end] < '@' { // parameters
		end++
	}
	if end == len(b) {
		return 0
	}
	switch string(b[2 : end+1]) {
	case "D":
		k.Left()
	case "C":
		k.Right()
	case "H", "1~", "7~":
		k.Home()
	case "F", "4~", "8~":
		k.End()
	case "3~":
		k.Delete()
	}
	return end + 1
}
