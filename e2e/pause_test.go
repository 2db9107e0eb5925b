package e2e

import (
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"cadre/internal/team"
)

// pausable writes a team file with two tasks that wait for the file go.
func (w *world) pausable() {
	w.write("team.yaml", `name: demo
members: [{name: w, agent: shell, count: 2}]
tasks:
  - {id: one, run: 'echo $$ >>pids; while ! test -e go; do sleep 0.1; done'}
  - {id: two, run: 'echo $$ >>pids; while ! test -e go; do sleep 0.1; done'}
`)
}

// untilBegun waits until both tasks run, and returns the pids of their shells.
func (w *world) untilBegun() []string {
	w.t.Helper()
	eventually(w.t, "both tasks run", func() bool { return len(w.lines("pids")) == 2 })
	return w.lines("pids")
}

// paused checks that no process of the team is left and that its members are paused. Then it
// resumes the team and waits until all tasks are completed.
func (w *world) paused(pids []string) {
	w.t.Helper()
	for _, pid := range pids {
		if n, _ := strconv.Atoi(pid); syscall.Kill(n, 0) == nil {
			w.t.Errorf("process %s of a task is still running", pid)
		}
	}
	if text := w.must("status", "demo"); strings.Count(text, " paused ") != 2 || !strings.Contains(text, "dormant") {
		w.t.Errorf("after the pause:\n%s", text)
	}
	w.write("go", "")
	w.must("resume", "demo", "--plain")
	w.untilCompleted(2)
}

// TestPause: cadre pause ends the sessions of a team wherever they run, and resume continues the
// team.
func TestPause(t *testing.T) {
	t.Parallel()
	t.Run("a run in the foreground", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		w.pausable()
		p := w.start("run", "team.yaml", "--plain")
		pids := w.untilBegun()
		said := w.must("pause", "demo")
		if !strings.Contains(said,
			"team demo is paused: 2 sessions ended (w-1, w-2); to resume it: cadre resume demo") {
			t.Errorf("pause says %q", said)
		}
		if code := p.wait(); code != 1 || !strings.Contains(p.said(), "paused: cadre pause was called") {
			t.Errorf("the run ended with %d and said\n%s", code, p.said())
		}
		w.paused(pids)
	})
	t.Run("a run in the background", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		w.pausable()
		if said := w.must("run", "team.yaml", "--detach"); !strings.Contains(said, "pause it: cadre pause demo") {
			t.Errorf("run --detach says %q", said)
		}
		pids := w.untilBegun()
		p := read[struct {
			Members []string
			Hosts   int
			Team    team.Team
		}](w, "pause", "demo")
		if p.Hosts != 1 || strings.Join(p.Members, " ") != "w-1 w-2" || p.Team.Name != "demo" {
			t.Errorf("pause --json prints %+v", p)
		}
		w.paused(pids)
	})
	t.Run("a host in the background", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		w.must("create", "demo")
		for _, name := range []string{"w-1", "w-2"} {
			w.must("spawn", "demo", name, "--agent", "shell")
			w.must("task", "add", "demo", "wait", "--run", "echo $$ >>pids; while ! test -e go; do sleep 0.1; done")
		}
		pids := w.untilBegun()
		w.must("pause", "demo")
		w.paused(pids)
	})
}

// TestPauseAgain: a pause of a team without a host changes nothing, a pause that takes longer than
// its deadline says so, and an ended team is refused.
func TestPauseAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.write("team.yaml", `name: demo
members: [{name: w, agent: shell}]
tasks: [{id: one, run: "trap '' TERM; echo $$ >>pids; while :; do sleep 0.1; done"}]
`)
	p := w.start("run", "team.yaml", "--plain")
	eventually(t, "the task runs", func() bool { return len(w.lines("pids")) == 1 })
	w.refused(w.cadre("pause", "demo", "--deadline", "300ms"), 1, "team demo is not paused yet",
		"process "+strconv.Itoa(p.Process.Pid)+" still has to end its sessions", "cadre pause demo")
	w.must("pause", "demo")
	if code := p.wait(); code != 1 {
		t.Errorf("the run ended with %d:\n%s", code, p.said())
	}
	if said := w.must("pause", "demo"); !strings.Contains(said,
		"no process runs team demo; to resume it: cadre resume demo") {
		t.Errorf("the second pause says %q", said)
	}
	w.refused(w.cadre("pause", "nobody"), 2, "nobody")
	w.must("abort", "demo", "--yes")
	w.refused(w.cadre("pause", "demo"), 2, "team demo is aborted, and has no sessions to pause")
	if left, _ := os.ReadDir(w.home + "/teams/demo/hosts"); len(left) > 0 {
		t.Errorf("a host left %v", left)
	}
}
