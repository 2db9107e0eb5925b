package render

import (
	"fmt"
	"strings"

	"cadre/internal/team"
)

// Field is a short field of a task: its label and its value.
type Field struct{ Label, Value string }

// Demands returns the fields about what a task demands, and what came of it: when it runs, its
// check, who verifies it, and how it was checked. It leaves out empty ones.
func Demands(s *team.State, t team.Task) (all []Field) {
	field := func(label, value string) {
		if value != "" {
			all = append(all, Field{label, value})
		}
	}
	field("runs", whens[t.When])
	field("skipped", t.Skipped)
	field("check", checkWords(t.Check))
	if t.Verify != nil {
		field("verified by", t.Verify.Words())
	}
	field("verification", roundOf(s, t))
	if t.Verifies != "" {
		field("verifies", s.Called(t.Verifies))
	}
	field("verdict", t.Verdict)
	field("checked", strings.Join(t.Summary().Checked, "; "))
	return all
}

// whens says in words when a task runs.
var whens = map[string]string{team.Always: "also if a task that it depends on has failed",
	team.OnFailure: "only if a task that it depends on has failed"}

// checkWords says which command must pass, and how often it is tried.
func checkWords(c *team.TaskCheck) string {
	switch {
	case c == nil:
		return ""
	case c.Rounds > 0:
		return fmt.Sprintf("%s (until it passes, %s)", c.Run, team.Count(int(c.Rounds), "round"))
	}
	return c.Run
}

// roundOf says in which round a task is verified, and how many have accepted it; "" for a task that
// is not being verified.
func roundOf(s *team.State, t team.Task) string {
	if t.Submission == nil {
		return ""
	}
	accepted, all := 0, 0
	for _, id := range t.Submission.Tasks {
		v, _ := s.Task(id)
		if v.Status != team.Deleted {
			all++
		}
		if v.Verdict == team.VerdictAccepted {
			accepted++
		}
	}
	return fmt.Sprintf("round %d of %d: %d of %d accepted", t.Submission.Round, t.VerifyRounds(), accepted, all)
}
