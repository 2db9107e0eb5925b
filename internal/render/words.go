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
	switch state {
	case "verifying":
		if t.Submission.Round > 1 {
			return fmt.Sprintf("verifying (round %d)", t.Submission.Round)
		}
	case "blocked":
		why := ""
		if path := t.WaitsForPath(); path != "" {
			why = " (" + path + ")"
		}
		return "blocked by " + strings.Join(t.WaitsFor(""), ",") + why
	}
	return state
}

// Ago says how long ago then was, in one unit.
func Ago(now, then team.Time) string {
	switch d := now.Sub(then); {
	case then == 0:
		return "never"
	case d < 10*time.Second:
		return "just now"
	default:
		return Age(d) + " ago"
	}
}

// Age formats a duration in one unit, where two would say too much or take too much room.
func Age(d time.Duration) string {
	unit := 24 * time.Hour
	switch d = max(0, d); {
	case d < time.Minute:
		unit = time.Second
	case d < time.Hour:
		unit = time.Minute
	case d < 48*time.Hour:
		unit = time.Hour
	}
	return team.Span(d.Truncate(unit))
}
