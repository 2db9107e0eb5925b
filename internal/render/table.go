package render

import (
	"bufio"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"cadre/internal/render/sanitize"

	"github.com/clipperhouse/displaywidth"
)

// Table is rows of cells, aligned when written. The last column is never padded. All rows have as
// many cells as the first, which is the head.
//
// On a terminal the lines fit its width where they can. The columns of Texts are cut, after a whole
// word. Where that is not enough, the columns of Spare are left out. Other cells may be ids that a
// person has to type, and stay whole. A long one in the first column has a line of its own. In a
// list the last column is wrapped instead, and nothing is left out.
type Table struct {
	Texts []string // heads of the columns whose cells may be cut, the first one first
	Spare []string // heads of the columns that a narrow terminal does without, the least important first
	// heads of the columns whose cells are aligned at their right; not the last column
	Numbers []string

	groups map[int]string // headings of groups of rows, by the number of the first row
	cells  []string
	widths []int // one per column
	list   bool  // it has no head
	width  int   // of the terminal; 0 for none
}

// NewTable returns a table with that head and room for that many rows.
func NewTable(rows int, head ...string) *Table {
	t := &Table{cells: make([]string, 0, rows*len(head))}
	t.Row(head...)
	return t
}

// NewList returns a table without a head.
func NewList() *Table { return &Table{list: true} }

// Row adds a row.
func (t *Table) Row(cells ...string) {
	if t.widths == nil {
		t.widths = make([]int, len(cells))
	}
	for i := range t.widths {
		cell := Clean(cells[i])
		t.cells = append(t.cells, cell)
		t.widths[i] = max(t.widths[i], displaywidth.String(cell))
	}
}

// Group begins a group of rows under a heading. The head of the table is below the first heading.
// All groups have the same columns.
func (t *Table) Group(heading string) {
	if t.groups == nil {
		t.groups = map[int]string{}
	}
	t.groups[max(1, t.rows())] = heading
}

// rows returns the number of rows, with the head.
func (t *Table) rows() int {
	if len(t.widths) == 0 {
		return 0
	}
	return len(t.cells) / len(t.widths)
}

// gap is between columns.
const gap = 2

// printer is a writer that may have colors and a width.
type printer interface {
	Print(parts ...any) error
	Width() int
}

// Write writes the table, as wide as it is. To a [sanitize.Writer] it writes it as wide as the
// terminal, and in colors where there are any.
func (t *Table) Write(w io.Writer) error {
	if to, is := w.(printer); is {
		if t.width = to.Width(); t.width > 0 && !t.list {
			if t.least(t.width) > t.width {
				t.narrowFirst(t.width * 2 / 5)
			}
			t.Fit(t.width)
		}
		return to.Print(t.styled()...)
	}
	out := bufio.NewWriterSize(w, 64<<10)
	for _, part := range t.styled() {
		if text, is := part.(string); is {
			out.WriteString(text)
		}
	}
	return out.Flush()
}

// styled returns the lines in colors: the head, and the columns of states.
func (t *Table) styled() []any {
	padding := strings.Repeat(" ", t.before(len(t.widths)))
	var parts []any
	var text strings.Builder
	say := func(tone Tone, cell string) {
		if tone == Plain || cell == "" {
			text.WriteString(cell)
			return
		}
		parts = append(parts, text.String(), tone.Look(), cell, sanitize.Normal)
		text.Reset()
	}
	last := 0 // column of the row with text; no line ends with spaces
	for i, cell := range t.cells {
		column := i % len(t.widths)
		if column == 0 {
			text.WriteString(t.heading(i / len(t.widths)))
			row := t.cells[i : i+len(t.widths)]
			for last = len(row) - 1; last > 0 && row[last] == ""; last-- {
			}
		}
		if column > last {
			continue
		}
		if t.list && column == len(t.widths)-1 {
			cell = sanitize.Hanging{Text: cell, At: t.before(column), Indent: t.before(column)}.Wrapped(t.width)
		}
		right := t.right(column) && displaywidth.String(cell) < t.widths[column]
		if right {
			text.WriteString(padding[:t.widths[column]-displaywidth.String(cell)])
		}
		switch {
		case i < len(t.widths) && !t.list:
			say(Faint, cell)
		case t.ofStates(column):
			say(StateTone(cell), cell)
		default:
			text.WriteString(cell)
		}
		used := displaywidth.String(cell)
		if right {
			used = t.widths[column]
		}
		if column == last {
			text.WriteByte('\n')
			continue
		}
		if used > t.widths[column] { // the rest of the row is below it
			text.WriteByte('\n')
			used = -t.before(column)
		}
		text.WriteString(padding[:t.widths[column]-used+gap])
	}
	return append(parts, text.String())
}

// heading returns the heading of a row's group, if the row is the first of the group. The first
// heading is above the head of the table.
func (t *Table) heading(row int) string {
	heading, is := t.groups[row]
	if row == 0 {
		heading, is = t.groups[1]
	}
	switch {
	case !is || row == 1:
		return ""
	case row > 1:
		return "\n" + heading + ":\n"
	}
	return heading + ":\n"
}

