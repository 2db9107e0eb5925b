package consolidate

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"cadre/internal/proc"
	"cadre/internal/team"
)

// A team that has worked in a repository is not completed where that, or git, is not to be found: what it did would never be committed.
func TestWhereNothingCanBeCommitted(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.found(team.Check{Name: "test", Command: "true"})
	l.write("new.txt", "the team's\n")
	hidden := filepath.Join(l.folder, "git")
	if err := os.Rename(filepath.Join(l.project, ".git"), hidden); err != nil {
		t.Fatal(err)
	}
	if err := l.refused(l.project, "in none any more", "--no-commit"); team.CodeOf(err) != team.NotReady || l.desk.Team().Status != team.TeamActive {
		t.Errorf("%v, and the team is %s", err, l.desk.Team().Status)
	}
	if err := os.Rename(hidden, filepath.Join(l.project, ".git")); err != nil {
		t.Fatal(err)
	}
	l.consolidating("made") // the commit is there, and HEAD does not name it yet
	if err := os.Rename(filepath.Join(l.project, ".git"), hidden); err != nil {
		t.Fatal(err)
	}
	l.refused("stays as it is")
	if err := os.Rename(hidden, filepath.Join(l.project, ".git")); err != nil {
		t.Fatal(err)
	}
	if r := l.run(); r.Attempts != 1 || r.Commit != l.git("rev-parse", "HEAD") {
		t.Errorf("%+v", r)
	}
}

// Without git on PATH neither: nothing is given up, and with it all goes on.
func TestWithoutGit(t *testing.T) {
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
	without("no git", "PATH", "--no-commit")
	if s := l.desk.Team(); s.Status != team.TeamActive || s.Consolidation.Attempt != 0 {
		t.Errorf("the team is %+v", s)
	}
	l.consolidating("landed")
	without("no git", "stays as it is")
	l.run()
	l.want(l.committed(), "A:hers.txt", "A:new.txt")
	l.tidy()

	l = newLab(t)
	l.found()
	without("no git")
	o := l.options()
	o.NoCommit = true
	if r, err := Run(l.ctx, o); err != nil || r.Commit != "" {
		t.Errorf("%+v, %v", r, err)
	}
}

// A team that is given up while a check runs has that ended, and nothing is committed; nor when it is given up at the last moment.
func TestGivenUpMeanwhile(t *testing.T) {
	t.Parallel()
	for _, point := range []string{"check", "commit", "made"} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			l := newLab(t)
			pid := filepath.Join(l.folder, "pid")
			ready := filepath.Join(l.folder, "ready")
			if err := syscall.Mkfifo(ready, 0o600); err != nil {
				t.Fatal(err)
			}
			command := "true"
			if point == "check" {
				command = fmt.Sprintf("echo $$ > %s; echo > %s; exec tail -f /dev/null", pid, ready)
			}
			l.found(team.Check{Name: "test", Command: command})
			l.isolate("eve", "hers.txt")
			l.write("new.txt", "the team's\n")
			before := l.scene()
			other := *l // the desk of somebody else
			other.open()
			abort := func() { other.do(team.User, &team.SetStatus{Status: team.TeamAborted, Reason: "enough"}) }
			aborted := make(chan struct{})
			o := l.options()
			if point == "check" {
				go func() {
					defer close(aborted)
					if _, err := os.ReadFile(ready); err != nil { // the check runs
						t.Error(err)
					}
					abort()
				}()
			} else {
				o.at = func(now string) {
					if now == point {
						abort()
						close(aborted)
					}
				}
			}
			if _, err := Run(l.ctx, o); err == nil || l.ctx.Err() != nil {
				t.Errorf("it ends with %v", err)
			}
			<-aborted
			if s := l.desk.Team(); s.Status != team.TeamAborted || s.Consolidation.Step != team.Abandoned {
				t.Errorf("the team is %+v", s)
			}
			if after := l.scene(); after != before {
				t.Errorf("it was\n%s\nand is\n%s", before, after)
			}
			if text, err := os.ReadFile(pid); err == nil {
				running, _ := strconv.Atoi(strings.TrimSpace(string(text)))
				if start, err := proc.StartTime(running); err == nil && proc.Alive(running, start) {
					syscall.Kill(running, syscall.SIGKILL)
					t.Error("the check runs on")
				}
			}
			l.tidy()
		})
	}
}

