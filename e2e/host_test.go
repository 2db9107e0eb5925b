package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"cadre/internal/layout"
	"cadre/internal/replica"
	"cadre/internal/team"
)

// shellTeam creates the team demo with the tasks and with shell teammates s0, s1, …. It starts no
// host.
func (w *world) shellTeam(members int, tasks ...team.CreateTask) {
	w.t.Helper()
	w.shellTeamAt(time.Now(), members, tasks...)
}

// shellTeamAt is shellTeam with a clock that shows that time.
func (w *world) shellTeamAt(clock time.Time, members int, tasks ...team.CreateTask) {
	w.t.Helper()
	commands := founding(clock, &team.CreateTeam{Name: "demo", Dir: w.dir})
	for i := range members {
		commands = append(commands, command(clock, &team.SpawnMember{Name: fmt.Sprintf("s%d", i), Agent: team.Shell}))
	}
	for i := range tasks {
		tasks[i].Subject = fmt.Sprintf("task number %d", i+1)
		commands = append(commands, command(clock, &tasks[i]))
	}
	if err := (layout.Home{Root: w.home}).Create("demo", commands); err != nil {
		w.t.Fatal(err)
	}
}

// command returns a command of the user.
func command(clock time.Time, body team.Body) team.Command {
	return team.Command{ID: replica.NewID(), Actor: team.User, At: team.Time(clock.UnixMilli()), Body: body}
}

// founding returns the commands that create a team.
func founding(clock time.Time, body *team.CreateTeam) []team.Command {
	body.TeamID = body.Name + "-" + strings.ToLower(replica.NewID())
	return []team.Command{command(clock, body)}
}

// until polls the team until the condition holds.
func (w *world) until(what string, holds func(*team.State) bool) {
	w.t.Helper()
	rep := w.replica("demo")
	defer rep.Close()
	eventually(w.t, what, func() (ok bool) {
		if err := rep.Refresh(w.t.Context()); err != nil {
			w.t.Fatal(err)
		}
		rep.View(func(s *team.State) { ok = holds(s) })
		return ok
	})
}

func (w *world) untilCompleted(n int) {
	w.t.Helper()
	w.until(fmt.Sprintf("%d tasks are completed", n), func(s *team.State) bool { return s.Count(team.Completed) == n })
}

func (w *world) task(id string) (t team.Task) {
	w.t.Helper()
	rep := w.replica("demo")
	defer rep.Close()
	rep.View(func(s *team.State) { t, _ = s.Task(id) })
	return t
}

// hangOnce returns a task command whose first attempt hangs. Every later attempt is quick.
func hangOnce(mark string) string {
	return `echo $CADRE_TASK_ID >>ran; test $(grep -cx $CADRE_TASK_ID ran) -gt 1 || sleep ` + mark
}

func TestTasksComeBackWhenTheirHostIsKilled(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	mark := mark()
	w.shellTeam(2, team.CreateTask{Run: hangOnce(mark)}, team.CreateTask{Run: hangOnce(mark)},
		team.CreateTask{Run: "echo $CADRE_TASK_ID >>ran", BlockedBy: []string{"1", "2"}})
	host := w.start("host", "demo")
	eventually(t, "both tasks run", func() bool { return len(w.lines("ran")) >= 2 })
	host.kill()
	noneLeft(t, mark)
	w.start("host", "demo")
	w.untilCompleted(3)
	if ran := strings.Join(w.lines("ran"), " "); len(w.lines("ran")) != 5 || !strings.HasSuffix(ran, "3") {
		t.Errorf("the tasks ran in the order %s", ran)
	}
}

