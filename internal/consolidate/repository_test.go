package consolidate

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cadre/internal/team"
	"cadre/internal/testkit/soak"
)

// TestWhereNothingCanBeCommitted checks that a team is not completed while its repository, or git,
// is missing. Its work would never be committed.
func TestWhereNothingCanBeCommitted(t *testing.T) {
	soak.Long(t)
	t.Parallel()
	l := newLab(t)
	l.found(team.Check{Name: "test", Command: "true"})
	l.write("new.txt", "the team's\n")
	hidden := filepath.Join(l.folder, "git")
	if err := os.Rename(filepath.Join(l.project, ".git"), hidden); err != nil {
		t.Fatal(err)
	}
	if err := l.refused(l.project, "not in a repository any more", "skip_commit"); team.CodeOf(err) != team.NotReady ||
		l.replica.Team().Status != team.TeamActive {
		t.Errorf("%v, and the team is %s", err, l.replica.Team().Status)
	}
	if err := os.Rename(hidden, filepath.Join(l.project, ".git")); err != nil {
		t.Fatal(err)
	}
	l.consolidating("made") // the commit exists, and HEAD does not name it yet
	if err := os.Rename(filepath.Join(l.project, ".git"), hidden); err != nil {
		t.Fatal(err)
	}
	l.refused("is unchanged")
	if err := os.Rename(hidden, filepath.Join(l.project, ".git")); err != nil {
		t.Fatal(err)
	}
	if r := l.run(); r.Attempts != 1 || r.Commit != l.git("rev-parse", "HEAD") {
		t.Errorf("%+v", r)
	}
}

// TestWithoutGit checks the same without git on PATH: nothing is abandoned, and with git the
// consolidation continues.
func TestWithoutGit(t *testing.T) {
	if testing.Short() {
		t.Skip("it runs git many times; not with -short")
	}
	l := newLab(t)
	l.found(team.Check{Name: "test", Command: "true"})
	l.isolate("eve", "hers.txt")
	l.write("new.txt", "the team's\n")
	without := func(words ...string) {
		t.Helper()
		path := os.Getenv("PATH")
		os.Setenv("PATH", t.TempDir())
		defer os.Setenv("PATH", path)
		l.refused(words...)
	}
	without("git was not found", "PATH", "skip_commit")
	if s := l.replica.Team(); s.Status != team.TeamActive || s.Consolidation.Attempt != 0 {
		t.Errorf("the team is %+v", s)
	}
	l.consolidating("landed")
	without("git was not found", "is unchanged")
	l.run()
	l.want(l.committed(), "A:hers.txt", "A:new.txt")
	l.tidy()

	l = newLab(t)
	l.found()
	without("git was not found")
	o := l.options()
	o.NoCommit = true
	if r, err := Run(l.ctx, o); err != nil || r.Commit != "" {
		t.Errorf("%+v, %v", r, err)
	}
}

// TestBranchOfCheckpoints checks that nothing is committed on a branch of checkpoints, which
// changes under the work tree.
func TestBranchOfCheckpoints(t *testing.T) {
	if testing.Short() {
		t.Skip("it runs git many times; not with -short")
	}
	t.Parallel()
	l := newLab(t)
	l.found()
	l.write("new.txt", "the team's\n")
	o := l.options()
	o.at = func(point string) {
		if point == "checkpoint" {
			l.git("checkout", "-q", "cadre/demo")
		}
	}
	if _, err := Run(l.ctx, o); err == nil || !strings.Contains(err.Error(), "branch of checkpoints cadre/demo") {
		t.Fatal(err)
	}
	head := l.git("rev-parse", "HEAD")
	l.refused("branch of checkpoints cadre/demo", "check out another branch")
	if l.git("rev-parse", "HEAD") != head || l.replica.Team().Status != team.TeamActive {
		t.Errorf("the team is %+v", l.replica.Team())
	}
	l.git("checkout", "-q", "main")
	l.git("checkout", "-qb", "cadre/work") // a branch of a person
	l.run()
	l.want(l.committed(), "A:new.txt")
}

// TestDetachedHeadIsTold checks the warning about a commit that is on no branch.
func TestDetachedHeadIsTold(t *testing.T) {
	if testing.Short() {
		t.Skip("it runs git many times; not with -short")
	}
	t.Parallel()
	l := newLab(t)
	l.git("checkout", "-q", "--detach")
	l.found()
	l.write("new.txt", "the team's\n")
	said := ""
	o := l.options()
	o.Advise = func(n team.Advice) { said += told(team.Hinted(errors.New(n.Text), n.Hints...)) }
	r, err := Run(l.ctx, o)
	if err != nil || !strings.Contains(said, "no branch is checked out") ||
		!strings.Contains(said, `"keep_commit","team":"demo","dir":"`+l.project+`","from":"`+r.Commit+`"`) {
		t.Errorf("the log is %q, %v", said, err)
	}
}
