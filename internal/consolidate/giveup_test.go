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

	"cadre/internal/journal/store"
	"cadre/internal/journal/store/filestore"
	"cadre/internal/sys/proc"
	"cadre/internal/team"
)

// TestGivenUpMeanwhile abandons a team while a check runs, and at the last moment. The check is
// ended, and nothing is committed.
func TestGivenUpMeanwhile(t *testing.T) {
	if testing.Short() {
		t.Skip("it runs git many times; not with -short")
	}
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
			other := *l // another process
			other.open()
			abort := func() { other.do(team.User, &team.SetStatus{Status: team.TeamAborted, Reason: "enough"}) }
			aborted := make(chan struct{})
			o := l.options()
			if point == "check" {
				go func() {
					defer close(aborted)
					if _, err := os.ReadFile(ready); err != nil { // the check is running
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
				t.Errorf("Run returns %v", err)
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
					t.Error("the check is still running")
				}
			}
			l.tidy()
		})
	}
}

// TestSettle checks that abandoning a team removes from the work tree what a killed consolidation
// had put there.
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

	l = newLab(t) // it waits for a running consolidation
	l.found()
	lock, err := filestore.Team(l.folder).Acquire(t.Context(), store.Consolidation)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancelCause(l.ctx)
	cancel(errors.New("enough"))
	if err := Settle(ctx, l.options()); team.CodeOf(err) != team.NotReady {
		t.Errorf("Settle returns %v", err)
	}
	lock.Release()
	if err := Settle(l.ctx, l.options()); err != nil {
		t.Error(err)
	}
}

// TestKilledWhenLifted kills the process after a failed check, when the work tree is restored and
// nothing is recorded yet. The check fails again.
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

// TestMarkedAndComplete checks that a team that was only marked for its end continues, and that a
// complete team can still be consolidated, or stays complete.
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
	l.refused("the check test failed", "nothing was committed, and the team stays complete")
	if s := l.replica.Team(); s.Status != team.TeamComplete {
		t.Errorf("%+v", s)
	}
	l.write("pass", "")
	o := l.options()
	o.Include = []string{"pass"}
	if r, err := Run(l.ctx, o); err != nil || r.Attempts != 2 || r.Commit != l.git("rev-parse", "HEAD") {
		t.Errorf("%+v, %v", r, err)
	}
	l.want(l.committed(), "A:new.txt", "A:pass")
}
