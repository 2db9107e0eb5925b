package lineedit

import (
	"bytes"
	"strings"
	"time"
	"unicode/utf8"

	"cadre/internal/sys/utf8text"
)

// Keys edits a line by the bytes that a terminal sends for keys. The zero Keys has an empty line.
type Keys struct {
	Line
	Most    int       // bytes of the longest line that Enter ends; 0 for no bound
	Drop    bool      // Enter drops a longer line; otherwise the line stays
	pending []byte    // of an incomplete sequence, character or paste
	since   time.Time // when the last bytes came
	pasting bool
	beyond  int // bytes that came after the line was as long as it may get
	refused int // length of the line that Enter last refused to end
}

// mostKept bounds the length of the line, in times of Most. What comes after that is only counted.
const mostKept = 4

// EscapeTime is how long the rest of an escape sequence may take. What began with Escape and takes
// longer was the key Escape, which does nothing.
const EscapeTime = 100 * time.Millisecond

// These enclose a paste, if the terminal was asked to mark pastes.
var (
	pasteBegins = []byte("\x1b[200~")
	pasteEnds   = []byte("\x1b[201~")
)

// Type handles bytes of the terminal, and returns the lines that Enter ended. A line of a paste
// that the terminal does not mark ends like one that was typed. Enter does not end a line that is
// too long: [Keys.TooLong] has its length.
func (k *Keys) Type(data []byte) (entered []string) {
	now := time.Now()
	if !k.pasting && bytes.HasPrefix(k.pending, []byte{'\x1b'}) && now.Sub(k.since) > EscapeTime {
		k.pending = nil
	}
	b := append(k.pending, data...)
	k.pending, k.since, k.refused = nil, now, 0
	for len(b) > 0 {
		n, end := k.next(b)
		if n == 0 { // incomplete
			k.pending = append([]byte(nil), b...)
			return entered
		}
		if k.Empty() {
			k.beyond = 0
		}
		b = b[n:]
		if !end {
			continue
		}
		line := k.String()
		if size := len(line) + k.beyond; k.Most > 0 && size > k.Most {
			k.refused = size
			if k.Drop {
				k.Set("")
				k.beyond = 0
			}
			continue
		}
		entered = append(entered, line)
		k.Set("")
	}
	return entered
}

// TooLong returns the length in bytes of the line that Enter did not end during the last Type,
// because it is longer than Most. It returns 0 if there was none.
func (k *Keys) TooLong() int { return k.refused }

// next handles one key, or a part of a paste. It returns how many bytes that was; 0 if it is
// incomplete.
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
		n = utf8text.Whole(b)
	}
	k.insert(string(b[:n]))
	return n, false
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
		at = utf8text.Whole(b[:at])
	}
	k.insert(string(b[:at]))
	return at
}

// insert inserts text, as far as the line can keep it. It counts the rest.
func (k *Keys) insert(text string) {
	room := mostKept*k.Most - k.size()
	if k.beyond > 0 {
		room = 0
	}
	if k.Most > 0 && len(text) > room {
		kept := strings.ToValidUTF8(text[:max(room, 0)], "")
		k.beyond += len(text) - len(kept)
		text = kept
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

// sequence handles an escape sequence: a key without a character, or one with Alt, which does
// nothing.
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
