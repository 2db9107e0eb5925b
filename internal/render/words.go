package render

import (
	"fmt"
	"strings"
	"time"

	"cadre/internal/team"
)

// TaskState returns a task's status with what is derived from it.
func TaskState(t team.Task) string {
	state := t.State()
	if state == "blocked" {
		return "blocked by " + strings.Join(t.WaitsFor(""), ",")
	}
	return state
}

// Ago says how long ago then was, in one unit.
func Ago(now, then team.Time) string {
	if then == 0 {
		return "never"
	}
	switch d := now.Sub(then); {
	case d < 10*time.Second:
		return "just now"
	case d < time.Minute:
		return fmt.Sprintf("%d s ago", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%d min ago", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h ago", int(d.Hours()))
	default:
		return fmt.Sprintf("%d days ago", int(d.Hours()/24))
	}
}

// Span formats a duration in one or two units.
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
