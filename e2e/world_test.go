package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"cadre/internal/layout"
	"cadre/internal/replica"
)

// patience bounds every wait for something that should happen soon, on a machine that may be slow
// and busy with other tests.
const patience = 3 * time.Minute

// world is a user of the program: a home, the program's folders and a directory to work in.
type world struct {
	t    *testing.T
	root string // the parent of the others
	home string // CADRE_HOME
	dir  string // where commands are called
	env  []string

	terminals int // how many were opened
}

func newWorld(t *testing.T) *world {
	t.Helper()
	if testing.Short() {
		t.Skip("-short runs only the scripts that take less than a second")
	}
	root := t.TempDir()
	if real, err := filepath.EvalSymlinks(root); err == nil { // /var on macOS
		root = real
	}
	w := &world{t: t, root: root, home: filepath.Join(root, "cadre"), dir: filepath.Join(root, "project")}
	for _, dir := range []string{w.dir, filepath.Join(root, "user")} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	w.env = append(os.Environ(), environment(root)...)
	w.cleanUpAfter()
	return w
}

// environment keeps everything that the program and git touch inside of root.
func environment(root string) []string {
	return []string{
		"CADRE_HOME=" + filepath.Join(root, "cadre"), "CLAUDE_CONFIG_DIR=" + filepath.Join(root, "claude"),
		"CI=", "HOME=" + filepath.Join(root, "user"),
		"GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1", "GIT_CEILING_DIRECTORIES=" + root, "LC_ALL=C",
		"GIT_AUTHOR_NAME=Ada", "GIT_AUTHOR_EMAIL=ada@example.org", "GIT_COMMITTER_NAME=Ada",
		"GIT_COMMITTER_EMAIL=ada@example.org",
	}
}

// cleanUpAfter ends the hosts that a test left in the background. They would keep its folder busy.
func (w *world) cleanUpAfter() {
	w.t.Cleanup(func() {
		teams, _ := os.ReadDir(filepath.Join(w.home, "teams"))
		for _, team := range teams {
			if !strings.HasPrefix(team.Name(), ".") {
				r := w.cadre("cleanup", team.Name(), "--force")
				if id := idOf(team.Name(), r.err); id != "" && r.code == 2 {
					w.cadre("cleanup", id, "--force")
				}
			}
		}
	})
}

// result is the outcome of a finished command.
type result struct {
	out, err string
	code     int
}

// cadre calls the program and waits for it.
func (w *world) cadre(args ...string) result {
	w.t.Helper()
	return w.with(nil, args...)
}

// with is cadre with additional environment variables.
func (w *world) with(env []string, args ...string) result {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	c := exec.CommandContext(ctx, cadre, args...)
	c.Dir, c.Env = w.dir, append(w.env, env...)
	return finish(w.t, c)
}

func finish(t *testing.T, c *exec.Cmd) result {
	t.Helper()
	var out, errs bytes.Buffer
	c.Stdout, c.Stderr = &out, &errs
	c.WaitDelay = 5 * time.Second
	err := c.Run()
	if exit, ok := errors.AsType[*exec.ExitError](err); err != nil && (!ok || !exit.Exited()) {
		t.Fatalf("%s: %v\n%s%s", strings.Join(c.Args, " "), err, out.String(), errs.String())
	}
	return result{out.String(), errs.String(), c.ProcessState.ExitCode()}
}

// must calls the program and returns its output. The program must succeed.
func (w *world) must(args ...string) string {
	w.t.Helper()
	r := w.cadre(args...)
	if r.code != 0 {
		w.t.Fatalf("cadre %s: exit status %d\n%s%s", strings.Join(args, " "), r.code, r.out, r.err)
	}
	return r.out
}

// read is must with --json, decoded.
func read[T any](w *world, args ...string) (value T) {
	w.t.Helper()
	out := w.must(append(args, "--json")...)
	if err := json.Unmarshal([]byte(out), &value); err != nil {
		w.t.Fatalf("cadre %s --json: %v\n%.2000s", strings.Join(args, " "), err, out)
	}
	return value
}

// refused checks a refused command: that status, no output, and an error that has all of the words.
func (w *world) refused(r result, code int, words ...string) {
	w.t.Helper()
	if r.code != code || r.out != "" {
		w.t.Errorf("exit status %d, want %d; printed %q; error %q", r.code, code, r.out, r.err)
	}
	for _, word := range words {
		if !strings.Contains(r.err, word) {
			w.t.Errorf("the error lacks %q: %s", word, r.err)
		}
	}
}

// process is a running command.
type process struct {
	*exec.Cmd
	t      *testing.T
	output string // path of its output
	gone   chan struct{}
}

// start starts the program without waiting for it.
func (w *world) start(args ...string) *process {
	w.t.Helper()
	f, err := os.CreateTemp(w.root, "output-")
	if err != nil {
		w.t.Fatal(err)
	}
	defer f.Close()
	p := &process{Cmd: exec.Command(cadre, args...), t: w.t, output: f.Name(), gone: make(chan struct{})}
	p.Dir, p.Env, p.Stdout, p.Stderr = w.dir, w.env, f, f
	if err := p.Start(); err != nil {
		w.t.Fatal(err)
	}
	go func() { p.Cmd.Wait(); close(p.gone) }()
	w.t.Cleanup(p.kill)
	return p
}