// right reports whether the cells of a column are aligned at their right.
func (t *Table) right(column int) bool {
	return !t.list && column < len(t.widths)-1 && slices.Contains(t.Numbers, t.cells[column])
}

// ofStates reports whether the column has states: by its head, or as the first of a list.
func (t *Table) ofStates(column int) bool {
	if t.list {
		return column == 0
	}
	return slices.Contains([]string{"STATUS", "STATE", "LIFE"}, t.cells[column])
}

// before returns where a column begins.
func (t *Table) before(column int) (at int) {
	for _, w := range t.widths[:column] {
		at += w + gap
	}
	return at
}

// Compact removes the columns that are empty below the head. A first column without a head indents
// the others, and stays.
func (t *Table) Compact() {
	var keep []int
	for column := range t.widths {
		if column == 0 && t.cells[0] == "" {
			keep = append(keep, 0)
			continue
		}
		for at := column + len(t.widths); at < len(t.cells); at += len(t.widths) {
			if t.cells[at] != "" {
				keep = append(keep, column)
				break
			}
		}
	}
	if len(keep) < len(t.widths) && len(keep) > 0 {
		t.only(keep)
	}
}

// only keeps these columns.
func (t *Table) only(keep []int) {
	var cells []string
	for row := range slices.Chunk(t.cells, len(t.widths)) {
		for _, column := range keep {
			cells = append(cells, row[column])
		}
	}
	widths := make([]int, len(keep))
	for i, column := range keep {
		widths[i] = t.widths[column]
	}
	t.cells, t.widths = cells, widths
}

// column returns the index of the column with that head, or -1.
func (t *Table) column(head string) int { return slices.Index(t.cells[:len(t.widths)], head) }

// Fit makes the lines fit that width: see [Table].
func (t *Table) Fit(width int) {
	for _, head := range t.Spare {
		if t.least(width) <= width {
			break
		}
		if column := t.column(head); column >= 0 {
			keep := make([]int, 0, len(t.widths))
			for i := range t.widths {
				if i != column {
					keep = append(keep, i)
				}
			}
			t.only(keep)
		}
	}
	over := t.before(len(t.widths)) - gap - width
	for i, head := range t.Texts {
		column := t.column(head)
		if over <= 0 || column < 0 {
			continue
		}
		to := max(t.widths[column]-over, t.floor(i, width))
		if to < t.widths[column] {
			over -= t.widths[column] - to
			t.cut(column, to)
		}
	}
}

// narrowFirst makes the first column with a head as wide as its widest cell that is not wider than
// most. Wider cells have a line of their own.
func (t *Table) narrowFirst(most int) {
	first, width := max(0, slices.IndexFunc(t.cells[:len(t.widths)], func(head string) bool { return head != "" })), 0
	for at := first; at < len(t.cells); at += len(t.widths) {
		if w := displaywidth.String(t.cells[at]); w <= most {
			width = max(width, w)
		}
	}
	t.widths[first] = width
}

// least returns the width of the lines when all texts are cut as far as they may be.
func (t *Table) least(width int) int {
	sum := t.before(len(t.widths)) - gap
	for i, head := range t.Texts {
		if column := t.column(head); column >= 0 {
			sum -= max(0, t.widths[column]-t.floor(i, width))
		}
	}
	return sum
}

// leastText is the width to which texts are cut, but for the first one: that has two fifths of the
// line.
const leastText = 14

// floor returns the width to which the text with that index may be cut.
func (t *Table) floor(text, width int) int {
	if text == 0 {
		return max(leastText, width*2/5)
	}
	return leastText
}

// cut cuts the cells of a column to that width.
func (t *Table) cut(column, width int) {
	t.widths[column] = 0
	for at := column; at < len(t.cells); at += len(t.widths) {
		t.cells[at] = CutWords(t.cells[at], width)
		if t.ofStates(column) { // without any name the state alone says as much
			t.cells[at] = strings.TrimSuffix(t.cells[at], " by…")
		}
		t.widths[column] = max(t.widths[column], displaywidth.String(t.cells[at]))
	}
}

// CutWords is [Cut], after a whole word where the first one fits.
func CutWords(s string, columns int) string {
	short := Cut(s, columns)
	kept, is := strings.CutSuffix(short, "…")
	if !is || short == s {
		return short
	}
	next := s[len(kept):]
	if strings.HasPrefix(next, " ") || breaks(kept) {
		return strings.TrimRight(kept, " ") + "…"
	}
	if i := strings.LastIndexAny(kept, " ,/-"); i > 0 {
		return strings.TrimRight(kept[:i+1], " ") + "…"
	}
	return short
}

// breaks reports whether a line may end after the text: behind a space, or within a script that has
// no spaces between words.
func breaks(text string) bool {
	last, _ := utf8.DecodeLastRuneInString(text)
	return last == ' ' || last == ',' || last == '/' || sanitize.Columns(last) == 2
}

// Width returns how many columns a terminal gives to the text, as in the columns of a [Table].
func Width(s string) int { return displaywidth.String(s) }
