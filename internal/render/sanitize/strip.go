package sanitize

import "strings"

// introducers are the characters that begin a terminal sequence: ESC, and the C1 controls DCS, SOS,
// CSI, OSC, PM and APC.
const introducers = "\x1b\u0090\u0098\u009b\u009d\u009e\u009f"

// Strip returns the text of what a program wrote for a terminal. It removes the sequences that
// color it, move the cursor or set a title, and otherwise does the same as [Lines]. A sequence that
// does not end on its line is shown, so that it hides nothing.
func Strip(s string) string {
	if plain(s) == len(s) {
		return s
	}
	return Lines(without(s, isAny))
}

// DropEscapes returns the text without terminal sequences, and without any other character that
// could begin one. One pass is enough: what remains has no sequence, even if some were nested. If
// something is dropped, invalid UTF-8 becomes U+FFFD, because two halves of a character could meet
// there.
func DropEscapes(s string) string {
	// a C1 control is two bytes, and this is the first
	if strings.IndexByte(s, '\x1b') < 0 && strings.IndexByte(s, 0xc2) < 0 || !strings.ContainsAny(s, introducers) {
		return s
	}
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune(introducers, r) {
			return -1
		}
		return r
	}, without(strings.ToValidUTF8(s, "\uFFFD"), isAny))
}

func isAny(string) bool { return true }

// isSGR reports whether a terminal sequence sets colors and other looks of the text after it, and
// does nothing else.
func isSGR(sequence string) bool {
	parameters, is := strings.CutPrefix(sequence, "\x1b[")
	if !is {
		parameters, is = strings.CutPrefix(sequence, "\u009b")
	}
	parameters, ends := strings.CutSuffix(parameters, "m")
	return is && ends && strings.Trim(parameters, "0123456789;:") == ""
}

// without removes the complete terminal sequences of that kind from the text.
func without(s string, kind func(sequence string) bool) string {
	if !strings.ContainsAny(s, introducers) {
		return s
	}
	var out strings.Builder
	for s != "" {
		at := strings.IndexAny(s, introducers)
		if at < 0 {
			break
		}
		n := sequence(s[at:])
		out.WriteString(s[:at])
		if n == 0 || !kind(s[at:at+n]) { // it stays: its first character is shown
			n = len(firstRune(s[at:]))
			out.WriteString(s[at : at+n])
		}
		s = s[at+n:]
	}
	out.WriteString(s)
	return out.String()
}

func firstRune(s string) string {
	for i := range s {
		if i > 0 {
			return s[:i]
		}
	}
	return s
}

// sequence returns the length of the terminal sequence at the start of s; 0 if it does not end on
// its line.
func sequence(s string) int {
	intro := len(firstRune(s))
	kind := s[0]
	if kind == '\x1b' {
		if len(s) == 1 {
			return 0
		}
		kind, intro = s[1], 2
	} else { // C1: equal to ESC and the character 0x40 lower
		kind = s[1] - 0x40
	}
	switch rest := s[intro:]; {
	case kind == '[': // CSI: parameters, intermediate bytes, a final byte
		for i := range len(rest) {
			switch b := rest[i]; {
			case b >= '@' && b <= '~':
				return intro + i + 1
			case b < ' ' || b > '?':
				return 0
			}
		}
		return 0
	case strings.IndexByte("]PX^_", kind) >= 0: // OSC, DCS, SOS, PM, APC: a string up to ST, or BEL
		for i, r := range rest {
			switch {
			case r == '\a' || r == '\u009c':
				return intro + i + len(string(r))
			case strings.HasPrefix(rest[i:], "\x1b\\"):
				return intro + i + 2
			case r == '\n' || r == '\x1b' || r >= 0x80 && r < 0xa0:
				return 0
			}
		}
		return 0
	case kind >= ' ' && kind <= '/': // intermediate bytes and a final byte, for example of a character set
		for i := range len(rest) {
			switch b := rest[i]; {
			case b >= '0' && b <= '~':
				return intro + i + 1
			case b < ' ' || b > '/':
				return 0
			}
		}
		return 0
	case kind >= '0' && kind <= '~':
		return intro
	}
	return 0
}
