package tui

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"cadre/internal/render"
	"cadre/internal/render/sanitize"
)

// longestLine is the longest line that is read as Markdown, in bytes. A longer line is shown
// unchanged.
const longestLine = 4 << 10

// markdown lays out a text of an agent in width columns: headings, lists, emphasis, code, quotes
// and tables. It keeps the lines, the heading signs and the backquotes of code: agents write line
// by line, and colors may be off. It shows every word, because a person decides by what they see.
// The text must be sanitized.
func markdown(source string, width int) []string {
	m := &layouter{width: max(8, width)}
	if source != "" {
		m.rest = strings.Split(strings.TrimRight(strings.ReplaceAll(source, "\t", "    "), "\n"), "\n")
	}
	for len(m.rest) > 0 {
		l := m.rest[0]
		m.rest = m.rest[1:]
		m.line("", l)
	}
	return m.out
}

// plainText wraps a text without reading it as Markdown.
func plainText(source string, width int) (out []string) {
	for l := range strings.Lines(source) {
		out = append(out, wrap(strings.ReplaceAll(strings.TrimRight(l, "\n"), "\t", "    "), width)...)
	}
	return out
}

// layouter lays out one line after the other.
type layouter struct {
	width  int
	rest   []string // lines that are not laid out yet
	out    []string
	listed bool // within a list, where an indented line is not code
}

// line lays out the line that follows the quote prefix. It takes the lines that belong to it from
// rest.
func (m *layouter) line(quote, l string) {
	text := strings.TrimLeft(l, " ")
	indent := len(l) - len(text)
	switch {
	case len(l) > longestLine:
		m.add(quote, "", "", wrap(l, m.room(quote)))
		return
	case text == "":
		m.out = append(m.out, strings.TrimRight(quote, " "))
		return
	case text[0] == '>' && indent < 4 && len(quote) < 8*len(faint.on("> ")):
		m.line(quote+faint.on("> "), strings.TrimPrefix(text[1:], " "))
		return
	}
	if fence := fenceOf(text); fence != "" {
		m.fenced(quote, indent, fence, text)
		return
	}
	if sign := itemSign(text); sign != "" {
		m.listed = true
		body := strings.TrimLeft(text[len(sign):], " ")
		shown := sign + " "
		if !unicode.IsDigit(rune(sign[0])) {
			shown = "• "
		}
		m.hang(quote, indent, cell{shown, faint}, inline(body, plain))
		return
	}
	if indent == 0 {
		m.listed = false
	}
	switch {
	case indent >= 4 && !m.listed:
		m.code(quote, l)
	case headingLevel(text) > 0:
		n := headingLevel(text)
		m.hang(quote, 0, cell{text[:n] + " ", faint}, inline(strings.Trim(text[n:], " "), strong))
	case isRule(text):
		m.add(quote, "", "", []string{faint.on(strings.Repeat("─", min(24, m.room(quote))))})
	case strings.Contains(text, "|") && quote == "" && len(m.rest) > 0 && isTableRule(m.rest[0]):
		m.table(text)
	default:
		m.hang(quote, indent, cell{}, inline(text, plain))
	}
}

func (m *layouter) room(prefix string) int { return max(8, m.width-visible(prefix)) }

// add adds lines behind the prefixes.
func (m *layouter) add(quote, first, rest string, lines []string) {
	for _, l := range lines {
		m.out = append(m.out, strings.TrimRight(quote+first+l, " "))
		first = rest
	}
}

// hang adds a text with a hanging indent: later lines begin below the text of the first one.
func (m *layouter) hang(quote string, indent int, sign cell, text []cell) {
	indent = min(indent, m.width/3)
	first := strings.Repeat(" ", indent)
	rest := first + strings.Repeat(" ", render.Widest(sign.text))
	first += sign.look.on(sign.text)
	lines := flow(text, m.room(quote+rest))
	if len(lines) == 0 {
		lines = []string{""}
	}
	m.add(quote, first, rest, lines)
}

