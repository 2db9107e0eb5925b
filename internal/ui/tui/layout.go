package tui

import (
	"slices"
	"strings"
	"unicode/utf8"

	"cadre/internal/render"
	"cadre/internal/render/sanitize"
)

// cell is a text in a row of a table.
type cell struct {
	text string
	look style
}

// column describes how the cells of a column are laid out.
type column struct {
	head  string
	right bool // align to the right, as numbers are
	most  int  // maximum width while the flex column needs the room; 0 for any width
	flex  bool // it gets the width that the others leave; one column of a table is flex
	tail  bool // cut a long cell in the middle, because names often differ at the end
	spare int  // a narrow table drops the columns with the highest number first; 0 for never
}

// gap is the number of blank columns between two columns of a table.
const gap = 2

// table is a list with one selected row.
type table struct {
	columns []column
	rows    [][]cell
	// a long table has made instead of rows, which makes the row i of count rows in the space of
	// the one before
	made  func(i int, space []cell) []cell
	count int
	// selected is the index of the selected row; -1 for none.
	selected int
	headless bool

	// needed and flex are what needs returned for that many rows; see needs.
	needed          []int
	flex, neededFor int

	// first and end are the rows that lines has shown, from first up to end. top is the line of the
	// first one.
	first, end, top int

	space []cell // of the last row that made has made
}

// length returns the number of rows.
func (t *table) length() int {
	if t.made != nil {
		return t.count
	}
	return len(t.rows)
}

// at returns a row, until the next call.
func (t *table) at(i int) []cell {
	if t.made != nil {
		t.space = t.made(i, t.space[:0])
		return t.space
	}
	return t.rows[i]
}

// mark stands before the selected row.
const mark = "▸ "

// lines lays the table out: a head and as many rows as fit, around the selected one.
func (t *table) lines(width, height int) []string {
	if height <= 0 {
		return nil
	}
	widths := t.widths(width - len("  "))
	var out []string
	if !t.headless && height > 1 {
		head := make([]cell, len(t.columns))
		for i, c := range t.columns {
			head[i] = cell{c.head, faint}
		}
		out = append(out, "  "+t.row(head, widths, false))
		height--
	}
	t.first, t.end = window(t.length(), t.selected, height)
	t.top = len(out)
	for i := t.first; i < t.end; i++ {
		prefix := "  "
		if i == t.selected {
			prefix = strong.on(mark)
		}
		out = append(out, prefix+t.row(t.at(i), widths, i == t.selected))
	}
	return out
}

// listed is lines with a last line that says how many rows are hidden, if there are any and there
// is room to say it.
func (t *table) listed(width, height int) []string {
	head := 1
	if t.headless {
		head = 0
	}
	const least = 4 // rows that can spare one
	if t.length()+head <= height || height-head < least {
		return t.lines(width, height)
	}
	return append(t.lines(width, height-1), hiddenRows(t.first, t.length()-t.end))
}

// window returns which of n rows are shown in height lines, so that the selected row is among them.
func window(n, selected, height int) (from, to int) {
	if n <= height {
		return 0, n
	}
	from = min(max(0, selected-height/2), n-height)
	return from, from + height
}

// widths returns the width of each column; 0 for a column that is left out.
func (t *table) widths(room int) []int {
	needs, flex := t.needs()
	widths := slices.Clone(needs)
	for i, c := range t.columns {
		if c.most > 0 {
			widths[i] = min(widths[i], c.most)
		}
	}
	for {
		rest, worst := room, -1
		for i, w := range widths {
			if w > 0 && i != flex {
				rest -= w + gap
			}
			if w > 0 && t.columns[i].spare > 0 && (worst < 0 || t.columns[i].spare > t.columns[worst].spare) {
				worst = i
			}
		}
		if flex < 0 && rest >= -gap || flex >= 0 && rest >= min(max(widths[flex], 1), max(12, room*3/10)) || worst < 0 {
			if flex >= 0 {
				least := min(max(widths[flex], 1), max(12, room*3/10))
				rest += t.shrink(widths, least-rest)
				widths[flex] = max(1, rest)
				t.widen(widths, needs, flex, room)
				rest -= max(1, rest) + gap
			}
			t.shrink(widths, -gap-rest)
			return widths
		}
		if widths[worst] = 0; worst != flex {
			continue
		}
		if flex = -1; rest >= leastCell-1 { // a narrow column is better than none
			widths[worst] = rest
			return widths
		}
	}
}

