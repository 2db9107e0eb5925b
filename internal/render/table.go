package render

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"cadre/internal/team"
)

// Table is rows of cells, aligned when written. The last column is never padded. All rows have as
// many cells as the first, which is the head.
type Table struct {
	Width int // of the terminal: longer lines are cut; 0 for any

	cells  []string
	widths []int // one for each column
}

// NewTable returns a table with that head and room for so many rows.
func NewTable(rows int, head ...string) *Table {
	t := &Table{cells: make([]string, 0, rows*len(head))}
	t.Row(head...)
	return t
}

// Row adds a row.
func (t *Table) Row(cells ...string) {
	if t.widths == nil {
		t.widths = make([]int, len(cells))
	}
	for i := range t.widths {
		cell := Clean(cells[i])
		t.cells = append(t.cells, cell)
		t.widths[i] = max(t.widths[i], utf8.RuneCountInString(cell))
	}
}

// Write writes the table, a short one in one piece.
func (t *Table) Write(w io.Writer) error {
	padding := strings.Repeat(" ", slices.Max(append(t.widths, 0))+2)
	out := bufio.NewWriterSize(w, 64<<10)
	if t.Width > 0 {
		return t.cut(out, padding)
	}
	for i, cell := range t.cells {
		column := i % len(t.widths)
		out.WriteString(cell)
		if column == len(t.widths)-1 {
			out.WriteByte('\n')
			continue
		}
		out.WriteString(padding[:t.widths[column]-utf8.RuneCountInString(cell)+2])
	}
	return out.Flush()
}

// cut writes the lines no wider than the terminal.
func (t *Table) cut(out *bufio.Writer, padding string) error {
	for row := range slices.Chunk(t.cells, len(t.widths)) {
		var line strings.Builder
		for column, cell := range row {
			line.WriteString(cell)
			if column < len(row)-1 {
				line.WriteString(padding[:t.widths[column]-utf8.RuneCountInString(cell)+2])
			}
		}
		out.WriteString(Cut(line.String(), t.Width))
		out.WriteByte('\n')
	}
	return out.Flush()
}

// Compact leaves out the columns in which only the head says something.
func (t *Table) Compact() {
	var keep []int
	for column := range t.widths {
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

// Narrow leaves out columns with these heads, in this order, until the last one has the room that
// it needs in lines of that width, or at least so much.
func (t *Table) Narrow(width, least int, heads ...string) {
	for _, head := range heads {
		last := len(t.widths) - 1
		others := 0
		for _, w := range t.widths[:last] {
			others += w + 2
		}
		if width-others >= min(t.widths[last], least) {
			return
		}
		if column := slices.Index(t.cells[:last], head); column >= 0 {
			keep := make([]int, 0, last)
			for i := range t.widths {
				if i != column {
					keep = append(keep, i)
				}
			}
			t.only(keep)
		}
	}
}

// TaskState is a task's status with what is derived from it.
func TaskState(t team.Task) string {
	switch {
	case t.GivenUp():
		return "failed"
	case len(t.Blocked()) > 0:
		return "blocked by " + strings.Join(t.Blocked(), ",")
	}
	return string(t.Status)
}

// Ago is how long ago something was, in one unit.
func Ago(now, then team.Time) string {
	if then == 0 {
		return "never"
	}
	return Span(time.Duration(max(0, now-then))*time.Millisecond) + " ago"
}

// Span is a duration in one or two units.
func Span(d time.Duration) string {
	switch {
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d < time.Minute:
		return fmt.Sprintf("%.1f s", d.Seconds())
	case d < time.Hour:
		return fmt.Sprintf("%d min %02d s", int(d.Minutes()), int(d.Seconds())%60)
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h %02d min", int(d.Hours()), int(d.Minutes())%60)
	}
	return fmt.Sprintf("%d days", int(d.Hours()/24))
}
