package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"cadre/internal/team"
)

// screened writes a team file with two tasks that take a few seconds. Each writes to the file begun
// when it begins. The second one fails unless the file mended is there.
func (w *world) screened() {
	w.write("team.yaml", `name: demo
goal: Try the screen
members: [{name: w, agent: shell, count: 2}]
tasks:
  - {id: one, subject: First, run: 'echo one >>begun; while ! test -e go; do sleep 0.1; done; echo result of one'}
  - {id: two, subject: Second, run: 'echo two >>begun; while ! test -e go; do sleep 0.1; done; echo result of two; test -e mended'}
`)
}

// runs runs the team file at a terminal, and waits until the screen is open.
func (w *world) runs(args ...string) *terminal {
	w.t.Helper()
	w.screened()
	p := w.terminalOf(100, 30, append([]string{cadre, "run", "team.yaml", "--teammate-mode", "in-process"}, args...)...)
	p.opens()
	return p
}

// drawn reports whether the terminal shows a screen, and not its lines.
func (p *terminal) drawn() bool {
	return strings.TrimSpace(p.do("display-message", "-p", "#{alternate_on}")) == "1"
}

func (p *terminal) opens() {
	p.t.Helper()
	p.wait("the screen does not open", func() bool { return p.drawn() && strings.Contains(p.screen(), "MEMBER") })
}

// front returns the pid of the command that was started in the terminal.
func (p *terminal) front() int {
	p.t.Helper()
	pid, err := strconv.Atoi(strings.TrimSpace(p.do("display-message", "-p", "#{pane_pid}")))
	if err != nil {
		p.t.Fatal(err)
	}
	return pid
}

// child returns the pid of the only child of the process.
func child(t *testing.T, parent int) int {
	t.Helper()
	out, err := exec.Command("pgrep", "-P", strconv.Itoa(parent)).Output()
	pid, bad := strconv.Atoi(strings.TrimSpace(string(out)))
	if err != nil || bad != nil {
		t.Fatalf("the children of %d are %q: %v", parent, out, err)
	}
	return pid
}

// leavesLines checks that the command ended with the status, and that the terminal shows lines with
// the words, in this order.
func (p *terminal) leavesLines(status int, words ...string) {
	p.t.Helper()
	if got := p.ended(); got != status {
		p.t.Errorf("the run ended with %d, not with %d:\n%s", got, status, p.screen())
	}
	if p.drawn() {
		p.t.Errorf("the screen is still there:\n%s", p.screen())
	}
	rest := strings.Join(strings.Fields(p.screen()), " ")
	for _, word := range words {
		_, after, found := strings.Cut(rest, word)
		if !found {
			p.t.Errorf("the terminal lacks %q after the words before it:\n%s", word, p.screen())
			return
		}
		rest = after
	}
}

// shell returns a terminal with a shell that controls jobs.
func (w *world) shell() *terminal {
	w.t.Helper()
	p := w.terminalOf(100, 30, "env", "PS1=$ ", "bash", "--norc", "-i")
	p.shows("$")
	return p
}

// restored checks that the shell's terminal has the settings that are in the file before.
func (p *terminal) restored() {
	p.t.Helper()
	p.enter("stty -a >after; echo >read")
	eventually(p.t, "the settings of the terminal are read", func() bool {
		_, err := os.Stat(filepath.Join(p.dir, "read"))
		return err == nil
	})
	before, _ := os.ReadFile(filepath.Join(p.dir, "before"))
	after, _ := os.ReadFile(filepath.Join(p.dir, "after"))
	if len(before) == 0 || string(before) != string(after) {
		p.t.Errorf("the terminal was\n%s\nand is\n%s", before, after)
	}
}

func (w *world) begun() string {
	text, _ := os.ReadFile(filepath.Join(w.dir, "begun"))
	return strings.Join(strings.Fields(string(text)), " ")
}

