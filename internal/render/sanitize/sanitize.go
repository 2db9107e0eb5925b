// Package sanitize makes untrusted text harmless for the terminal, file or page that shows it.
//
// # Authority
//
// Only this package decides which characters reach a person. Everything that cadre prints passes a
// [Writer]. What it writes into files and messages for people passes [Line], [Lines] or [Strip].
//
// # What is shown
//
// Printable characters of every script stay as they are, and so do emoji with their joiners and
// variation selectors. Characters that control a terminal or hide something are shown instead of
// obeyed, so a text about escape sequences can still be read. [Line] and [Lines] remove complete
// SGR sequences, which hide nothing when they are gone:
//
//	SGR sequences, which color a text          nothing: many programs color all their output
//	ESC, BEL and the other C0 controls, DEL    ␛ ␇ ␡, the pictures that Unicode has for them
//	C1 controls, bidi controls, zero-width     <U+009B> <U+202E> <U+200B>
//	and tag characters, line separators,
//	private use, noncharacters
//	bytes that are not UTF-8                   U+FFFD
//	a line break where one line is expected    ↵
//
// # Guarantees
//
//   - Output contains only printable characters, line feeds, tabs and the constants of [Sequence],
//     for any input and any division of it into writes.
//   - Sanitizing is idempotent, and does not change harmless text.
//   - A line of a text cannot pass for a line of cadre's. An argument of [Writer.Printf] is one
//     line, or a [Block] whose lines all begin with the [Gutter].
//   - JSON has the same value after parsing.
package sanitize

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// Line returns s as one line, without colors: a line break is shown as ↵, a tab as a space.
func Line(s string) string {
	if plainLine(s) {
		return s
	}
	return whole(s, asLine)
}

// Lines returns s with its line breaks and tabs, without colors, and turns CRLF into LF.
func Lines(s string) string {
	if plain(s) == len(s) {
		return s
	}
	return whole(s, asText)
}

// plainLine reports whether Line leaves s as it is, without looking at the neighbours of any
// character.
func plainLine(s string) bool { return plain(s) == len(s) && !strings.ContainsAny(s, "\n\t") }

// JSON returns encoded JSON with harmful characters as \u escapes, so that its value stays the
// same.
func JSON(encoded []byte) []byte {
	c := cleaner{escape: asJSON}
	return c.all(encoded)
}

func whole(s string, escape escaper) string {
	c := cleaner{escape: escape}
	return string(c.all([]byte(strings.ReplaceAll(without(s, isSGR), "\r\n", "\n"))))
}

// escaper says how a cleaner shows harmful characters.
type escaper int

const (
	asText escaper = iota
	asLine         // line breaks and tabs are harmful too
	asJSON
)

// cleaner sanitizes a stream that comes in pieces. The zero value is for text.
type cleaner struct {
	escape escaper
	prev   rune   // the last one that was written; joiners depend on it
	cut    []byte // the bytes of an incomplete character
}

// clean returns the output for p, which is p itself if it is harmless. It does not change p.
func (c *cleaner) clean(p []byte) []byte {
	if len(c.cut) > 0 {
		p, c.cut = append(c.cut, p...), nil
	}
	var out []byte
	done := 0 // bytes of p that are in out
	for i := 0; i < len(p); {
		if n := c.plain(p[i:]); n > 0 {
			i += n
			c.prev = rune(p[i-1])
			continue
		}
		r, size := utf8.DecodeRune(p[i:])
		if r == utf8.RuneError && size == 1 && !utf8.FullRune(p[i:]) {
			c.cut = append([]byte(nil), p[i:]...)
			p = p[:i]
			break
		}
		if size > 1 && shown(c.prev, r) {
			i += size
			c.prev = r
			continue
		}
		out = c.put(append(out, p[done:i]...), r)
		i += size
		done = i
	}
	if done == 0 {
		return p
	}
	return append(out, p[done:]...)
}

// all cleans a text that comes in one piece.
func (c *cleaner) all(p []byte) []byte {
	out := c.clean(p)
	return append(out[:len(out):len(out)], c.end()...)
}

// end returns the output for an incomplete character at the end.
func (c *cleaner) end() []byte {
	var out []byte
	for range c.cut {
		out = c.put(out, utf8.RuneError)
	}
	c.cut = nil
	return out
}

// plain returns how many bytes at the beginning of p are harmless whatever their neighbours are.
func (c *cleaner) plain(p []byte) int {
	n := plain(p)
	if c.escape != asLine {
		return n
	}
	for i, b := range p[:n] {
		if b < ' ' {
			return i
		}
	}
	return n
}

