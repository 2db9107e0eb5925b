package e2e

import (
	"testing"

	"cadre/internal/team"
)

// TestRunScreenResumesAnother: on the screen of a run the person resumes another team, which
// continues in the background, also when the run has ended.
func TestRunScreenResumesAnother(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.must("create", "other")
	w.must("spawn", "other", "eve", "--agent", "shell")
	w.must("pause", "other")
	w.must("task", "add", "other", "touch", "--run", "touch resumed")
	p := w.runs()
	p.keys(":")
	p.shows("cadre")
	p.keys("-l", "resume other")
	p.keys("Enter")
	p.wait("the other team is not resumed", func() bool { return has(w.dir, "resumed") })
	w.write("go", "")
	w.write("mended", "")
	w.until("the run has ended", func(s *team.State) bool { return s.Team().Status == team.TeamComplete })
}