// TestTwoHosts checks two hosts that share the members. When one is killed, the other notices and
// takes its members over.
func TestTwoHosts(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	mark := mark()
	const members = 4
	tasks := make([]team.CreateTask, members)
	for i := range tasks {
		tasks[i].Run = "echo $CADRE_TASK_ID >>ran; sh -c 'until test -e go; do sleep 0.02; done' " + mark
	}
	w.shellTeam(members, tasks...)
	hosts := []*process{w.start("host", "demo"), w.start("host", "demo")}
	eventually(t, "all tasks run", func() bool { return len(w.lines("ran")) == members })
	attached := map[any]int{}
	for _, e := range w.history("demo") {
		if e.is("member_attached") {
			attached[e["member"]]++
		}
	}
	if len(attached) != members {
		t.Errorf("only %d members have a host", len(attached))
	}
	for name, n := range attached {
		if n != 1 {
			t.Errorf("%s was assigned to a host %d times", name, n)
		}
	}

	dies := hosts[0] // or the other one, if this one started too late to get a member
	if len(childrenOf(t, dies.Process.Pid, mark)) == 0 {
		dies = hosts[1]
	}
	dies.kill()
	died := time.Now()
	w.write("go", "")
	w.untilCompleted(members)
	t.Logf("all tasks were completed %s after the death of a host", time.Since(died).Round(time.Millisecond))
	noneLeft(t, mark)
	if ran := len(w.lines("ran")); ran <= members || ran > 2*members {
		t.Errorf("%d tasks were started %d times", members, ran)
	}
	for task, n := range w.count("demo", "task_completed") {
		if n != 1 {
			t.Errorf("task %s was completed %d times", task, n)
		}
	}
}

// TestDeathOfAHostIsNoticed checks that a killed host loses its members at once, long before their
// heartbeats count as silent.
func TestDeathOfAHostIsNoticed(t *testing.T) {
	w := newWorld(t)
	w.shellTeam(1)
	first := w.start("host", "demo")
	var was string
	w.until("the member is idle", func(s *team.State) bool {
		m, _ := s.Member("s0")
		was = m.Host
		return m.Status == team.Idle
	})
	second := w.start("host", "demo")
	eventually(t, "the second host runs", func() bool {
		hosts, _ := filepath.Glob(filepath.Join(w.home, "teams", "demo", "hosts", "*", "alive"))
		return len(hosts) == 2
	})
	first.kill()
	died := time.Now()
	w.until("another host has the member", func(s *team.State) bool {
		m, _ := s.Member("s0")
		return m.Host != was && m.Host != ""
	})
	t.Logf("noticed after %s", time.Since(died).Round(time.Millisecond))
	w.must("shutdown", "demo", "s0")
	if code := second.wait(); code != 0 {
		t.Errorf("the host without members ended with %d: %s", code, second.said())
	}
}

func TestShutdownEndsWhatIgnoresSIGTERM(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	mark := mark()
	w.shellTeam(1, team.CreateTask{Run: "trap '' TERM HUP INT; while :; do sleep " + mark + "; done"})
	w.start("host", "demo")
	eventually(t, "the task runs", func() bool { return len(marked(t, mark)) > 0 })
	began := time.Now()
	w.must("shutdown", "demo", "s0", "--deadline", "300ms")
	t.Logf("ended after %s", time.Since(began).Round(time.Millisecond))
	noneLeft(t, mark)
	if task := w.task("1"); task.Status != team.Pending || task.Owner != "" {
		t.Errorf("its task is %s, of %q", task.Status, task.Owner)
	}
}

