package transfer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"cadre/internal/consolidate"
	"cadre/internal/git"
	"cadre/internal/git/checkpoint"
	"cadre/internal/journal/store/filestore"
	"cadre/internal/layout"
	"cadre/internal/liveness/leader"
	"cadre/internal/replica"
	"cadre/internal/sys/proc"
	"cadre/internal/team"
	"cadre/internal/testkit/soak"
)

// victim passes to a copy of the test program what it does until it is killed (push, release or
// pull), the home and the clone.
const victim = "CADRE_TEST_TRANSFER"

// atStep and atGit say when the victim is killed: after so many steps, or at the git command of
// that number.
const (
	atStep = "CADRE_TEST_AT_STEP"
	atGit  = "CADRE_TEST_AT_GIT"
)

// fatalGit is git, except that the victim is killed before or after one command.
const fatalGit = `#!/bin/sh
echo >> "$%[1]s_COUNT"
[ "$(wc -l < "$%[1]s_COUNT" | tr -d ' ')" = "$%[1]s" ] || exec %[2]q "$@"
[ "$%[1]s_WHEN" = before ] || %[2]q "$@"
kill -s KILL "$%[1]s_PID"
`

// fatal is the folder with this git.
var fatal string

func TestMain(m *testing.M) {
	if what := os.Getenv(victim); what != "" {
		os.Exit(die(strings.Split(what, "|")))
	}
	soak.InMemory()
	dir, err := os.MkdirTemp("", "cadre-transfer-")
	config := filepath.Join(dir, "gitconfig")
	if err == nil {
		err = os.WriteFile(config, []byte("[user]\n\tname = Ann Example\n\temail = "+
			"ann@example.org\n[init]\n\tdefaultBranch = main\n[maintenance]\n\tauto = false\n"), 0o600)
	}
	os.Setenv("GIT_CONFIG_GLOBAL", config)
	os.Setenv("GIT_CONFIG_NOSYSTEM", "1")
	fatal = filepath.Join(dir, "bin")
	var path string
	if err == nil {
		path, err = exec.LookPath("git")
	}
	if err == nil {
		err = errors.Join(os.Mkdir(fatal, 0o700), os.WriteFile(filepath.Join(fatal, "git"),
			fmt.Appendf(nil, fatalGit, atGit, path), 0o700))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		os.RemoveAll(dir)
		os.Exit(code)
	}))
}

