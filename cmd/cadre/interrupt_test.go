package main

import (
	"bufio"
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"cadre/internal/testkit/soak"
)

// pausedRow is the row of a paused worker in a table of members.
var pausedRow = regexp.MustCompile(`(?m)^ *w-\d .* paused `)

// TestSignalOnceReady checks that a signal does not end the process once the command may begin.
func TestSignalOnceReady(t *testing.T) {
	soak.Long(t)
	const child = "CADRE_TEST_SIGNAL"
	if os.Getenv(child) != "" {
		ctx, h := interruptible()
		<-h.ready
		if err := syscall.Kill(os.Getpid(), syscall.SIGINT); err != nil {
			t.Fatal(err)
		}
		<-ctx.Done()
		return
	}
	for range 20 {
		c := exec.Command(os.Args[0], "-test.run", "^TestSignalOnceReady$")
		c.Env = append(os.Environ(), child+"=1")
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
}

// TestCtrlC presses Ctrl-C at a run once, twice and three times, at a real terminal. The run says
// at once what it does, its members are paused, no process is left, and the run can be continued.
func TestCtrlC(t *testing.T) {
	if !terminals || testing.Short() {
		t.Skip("needs a terminal, and time for sessions to end")
	}
	const first = "stopping 3 members; press Ctrl-C again to hurry, a third time to kill"
	const second = "must end within a second; press Ctrl-C again to kill"
	for _, one := range []struct {
		name   string
		task   string
		awaits []string // press Ctrl-C after each of these
		says   string
	}{
		{"once", "sleep 600", []string{"NAMED one"}, first},
		{"twice", "trap '' TERM; while :; do sleep 600; done", []string{"NAMED one", first}, second},
		{"three times", "trap '' TERM; while :; do sleep 600; done", []string{"NAMED one", first, second}, "killing "},
	} {
		t.Run(one.name, func(t *testing.T) {
			t.Parallel()
			root := t.TempDir()
			env := append(os.Environ(), "HOME="+root, "CADRE_HOME="+filepath.Join(root, "home"),
				"CLAUDE_CONFIG_DIR="+filepath.Join(root, "claude"), "GIT_CEILING_DIRECTORIES="+root)
			file := `name: demo
members: [{name: w, agent: shell, count: 3}]
tasks:
`
			for _, name := range []string{"one", "two", "three"} {
				file += "  - {id: " + name + `, subject: NAMED ` + name + `, run: "echo $$ >>` + root +
					"/pids; test -e " + root + "/go || { " + one.task + `; }"}` + "\n"
			}
			if err := os.WriteFile(filepath.Join(root, "team.yaml"), []byte(file), 0o600); err != nil {
				t.Fatal(err)
			}
			pids := func() []string {
				text, _ := os.ReadFile(filepath.Join(root, "pids"))
				return strings.Fields(string(text))
			}
			shown := pressCtrlC(t, root, env, one.awaits, func() bool { return len(pids()) == 3 }, "run", "team.yaml")
			for _, want := range []string{first, one.says, "paused: interrupt signal received; the same " +
				"command continues where this one stopped. To resume the team: cadre resume demo"} {
				if !strings.Contains(strings.Join(strings.Fields(shown), " "), want) {
					t.Errorf("the output lacks %q:\n%s", want, shown)
				}
			}
			for _, pid := range pids() {
				if out, err := exec.Command("ps", "-o", "stat=,args=", "-p", pid).Output(); err == nil &&
					!bytes.HasPrefix(out, []byte("Z")) {
					t.Errorf("process %s is left: %s", pid, out)
				}
			}
			do := func(args ...string) string {
				r := call{args: args, dir: root, env: env}.run(t)
				if r.code != done {
					t.Errorf("%q: status %d: %s", args, r.code, r.err)
				}
				return string(r.out)
			}
			for _, args := range [][]string{{"status", "demo"}, {"probe", "demo"}} {
				out := do(args...)
				if len(pausedRow.FindAllString(out, -1)) != 3 || strings.Contains(out, "spawning") ||
					strings.Contains(out, "host ended") {
					t.Errorf("%q:\n%s", args, out)
				}
			}
			if log := do("log", "demo"); strings.Count(log, " is paused") != 3 || strings.Contains(log, "host ended") {
				t.Errorf("the log:\n%s", log)
			}
			if err := os.WriteFile(filepath.Join(root, "go"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
			if out := do("run", "team.yaml"); !strings.Contains(out, "3 of 3 tasks done") {
				t.Errorf("run again:\n%s", out)
			}
		})
	}
}

// pressCtrlC runs the program at a terminal. It presses Ctrl-C each time that the next text is
// shown, the first time when ready returns true. The program must end with status 1. pressCtrlC
// returns the output.
func pressCtrlC(t *testing.T, dir string, env, awaits []string, ready func() bool, args ...string) string {
	t.Helper()
	ours, theirs := openTerminal(t)
	defer ours.Close()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, args...)
	cmd.Dir, cmd.Env = dir, append(env, asProgram+"=1")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = theirs, theirs, theirs
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	theirs.Close()
	var mu sync.Mutex
	var shown bytes.Buffer
	read := make(chan struct{})
	go func() {
		defer close(read)
		part := make([]byte, 4096)
		for {
			n, err := ours.Read(part)
			mu.Lock()
			shown.Write(part[:n])
			mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	says := func(text string) bool {
		mu.Lock()
		defer mu.Unlock()
		return strings.Contains(strings.Join(strings.Fields(shown.String()), " "), text)
	}
	late := time.AfterFunc(patience, func() { cmd.Process.Signal(syscall.SIGQUIT) })
	defer late.Stop()
	for i, text := range awaits {
		for deadline := time.Now().Add(patience); !says(text) || i == 0 && !ready(); time.Sleep(5 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Errorf("the run never prints %q", text)
				break
			}
		}
		if _, err := ours.WriteString("\x03"); err != nil {
			t.Error(err)
		}
	}
	err = cmd.Wait()
	<-read
	if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.ExitCode() != tryAgain {
		t.Errorf("the run ended with %v:\n%s", err, shown.Bytes())
	}
	return shown.String()
}

// TestClosedOutput closes the output of a run after its first line, as cadre run team.yaml | head
// -1 does. The run pauses its team in order, and can be continued.
func TestClosedOutput(t *testing.T) {
	if testing.Short() {
		t.Skip("it ends a run of a command that takes long; not with -short")
	}
	root := t.TempDir()
	env := append(os.Environ(), "HOME="+root, "CADRE_HOME="+filepath.Join(root, "home"),
		"GIT_CEILING_DIRECTORIES="+root)
	const file = "name: demo\nmembers: [{name: w, agent: shell}]\ntasks:\n" +
		"  - {id: one, run: \"{ sh -c yes; echo $? >&2; } | head -1; test -e go || sleep 600\"}\n"
	if err := os.WriteFile(filepath.Join(root, "team.yaml"), []byte(file), 0o600); err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	out, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	var said bytes.Buffer
	cmd := exec.CommandContext(t.Context(), self, "run", "team.yaml", "--plain")
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = root, append(env, asProgram+"=1"), in, &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	in.Close()
	for lines := bufio.NewScanner(out); lines.Scan() && !strings.Contains(lines.Text(), "▸"); {
	}
	out.Close()
	err = cmd.Wait()
	if exit, is := errors.AsType[*exec.ExitError](err); !is || exit.ExitCode() != tryAgain {
		t.Errorf("the run ended with %v, not with status %d: %s", err, tryAgain, said.Bytes())
	}
	for _, want := range []string{"note: stopping 1 member: the reader closed the output",
		"paused: the reader closed the output; the same command continues where this one stopped"} {
		if !strings.Contains(said.String(), want) {
			t.Errorf("the run did not print %q:\n%s", want, said.Bytes())
		}
	}
	if r := (call{args: []string{"status", "demo"}, dir: root, env: env}).run(t); !regexp.MustCompile(
		`(?m)^ *w .* paused `).Match(r.out) {
		t.Errorf("the member is not paused:\n%s", r.out)
	}
	if err := os.WriteFile(filepath.Join(root, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if r := (call{args: []string{"run", "team.yaml"}, dir: root, env: env}).run(t); r.code != done {
		t.Errorf("the run does not continue: %s", r.err)
	}
	shown := call{args: []string{"task", "show", "demo", "one"}, dir: root, env: env}.run(t)
	if !bytes.Contains(shown.out, []byte("141")) {
		t.Errorf("a command of the team inherited another action for a closed pipe:\n%s", shown.out)
	}
}
