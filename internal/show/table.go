package show

import (
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"cadre/internal/team"
)

// Table is rows of cells, aligned when written. The last column is never cut or padded.
type Table struct {
	rows [][]string
}

// Row adds a row.
func (t *Table) Row(cells ...string) {
	for i := range cells {
		cells[i] = Clean(cells[i])
	}
	t.rows = append(t.rows, cells)
}

// Write writes the table in one piece.
func (t *Table) Write(w io.Writer) error {
	var widths []int
	for _, row := range t.rows {
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	var out strings.Builder
	for _, row := range t.rows {
		for i, cell := range row {
			out.WriteString(cell)
			if i < len(row)-1 {
				out.WriteString(strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell)+2))
			}
		}
		out.WriteByte('\n')
	}
	_, err := io.WriteString(w, out.String())
	return err
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
