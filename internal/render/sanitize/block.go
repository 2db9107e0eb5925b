package sanitize

import (
	"strings"
	"unicode"
)

// Gutter is at the beginning of each line of a [Block], and of no other line.
const Gutter = "  │ "

// gutterColumns is the width of the gutter.
const gutterColumns = 4

// Block is a text of several lines. As an argument of [Writer.Printf] it keeps its lines, each with
// the [Gutter] before it, so that none passes for one of cadre's.
type Block string

// String returns the block with its gutter, without a line break at its end.
func (b Block) String() string { return b.wrapped(0) }

// wrapped returns the block for a terminal of so many columns. Its long lines are continued behind
// a gutter of their own: a terminal would continue them at its left edge, where a text that knows
// the width could begin a line of cadre's. 0 columns are for what is no terminal.
func (b Block) wrapped(columns int) string {
	var out strings.Builder
	for i, line := range strings.Split(strings.TrimRight(Lines(string(b)), "\n"), "\n") {
		if i > 0 {
			out.WriteByte('\n')
		}
		for j, piece := range pieces(line, columns-gutterColumns) {
			if j > 0 {
				out.WriteByte('\n')
			}
			out.WriteString(strings.TrimRight(Gutter+piece, " "))
		}
	}
	return out.String()
}

const (
	tabStop   = 8
	leastRoom = 8 // a terminal that is narrower is not wrapped for
)

// pieces divides a line into parts of so many columns at most, behind a space where there is one in
// the second half.
func pieces(line string, room int) []string {
	if room < leastRoom || len(line) <= room && !strings.Contains(line, "\t") {
		return []string{line}
	}
	var all []string
	piece := strings.Builder{}
	used, space, columns := 0, 0, 0 // space is behind the last one of the piece, where so many columns were used
	put := func(c cluster) {
		if used+c.columns > room {
			text := piece.String()
			if columns <= room/2 {
				space, columns = len(text), used
			}
			all = append(all, text[:space])
			piece.Reset()
			piece.WriteString(text[space:])
			used, space, columns = used-columns, 0, 0
		}
		piece.WriteString(c.text)
		if used += c.columns; c.text == " " {
			space, columns = piece.Len(), used
		}
	}
	for _, c := range clusters(line, room/2) {
		if c.text != "\t" {
			put(c)
			continue
		}
		for range tabStop - used%tabStop {
			put(cluster{" ", 1})
		}
	}
	return append(all, piece.String())
}

// cluster is characters that stay together: one, with those that change how it is shown.
type cluster struct {
	text    string
	columns int
}

// clusters divides a line. What is wider than that is divided too, and what cannot stand alone then
// is shown.
func clusters(line string, widest int) (all []cluster) {
	prev := rune(0)
	for _, r := range line {
		last := len(all) - 1
		joins := last >= 0 && (prev == joiner || r == joiner || r == nonJoiner || unicode.In(r, unicode.Mn, unicode.Me,
			unicode.Variation_Selector))
		if joins && all[last].columns+Columns(r) <= widest {
			all[last].text += string(r)
			all[last].columns += Columns(r)
			prev = r
			continue
		}
		text := string(r)
		if joins && r != '\t' {
			text = Line(text)
		}
		for _, r := range text {
			all = append(all, cluster{string(r), Columns(r)})
			prev = r
		}
	}
	return all
}

// wide are characters that terminals show on two columns, or may: a line that is thought too wide
// is wrapped early, and one that is thought too narrow is not.
var wide = &unicode.RangeTable{
	R16: []unicode.Range16{{Lo: 0x1100, Hi: 0x115f, Stride: 1}, {Lo: 0x231a, Hi: 0x23ff, Stride: 1},
		{Lo: 0x2600, Hi: 0x2712, Stride: 1}, {Lo: 0x2714, Hi: 0x2716, Stride: 1},
		{Lo: 0x2719, Hi: 0x27bf, Stride: 1}, {Lo: 0x2b00, Hi: 0x2bff, Stride: 1}, {Lo: 0x2e80, Hi: 0xa4cf, Stride: 1},
		{Lo: 0xac00, Hi: 0xd7a3, Stride: 1}, {Lo: 0xf900, Hi: 0xfaff, Stride: 1},
		{Lo: 0xfe30, Hi: 0xfe6f, Stride: 1}, {Lo: 0xff00, Hi: 0xff60, Stride: 1}, {Lo: 0xffe0, Hi: 0xffe6, Stride: 1}},
	R32: []unicode.Range32{{Lo: 0x1f000, Hi: 0x1faff, Stride: 1}, {Lo: 0x20000, Hi: 0x3fffd, Stride: 1}},
}

// Columns returns how many columns of a terminal a character takes, or may take: 0, 1 or 2.
func Columns(r rune) int {
	switch {
	case r < 0x300:
		return 1
	case r == emojiSelector: // shows the character before it on two
		return 1
	case unicode.In(r, unicode.Mn, unicode.Me):
		return 0
	case unicode.Is(wide, r):
		return 2
	}
	return 1
}