// put appends the output for r.
func (c *cleaner) put(out []byte, r rune) []byte {
	before := len(out)
	switch {
	case r == utf8.RuneError:
		out = append(out, "\uFFFD"...)
	case c.escape == asLine && r == '\t', c.escape == asJSON && r == '\r': // JSON has it between values
		out = append(out, ' ')
	case c.escape == asJSON && r > 0xffff:
		high, low := utf16.EncodeRune(r)
		out = fmt.Appendf(out, `\u%04x\u%04x`, high, low)
	case c.escape == asJSON:
		out = fmt.Appendf(out, `\u%04x`, r)
	case c.escape == asLine && r == '\n':
		out = append(out, "↵"...)
	case r < ' ':
		out = utf8.AppendRune(out, '\u2400'+r)
	case r == 0x7f:
		out = append(out, "␡"...)
	default:
		out = fmt.Appendf(out, "<U+%04X>", r)
	}
	c.prev, _ = utf8.DecodeLastRune(out[before:])
	return out
}

// plain returns how many bytes at the beginning of s are printable ASCII, line feeds or tabs. It
// looks at many bytes at a time: nearly every text is plain, and lists are long.
func plain[T string | []byte](s T) int {
	i := 0
	for ; i+32 <= len(s); i += 32 {
		if p := s[i : i+32]; (suspect(p[:8])|suspect(p[8:16])|suspect(p[16:24])|suspect(p[24:]))&tops != 0 {
			if n := plainBytes(p); n < 32 {
				return i + n
			}
		}
	}
	return i + plainBytes(s[i:])
}

const ones, tops = 0x0101010101010101, 0x8080808080808080

// suspect looks at eight bytes at once. It sets the top bit of bytes that may not be printable
// ASCII. If some byte is not, it sets at least one.
func suspect[T string | []byte](p T) uint64 {
	_ = p[7]
	x := uint64(p[0]) | uint64(p[1])<<8 | uint64(p[2])<<16 | uint64(p[3])<<24 | uint64(p[4])<<32 | uint64(
		p[5])<<40 | uint64(p[6])<<48 | uint64(p[7])<<56
	// x-0x20 borrows where a byte is below 0x20, and may then borrow from the next byte; x+1
	// reaches 0x80 where a byte is 0x7f.
	return (x - 0x20*ones) | (x + ones) | x
}

func plainBytes[T string | []byte](s T) int {
	for i := range len(s) {
		if !plainByte(s[i]) {
			return i
		}
	}
	return len(s)
}

func plainByte(b byte) bool { return b >= ' ' && b <= '~' || b == '\n' || b == '\t' }

// invisible are characters that show nothing, or change how others are shown.
var invisible = []*unicode.RangeTable{unicode.Cc, unicode.Cf, unicode.Co, unicode.Cs, unicode.Zl, unicode.Zp,
	unicode.Other_Default_Ignorable_Code_Point, unicode.Noncharacter_Code_Point}

// joining are scripts whose spelling needs joiners.
var joining = []*unicode.RangeTable{unicode.Arabic, unicode.Syriac, unicode.Nko, unicode.Mongolian, unicode.Devanagari,
	unicode.Bengali, unicode.Gurmukhi, unicode.Gujarati,
	unicode.Oriya, unicode.Tamil, unicode.Telugu, unicode.Kannada, unicode.Malayalam, unicode.Sinhala, unicode.Khmer,
	unicode.Myanmar, unicode.Tibetan}

const (
	nonJoiner     = '\u200c'
	joiner        = '\u200d'
	emojiSelector = '\ufe0f'
)

// shown reports whether r, a character beyond ASCII that follows prev, is shown as it is.
func shown(prev, r rune) bool {
	switch {
	case r < 0xa0:
		return false
	case r < 0x300:
		return r != 0xad // soft hyphen
	case unicode.Is(unicode.Variation_Selector, r): // one per character: more of them hide a text
		return (prev > 0xa9 || strings.ContainsRune("0123456789#*©", prev)) && !unicode.Is(unicode.Variation_Selector,
			prev) && prev != joiner && prev != nonJoiner
	case r == joiner:
		return emoji(prev) || unicode.In(prev, joining...)
	case r == nonJoiner:
		return unicode.In(prev, joining...)
	case unicode.Is(unicode.Prepended_Concatenation_Mark, r): // signs of Arabic numbers, which are visible
		return true
	}
	return !unicode.In(r, invisible...)
}

// emoji reports whether r may end a picture that a joiner makes part of a larger one.
func emoji(r rune) bool {
	return r == emojiSelector || r >= 0x1f000 && r <= 0x1faff || unicode.Is(unicode.So, r)
}