// TestRunScreen: a run opens the screen after two seconds and closes it when the team has ended.
// Its lines from before, its last lines and its result stand in the terminal. Its exit status is
// that of --plain.
func TestRunScreen(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.screened()
	begins := time.Now()
	p := w.terminalOf(100, 30, cadre, "run", "team.yaml", "--teammate-mode", "in-process")
	p.opens()
	if took := time.Since(begins); took < 2*time.Second {
		t.Errorf("the screen opened after %v", took)
	}
	p.shows("2 working")
	w.write("go", "")
	p.shows("The run has ended, and something needs you: a lists it, q closes the screen.")
	p.keys("q")
	p.leavesLines(1, "team demo begins", "+ w-1", "· task two Second", "1 of 2 tasks done in",
		"✗ task two failed by w-", "result of two", "not finished: 1 task could not be done")
	if r := w.cadre("run", "team.yaml", "--plain"); r.code != 1 || !strings.Contains(r.err, "not finished") {
		t.Errorf("run --plain: got %+v, want status 1 and a list of the unfinished tasks", r)
	}

	w.write("mended", "")
	os.Remove(filepath.Join(w.dir, "go"))
	p = w.runs()
	w.write("go", "")
	p.leavesLines(0, "team demo continues", "2 of 2 tasks done; this run took")
}

// TestRunScreenStatus: a run at a terminal that will not work ends with the status of one
// elsewhere.
func TestRunScreenStatus(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := w.terminalOf(100, 30, cadre, "run", "nothing.yaml")
	p.leavesLines(2, "cadre:", "nothing.yaml")
	w.refused(w.cadre("run", "nothing.yaml", "--plain"), 2, "nothing.yaml")
}

// TestRunScreenBackground: a user who quits may let the team continue in the background. The
// sessions work on without a break, the lines go to the log, and the run ends as it would have at
// the terminal.
func TestRunScreenBackground(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.write("mended", "")
	p := w.runs()
	worker := child(t, p.front())
	p.keys("q")
	p.shows("Pause team demo, or let it continue in the background?")
	p.keys("x")
	p.shows("Nothing was changed.")
	p.keys("q", "b")
	p.leavesLines(0, "team demo begins", "team demo continues in the background", "cadre watch demo",
		"cadre pause demo", "host.log")
	p.close() // a terminal that is closed changes nothing
	if text := w.must("status", "demo"); !strings.Contains(text, "2 in progress") && !strings.Contains(text, "active") {
		t.Errorf("the team does not work on:\n%s", text)
	}
	w.write("go", "")
	w.until("the team is complete", func(s *team.State) bool { return s.Team().Status == team.TeamComplete })
	eventually(t, "the worker has ended", func() bool { return syscall.Kill(worker, 0) != nil })
	if got := w.begun(); len(strings.Fields(got)) != 2 {
		t.Errorf("tasks were begun again: %s", got)
	}
	log, err := os.ReadFile(filepath.Join(w.home, "teams", "demo", "host.log"))
	if err != nil || !strings.Contains(string(log), "2 of 2 tasks done in") || strings.Contains(string(log), "\x1b") {
		t.Errorf("the log is %q, %v", log, err)
	}
}

// TestRunScreenCommands: a command that the person types in the screen of a run acts as the person,
// for as long as the run hosts the team, also one that continues in the background.
func TestRunScreenCommands(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.write("other.yaml", "name: other\nmembers: [{name: w, agent: shell}]\ntasks: [{id: one, run: test -e mended}]\n")
	w.cadre("run", "other.yaml", "--plain")
	w.write("mended", "")
	w.must("task", "release", "other", "one")
	p := w.runs()
	p.keys(":")
	p.enter("budget demo --tokens 5000000")
	p.shows("team   tokens  5000000")
	p.keys(":")
	p.enter("resume nobody")
	p.shows("team nobody does not exist")
	if text := p.screen(); strings.Contains(text, "in the background") {
		t.Errorf("a refused command is said to continue:\n%s", text)
	}
	p.keys(":")
	p.enter("resume other --plain")
	eventually(t, "the other team is complete", func() bool {
		return strings.Contains(w.must("status", "other"), "complete: 1 of 1")
	})
	p.keys("C-c")
	p.ended()
}