func (p *process) kill() {
	p.Process.Kill()
	<-p.gone
}

// wait returns the exit status.
func (p *process) wait() int {
	p.t.Helper()
	select {
	case <-p.gone:
	case <-time.After(2 * patience):
		p.Process.Signal(syscall.SIGQUIT) // Go prints where it hangs
		<-p.gone
		p.t.Fatalf("cadre %s does not end:\n%s", strings.Join(p.Args[1:], " "), p.said())
	}
	return p.ProcessState.ExitCode()
}

func (p *process) said() string {
	text, _ := os.ReadFile(p.output)
	return string(text)
}

// eventually polls until the condition holds.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	within(t, patience, what, holds)
}

// within is eventually with its own time limit.
func within(t *testing.T, limit time.Duration, what string, holds func() bool) {
	t.Helper()
	for began := time.Now(); !holds(); {
		if time.Since(began) > limit {
			t.Fatalf("still not: %s", what)
		}
		pause(began)
	}
}

// pause waits before the next poll of a wait that began then. A poll may start a program, so pause
// gets longer with the wait.
func pause(began time.Time) {
	<-time.After(min(max(5*time.Millisecond, time.Since(began)/8), 250*time.Millisecond))
}

// replica opens a team in this process. A poll then needs no new process.
func (w *world) replica(name string) *replica.Replica {
	w.t.Helper()
	j, _, err := layout.Home{Root: w.home}.Open(name, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	rep, err := replica.Open(w.t.Context(), j, replica.Options{})
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { rep.Close() })
	return rep
}

// write writes a file to the directory where commands are called and returns its path.
func (w *world) write(name, text string) string {
	w.t.Helper()
	path := filepath.Join(w.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		w.t.Fatal(err)
	}
	return path
}

// lines returns the lines of a file in that directory, or none if it does not exist.
func (w *world) lines(name string) []string {
	text, _ := os.ReadFile(filepath.Join(w.dir, name))
	return strings.Fields(string(text))
}

func has(path ...string) bool {
	_, err := os.Lstat(filepath.Join(path...))
	return err == nil
}

// mark returns a unique number of seconds for sleep, which identifies the processes of a test.
func mark() string { return strconv.Itoa(40_000_000 + rand.IntN(9_000_000)) }

// marked returns the running processes that show the mark in their arguments.
func marked(t *testing.T, mark string) []int {
	t.Helper()
	out, err := exec.Command("ps", "-A", "-o", "pid=,stat=,args=").Output()
	if err != nil {
		t.Fatal(err)
	}
	var pids []int
	for line := range strings.Lines(string(out)) {
		fields := strings.Fields(line)
		if pid, err := strconv.Atoi(fields[0]); err == nil && strings.Contains(line, mark) &&
			!strings.HasPrefix(fields[1], "Z") {
			pids = append(pids, pid)
		}
	}
	return pids
}

// noneLeft waits until no process shows the mark, except those in but.
func noneLeft(t *testing.T, mark string, but ...int) {
	t.Helper()
	t.Cleanup(func() {
		for _, pid := range marked(t, mark) { // after a failed test
			syscall.Kill(pid, syscall.SIGKILL)
		}
	})
	eventually(t, "no process of the team is left", func() bool {
		return !slices.ContainsFunc(marked(t, mark), func(pid int) bool { return !slices.Contains(but, pid) })
	})
}

// event is an event as log --json prints it.
type event map[string]any

func (e event) is(kind string) bool { return e["kind"] == kind }

// history returns the events of a team.
func (w *world) history(team string) (all []event) {
	w.t.Helper()
	for _, record := range read[[]struct{ Events []event }](w, "log", team) {
		all = append(all, record.Events...)
	}
	return all
}

// count returns how often a kind of event happened to each task of a team.
func (w *world) count(team, kind string) map[string]int {
	w.t.Helper()
	happened := map[string]int{}
	for _, e := range w.history(team) {
		if e.is(kind) {
			happened[e["task"].(string)]++
		}
	}
	return happened
}

// repository makes the working directory a git repository with some history.
func (w *world) repository() {
	w.t.Helper()
	w.git("init", "-q", "-b", "main")
	w.write("README.md", "# Example\n\nSee [the guide](docs/guide.md) and [nothing](missing.md).\n")
	w.write("Makefile", "test:\n\tgo test ./...\n")
	for i := range 6 {
		w.write("core/engine.go", fmt.Sprintf("package core\n\n// TODO: make it faster\nconst N = %d\n", i))
		w.write("docs/guide.md", fmt.Sprintf("# Guide\n\nEdition %d\n", i))
		w.git("add", "-A")
		w.git("commit", "-q", "-m", fmt.Sprintf("edition %d", i))
	}
}

func (w *world) git(args ...string) {
	w.t.Helper()
	w.gitSays(args...)
}

// gitSays returns the trimmed output of git.
func (w *world) gitSays(args ...string) string {
	w.t.Helper()
	out, err := w.gitTry(args...)
	if err != nil {
		w.t.Fatalf("git %s: %v\n%.2000s", strings.Join(args, " "), err, out)
	}
	return out
}

// gitTry is gitSays for a command that may fail.
func (w *world) gitTry(args ...string) (string, error) {
	c := exec.Command("git", args...)
	c.Dir, c.Env = w.dir, w.env
	out, err := c.CombinedOutput()
	return strings.TrimSpace(string(out)), err
}
