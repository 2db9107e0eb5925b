package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"cadre/internal/liveness/heartbeat"
	"cadre/internal/team"
	"cadre/internal/testkit/treetest"
)

// untouched checks that a function changes nothing in the user's folders.
func (w *world) untouched(what string, do func()) {
	w.t.Helper()
	unchanged := treetest.Keep(w.t, w.root)
	do()
	unchanged(what)
}

// treeOf returns the paths of everything in a folder.
func treeOf(t *testing.T, dir string) (all []string) {
	t.Helper()
	if err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		all = append(all, path)
		if errors.Is(err, fs.ErrNotExist) { // it has just been removed
			err = nil
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return all
}

// TestProbeTouchesNothing checks that commands that only read change nothing, even if no process
// runs for the team.
func TestProbeTouchesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	mark := mark()
	p := w.start("run", w.write("team.yaml", strings.ReplaceAll(runFile, "MARK", mark)))
	eventually(t, "the slow task runs, the quick one is done", func() bool {
		return len(marked(t, mark)) > 0 && has(w.home, "teams", "demo") && w.count("demo", "task_completed")["1"] == 1
	})
	seq, files, since := int64(0), "", time.Now()
	eventually(t, "it has nothing more to record, and its checkpoint is made", func() bool {
		now, there := read[struct{ Seq int64 }](w, "probe", "demo").Seq, strings.Join(treeOf(t, w.home), "\n")
		if now != seq || there != files {
			seq, files, since = now, there, time.Now()
		}
		return time.Since(since) > time.Second
	})
	w.untouched("probe of a team that runs", func() {
		order(t, w.must("probe", "demo"), "and is alive", "2 online")
	})
	p.killAll(mark)
	w.untouched("probe of a team that is dormant", func() {
		order(t, w.must("probe", "demo"), "has ended", "2 offline")
		w.must("ls")
		w.must("status", "demo")
		w.refused(w.cadre("review", "demo"), 1, "team demo is dormant, not at its end")
	})
}

// TestReviewChangesNothing checks that a team that has ended can be read, and not changed.
func TestReviewChangesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.must("run", w.write("team.yaml", "name: demo\nmembers: [{name: ann}, {name: eve, agent: external}]\ntasks: "+
		"[{id: one, run: echo it is done}]\n"))
	w.untouched("reading a team that has ended", func() {
		order(t, w.must("review", "demo"), "✓ it is complete", "members: 1 outside, 2 ended", "1 of 1 task done",
			"completed", "ann", "it is done", "report: "+w.dir)
		value := read[struct {
			Team struct{ Status string }
			All  []struct{ Result string }
		}](w, "review", "demo")
		if value.Team.Status != "complete" || len(value.All) != 1 || value.All[0].Result != "it is done\n" {
			t.Errorf("the review is %+v", value)
		}
		for _, args := range [][]string{
			{"task", "add", "demo", "more"}, {"task", "claim", "demo", "1", "--as", "eve"},
			{"send", "demo", "--to", "eve", "hello"}, {"broadcast", "demo", "hello"},
			{"spawn", "demo", "bob", "--agent", "external"},
			{"resume", "demo"}, {"resume", "demo", "--take-over"}, {"reassign", "demo", "1", "eve", "--force"},
			{"resend", "demo", "eve"}, {"abort", "demo", "--yes"}, {"facts", "demo", "--record"},
			{"budget", "demo", "--tokens", "5"}, {"delegate", "demo", "on"}, {"shutdown", "demo", "--graceful"},
		} {
			if r := w.cadre(args...); r.code != 2 || r.out != "" {
				t.Errorf("cadre %s: exit status %d\n%s%s", strings.Join(args, " "), r.code, r.out, r.err)
			}
		}
	})
}

// TestAbort checks that an abort ends everything at once, even processes that ignore signals, and
// keeps the record.
func TestAbort(t *testing.T) {
	t.Parallel()
	for _, alive := range []bool{true, false} {
		t.Run(fmt.Sprintf("with a host: %t", alive), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			mark := mark()
			w.shellTeam(2, team.CreateTask{Run: "trap '' TERM INT HUP; echo on >>ran; while :; do sleep " + mark +
				"; done"}, team.CreateTask{Run: "echo on >>ran; sleep " + mark})
			host := w.start("host", "demo")
			eventually(t, "both tasks run", func() bool { return len(w.lines("ran")) == 2 && len(marked(t, mark)) > 2 })
			if !alive {
				host.killHost(true)
				if len(marked(t, mark)) == 0 {
					t.Fatal("no process outlived the host")
				}
			}
			w.must("abort", "demo", "--reason", "a fire")
			if left := marked(t, mark); len(left) > 0 {
				t.Errorf("processes left: %v", left)
			}
			if alive {
				if code := host.wait(); code != 0 {
					t.Errorf("the host ended with %d: %s", code, host.said())
				}
			}
			noneLeft(t, mark)
			w.must("abort", "demo", "--yes")
			order(t, w.must("review", "demo"), "! it is aborted", "members: ", "ended", "0 of 2 tasks done")
			order(t, w.must("log", "demo"), "a fire")
			w.refused(w.cadre("resume", "demo"), 2, "team demo is aborted. To see what it did: cadre review demo")
			if state := w.state(); state != "aborted" {
				t.Errorf("it is %s", state)
			}
		})
	}
}

// TestDormant checks the state dormant: no process of the team is alive, although one should be.
func TestDormant(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.must("create", "demo")
	state := func(want string) {
		t.Helper()
		if is := w.state(); is != want {
			t.Errorf("the state is %s, want %s", is, want)
		}
		var all []struct{ Dormant bool }
		if err := json.Unmarshal([]byte(w.must("ls", "--json")), &all); err != nil || len(all) != 1 ||
			all[0].Dormant != (want == "dormant") {
			t.Errorf("got %+v (%v), want one team that is %s", all, err, want)
		}
	}
	state("pending")
	w.must("spawn", "demo", "eve", "--agent", "external")
	state("active") // people need no process
	lead := w.mcp("mcp", "--team", "demo")
	state("active")
	lead.kill()
	lead.wait()
	state("dormant")
	w.must("resume", "demo")
	state("active")
	w.must("spawn", "demo", "sh", "--agent", "shell")
	state("active")
	var b heartbeat.Beat
	eventually(t, "its session sends a heartbeat", func() (there bool) {
		var err error
		if b, there, err = w.beats().Of(t.Context(), "sh"); err != nil {
			t.Fatal(err)
		}
		return there
	})
	if !has(w.home, "teams", "demo", "hosts", b.Host, "alive") || b.Pid == 0 {
		t.Fatalf("the heartbeat is %+v", b)
	}
	if err := syscall.Kill(b.Pid, syscall.SIGKILL); err != nil { // the host, by its heartbeat
		t.Fatal(err)
	}
	eventually(t, "it is dormant", func() bool { return w.state() == "dormant" })
	w.must("resume", "demo")
	state("active")
	w.must("abort", "demo", "--yes")
	state("aborted")
}
