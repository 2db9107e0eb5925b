package e2e

import (
	"strings"
	"testing"

	"cadre/internal/team"
)

// TestWatchChoosesPaths opens the actions of a team in the list of teams, leaves a file out of its
// consolidation, takes another one in that the person had changed before, and consolidates.
func TestWatchChoosesPaths(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.repository()
	w.write("mine.txt", "changed before the team\n")
	w.must("create", "demo", "--goal", "Two files")
	w.must("spawn", "demo", "ann", "--agent", "shell")
	w.must("task", "add", "demo", "make", "--run", "echo a >added.txt; echo b >wrong.txt")
	w.untilCompleted(1)
	w.must("shutdown", "demo", "ann")

	p := w.terminalOf(100, 30, cadre, "watch")
	p.shows("demo")
	p.keys(".")
	p.shows("team demo")
	p.chooses("consolidate")
	p.shows("2 paths to commit, 1 path left out.")
	p.shows("▸ [x] added    added.txt")
	p.keys("Down")
	p.shows("▸ [x] added    wrong.txt")
	p.keys("Space")
	p.shows("1 path to commit, 2 paths left out.")
	p.shows("▸ [ ]")
	p.keys("Up")
	p.shows("▸ [ ]          mine.txt")
	p.keys("Space")
	p.shows("2 paths to commit, 1 path left out.")
	p.shows("[x] added    mine.txt")
	p.keys("Enter")
	p.shows("Consolidate the team demo: 2 paths to commit, 1 path left out? [y/N]")
	p.keys("y")
	w.until("the team is complete", func(s *team.State) bool { return s.Team().Status == team.TeamComplete })
	p.shows("team demo is complete") // the command has ended, so that quitting asks nothing
	p.keys("q")
	p.ended()
	got := strings.Fields(w.gitSays("show", "--name-only", "--format=", "HEAD"))
	if strings.Join(got, " ") != "added.txt mine.txt" {
		t.Errorf("the commit has %v", got)
	}
	if got := w.gitSays("status", "--porcelain", "wrong.txt"); got != "?? wrong.txt" {
		t.Errorf("the file that was left out is %q", got)
	}
}

// chooses selects the entry of the open menu that begins with the name, and chooses it.
func (p *terminal) chooses(name string) {
	p.t.Helper()
	p.wait("the menu has no "+name, func() bool {
		for line := range strings.Lines(p.screen()) {
			if strings.HasPrefix(line, "▸ "+name+" ") {
				return true
			}
		}
		p.keys("Down")
		return false
	})
	p.keys("Enter")
}