// code adds a line of code unchanged.
func (m *layouter) code(quote, l string) {
	const deeper = "    "
	l = strings.TrimPrefix(l, deeper)
	parts := wrap(l, m.room(quote+deeper))
	if len(parts) > 1 && (strings.HasPrefix(l, "git ") || strings.HasPrefix(l, "cadre ")) {
		parts = wrapCommand(l, m.room(quote+deeper))
	}
	for _, part := range parts {
		m.add(quote, deeper, deeper, []string{live.on(part)})
	}
}

// wrapCommand breaks a command into lines of width columns. A mark at a break between two words
// lets a shell take the lines as one command. A break inside a word has no mark.
func wrapCommand(l string, width int) (parts []string) {
	const continued = " \\"
	l = strings.TrimRight(l, " ")
	for render.Widest(l) > width {
		end := -1
		for _, at := range wordEnds(l) {
			if end >= 0 && render.Widest(l[:at]) > width-len(continued) {
				break
			}
			end = at
		}
		if end < 0 {
			break
		}
		parts = append(parts, wrap(l[:end], width-len(continued))...)
		parts[len(parts)-1] += continued
		l = strings.TrimLeft(l[end:], " ")
	}
	return append(parts, wrap(l, width)...)
}

// wordEnds returns where the words of a shell's command end, without the last word. It stops at a
// comment.
func wordEnds(l string) (ends []int) {
	var quote byte
	for i := 0; i < len(l); i++ {
		switch b := l[i]; {
		case b == '\\' && quote != '\'':
			i++
		case quote != 0:
			if b == quote {
				quote = 0
			}
		case b == '\'' || b == '"':
			quote = b
		case b == ' ' && i > 0 && l[i-1] != ' ':
			if strings.HasPrefix(strings.TrimLeft(l[i:], " "), "#") {
				return ends
			}
			ends = append(ends, i)
		}
	}
	return ends
}

// fenceOf returns the fence that opens a block of code: three or more backquotes or tildes.
func fenceOf(text string) string {
	for _, sign := range []string{"`", "~"} {
		rest := strings.TrimLeft(text, sign)
		if n := len(text) - len(rest); n >= 3 && !strings.Contains(rest, "`") {
			return text[:n]
		}
	}
	return ""
}

// fenced adds the lines up to the closing fence, below the info string of the fence.
func (m *layouter) fenced(quote string, indent int, fence, text string) {
	if info := strings.TrimSpace(text[len(fence):]); info != "" {
		m.hang(quote, indent, cell{}, []cell{{info, faint}})
	}
	for len(m.rest) > 0 {
		l := m.rest[0]
		m.rest = m.rest[1:]
		if quote != "" {
			l = strings.TrimPrefix(strings.TrimPrefix(strings.TrimLeft(l, " "), ">"), " ")
		}
		bare := strings.TrimSpace(l)
		if strings.HasPrefix(bare, fence) && strings.Trim(bare, fence[:1]) == "" {
			return
		}
		for range indent {
			l = strings.TrimPrefix(l, " ")
		}
		m.code(quote, "    "+l)
	}
}

// itemSign returns the marker of a list item: a bullet, or a number with its point.
func itemSign(text string) string {
	end := 1
	if !strings.ContainsRune("-*+", rune(text[0])) {
		end = len(text) - len(strings.TrimLeft(text, "0123456789"))
		if end == 0 || end > 9 || end == len(text) || text[end] != '.' && text[end] != ')' {
			return ""
		}
		end++
	}
	if isRule(text) || end < len(text) && text[end] != ' ' {
		return ""
	}
	return text[:end]
}

// headingLevel returns the level of a heading; 0 for another line.
func headingLevel(text string) int {
	n := len(text) - len(strings.TrimLeft(text, "#"))
	if n > 6 || n == len(text) || text[n] != ' ' {
		return 0
	}
	return n
}

// isRule reports whether the line is a horizontal rule: one sign, three or more times.
func isRule(text string) bool {
	bare := strings.ReplaceAll(text, " ", "")
	return len(bare) >= 3 && strings.ContainsRune("-*_", rune(bare[0])) && strings.Trim(bare, bare[:1]) == ""
}