// die runs the command in a process that is killed on the way.
func die(what []string) int {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	os.Setenv(atGit+"_PID", strconv.Itoa(os.Getpid()))
	m := &machine{home: layout.Home{Root: what[1], Claude: what[1] + "-claude"}, dir: what[2]}
	if n, err := strconv.Atoi(os.Getenv(atStep)); err == nil {
		m.step = func(string) {
			if n--; n == 0 {
				syscall.Kill(os.Getpid(), syscall.SIGKILL)
				select {}
			}
		}
	}
	var err error
	switch what[0] {
	case "push":
		_, err = m.push(ctx, PushOptions{Yes: true})
	case "release":
		_, err = m.push(ctx, PushOptions{Yes: true, Release: true})
	case "pull":
		_, err = m.pull(ctx, PullOptions{})
	case "theirs":
		_, err = m.pull(ctx, PullOptions{Theirs: true})
	case "ours":
		_, err = m.push(ctx, PushOptions{Yes: true, Ours: true})
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// machine is a computer with a home of cadre and a clone of the project.
type machine struct {
	name string
	home layout.Home
	dir  string
	said []string // the output of the last command
	step func(string)
}

func (m *machine) options() Options {
	m.said = nil
	return Options{Home: m.home, Team: "demo", Dir: m.dir,
		Log: func(text string) { m.said = append(m.said, text) }, step: m.step}
}

func (m *machine) push(ctx context.Context, o PushOptions) (*Pushed, error) {
	o.Options = m.options()
	return Push(ctx, o)
}

func (m *machine) pull(ctx context.Context, o PullOptions) (*Pulled, error) {
	o.Options = m.options()
	return Pull(ctx, o)
}

func (m *machine) warned() bool {
	return strings.Contains(strings.Join(m.said, "\n"), "did not release team demo: it may still run there")
}

// lab is two machines and a bare repository between them.
type lab struct {
	testing.TB
	root    string
	laptop  *machine
	desktop *machine
	tasks   int
}

func newLab(t testing.TB) *lab {
	t.Helper()
	l := emptyLab(t)
	base := consolidate.Look(t.Context(), l.laptop.dir)
	l.create("demo", command(team.User, &team.CreateTeam{TeamID: "T1", Name: "demo", Dir: l.laptop.dir, Base: base}),
		command(team.User, &team.SpawnMember{Name: "ann", Agent: team.External}),
		command(team.User, &team.SpawnMember{Name: "bob", Agent: "claude", Isolation: team.Worktree}))
	return l
}

// command returns a command of the actor.
func command(actor string, body team.Body) team.Command {
	return team.Command{ID: replica.NewID(), Actor: actor, At: replica.Now(), Body: body}
}

// create makes a team on the laptop.
func (l *lab) create(name string, commands ...team.Command) {
	l.Helper()
	if err := l.laptop.home.Create(name, commands); err != nil {
		l.Fatal(err)
	}
}

// emptyLab is a lab without a team.
func emptyLab(t testing.TB) *lab {
	t.Helper()
	l := &lab{TB: t, root: t.TempDir()}
	remote := filepath.Join(l.root, "remote.git")
	l.git(l.root, "init", "-q", "--bare", remote)
	l.laptop = &machine{name: "laptop", home: layout.Home{Root: filepath.Join(l.root, "home1"),
		Claude: filepath.Join(l.root, "claude1")}, dir: filepath.Join(l.root, "laptop")}
	l.desktop = &machine{name: "desktop", home: layout.Home{Root: filepath.Join(l.root, "home2"),
		Claude: filepath.Join(l.root, "claude2")}, dir: filepath.Join(l.root, "desktop")}
	l.git(l.root, "clone", "-q", remote, l.laptop.dir)
	l.write(filepath.Join(l.laptop.dir, "a.txt"), "one\n")
	l.git(l.laptop.dir, "add", "-A")
	l.git(l.laptop.dir, "commit", "-q", "-m", "first")
	l.git(l.laptop.dir, "push", "-q", "origin", "main")
	l.git(l.root, "clone", "-q", remote, l.desktop.dir)
	for _, m := range []*machine{l.laptop, l.desktop} { // files of the user on each machine
		l.write(filepath.Join(m.dir, "mine.txt"), "of the person on "+m.name+"\n")
		l.write(filepath.Join(m.dir, "a.txt"), "one, and more by the person on "+m.name+"\n")
	}
	return l
}

// save copies the whole lab, and returns a function that restores it under the same paths. Building
// it again would take longer than the tests themselves.
func (l *lab) save() (restore func()) {
	l.Helper()
	saved, tasks := filepath.Join(l.TempDir(), "saved"), l.tasks
	copied := func(from, to string) {
		l.Helper()
		if out, err := exec.Command("cp", "-Rp", from, to).CombinedOutput(); err != nil {
			l.Fatalf("copy %s: %v\n%s", from, err, out)
		}
	}
	copied(l.root, saved)
	return func() {
		l.Helper()
		l.must(os.RemoveAll(l.root))
		copied(saved, l.root)
		l.tasks = tasks
	}
}

func (l *lab) git(dir string, args ...string) string {
	l.Helper()
	return l.feed(dir, "", args...)
}

func (l *lab) feed(dir, input string, args ...string) string {
	l.Helper()
	out, err := l.try(dir, input, args...)
	if err != nil {
		l.Fatalf("git %v in %s: %v\n%s", args, dir, err, out)
	}
	return out
}

func (l *lab) try(dir, input string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "git", append([]string{"-C", dir}, args...)...)
	cmd.Env = git.Local(os.Environ())
	cmd.Stdin = strings.NewReader(input)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	return strings.TrimSuffix(out.String(), "\n"), err
}

func (l *lab) write(path, text string) {
	l.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
		l.Fatal(err)
	}
}

// on opens the team on a machine; there is false if the machine has no such team.
func (l *lab) on(m *machine, do func(rep *replica.Replica, folder string)) (there bool) {
	l.Helper()
	return l.onTeam(m, "demo", do)
}

// onTeam is on for the team of that name.
func (l *lab) onTeam(m *machine, name string, do func(rep *replica.Replica, folder string)) (there bool) {
	l.Helper()
	o := m.options()
	o.Team = name
	err := o.opened(l.Context(), func(rep *replica.Replica, folder string) error {
		do(rep, folder)
		return nil
	})
	if team.CodeOf(err) == team.NotFound {
		return false
	}
	if err != nil {
		l.Fatal(err)
	}
	return true
}