// TestCommands checks what task commands can do to their teammate: print a lot, leave processes,
// hang, fail, be killed, or end badly.
func TestCommands(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	mark := mark()
	cases := []struct {
		team.CreateTask
		completed bool
		result    func(string) bool
		failure   string
	}{
		{CreateTask: team.CreateTask{Run: "echo begin; head -c 100000000 /dev/zero | tr '\\0' x; echo; echo end"},
			completed: true, result: func(s string) bool {
				return len(s) < 100_000 && strings.HasPrefix(s, "begin\nxxx") && strings.HasSuffix(s, "xxx\nend\n")
			}},
		{CreateTask: team.CreateTask{Run: "sleep " + mark + " & echo done"}, completed: true,
			result: func(s string) bool { return s == "done\n" }},
		// the time runs from the start of the shell, which is slow on a busy machine
		{CreateTask: team.CreateTask{Run: "echo before; (trap '' TERM HUP; sleep " + mark + ") & sleep " + mark,
			Timeout: 3 * time.Second},
			result: func(s string) bool { return s == "before\n" }, failure: "timed out after 3 s"},
		{CreateTask: team.CreateTask{Run: "echo try >>tries; test $(wc -l <tries) -eq 3", Retries: 2}, completed: true},
		{CreateTask: team.CreateTask{Run: "echo so; echo and so >&2; exit 3", Retries: 1},
			result: func(s string) bool { return s == "so\nand so\n" }, failure: "exit status 3"},
		{CreateTask: team.CreateTask{Run: "kill -9 $$"}, failure: "ended by signal: killed"},
		{CreateTask: team.CreateTask{Run: "printf '\\377\\000\\033[2J'"}, completed: true},
		{CreateTask: team.CreateTask{Run: "exec 0<&- 1>&- 2>&-; true"}, completed: true,
			result: func(s string) bool { return s == "" }},
		{CreateTask: team.CreateTask{Run: "read line || echo nobody types"}, completed: true,
			result: func(s string) bool { return s == "nobody types\n" }},
	}
	var tasks []team.CreateTask
	for _, c := range cases {
		tasks = append(tasks, c.CreateTask)
	}
	w.shellTeam(3, tasks...)
	w.start("host", "demo")
	w.until("every task is completed or failed", func(s *team.State) bool {
		for task := range s.Tasks() {
			if task.Status != team.Completed && !task.OutOfRetries() {
				return false
			}
		}
		return true
	})
	noneLeft(t, mark)
	for i, c := range cases {
		task := w.task(fmt.Sprint(i + 1))
		if (task.Status == team.Completed) != c.completed || !strings.Contains(task.Failure, c.failure) ||
			c.result != nil && !c.result(task.Result) {
			t.Errorf("%s: status %s, failure %q, result (%d bytes) %.60q", c.Run, task.Status, task.Failure,
				len(task.Result), task.Result)
		}
	}
	if tries := w.lines("tries"); len(tries) != 3 {
		t.Errorf("the task with a limit of 3 attempts ran %d times", len(tries))
	}
}