// TestRunScreenStops: the person stops the team with an answer or with Ctrl-C, and others with a
// signal. The run says at once what it does, and the team can be resumed.
func TestRunScreenStops(t *testing.T) {
	t.Parallel()
	kill := func(p *terminal, s syscall.Signal) {
		if err := syscall.Kill(p.front(), s); err != nil {
			t.Error(err)
		}
	}
	for name, stop := range map[string]func(*terminal){
		"answer":  func(p *terminal) { p.keys("q"); p.shows("p pause it"); p.keys("p") },
		"ctrl-c":  func(p *terminal) { p.keys("C-c") },
		"command": func(p *terminal) { p.must("pause", "demo") },
		"palette": func(p *terminal) { p.keys(":"); p.shows("cadre"); p.keys("p", "a", "u", "s", "e", "Enter") },
		"sigint":  func(p *terminal) { kill(p, syscall.SIGINT) },
		"sigterm": func(p *terminal) { kill(p, syscall.SIGTERM) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			p := w.runs()
			stop(p)
			p.leavesLines(1, "team demo begins", "stopping 2 members", "0 of 2 tasks done", "paused:",
				"cadre resume demo")
			if text := p.screen(); strings.Contains(text, "hurrying") {
				t.Errorf("it was asked once, and hurries:\n%s", text)
			}
			w.write("go", "")
			w.write("mended", "")
			w.must("resume", "demo")
			if text := w.must("status", "demo"); !strings.Contains(text, "complete: 2 of 2") {
				t.Errorf("after resume:\n%s", text)
			}
		})
	}
}

// TestRunScreenHurries: after the screen has closed, further Ctrl-C hurry and kill, as they do
// where a run prints lines. The last one has to come within a second: a busy machine has five
// tries.
func TestRunScreenHurries(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.write("team.yaml", `name: demo
members: [{name: w, agent: shell}]
tasks: [{id: one, run: "trap '' TERM; while :; do sleep 600; done"}]
`)
	var p *terminal
	for range 5 {
		p = w.terminalOf(100, 30, cadre, "run", "team.yaml", "--teammate-mode", "in-process")
		p.opens()
		p.keys("C-c")
		p.shows("press Ctrl-C to hurry")
		p.keys("C-c")
		p.shows("must end within a second")
		p.keys("C-c")
		p.ended()
		if strings.Contains(p.screen(), "killing") {
			break
		}
	}
	p.leavesLines(1, "stopping 1 member", "hurrying", "killing", "paused:")
}

// TestRunScreenKilled: the run is killed while its screen is open. The terminal is restored, shows
// the last lines and why the run ended, and the team can be resumed.
func TestRunScreenKilled(t *testing.T) {
	t.Parallel()
	for name, victim := range map[string]func(*terminal) int{
		"front":  func(p *terminal) int { return child(p.t, p.front()) },
		"worker": func(p *terminal) int { return child(p.t, child(p.t, p.front())) }} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.screened()
			p := w.shell()
			p.enter("stty -a >before; " + cadre + " run team.yaml --teammate-mode in-process; echo over $?")
			p.opens()
			if err := syscall.Kill(victim(p), syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			last := map[string]string{"front": "paused: hangup signal received", "worker": "over 137"}[name]
			p.wait("the terminal is not restored",
				func() bool { return !p.drawn() && strings.Contains(p.screen(), last) })
			p.restored()
			if name == "worker" { // the process in front says what the worker could not
				screen := strings.Join(strings.Fields(p.screen()), " ")
				if ok,
					_ := regexp.MatchString(`\+ w-1.*First.*the process of the run was ended by a signal: killed.*cadre resume demo.*over 137`, screen); !ok {
					t.Errorf("it leaves no word:\n%s", p.screen())
				}
			}
			eventually(t, "nobody runs the team", func() bool {
				return strings.Contains(w.must("status", "demo"), "dormant")
			})
			w.write("go", "")
			w.write("mended", "")
			w.must("resume", "demo")
			if text := w.must("status", "demo"); !strings.Contains(text, "complete: 2 of 2") {
				t.Errorf("after resume:\n%s", text)
			}
		})
	}
}

// TestRunScreenJob: in a shell, Ctrl-Z suspends the run with its screen and fg continues both. When
// the run has ended, however, the terminal is as it was.
func TestRunScreenJob(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.screened()
	w.write("mended", "")
	p := w.shell()
	p.enter("stty -a >before; " + cadre + " run team.yaml --teammate-mode in-process; echo over $?")
	p.opens()
	p.keys("C-z")
	p.wait("the shell does not return", func() bool { return !p.drawn() && strings.Contains(p.screen(), "Stopped") })
	p.enter("fg")
	p.opens()
	p.shows("2 working")
	p.keys("C-c")
	p.shows("over 1")
	p.enter(cadre + " resume demo --teammate-mode in-process; echo again $?")
	p.opens()
	w.write("go", "")
	p.shows("again 0")
	p.shows("2 of 2 tasks done; this run took")
	if p.drawn() {
		t.Error("the screen is still there")
	}
	p.restored()
}

