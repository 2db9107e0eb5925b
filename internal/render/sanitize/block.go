package sanitize

import (
	"strings"
	"unicode"
)

// Gutter begins each line of a [Block], and no other line.
const Gutter = "  │ "

// gutterColumns is the width of the gutter.
const gutterColumns = 4

// Block is a text of several lines. As an argument of [Writer.Printf] it keeps its lines, each
// behind the [Gutter], so that none passes for one of cadre's.
type Block string

// String returns the block with its gutter, without a line break at its end.
func (b Block) String() string { return b.wrapped(0) }

// wrapped returns the block for a terminal of that many columns. It breaks long lines and puts the
// gutter before each part. A terminal would continue them at its left edge, where a text that knows
// the width could imitate a line of cadre's. columns is 0 if there is no terminal.
func (b Block) wrapped(columns int) string {
	var out strings.Builder
	for i, line := range strings.Split(strings.TrimRight(Lines(string(b)), "\n"), "\n") {
		if i > 0 {
			out.WriteByte('\n')
		}
		room := columns - gutterColumns
		for j, piece := range pieces(line, room, room/2) {
			if j > 0 {
				out.WriteByte('\n')
			}
			out.WriteString(strings.TrimRight(Gutter+piece, " "))
		}
	}
	return out.String()
}

// Hanging is a text of one line, as an argument of [Writer.Printf]. On a terminal it is broken
// between words. The parts after the first are indented, so that none passes for a line of cadre's.
type Hanging struct {
	Text   string
	At     int // the column at which it begins
	Indent int // of the other parts, in columns
}

// String returns the text as one line.
func (h Hanging) String() string { return Line(h.Text) }

// Wrapped returns the text for a terminal of that many columns; 0 for no terminal.
func (h Hanging) Wrapped(columns int) string { return wrap(Line(h.Text), h.At, h.Indent, columns) }

// shallow is the indent of a text with a word that has no room behind its own indent.
const shallow = 4

// wrap breaks a line that begins in column at for a terminal of that many columns, and indents the
// parts after the first.
func wrap(text string, at, indent, columns int) string {
	if columns < leastRoom || at >= columns {
		return text
	}
	text = together(text)
	longest := 0
	for word := range strings.SplitSeq(text, " ") {
		if !strings.ContainsFunc(word, func(r rune) bool { return Columns(r) > 1 }) { // those break anywhere
			longest = max(longest, width(word))
		}
	}
	if longest > columns-indent {
		indent = min(indent, shallow)
	}
	room := columns - at
	first, _, _ := strings.Cut(text, " ")
	var parts []string
	if w := width(first); w > room && indent < at { // it has more room on a line of its own
		parts = []string{""}
	} else {
		all := pieces(text, room, room)
		parts, text = []string{strings.TrimRight(all[0], " ")}, strings.Join(all[1:], "")
	}
	if room = columns - indent; text != "" {
		for _, part := range pieces(text, room, room) {
			parts = append(parts, strings.Repeat(" ", indent)+strings.TrimRight(part, " "))
		}
	}
	return strings.ReplaceAll(strings.Join(parts, "\n"), held, " ")
}

// fold breaks the lines of a text that are too long for a terminal of that many columns. The parts
// after the first are indented further than any line of cadre, so that none passes for one. A line
// of its own with a command stays whole: a person who pastes half of it runs another command.
func fold(text string, columns int) string {
	if columns < leastRoom || len(text) <= columns {
		return text
	}
	var out strings.Builder
	for line := range strings.SplitAfterSeq(text, "\n") {
		content := strings.TrimLeft(strings.TrimSuffix(line, "\n"), " ")
		indent := len(strings.TrimSuffix(line, "\n")) - len(content)
		plain := strings.TrimLeft(line, " \x1b[0123456789m")
		if len(line) <= columns || strings.HasPrefix(plain, "cadre ") || strings.HasPrefix(line, Gutter) ||
			indent+width(content) <= columns {
			out.WriteString(line)
			continue
		}
		out.WriteString(strings.Repeat(" ", indent) + wrap(content, indent, indent+shallow, columns) +
			line[indent+len(content):])
	}
	return out.String()
}

// width returns the most columns that a terminal may give to the text; none for a [Sequence] in it.
func width(text string) (columns int) {
	for _, c := range clusters(text, len(text)) {
		columns += c.columns
	}
	return columns
}

