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

	"cadre/internal/sys/filelock"
	"cadre/internal/sys/proc"
	"cadre/internal/team"
)

// A team that is given up while a check runs has that ended, and nothing is committed; nor when it
// is given up at the last moment.
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
			other := *l // the replica of somebody else
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
			if s := l.replica.Team(); s.Status != team.TeamAborted || s.Consolidation.Step != team.Abandoned {
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

// What a consolidation that was killed had brought into the work tree is gone when the team is
// given up.
func TestSettle(t *testing.T) {
	if testing.Short() {
		t.Skip("it runs git many times; not with -short")
	}
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
	lock, err := filelock.New(filepath.Join(l.folder, lockFile))
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

// A failed check whose process was killed when the work tree was as before again, and nothing
// recorded yet, fails again.
func TestKilledWhenLifted(t *testing.T) {
	if testing.Short() {
		t.Skip("it runs git many times; not with -short")
	}
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
	if err := l.replica.Refresh(l.ctx); err != nil {
		t.Fatal(err)
	}
	l.refused("the check bad failed: exit status 3")
	if after := l.scene(); after != before {
		t.Errorf("it was\n%s\nand is\n%s", before, after)
	}
	l.tidy()
}

// A team that was only marked for its end goes on; and one that is complete is consolidated after
// all, or stays complete.
func TestMarkedAndComplete(t *testing.T) {
	if testing.Short() {
		t.Skip("it runs git many times; not with -short")
	}
	t.Parallel()
	l := newLab(t)
	l.found(team.Check{Name: "test", Command: "test -f pass"})
	l.do(team.User, &team.SetStatus{Status: team.TeamConsolidating})
	l.do("lead", &team.CreateTask{Subject: "more"})
	l.refused("task 2 (more) is open", `{"action":"roll_back","team":"demo"}`)
	if err := RollBack(l.ctx, l.options(), "there is more to do"); err != nil ||
		l.replica.Team().Status != team.TeamActive {
		t.Errorf("%v: %+v", err, l.replica.Team())
	}
	l.do("lead", &team.CompleteTask{Task: "2"})
	l.write("new.txt", "the team's\n")
	l.do(team.User, &team.SetStatus{Status: team.TeamComplete})
	if err := RollBack(l.ctx, l.options(), "no"); team.CodeOf(err) != team.Nothing {
		t.Error(err)
	}
	l.refused("the check test failed", "nothing was committed, and the team is complete, as it was")
	if s := l.replica.Team(); s.Status != team.TeamComplete {
		t.Errorf("%+v", s)
	}
	l.write("pass", "")
	if r := l.run(); r.Attempts != 2 || r.Commit != l.git("rev-parse", "HEAD") {
		t.Errorf("%+v", r)
	}
	l.want(l.committed(), "A:new.txt", "A:pass")
}
