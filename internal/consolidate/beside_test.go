package consolidate

import (
	"context"
	"errors"
	"strings"
	"testing"

	"cadre/internal/team"
)

// TestBeside checks that only named paths are committed if another team works in the same work
// tree. The rest is unchanged.
func TestBeside(t *testing.T) {
	if testing.Short() {
		t.Skip("it runs git many times; not with -short")
	}
	t.Parallel()
	l := newLab(t)
	l.found(team.Check{Name: "test", Command: "test -f pass"})
	l.write("ours/a.txt", "the team's\n")
	l.write("ours/pass", "\n")
	l.write("theirs.txt", "another team's\n")
	l.isolate("eve", "hers.txt")
	seq := l.replica.Seq()
	o := l.options()
	o.Beside = func(context.Context) ([]string, error) { return []string{"other"}, nil }
	_, err := Run(l.ctx, o)
	if team.CodeOf(err) != team.Conflict || l.replica.Seq() != seq {
		t.Fatal(err)
	}
	for _, words := range []string{"team other also works in " + l.project, "ours/a.txt, ours/pass, theirs.txt",
		`{"action":"commit_only","team":"demo"}`} {
		if !strings.Contains(told(err), words) {
			t.Errorf("%s does not say %q", told(err), words)
		}
	}
	o.Only = []string{"nowhere"}
	if _, err := Run(l.ctx, o); team.CodeOf(err) != team.Invalid {
		t.Error(err)
	}
	var staged []string
	o.Only, o.Staged = []string{"ours"}, func(changes []string) { staged = append(staged, changes...) }
	if _, err := Run(l.ctx, o); !errors.Is(err, ErrCheck) {
		t.Fatal(err)
	}
	if dirty := l.replica.Team().Base.Dirty; len(dirty) > 0 {
		t.Errorf("files that were not named count as left by the checks: %+v", dirty)
	}
	l.want(staged, "A hers.txt", "A ours/a.txt", "A ours/pass")
	l.write("pass", "")
	staged = nil
	if _, err := Run(l.ctx, o); err != nil {
		t.Fatal(err)
	}
	l.want(staged, "A hers.txt", "A ours/a.txt", "A ours/pass")
	l.want(l.committed(), "A:hers.txt", "A:ours/a.txt", "A:ours/pass")
	if status := l.git("status", "--porcelain"); status != "?? pass\n?? theirs.txt" {
		t.Errorf("the status is\n%s", status)
	}
}

// TestWhoIsBeside checks whose work can be taken for this team's: another team in the same work
// tree, until its work is committed.
func TestWhoIsBeside(t *testing.T) {
	t.Parallel()
	here := team.Team{ID: "a", CreatedAt: 10, Base: team.Base{Top: "/p"}}
	for what, c := range map[string]struct {
		other team.Team
		is    bool
	}{
		"itself":  {here, false},
		"at work": {team.Team{ID: "b", Status: team.TeamActive, Base: team.Base{Top: "/p"}}, true},
		"ending": {team.Team{ID: "b", Status: team.TeamConsolidating,
			Base: team.Base{Top: "/p"}}, true},
		"elsewhere":               {team.Team{ID: "b", Status: team.TeamActive, Base: team.Base{Top: "/q"}}, false},
		"where nobody could tell": {team.Team{ID: "b", Status: team.TeamActive, Dir: "/p/sub"}, true},
		"nobody could, elsewhere": {team.Team{ID: "b", Status: team.TeamActive, Dir: "/pp"}, false},
		"not begun":               {team.Team{ID: "b", Status: team.TeamPending, Base: team.Base{Top: "/p"}}, false},
		"ended before": {team.Team{ID: "b", Status: team.TeamComplete, UpdatedAt: 9,
			Base: team.Base{Top: "/p"}}, false},
		"ended since": {team.Team{ID: "b", Status: team.TeamComplete, UpdatedAt: 11,
			Base: team.Base{Top: "/p"}}, true},
		"aborted since": {team.Team{ID: "b", Status: team.TeamAborted, UpdatedAt: 11,
			Base: team.Base{Top: "/p"}}, true},
		"committed": {team.Team{ID: "b", Status: team.TeamComplete, UpdatedAt: 11,
			Base: team.Base{Top: "/p"}, Consolidation: team.Consolidation{Step: team.Done}}, false},
		"complete without a commit": {team.Team{ID: "b", Status: team.TeamComplete, UpdatedAt: 11,
			Base: team.Base{Top: "/p"}, Consolidation: team.Consolidation{Step: team.Done, NoCommit: true}}, true},
		"removed": {team.Team{ID: "b", Status: team.TeamActive, CleanedUp: true,
			Base: team.Base{Top: "/p"}}, false},
	} {
		if Beside(here, c.other) != c.is {
			t.Errorf("a team that is %s: %t", what, !c.is)
		}
	}
}