// held stands for a space at which a line is not broken. A line has no such character of its own.
const held = "\x01"

// together holds the words of commands together: half a command, pasted, is another command.
func together(text string) string {
	var out strings.Builder
	for {
		at := strings.Index(text, "cadre ")
		if at < 0 {
			return out.String() + text
		}
		end := len(text)
		for _, stop := range []string{"; ", ". ", ", ", ")", ": "} {
			if i := strings.Index(text[at:], stop); i >= 0 {
				end = min(end, at+i)
			}
		}
		out.WriteString(text[:at] + strings.ReplaceAll(text[at:end], " ", held))
		text = text[end:]
	}
}

const (
	tabStop   = 8
	leastRoom = 8 // narrower terminals are not wrapped for
)

// pieces divides a line into parts of at most that many columns. It does so after a space, unless
// the word after it takes more columns than longest.
func pieces(line string, room, longest int) []string {
	if room < leastRoom || len(line) <= room && !strings.Contains(line, "\t") {
		return []string{line}
	}
	var all []string
	piece := strings.Builder{}
	used, space, columns := 0, 0, 0 // space is the position after the last space of the piece, at column columns
	put := func(c cluster) {
		if used+c.columns > room && c.text != " " { // a space at the end is left out
			text := piece.String()
			if columns == 0 || used-columns >= longest {
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

// cluster is a group of characters that stay together: one character, and those that change how it
// is shown.
type cluster struct {
	text    string
	columns int
}

// clusters divides a line into clusters. It also divides a cluster that is wider than widest, and
// shows characters that cannot stand alone then.
func clusters(line string, widest int) (all []cluster) {
	prev := rune(0)
	escape := false // within a sequence, which takes no column
	for _, r := range line {
		last := len(all) - 1
		if escape = escape || r == '\x1b'; escape {
			if escape = r != 'm'; last < 0 {
				all = append(all, cluster{})
				last = 0
			}
			all[last].text += string(r)
			continue
		}
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

// wide are characters that terminals show in two columns, or may.
var wide = &unicode.RangeTable{
	R16: []unicode.Range16{{Lo: 0x1100, Hi: 0x115f, Stride: 1}, {Lo: 0x231a, Hi: 0x23ff, Stride: 1},
		{Lo: 0x25fd, Hi: 0x25fe, Stride: 1},
		{Lo: 0x2600, Hi: 0x2712, Stride: 1}, {Lo: 0x2714, Hi: 0x2716, Stride: 1},
		{Lo: 0x2719, Hi: 0x27bf, Stride: 1}, {Lo: 0x2b00, Hi: 0x2bff, Stride: 1}, {Lo: 0x2e80, Hi: 0xa4cf, Stride: 1},
		{Lo: 0xa960, Hi: 0xa97c, Stride: 1}, {Lo: 0xac00, Hi: 0xd7a3, Stride: 1}, {Lo: 0xf900, Hi: 0xfaff, Stride: 1},
		{Lo: 0xfe10, Hi: 0xfe19, Stride: 1}, {Lo: 0xfe30, Hi: 0xfe6f, Stride: 1},
		{Lo: 0xff00, Hi: 0xff60, Stride: 1}, {Lo: 0xffe0, Hi: 0xffe6, Stride: 1}},
	R32: []unicode.Range32{{Lo: 0x16fe0, Hi: 0x18dff, Stride: 1}, {Lo: 0x1aff0, Hi: 0x1b2ff, Stride: 1},
		{Lo: 0x1d300, Hi: 0x1d376, Stride: 1}, {Lo: 0x1f000, Hi: 0x1faff, Stride: 1},
		{Lo: 0x20000, Hi: 0x3fffd, Stride: 1}},
}

// Columns returns the most columns that a terminal gives to a character: 0, 1 or 2. It is a bound,
// not the width that libraries compute for tables, because terminals disagree about pictures and
// joined characters. A line that seems too wide is wrapped early. A line that seemed too narrow
// would continue at the left edge.
func Columns(r rune) int {
	switch {
	case r < 0x300:
		return 1
	case r == emojiSelector: // it shows the character before it in two columns
		return 1
	case unicode.In(r, unicode.Mn, unicode.Me):
		return 0
	case unicode.Is(wide, r):
		return 2
	}
	return 1
}