// TestHookThatNeverAgrees checks that a hook that rejects the result of a command fails the
// attempt: the command runs again as often as its task has retries, and the lead is told what the
// hook said.
func TestHookThatNeverAgrees(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	settings := filepath.Join(w.root, "claude", "settings.json")
	if err := os.MkdirAll(filepath.Dir(settings), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(settings,
		[]byte(
			`{"hooks": {"TaskCompleted": [{"hooks": [{"type": "command", "command": "echo not good enough >&2; exit 2"}]}]}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	w.shellTeam(1, team.CreateTask{Run: `echo "try with: $(echo $CADRE_FEEDBACK)" >>tries`, Retries: 2})
	w.start("host", "demo")
	w.until("the lead was told", func(s *team.State) bool {
		for _, m := range s.Inbox("lead") {
			if m.Type == team.TypeSystem && strings.Contains(m.Body, "out of retries after failure 3") &&
				strings.Contains(m.Body, "not good enough") {
				return true
			}
		}
		return false
	})
	w.until("the task has failed", func(s *team.State) bool {
		task, _ := s.Task("1")
		return task.OutOfRetries()
	})
	tries, err := os.ReadFile(filepath.Join(w.dir, "tries"))
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(tries), "try with"); n != 3 {
		t.Errorf("the command ran %d times", n)
	}
	if n := strings.Count(string(tries), "hook feedback"); n != 2 {
		t.Errorf("%d of the attempts got the hook's feedback", n)
	}
}

const runFile = `
name: demo
members: [{name: ann, agent: shell, count: 2}]
tasks:
  - {id: quick, run: echo quick >>ran}
  - {id: slow, run: 'echo slow >>ran; test -e go || sleep MARK'}
  - {id: last, run: echo last >>ran, blockedBy: [slow]}
`

func TestInterruptedRunGoesOn(t *testing.T) {
	t.Parallel()
	for _, signal := range []os.Signal{os.Interrupt, syscall.SIGTERM} {
		t.Run(signal.String(), func(t *testing.T) {
			w := newWorld(t)
			mark := mark()
			file := w.write("team.yaml", strings.ReplaceAll(runFile, "MARK", mark))
			p := w.start("run", file)
			eventually(t, "the slow task runs, the quick one is done", func() bool {
				return len(marked(t, mark)) > 0 && has(w.home, "teams", "demo") &&
					w.count("demo", "task_completed")["1"] == 1
			})
			w.refused(w.cadre("run", file), 1, "is being run already")
			p.Process.Signal(signal)
			if code := p.wait(); code != 1 || !strings.Contains(p.said(),
				"signal received; the same command continues where this one stopped. To ") ||
				!strings.Contains(p.said(), ": cadre resume demo") || !strings.Contains(p.said(), "note: stopping ") {
				t.Errorf("the run ended with %d: %s", code, p.said())
			}
			noneLeft(t, mark)
			report, _ := os.ReadFile(filepath.Join(w.dir, "demo-report.md"))
			if !strings.Contains(string(report), "quick") {
				t.Errorf("the report of the interrupted run: %s", report)
			}
			w.write("go", "")
			w.must("run", file)
			if ran := strings.Join(w.lines("ran"), " "); strings.Count(ran, "quick") != 1 ||
				strings.Count(ran, "slow") != 2 || !strings.HasSuffix(ran, "last") {
				t.Errorf("the tasks ran in the order %s", ran)
			}
		})
	}
}

func TestRunEndsInTime(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, file, flag, says string }{
		{"budget", runFile + "budget: {time: 1s}\n", "--timeout=1m", "the time budget of the team is spent"},
		// a busy machine takes more than a second to create the team, and without a team there is
		// no report
		{"timeout", runFile, "--timeout=5s", "the time limit of 5 s was reached"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			mark := mark()
			r := w.cadre("run", w.write("team.yaml", strings.ReplaceAll(c.file, "MARK", mark)), c.flag)
			if r.code != 1 || !strings.Contains(r.err, c.says) {
				t.Errorf("the run ended with %d: %s", r.code, r.err)
			}
			noneLeft(t, mark)
			report, err := os.ReadFile(filepath.Join(w.dir, "demo-report.md"))
			if err != nil || !strings.Contains(string(report), c.says) {
				t.Errorf("the report does not say why: %v\n%s", err, report)
			}
		})
	}
}

func TestForcedCleanup(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	mark := mark()
	w.must("create", "demo")
	w.must("spawn", "demo", "ann")
	w.must("spawn", "demo", "bob")
	w.must("task", "add", "demo", "hang", "--run", "trap '' TERM; sleep "+mark+" & while :; do sleep "+mark+"; done")
	w.must("task", "add", "demo", "hang too", "--run", "sleep "+mark)
	eventually(t, "both tasks run", func() bool { return len(marked(t, mark)) >= 3 })
	w.refused(w.cadre("cleanup", "demo", "--yes"), 1, "still runs")
	began := time.Now()
	w.must("cleanup", "demo", "--force")
	t.Logf("ended after %s", time.Since(began).Round(time.Millisecond))
	noneLeft(t, mark)
	for _, path := range []string{"cadre/teams/demo", "claude/teams/demo", "claude/tasks/demo"} {
		if has(w.root, path) {
			t.Errorf("%s is left", path)
		}
	}
	if left, _ := os.ReadDir(filepath.Join(w.home, "teams")); len(left) > 0 {
		t.Errorf("%v are left", left)
	}
	w.refused(w.cadre("cleanup", "demo", "--yes"), 2, "team demo does not exist, and nothing is left to remove")
}

// TestHostsEndWithTheirTeam checks that the end of a team ends its host, even without a request to
// the host.
func TestHostsEndWithTheirTeam(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.shellTeam(1)
	host := w.start("host", "demo")
	w.until("the member is idle", func(s *team.State) bool {
		m, _ := s.Member("s0")
		return m.Status == team.Idle
	})
	w.must("cleanup", "demo", "--force")
	if code := host.wait(); code != 0 {
		t.Errorf("the host ended with %d: %s", code, host.said())
	}
}
