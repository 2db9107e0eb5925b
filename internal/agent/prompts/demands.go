package prompts

import (
	"cmp"
	"fmt"
	"strings"

	"cadre/internal/team"
)

// demands says what the task demands of its result, and what was wrong with the last one.
func demands(t team.Task) string {
	var b strings.Builder
	if len(t.Schema) > 0 {
		fmt.Fprintf(&b, "\nIts result must be one JSON value that fits this JSON Schema, and nothing else. A result that "+
			"does not fit comes back to you, and after %d of them your attempt has failed:\n%s\n", team.MaxMisfits,
			quote(string(t.Schema)))
	}
	if t.Check != nil {
		how := "Complete the task when you expect it to pass."
		if t.Check.Rounds > 0 {
			how = fmt.Sprintf("You have %s: if it fails, you are told its output, and try again.",
				team.Count(int(t.Check.Rounds), "round"))
		}
		fmt.Fprintf(&b, "\nWhen you complete it, this command runs where you work, and must pass. %s\n%s\n", how,
			quote(t.Check.Run))
	}
	if r := t.Rejected; r != nil {
		what := "The last result was not accepted by " + inQuotes(cmp.Or(r.By, "half of them")) + ":"
		switch r.By {
		case team.ByResult:
			what = "The last result did not fit the schema:"
		case team.ByCheck:
			what = "The check failed the last time:"
			if t.Check != nil && r.Checks > 0 {
				what = fmt.Sprintf("The check failed in round %d of %d:", r.Checks, t.Check.Limit())
			}
		}
		fmt.Fprintf(&b, "\n%s\n%s\n", what, quote(r.Feedback))
	}
	return b.String()
}