// needs returns the width that each column would take without limits; 0 for an empty one. flex is
// the index of the flex column; -1 for none. It measures the rows once. The caller must not change
// widths.
func (t *table) needs() (widths []int, flex int) {
	if t.needed != nil && t.neededFor == t.length() {
		return t.needed, t.flex
	}
	widths, flex = make([]int, len(t.columns)), -1
	for i := range t.length() {
		for j, one := range t.at(i) {
			widths[j] = max(widths[j], drawn(one.text))
		}
	}
	for i, c := range t.columns {
		if c.flex {
			flex = i
		}
		if c.flex || widths[i] > 0 {
			widths[i] = max(widths[i], drawn(c.head))
		}
	}
	t.needed, t.flex, t.neededFor = widths, flex, t.length()
	return widths, flex
}

// flexNeeds returns the width that the flex column would take without limits.
func (t *table) flexNeeds() int {
	needs, flex := t.needs()
	if flex < 0 {
		return 0
	}
	return needs[flex]
}

// natural returns the width of the table in which no cell is cut.
func (t *table) natural() int {
	width := 0
	needs, _ := t.needs()
	for _, w := range needs {
		if w > 0 {
			width += w + gap
		}
	}
	return width
}

// roomIn returns how many columns the table shows in that width, and how much more room its flex
// column has than it needs.
func (t *table) roomIn(width int) (columns, spare int) {
	needs, flex := t.needs()
	for i, w := range t.widths(width - len("  ")) {
		if w > 0 {
			columns++
		}
		if i == flex {
			spare = w - needs[i]
		}
	}
	return columns, spare
}

// widen gives columns whose cells are cut the room that the flex column does not need, or that it
// has beyond half of the table.
func (t *table) widen(widths, needs []int, flex, room int) {
	for spare := widths[flex] - min(needs[flex], room/2); spare > 0; {
		least := -1 // the column that lacks least
		for i := range widths {
			lacks := needs[i] - widths[i]
			if i != flex && widths[i] > 0 && lacks > 0 && (least < 0 || lacks < needs[least]-widths[least]) {
				least = i
			}
		}
		if least < 0 {
			return
		}
		more := min(spare, needs[least]-widths[least])
		widths[least] += more
		widths[flex] -= more
		spare -= more
	}
}

// leastCell is the least width of a column in a table that has too little room.
const leastCell = 7

// shrink narrows the widest columns by over columns of the screen in total, but none below its
// least width. It returns how many columns it gained.
func (t *table) shrink(widths []int, over int) (gained int) {
	for gained < over {
		widest := -1
		for i, c := range t.columns {
			if c.most > 0 && widths[i] > leastCell && (widest < 0 || widths[i] > widths[widest]) {
				widest = i
			}
		}
		if widest < 0 {
			break
		}
		widths[widest]--
		gained++
	}
	return gained
}

func (t *table) row(cells []cell, widths []int, selected bool) string {
	var b strings.Builder
	last := 0
	for i, w := range widths {
		if w > 0 {
			last = i
		}
	}
	for i, w := range widths {
		if w == 0 {
			continue
		}
		text := render.Cut(cells[i].text, w)
		if t.columns[i].tail {
			text = cutMiddle(cells[i].text, w)
		}
		space := max(0, w-drawn(text))
		look := cells[i].look
		if selected {
			look.bold, look.faint = true, false
		}
		if t.columns[i].right {
			b.WriteString(strings.Repeat(" ", space))
			space = 0
		}
		b.WriteString(look.on(text))
		if i != last {
			b.WriteString(strings.Repeat(" ", space+gap))
		}
	}
	return b.String()
}