// work has a member do a task on the machine, as after a resume there. The task's result names the
// work. The error is the refusal to continue.
func (l *lab) work(m *machine, member string) (err error) {
	l.Helper()
	there := l.on(m, func(rep *replica.Replica, folder string) {
		if err = Here(l.Context(), rep, folder, false); err != nil {
			return
		}
		do := func(body team.Body) (r *team.Record) {
			if err != nil {
				return nil
			}
			var receipt replica.Receipt
			if receipt, err = rep.Do(l.Context(), team.Command{Actor: team.User, Body: body}); err != nil {
				return nil
			}
			return receipt.Record
		}
		r := do(&team.CreateTask{Subject: "task"})
		if r == nil {
			return
		}
		id := r.Events[0].(*team.TaskCreated).Task.ID
		do(&team.ClaimTask{Task: id, Member: member})
		var t team.Task
		rep.View(func(s *team.State) { t, _ = s.Task(id) })
		l.tasks++
		path, text := fmt.Sprintf("%s-%d.txt", member, l.tasks), fmt.Sprintf("task %s on %s, %d\n", id, m.name, l.tasks)
		w := team.Work{Member: member, Fence: t.Fence}
		result := "file|" + path + "|" + text
		if member == "bob" {
			w.Branch = "cadre/demo@bob"
		}
		from := "HEAD"
		if _, err := l.try(m.dir, "", "rev-parse", "--verify", "-q", "refs/heads/"+w.Branch); err == nil &&
			w.Branch != "" {
			from = w.Branch
		}
		w.Base = l.git(m.dir, "rev-parse", from)
		do(&team.RecordWork{Task: id, Work: w})
		tree := l.git(m.dir, "ls-tree", from) + "\n100644 blob " + l.feed(m.dir, text, "hash-object", "-w", "--stdin") +
			"\t" + path + "\n"
		w.Commit = l.git(m.dir, "commit-tree", l.feed(m.dir, tree, "mktree"), "-p", from, "-m", "task "+id)
		if w.Branch != "" {
			l.git(m.dir, "update-ref", "refs/heads/"+w.Branch, w.Commit)
			result = "commit|" + w.Commit
		} else {
			l.write(filepath.Join(m.dir, path), text)
		}
		do(&team.CompleteTask{Task: id, Member: member, Result: result})
		w.Files = []string{path}
		do(&team.RecordWork{Task: id, Work: w})
	})
	if !there {
		return &team.Error{Code: team.NotFound, Text: "the team is not here"}
	}
	return err
}

// whole checks that the work of every completed task of the team on the machine is there or named
// as missing, and that the user's files are unchanged. It returns the number of completed tasks,
// and the number of missing ones.
func (l *lab) whole(m *machine) (completed, missing int) {
	l.Helper()
	l.on(m, func(rep *replica.Replica, _ string) {
		rep.View(func(s *team.State) {
			named := map[string]bool{}
			for _, one := range s.Missing() {
				named[one.Task] = true
			}
			missing = len(named)
			for t := range s.Tasks() {
				if t.Status != team.Completed {
					continue
				}
				completed++
				what := strings.SplitN(t.Result, "|", 3)
				there := false
				if what[0] == "file" {
					text, err := os.ReadFile(filepath.Join(m.dir, what[1]))
					there = err == nil && string(text) == what[2]
				} else {
					for _, ref := range []string{"refs/heads/cadre/demo@bob", "HEAD"} {
						_, err := l.try(m.dir, "", "merge-base", "--is-ancestor", what[1], ref)
						there = there || err == nil
					}
				}
				if !there && !named[t.ID] {
					l.Errorf("on %s the work of task %s is neither there nor named as missing: %q", m.name, t.ID,
						t.Result)
				}
			}
		})
	})
	for path, want := range map[string]string{"mine.txt": "of the person on " + m.name + "\n",
		"a.txt": "one, and more by the person on " + m.name + "\n"} {
		if text, err := os.ReadFile(filepath.Join(m.dir, path)); err != nil || string(text) != want {
			l.Errorf("on %s the user's %s is %q, %v", m.name, path, text, err)
		}
	}
	if status := l.git(m.dir, "status", "--porcelain", "--untracked-files=no"); status != " M a.txt" {
		l.Errorf("on %s the index has changed:\n%s", m.name, status)
	}
	if head := l.git(m.dir, "rev-parse", "HEAD", "main"); head != l.git(l.laptop.dir, "rev-parse", "main", "main") {
		l.Errorf("on %s HEAD is at %s", m.name, head)
	}
	return completed, missing
}

// killed runs a command on the machine and kills it after so many steps, or at a git command. It
// reports whether the command was killed.
func (l *lab) killed(m *machine, what, step, gitCommand, when string) bool {
	l.Helper()
	ctx, cancel := context.WithTimeout(l.Context(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Args[0])
	count := filepath.Join(l.root, "count")
	os.Remove(count)
	cmd.Env = append(os.Environ(), victim+"="+what+"|"+m.home.Root+"|"+m.dir, atStep+"="+step, atGit+"="+gitCommand,
		atGit+"_WHEN="+when, atGit+"_COUNT="+count)
	if gitCommand != "" {
		cmd.Env = append(cmd.Env, "PATH="+fatal+":"+os.Getenv("PATH"))
	}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	if ctx.Err() != nil {
		l.Fatalf("%s hangs:\n%s", what, out.String())
	}
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && exit.Sys().(syscall.WaitStatus).Signaled() {
		return true
	}
	if err != nil {
		l.Logf("%s: %v: %s", what, err, out.String())
	}
	return false
}

func isFork(err error) bool { return errors.Is(err, checkpoint.ErrForked) }

// procs returns a register for the git commands that a test runs itself.
func (l *lab) procs() *proc.Register {
	l.Helper()
	procs, err := proc.Open("")
	if err != nil {
		l.Fatal(err)
	}
	l.Cleanup(func() { procs.Close(context.Background()) })
	return procs
}

// lead takes the lead lock of the team in that folder, as a leading process does.
func (l *lab) lead(folder string) (unlock func()) {
	l.Helper()
	lock, err := leader.Claim(context.Background(), filestore.Team(folder))
	if err != nil {
		l.Fatal(err)
	}
	return func() { lock.Release() }
}