// isTableRule reports whether the line is the delimiter row below a table's head.
func isTableRule(l string) bool {
	return strings.Contains(l, "-") && strings.Contains(l, "|") && strings.Trim(l, " |:-") == ""
}

// tableCells splits a line of a table into cells.
func tableCells(l string, look style) (cells [][]cell) {
	l = strings.TrimSuffix(strings.TrimPrefix(strings.TrimSpace(l), "|"), "|")
	for {
		end := 0
		for end < len(l) && (l[end] != '|' || end > 0 && l[end-1] == '\\') {
			end++
		}
		cells = append(cells, inline(strings.TrimSpace(strings.ReplaceAll(l[:end], `\|`, "|")), look))
		if end == len(l) {
			return cells
		}
		l = l[end+1:]
	}
}

// table lays a table out. A table that does not fit is written row by row, each cell behind its
// column's head.
func (m *layouter) table(head string) {
	rows := [][][]cell{tableCells(head, strong)}
	for m.rest = m.rest[1:]; len(m.rest) > 0 && strings.Contains(m.rest[0], "|"); m.rest = m.rest[1:] {
		rows = append(rows, tableCells(m.rest[0], plain))
	}
	var widths []int
	for _, row := range rows {
		for i, c := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], render.Widest(textOf(c)))
		}
	}
	sum := -gap
	for _, w := range widths {
		sum += w + gap
	}
	if sum > m.width {
		m.tallTable(rows)
		return
	}
	for r, row := range rows {
		var b strings.Builder
		for i, c := range row {
			b.WriteString(paintedPart(c, 0, len(textOf(c))))
			if i < len(row)-1 {
				b.WriteString(strings.Repeat(" ", widths[i]+gap-render.Widest(textOf(c))))
			}
		}
		if m.out = append(m.out, strings.TrimRight(b.String(), " ")); r == 0 {
			m.out = append(m.out, faint.on(strings.Repeat("─", sum)))
		}
	}
}

func (m *layouter) tallTable(rows [][][]cell) {
	head := rows[0]
	if len(rows) == 1 {
		for _, c := range head {
			m.add("", "", "", flow(c, m.width))
		}
	}
	for r, row := range rows[1:] {
		if r > 0 {
			m.out = append(m.out, "")
		}
		for i := range max(len(row), len(head)) {
			var cells []cell
			if i < len(head) {
				cells = append(slices.Clone(head[i]), cell{": ", faint})
			}
			if i < len(row) {
				cells = append(cells, row[i]...)
			}
			m.add("", "", "  ", flow(cells, m.width-2))
		}
	}
}

// inline parses the emphasis, code and links of a line.
func inline(text string, look style) []cell { return inlineAt(text, look, 0) }

func inlineAt(text string, look style, level int) (cells []cell) {
	const mostLevels = 6
	var word strings.Builder
	flush := func() {
		if word.Len() > 0 {
			cells = append(cells, cell{sanitize.Line(word.String()), look})
			word.Reset()
		}
	}
	before := ' '
	for i := 0; i < len(text); {
		rest := text[i:]
		r, size := utf8.DecodeRuneInString(rest)
		took := 0
		switch {
		case r == '\\' && len(rest) > 1 && isSign(rest[1]):
			word.WriteByte(rest[1])
			i, before = i+2, rune(rest[1])
			continue
		case r == '`':
			if code := codeSpan(rest); code != "" {
				flush()
				cells = append(cells, cell{sanitize.Line(code), style{color: live.color, bold: look.bold}})
				took = len(code)
			}
		case (r == '*' || r == '_') && level < mostLevels:
			if inner, strength, is := emphasis(rest, before); is {
				flush()
				within := look
				if strength == 2 {
					within.bold = true
				} else {
					within.italic = true
				}
				cells = append(cells, inlineAt(inner, within, level+1)...)
				took = len(inner) + 2*strength
			}
		case r == '[' && level < mostLevels:
			if label, target, is := link(rest); is {
				flush()
				cells = append(cells, inlineAt(label, look, level+1)...)
				if target != label {
					cells = append(cells, cell{" (" + sanitize.Line(target) + ")", faint})
				}
				took = len("[](") + len(label) + len(target) + len(")")
			}
		}
		if took > 0 {
			i += took
			before = 'x'
			continue
		}
		word.WriteString(rest[:size])
		i, before = i+size, r
	}
	flush()
	return cells
}