// cutMiddle shortens a text to width columns, and keeps its beginning and its end.
func cutMiddle(text string, width int) string {
	if render.Cut(text, width) == text || width < 5 {
		return render.Cut(text, width)
	}
	end := len(text)
	for used := 0; end > 0; {
		r, size := utf8.DecodeLastRuneInString(text[:end])
		if used += sanitize.Columns(r); used > (width-1)/2 {
			break
		}
		end -= size
	}
	for end < len(text) { // keep a combining mark with its letter
		r, size := utf8.DecodeRuneInString(text[end:])
		if sanitize.Columns(r) > 0 && r != '\u200d' {
			break
		}
		end += size
	}
	rest := text[end:]
	return render.Cut(text, width-render.Widest(rest)) + rest
}

// line lays out two parts on one line, with the right part at the right edge. If both do not fit,
// it cuts the left one.
func line(width int, left []cell, right []cell) string {
	room := width - widthOf(right)
	if len(right) > 0 {
		room -= gap
	}
	if room < width/3 { // leave out the right part
		right, room = nil, width
	}
	for len(left) > 3 && widthOf(left) > room { // drop a part and the mark before it
		left = left[:len(left)-2]
	}
	text, used := joined(left, room)
	if len(right) == 0 {
		return text
	}
	end, _ := joined(right, width)
	return text + strings.Repeat(" ", max(0, width-used-widthOf(right))) + end
}

func widthOf(cells []cell) (width int) {
	for _, c := range cells {
		width += drawn(c.text)
	}
	return width
}

// joined joins the cells into a text of at most room columns.
func joined(cells []cell, room int) (text string, used int) {
	var b strings.Builder
	for _, c := range cells {
		cut := render.Cut(c.text, max(0, room-used))
		if used >= room {
			break
		}
		used += drawn(cut)
		b.WriteString(c.look.on(cut))
	}
	return b.String(), used
}

// beside puts two blocks of lines side by side. The left one gets leftWidth columns.
func beside(left, right []string, leftWidth, height int) []string {
	out := make([]string, 0, height)
	for i := range height {
		var l, r string
		if i < len(left) {
			l = left[i]
		}
		if i < len(right) {
			r = right[i]
		}
		if l == "" && r == "" {
			out = append(out, "")
			continue
		}
		out = append(out, l+strings.Repeat(" ", max(0, leftWidth-visible(l)))+r)
	}
	return out
}

// visible returns the width of a painted line.
func visible(line string) (width int) {
	for line != "" {
		text, rest, styled := strings.Cut(line, "\x1b[")
		width += drawn(text)
		if !styled {
			break
		}
		_, line, _ = strings.Cut(rest, "m")
	}
	return width
}

// wrap breaks a line between words into parts of at most width columns. It keeps the spaces at the
// beginning. It breaks a word only if the word does not fit on a line, and never inside a joined
// character that does.
func wrap(text string, width int) (parts []string) {
	if len(text) <= width {
		return []string{text}
	}
	width = max(2, width)
	start, used, space, whole := 0, 0, -1, 0 // text[:whole] is not broken
	for i, r := range text {
		w, needs := sanitize.Columns(r), 0
		if i >= whole {
			size := 0
			if size, needs = joinedAt(text[i:]); needs > width {
				size, needs = utf8.RuneLen(r), w
			}
			whole = i + size
		}
		if used+needs > width && needs > 0 && i > start {
			end, next := i, i
			if space > start && strings.TrimLeft(text[start:space], " ") != "" {
				end, next = space, space+1
			}
			parts = append(parts, text[start:end])
			start, space = next, -1
			used = render.Widest(text[start:i])
		}
		if r == ' ' {
			space = i
		}
		used += w
	}
	return append(parts, text[start:])
}

// joinedAt returns how many bytes and columns the first character takes, with its combining marks.
func joinedAt(text string) (size, columns int) {
	joins := true
	for i, r := range text {
		w := sanitize.Columns(r)
		if !joins && w > 0 && r != joiner && r != emojiSelector {
			return i, columns
		}
		columns += w
		joins = r == joiner
	}
	return len(text), columns
}

// emojiSelector belongs to the character before it, like the joiner.
const emojiSelector = '\ufe0f'

// fill returns exactly height lines.
func fill(lines []string, height int) []string {
	if len(lines) > height {
		return lines[:max(0, height)]
	}
	return append(lines, make([]string, height-len(lines))...)
}