// TestRunScreenPanes: members have panes of tmux beside the screen.
func TestRunScreenPanes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.screened()
	w.write("mended", "")
	p := w.terminalOf(100, 30, cadre, "run", "team.yaml", "--teammate-mode", "tmux")
	p.opens()
	p.wait("there are no panes", func() bool {
		return strings.Count(p.do("list-panes", "-s", "-F", "#{pane_id}"), "%") == 3
	})
	w.write("go", "")
	p.leavesLines(0, "team demo begins", "2 of 2 tasks done in")
}

// TestRunScreenAsks: what a run asks, it asks before the screen opens.
func TestRunScreenAsks(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := w.runs()
	p.keys("C-c")
	p.leavesLines(1, "paused:")
	w.write("mended", "")
	text, err := os.ReadFile(filepath.Join(w.dir, "team.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	w.write("team.yaml", strings.Replace(string(text), "subject: First", "subject: The first", 1))
	p = w.terminalOf(100, 30, cadre, "run", "team.yaml", "--teammate-mode", "in-process")
	p.shows("Apply these changes and run? [y/N]")
	time.Sleep(2500 * time.Millisecond) // the screen would open now
	if p.drawn() {
		t.Fatalf("the screen hides a question:\n%s", p.screen())
	}
	p.enter("y")
	p.opens()
	w.write("go", "")
	p.leavesLines(0, "Apply these changes and run? [y/N] y", "team demo continues", "2 of 2 tasks done; this run took")
}

// TestRunScreenLost: a run whose terminal is lost pauses its team, with the screen open as without
// it.
func TestRunScreenLost(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{}, {"--plain"}} {
		w := newWorld(t)
		w.screened()
		p := w.terminalOf(100, 30, append([]string{cadre, "run", "team.yaml", "--teammate-mode", "in-process"},
			args...)...)
		if len(args) == 0 {
			p.opens()
		}
		eventually(t, "both tasks have begun", func() bool { return len(strings.Fields(w.begun())) == 2 })
		p.close()
		eventually(t, "the team is paused",
			func() bool { return strings.Count(w.must("status", "demo"), " paused ") == 2 })
		w.write("go", "")
		w.write("mended", "")
		eventually(t, "the team is free", func() bool { return w.cadre("resume", "demo").code == 0 })
	}
}

// TestRunDetach: a run with --detach ends when the team has begun, and its team works on. A run
// refuses before it opens the screen.
func TestRunDetach(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.screened()
	w.write("mended", "")
	w.refused(w.cadre("run", "nothing.yaml", "--detach"), 2, "nothing.yaml")
	w.refused(w.cadre("run", "team.yaml", "--detach", "--json"), 2, "leave --json and --dry-run out")
	out := w.must("run", "team.yaml", "--detach")
	for _, want := range []string{"team demo begins", "continues in the background", "cadre watch demo"} {
		if !strings.Contains(out, want) {
			t.Errorf("it lacks %q:\n%s", want, out)
		}
	}
	w.refused(w.cadre("run", "team.yaml", "--detach"), 1, "team demo is being run already")
	w.write("go", "")
	w.until("the team is complete", func(s *team.State) bool { return s.Team().Status == team.TeamComplete })
}

// TestRunScreenTypes: the screen stays open for a user who types when the team ends. It still
// follows the team, and closes when the line is empty.
func TestRunScreenTypes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.write("mended", "")
	p := w.runs()
	p.keys("Down", "Enter")
	p.shows("to w-1 ▸")
	p.keys("-l", "half a line")
	p.shows("to w-1 ▸ half a line")
	w.write("go", "")
	p.shows("The team has ended. The screen closes when you have finished here.")
	p.shows("stopped") // what the member is now
	if !p.drawn() {
		t.Fatalf("the screen closed while the person types:\n%s", p.screen())
	}
	p.keys("C-c")
	p.leavesLines(0, "team demo begins", "2 of 2 tasks done in")
}
