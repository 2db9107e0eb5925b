package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"cadre/internal/team"
)

// healthFile is the template health with changed tasks. They write a line when they start and
// leave a process when they end. They are slow enough to be killed in between.
func healthFile(t *testing.T, mark string) string {
	t.Helper()
	text, err := os.ReadFile("../internal/run/templates/builtin/health.yaml")
	if err != nil {
		t.Fatal(err)
	}
	const run = "    run: |\n"
	if !strings.Contains(string(text), run) {
		t.Fatal("the tasks of the template health have changed; adapt this test")
	}
	return strings.ReplaceAll(string(text), run, run+"      echo $CADRE_TASK_ID >>ran; sleep "+mark+
		" & sleep 0.$CADRE_TASK_ID\n")
}

// TestRunGoesOnAfterKill checks that a run continues where it stopped when it was killed at any
// moment, with its watchdog or without.
func TestRunGoesOnAfterKill(t *testing.T) {
	t.Parallel()
	rounds := 8
	if testing.Short() {
		rounds = 3
	}
	w := newWorld(t)
	w.repository()
	mark := mark()
	file := w.write("health.yaml", healthFile(t, mark))
	// finished maps each task to how often it had run when it was recorded as completed.
	finished := map[string]int{}
	seq := int64(0)
	status := func() string { return read[struct{ Status string }](w, "status", "health").Status }
	for round := range rounds {
		// These are left from the round before, whose watchdog was killed too. This run ends them,
		// unless it is killed before.
		before := marked(t, mark)
		p := w.start("run", file)
		// Kill at this record, or when one more task is completed, whichever comes first.
		target := seq + 1 + rand.Int64N(24)
		seq = w.awaitState(p, "health", func(s *team.State) bool {
			if round%3 == 2 {
				return s.Count(team.Completed) > len(finished)
			}
			return s.Seq() >= target
		})
		p.killHost(round%2 == 1)
		if round%2 == 0 {
			noneLeft(t, mark, before...) // the watchdog ensures that
		}
		for task := range w.count("health", "task_completed") {
			if _, known := finished[task]; !known {
				finished[task] = times(w.lines("ran"), task)
			}
		}
		if status() == "complete" {
			break
		}
	}
	if status() != "complete" { // otherwise the last kill came after the last record, and the file would start over
		w.must("run", file)
	}
	noneLeft(t, mark)
	t.Logf("%d tasks were completed by killed runs, the history had %d records", len(finished), seq)

	completed := w.count("health", "task_completed")
	if len(completed) != 7 {
		t.Errorf("%d tasks are completed", len(completed))
	}
	for task, n := range completed {
		if n != 1 {
			t.Errorf("task %s was recorded as completed %d times", task, n)
		}
	}
	for task, before := range finished {
		if now := times(w.lines("ran"), task); now != before {
			t.Errorf("task %s ran again after it was completed, %d times", task, now-before)
		}
	}
	report, err := os.ReadFile(filepath.Join(w.dir, "health-report.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, task := range read[[]struct{ Subject string }](w, "task", "list", "health") {
		if !strings.Contains(string(report), task.Subject) {
			t.Errorf("the report lacks %q", task.Subject)
		}
	}
	if strings.Contains(string(report), "not done") || strings.Contains(string(report), "Not run") {
		t.Errorf("the report says that the team is unfinished:\n%s", report)
	}
}

func times(all []string, one string) (n int) {
	for _, s := range all {
		if s == one {
			n++
		}
	}
	return n
}

// awaitState waits until the condition holds for the team, or the process has ended. It returns the
// seq of the team's last record.
func (w *world) awaitState(p *process, name string, holds func(*team.State) bool) (seq int64) {
	w.t.Helper()
	eventually(w.t, "the team exists", func() bool { return has(w.home, "teams", name) || p.over() })
	rep := w.replica(name)
	defer rep.Close()
	eventually(w.t, "the run is far enough to be killed", func() (enough bool) {
		if err := rep.Refresh(w.t.Context()); err != nil {
			w.t.Fatal(err)
		}
		rep.View(func(s *team.State) { enough = holds(s) })
		return enough || p.over()
	})
	return rep.Seq()
}

func (p *process) over() bool {
	select {
	case <-p.gone:
		return true
	default:
		return false
	}
}

// killHost kills the process. With watchdogToo it first kills the watchdog. The process is stopped
// meanwhile, so that it cannot start another watchdog.
func (p *process) killHost(watchdogToo bool) {
	p.t.Helper()
	if watchdogToo {
		p.Process.Signal(syscall.SIGSTOP)
		for _, pid := range childrenOf(p.t, p.Process.Pid, "cadre-watchdog") {
			syscall.Kill(pid, syscall.SIGKILL)
		}
	}
	p.kill()
}

func childrenOf(t *testing.T, parent int, what string) []int {
	t.Helper()
	out, err := exec.Command("ps", "-A", "-o", "pid=,ppid=,args=").Output()
	if err != nil {
		t.Fatal(err)
	}
	var pids []int
	for line := range strings.Lines(string(out)) {
		fields := strings.Fields(line)
		pid, _ := strconv.Atoi(fields[0])
		if fields[1] == strconv.Itoa(parent) && strings.Contains(line, what) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// TestKilledCommands checks commands that are killed, or whose host is killed. A command that
// reported success is done exactly once. A killed command is done once or not at all.
func TestKilledCommands(t *testing.T) {
	kills := 120
	if testing.Short() {
		kills = 24
	}
	w := newWorld(t)
	w.create(4, 0)
	// usual is how long a command takes at the moment. It changes with the load of the machine.
	var usual atomic.Int64
	began := time.Now()
	w.must("task", "add", "demo", "how long does it take here?")
	usual.Store(int64(time.Since(began)))
	type outcome struct {
		what         string
		acknowledged bool
	}
	outcomes := make(chan outcome)
	killed := 0
	loops := 4
	for loop := range loops {
		go func() {
			for i := 0; i < kills; i++ {
				what := fmt.Sprintf("%d-%d", loop, i)
				member := fmt.Sprintf("m%d", loop)
				c := exec.Command(cadre, "task", "add", "demo", what, "--as", member)
				switch i % 3 {
				case 1:
					c = exec.Command(cadre, "send", "demo", "--as", member, "--to", "lead", what)
				case 2:
					what = "" // the task in the output says what was claimed
					c = exec.Command(cadre, "task", "claim", "demo", "--next", "--as", member, "--json")
				}
				var out bytes.Buffer
				c.Dir, c.Env, c.Stdout = w.dir, w.env, &out
				began := time.Now()
				if err := c.Start(); err != nil {
					t.Error(err)
					break
				}
				killer := time.AfterFunc(time.Duration(rand.Int64N(3*usual.Load())), func() { c.Process.Kill() })
				err := c.Wait()
				killer.Stop()
				if err == nil {
					usual.Store(int64(time.Since(began)))
				}
				switch code := c.ProcessState.ExitCode(); {
				case code == 1 && i%3 == 2: // there was no task to claim
					continue
				case code > 0:
					t.Errorf("%s: %v", strings.Join(c.Args[1:], " "), err)
				case what == "" && err == nil:
					var claimed struct{ Subject string }
					if err := json.Unmarshal(out.Bytes(), &claimed); err != nil {
						t.Error(err)
					}
					what = member + " claimed " + claimed.Subject
				}
				outcomes <- outcome{what, err == nil}
			}
			outcomes <- outcome{what: "over"}
		}()
	}
	acknowledged := map[string]bool{}
	for loops > 0 {
		o := <-outcomes
		switch {
		case o.what == "over":
			loops--
		case o.acknowledged:
			acknowledged[o.what] = true
		default:
			killed++
			if o.what != "" {
				acknowledged[o.what] = false
			}
		}
	}
	t.Logf("%d commands were killed", killed)
	if killed < kills/2 {
		t.Errorf("only %d commands were killed", killed)
	}
	found := map[string]int{}
	rep := w.replica("demo")
	rep.View(func(s *team.State) {
		for task := range s.Tasks() {
			found[task.Subject]++
			if task.Owner != "" {
				found[task.Owner+" claimed "+task.Subject]++
			}
		}
		for _, m := range s.Inbox("lead") {
			found[m.Body]++
		}
	})
	delete(found, "how long does it take here?")
	for what, ok := range acknowledged {
		if n := found[what]; n > 1 || ok && n == 0 {
			t.Errorf("%s is there %d times, acknowledged: %t", what, n, ok)
		}
		delete(found, what)
	}
	for what := range found {
		if !strings.Contains(what, " claimed ") { // a killed claim did not say which task it was for
			t.Errorf("no process sent %s", what)
		}
	}
	for task, n := range w.count("demo", "task_claimed") {
		if n != 1 {
			t.Errorf("task %s was claimed %d times", task, n)
		}
	}
}

// TestChangedFileSurvivesKill checks a changed team file when the run that applies it is killed.
// The change is applied completely or not at all, and the next run continues from there.
func TestChangedFileSurvivesKill(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	file := func(tasks string) string {
		return w.write("team.yaml", "name: demo\nmembers: [{name: ann}]\ntasks:\n"+tasks)
	}
	name := file("  - {id: a, run: echo a >>ran}\n  - {id: b, run: 'false', blockedBy: [a]}\n")
	if r := w.cadre("run", name); r.code != 1 { // task b fails
		t.Fatalf("got %+v, want status 1 because task b fails", r)
	}
	before := w.seq()
	happened := func(kind string) (n int) {
		for _, e := range w.history("demo") {
			if e.is(kind) {
				n++
			}
		}
		return n
	}
	file("  - {id: a, run: echo a >>ran}\n  - {id: c, run: echo c >>ran, blockedBy: [a]}\n" +
		"  - {id: d, run: sleep 0.2; echo d >>ran, blockedBy: [c]}\n")
	for round := range 6 {
		p := w.start("run", name, "--yes")
		w.awaitState(p, "demo", func(s *team.State) bool { return s.Seq() >= before+int64(round) })
		p.killHost(round%2 == 1)
		// Tasks b, c and d change together.
		deleted, created := happened("task_deleted"), happened("task_created")
		if (deleted == 1) != (created == 4) || created != 2 && created != 4 {
			t.Fatalf("%d tasks were deleted and %d created", deleted, created)
		}
		if read[struct{ Status string }](w, "status", "demo").Status == "complete" {
			break
		}
	}
	if read[struct{ Status string }](w, "status", "demo").Status != "complete" {
		w.must("run", name, "--yes")
	}
	if n := happened("team_revised"); n != 1 {
		t.Errorf("the file was applied %d times", n)
	}
	if times(w.lines("ran"), "a") != 1 || times(w.lines("ran"), "c") < 1 || times(w.lines("ran"), "d") < 1 {
		t.Errorf("it ran %v", w.lines("ran"))
	}
}