// What a consolidation that was killed had brought into the work tree is gone when the team is given up.
func TestSettle(t *testing.T) {
	t.Parallel()
	l, _ := prepared(t, true)
	before := l.scene()
	l.consolidating("landed")
	l.do(team.User, &team.SetStatus{Status: team.TeamAborted})
	if l.scene() == before {
		t.Error("nothing had come in")
	}
	if err := Settle(l.ctx, l.options()); err != nil {
		t.Fatal(err)
	}
	if after := l.scene(); after != before {
		t.Errorf("it was\n%s\nand is\n%s", before, after)
	}
	l.tidy()

	l = newLab(t) // it waits for one that is at it
	l.found()
	lock, err := proc.NewLock(filepath.Join(l.folder, lockFile))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancelCause(l.ctx)
	cancel(errors.New("enough"))
	if err := Settle(ctx, l.options()); team.CodeOf(err) != team.NotReady {
		t.Errorf("it ends with %v", err)
	}
	lock.Unlock()
	if err := Settle(l.ctx, l.options()); err != nil {
		t.Error(err)
	}
}

// A failed check whose process was killed when the work tree was as before again, and nothing recorded yet, fails again.
func TestKilledWhenLifted(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.found(team.Check{Name: "bad", Command: "test -f hers.txt && exit 3"})
	l.isolate("eve", "hers.txt")
	before := l.scene()
	if points, killed := l.consolidating("lifted"); !killed {
		t.Fatalf("it was not killed, after %v", points)
	}
	if after := l.scene(); after != before {
		t.Errorf("it was\n%s\nand is\n%s", before, after)
	}
	if err := l.desk.Refresh(l.ctx); err != nil {
		t.Fatal(err)
	}
	l.refused("the check bad failed: exit status 3")
	if after := l.scene(); after != before {
		t.Errorf("it was\n%s\nand is\n%s", before, after)
	}
	l.tidy()
}

// On a branch of checkpoints, which changes under the work tree, nothing is anybody's work.
func TestBranchOfCheckpoints(t *testing.T) {
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
	l.refused("branch of checkpoints cadre/demo", "check out another one")
	if l.git("rev-parse", "HEAD") != head || l.desk.Team().Status != team.TeamActive {
		t.Errorf("the team is %+v", l.desk.Team())
	}
	l.git("checkout", "-q", "main")
	l.git("checkout", "-qb", "cadre/work") // somebody's own
	l.run()
	l.want(l.committed(), "A:new.txt")
}

// That a commit is on no branch is told.
func TestDetachedHeadIsTold(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.git("checkout", "-q", "--detach")
	l.found()
	l.write("new.txt", "the team's\n")
	said := ""
	o := l.options()
	o.Log = func(text string) { said += text }
	r, err := Run(l.ctx, o)
	if err != nil || !strings.Contains(said, "no branch is checked out") || !strings.Contains(said, "git branch NAME "+r.Commit[:12]) {
		t.Errorf("it said %q, %v", said, err)
	}
}

// A team that was only marked for its end goes on; and one that is complete is consolidated after all, or stays complete.
func TestMarkedAndComplete(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.found(team.Check{Name: "test", Command: "test -f pass"})
	l.do(team.User, &team.SetStatus{Status: team.TeamConsolidating})
	l.do("lead", &team.CreateTask{Subject: "more"})
	l.refused("task 2 (more) is open", "cadre consolidate demo --roll-back")
	if err := RollBack(l.ctx, l.options(), "there is more to do"); err != nil || l.desk.Team().Status != team.TeamActive {
		t.Errorf("%v: %+v", err, l.desk.Team())
	}
	l.do("lead", &team.CompleteTask{Task: "2"})
	l.write("new.txt", "the team's\n")
	l.do(team.User, &team.SetStatus{Status: team.TeamComplete})
	if err := RollBack(l.ctx, l.options(), "no"); team.CodeOf(err) != team.Nothing {
		t.Error(err)
	}
	l.refused("the check test failed", "nothing was committed, and the team is complete, as it was")
	if s := l.desk.Team(); s.Status != team.TeamComplete {
		t.Errorf("%+v", s)
	}
	l.write("pass", "")
	if r := l.run(); r.Attempts != 2 || r.Commit != l.git("rev-parse", "HEAD") {
		t.Errorf("%+v", r)
	}
	l.want(l.committed(), "A:new.txt", "A:pass")
}