func isSign(b byte) bool {
	return b > ' ' && b < 0x7f && !unicode.IsLetter(rune(b)) && !unicode.IsDigit(rune(b))
}

// codeSpan returns the code span at the beginning of the text, in its backquotes; "" for none.
func codeSpan(text string) string {
	ticks := len(text) - len(strings.TrimLeft(text, "`"))
	for at := ticks; at < len(text); {
		i := strings.IndexByte(text[at:], '`')
		if i < 0 {
			return ""
		}
		at += i
		n := len(text[at:]) - len(strings.TrimLeft(text[at:], "`"))
		if at += n; n == ticks {
			return text[:at]
		}
	}
	return ""
}

// emphasis returns the emphasized text at the beginning of the text, and its strength: 1 or 2.
func emphasis(text string, before rune) (inner string, strength int, is bool) {
	sign := text[:1]
	strength = 1
	if strings.HasPrefix(text[1:], sign) {
		strength = 2
	}
	mark := strings.Repeat(sign, strength)
	body := text[strength:]
	if body == "" || body[0] == ' ' || body[0] == sign[0] || sign == "_" && wordRune(before) {
		return "", 0, false
	}
	for at := 0; ; {
		i := strings.Index(body[at:], mark)
		if i < 0 {
			return "", 0, false
		}
		at += i
		after, _ := utf8.DecodeRuneInString(body[at+strength:])
		double := strength == 1 && (strings.HasPrefix(body[at+1:], sign) || at > 0 && body[at-1] == sign[0])
		if at > 0 && body[at-1] != ' ' && body[at-1] != '\\' && !double && (sign == "*" || !wordRune(after)) {
			return body[:at], strength, true
		}
		at += strength
	}
}

func wordRune(r rune) bool { return r != utf8.RuneError && (unicode.IsLetter(r) || unicode.IsDigit(r)) }

// link returns the label and the target of the link at the beginning of the text.
func link(text string) (label, target string, is bool) {
	label, rest, is := strings.Cut(text[1:], "](")
	if !is || strings.ContainsAny(label, "[]") {
		return "", "", false
	}
	target, _, is = strings.Cut(rest, ")")
	return label, target, is
}

func textOf(cells []cell) string {
	var b strings.Builder
	for _, c := range cells {
		b.WriteString(c.text)
	}
	return b.String()
}

// flow breaks texts into lines of width columns.
func flow(cells []cell, width int) (out []string) {
	all := textOf(cells)
	if all == "" {
		return nil
	}
	at := 0 // the byte of all at which the line begins
	for _, part := range wrap(all, width) {
		at += strings.Index(all[at:], part)
		out = append(out, paintedPart(cells, at, at+len(part)))
		at += len(part)
	}
	return out
}

// paintedPart paints the bytes [from, to) of the joined texts.
func paintedPart(cells []cell, from, to int) string {
	var b strings.Builder
	begin := 0
	for _, c := range cells {
		end := begin + len(c.text)
		if lo, hi := max(from, begin), min(to, end); lo < hi {
			b.WriteString(c.look.on(c.text[lo-begin : hi-begin]))
		}
		begin = end
	}
	return b.String()
}

// laidOut caches Markdown that was laid out, so that a frame does not lay it out again.
type laidOut struct {
	text  string
	width int
	lines []string
}

// of returns the lines of the text.
func (l *laidOut) of(text string, width int) []string {
	if l.text != text || l.width != width || l.lines == nil {
		*l = laidOut{text, width, markdown(text, width)}
	}
	return l.lines
}