// Where another team has worked in the same work tree only what was named is committed, and the rest is as it was.
func TestBeside(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.found(team.Check{Name: "test", Command: "test -f pass"})
	l.write("ours/a.txt", "the team's\n")
	l.write("ours/pass", "\n")
	l.write("theirs.txt", "another team's\n")
	l.isolate("eve", "hers.txt")
	seq := l.desk.Seq()
	o := l.options()
	o.Beside = func(context.Context) ([]string, error) { return []string{"other"}, nil }
	_, err := Run(l.ctx, o)
	if team.CodeOf(err) != team.Conflict || l.desk.Seq() != seq {
		t.Fatal(err)
	}
	for _, words := range []string{"team other works in " + l.project, "ours/a.txt, ours/pass, theirs.txt", "cadre consolidate demo --only PATH"} {
		if !strings.Contains(err.Error(), words) {
			t.Errorf("%v does not say %q", err, words)
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
	if dirty := l.desk.Team().Base.Dirty; len(dirty) > 0 {
		t.Errorf("what was not named is taken for what the checks left: %+v", dirty)
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

	here := team.Team{ID: "a", CreatedAt: 10, Base: team.Base{Top: "/p"}}
	for what, c := range map[string]struct {
		other team.Team
		is    bool
	}{
		"itself":                    {here, false},
		"at work":                   {team.Team{ID: "b", Status: team.TeamActive, Base: team.Base{Top: "/p"}}, true},
		"ending":                    {team.Team{ID: "b", Status: team.TeamConsolidating, Base: team.Base{Top: "/p"}}, true},
		"elsewhere":                 {team.Team{ID: "b", Status: team.TeamActive, Base: team.Base{Top: "/q"}}, false},
		"where nobody could tell":   {team.Team{ID: "b", Status: team.TeamActive, Dir: "/p/sub"}, true},
		"nobody could, elsewhere":   {team.Team{ID: "b", Status: team.TeamActive, Dir: "/pp"}, false},
		"not begun":                 {team.Team{ID: "b", Status: team.TeamPending, Base: team.Base{Top: "/p"}}, false},
		"ended before":              {team.Team{ID: "b", Status: team.TeamComplete, UpdatedAt: 9, Base: team.Base{Top: "/p"}}, false},
		"ended since":               {team.Team{ID: "b", Status: team.TeamComplete, UpdatedAt: 11, Base: team.Base{Top: "/p"}}, true},
		"given up since":            {team.Team{ID: "b", Status: team.TeamAborted, UpdatedAt: 11, Base: team.Base{Top: "/p"}}, true},
		"committed":                 {team.Team{ID: "b", Status: team.TeamComplete, UpdatedAt: 11, Base: team.Base{Top: "/p"}, Consolidation: team.Consolidation{Step: team.Done}}, false},
		"complete without a commit": {team.Team{ID: "b", Status: team.TeamComplete, UpdatedAt: 11, Base: team.Base{Top: "/p"}, Consolidation: team.Consolidation{Step: team.Done, NoCommit: true}}, true},
		"removed":                   {team.Team{ID: "b", Status: team.TeamActive, CleanedUp: true, Base: team.Base{Top: "/p"}}, false},
	} {
		if Beside(here, c.other) != c.is {
			t.Errorf("a team that is %s: %t", what, !c.is)
		}
	}
}
