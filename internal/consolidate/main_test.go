package consolidate

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"cadre/internal/git"
	"cadre/internal/journal/filejournal"
	"cadre/internal/replica"
	"cadre/internal/sys/proc"
	"cadre/internal/team"
	"cadre/internal/testkit/soak"
)

// victim passes to a copy of the test program the team's folder and the point at which it is
// killed. It consolidates the team until then.
const victim = "CADRE_TEST_CONSOLIDATE"

// atGit tells the git of a victim at which command to kill the victim: by its number, or by words
// of the command.
const atGit = "CADRE_TEST_AT_GIT"

// fatalGit is git, except that the victim is killed before or after one command.
const fatalGit = `#!/bin/sh
echo >> "$%[1]s_COUNT"
case "$(wc -l < "$%[1]s_COUNT" | tr -d ' ') $*" in
"$%[1]s "* | *" $%[1]s "*) ;;
*) exec %[2]q "$@" ;;
esac
[ "$%[1]s_WHEN" = before ] || %[2]q "$@"
kill -s KILL "$%[1]s_PID"
`

// completes passes to a copy of the test program the folder of a team, for which it acts as cadre
// task done TEAM ID.
const completes = "CADRE_TEST_TASK_DONE"

func TestMain(m *testing.M) {
	if dir := os.Getenv(completes); dir != "" {
		os.Exit(completeTask(dir, os.Args[1:]))
	}
	if at := os.Getenv(victim); at != "" {
		os.Exit(consolidateUntil(at))
	}
	soak.InMemory()
	dir, err := os.MkdirTemp("", "cadre-consolidate-")
	if err == nil {
		err = prepareAll(dir)
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

// first is a repository with one commit, which every project copies. fatal is the folder with
// fatalGit.
var first, fatal string

// prepareAll makes what all tests share. They run in parallel.
func prepareAll(dir string) error {
	config := filepath.Join(dir, "gitconfig")
	if err := os.WriteFile(config, []byte("[user]\n\tname = Ann Example\n\temail = "+
		"ann@example.org\n[init]\n\tdefaultBranch = main\n[maintenance]\n\tauto = false\n"), 0o600); err != nil {
		return err
	}
	os.Setenv("GIT_CONFIG_GLOBAL", config)
	os.Setenv("GIT_CONFIG_NOSYSTEM", "1")
	first, fatal = filepath.Join(dir, "first"), filepath.Join(dir, "bin")
	git, err := exec.LookPath("git")
	if err == nil {
		err = errors.Join(os.Mkdir(fatal, 0o700), os.WriteFile(filepath.Join(fatal, "git"),
			fmt.Appendf(nil, fatalGit, atGit, git), 0o700))
	}
	if err != nil {
		return err
	}
	for _, name := range []string{"a.txt", "b.txt"} {
		if err := errors.Join(os.MkdirAll(first, 0o700), os.WriteFile(filepath.Join(first, name), []byte("one\n"),
			0o600)); err != nil {
			return err
		}
	}
	for _, args := range [][]string{{"init", "-q", "--template="}, {"add", "-A"}, {"commit", "-q", "-m", "first"}} {
		if out, err := exec.Command("git", append([]string{"-C", first}, args...)...).CombinedOutput(); err != nil {
			return fmt.Errorf("git %v: %w: %s", args, err, out)
		}
	}
	return os.MkdirAll(filepath.Join(first, ".git", "info"), 0o700)
}

// consolidateUntil kills itself at a point.
func consolidateUntil(at string) int {
	last, dir, ok := strings.Cut(at, " ")
	if !ok {
		return 3
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	j, err := filejournal.Open(dir, filejournal.Options{})
	if err != nil {
		return 3
	}
	rep, err := replica.Open(ctx, j, replica.Options{})
	if err != nil {
		return 3
	}
	os.Setenv(atGit+"_PID", strconv.Itoa(os.Getpid()))
	if last == "merge" {
		if _, err := Merge(ctx, Options{Replica: rep, Dir: dir}); err != nil {
			fmt.Println("error:", err)
			return 1
		}
		return 0
	}
	last, rollsBack := strings.CutPrefix(last, "rollback:")
	o := Options{Replica: rep, Dir: dir, Actor: team.User, at: func(point string) {
		fmt.Println(point)
		if point == last {
			syscall.Kill(os.Getpid(), syscall.SIGKILL)
		}
	}}
	if rollsBack {
		_, err = RollBackTask(ctx, o, "2", "")
	} else {
		_, err = Run(ctx, o)
	}
	if err != nil {
		fmt.Println("error:", err)
		return 1
	}
	return 0
}

// completeTask completes the task that a command's arguments name.
func completeTask(dir string, words []string) int {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	j, err := filejournal.Open(dir, filejournal.Options{})
	if err != nil {
		fmt.Println(err)
		return 3
	}
	rep, err := replica.Open(ctx, j, replica.Options{})
	if err != nil {
		fmt.Println(err)
		return 3
	}
	defer rep.Close()
	if len(words) != 4 || !slices.Equal(words[:3], []string{"task", "done", rep.Team().Name}) {
		fmt.Printf("cadre %q is not in the recipe\n", words)
		return 2
	}
	if _, err := rep.Do(ctx, team.Command{Actor: team.User, Body: &team.CompleteTask{Task: words[3]}}); err != nil {
		fmt.Println(err)
		return 1
	}
	return 0
}

// lab is a project with a repository and a team that works in it.
type lab struct {
	*testing.T
	ctx     context.Context
	project string
	folder  string // the team's folder
	procs   *proc.Register
	replica *replica.Replica

	origin         string // the team file
	isolated       bool   // a member has a worktree of its own
	clean, changes bool   // see [team.Team]
}

func newLab(t *testing.T) *lab {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	t.Cleanup(cancel)
	procs, err := proc.Open("")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { procs.Close(context.Background()) })
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	l := &lab{T: t, ctx: ctx, project: filepath.Join(dir, "project"), folder: filepath.Join(dir, "demo"), procs: procs}
	if err := errors.Join(os.CopyFS(l.project, os.DirFS(first)), os.Mkdir(l.folder, 0o700)); err != nil {
		t.Fatal(err)
	}
	return l
}

// found creates the team, with one external member whose task is done.
func (l *lab) found(checks ...team.Check) {
	l.Helper()
	state := &team.State{}
	var records [][]byte
	for i, c := range []team.Command{
		{Actor: team.User, Body: &team.CreateTeam{TeamID: "T1", Name: "demo",
			Goal: "Port the parser\nto the new grammar", Dir: l.project, Checks: checks, Clean: l.clean,
			Changes: l.changes, Origin: l.origin, Base: Look(l.ctx, l.project)}},
		{Actor: "lead", Body: &team.SpawnMember{Name: "ann", Agent: team.External}},
		{Actor: "lead", Body: &team.CreateTask{Subject: "port it"}},
		{Actor: "ann", Body: &team.ClaimTask{Task: "1"}},
		{Actor: "ann", Body: &team.CompleteTask{Task: "1", Result: "done"}},
	} {
		c.ID, c.At = fmt.Sprint("found", i), replica.Now()
		d, err := team.Decide(state, c)
		if err != nil {
			l.Fatal(err)
		}
		state.Apply(d.Record)
		records = append(records, team.AppendRecord(nil, d.Record))
	}
	if err := filejournal.Create(l.folder, "T1", records, filejournal.Options{}); err != nil {
		l.Fatal(err)
	}
	l.open()
}

func (l *lab) open() {
	l.Helper()
	j, err := filejournal.Open(l.folder, filejournal.Options{})
	if err != nil {
		l.Fatal(err)
	}
	if l.replica, err = replica.Open(l.ctx, j, replica.Options{}); err != nil {
		l.Fatal(err)
	}
	rep := l.replica
	l.Cleanup(func() { rep.Close() })
}

func (l *lab) options() Options {
	return Options{Replica: l.replica, Dir: l.folder, Actor: team.User, Log: func(text string) { l.Log(text) }}
}

func (l *lab) do(actor string, body team.Body) {
	l.Helper()
	if _, err := l.replica.Do(l.ctx, team.Command{Actor: actor, Body: body}); err != nil {
		l.Fatal(err)
	}
}

// isolate adds a member with a worktree of its own, in which it has made a file.
func (l *lab) isolate(name, file string) {
	l.Helper()
	l.do("lead", &team.SpawnMember{Name: name, Agent: "claude", Isolation: team.Worktree})
	dir := filepath.Join(l.folder, "worktrees", name)
	l.git("worktree", "add", "-q", "-b", "cadre/demo@"+name, dir)
	if err := os.WriteFile(filepath.Join(dir, file), []byte(name+"'s\n"), 0o600); err != nil {
		l.Fatal(err)
	}
}

// hers writes a file in the member's worktree; "" removes the file.
func (l *lab) hers(name, file, text string) {
	l.Helper()
	path := filepath.Join(l.folder, "worktrees", name, file)
	err := os.Remove(path) // a folder too, when it is empty
	if text != "" {
		err = errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600))
	}
	if err != nil {
		l.Fatal(err)
	}
}

func (l *lab) run() *Record {
	l.Helper()
	r, err := Run(l.ctx, l.options())
	if err != nil {
		l.Fatal(err)
	}
	return r
}

// refused runs a consolidation that has to fail with these words.
func (l *lab) refused(words ...string) error {
	l.Helper()
	_, err := Run(l.ctx, l.options())
	if err == nil {
		l.Fatal("it was consolidated")
	}
	for _, word := range words {
		if !strings.Contains(told(err), word) {
			l.Errorf("%q does not say %q", told(err), word)
		}
	}
	return err
}

// told returns an error's text, followed by its hints as JSON.
func told(err error) string {
	hints, _ := json.Marshal(team.HintsOf(err))
	return err.Error() + " " + string(hints)
}

func (l *lab) git(args ...string) string {
	l.Helper()
	out, err := l.try(args...)
	if err != nil {
		l.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return out
}

func (l *lab) try(args ...string) (string, error) {
	cmd := exec.CommandContext(l.ctx, "git", args...)
	cmd.Dir, cmd.Env = l.project, git.Local(os.Environ())
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	return strings.TrimRight(out.String(), "\n"), err
}

func (l *lab) write(name, text string) {
	l.Helper()
	path := filepath.Join(l.project, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		l.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		l.Fatal(err)
	}
}

func (l *lab) remove(name string) {
	l.Helper()
	if err := os.Remove(filepath.Join(l.project, name)); err != nil {
		l.Fatal(err)
	}
}

// committed returns the files of the last commit, each with its status.
func (l *lab) committed() []string {
	l.Helper()
	return strings.Fields(strings.ReplaceAll(l.git("show", "--format=", "--name-status", "--no-renames",
		"--diff-merges=first-parent", "HEAD"), "\t", ":"))
}

func (l *lab) commits() int {
	l.Helper()
	return len(strings.Fields(l.git("rev-list", "HEAD")))
}

// scene returns everything in the repository that a rollback restores. Checkpoints and members'
// branches are not part of it.
func (l *lab) scene() string {
	l.Helper()
	status := l.git("status", "--porcelain=v2", "--branch", "--untracked-files=all")
	index := l.git("ls-files", "--stage")
	diff := l.git("diff", "HEAD") + l.git("diff", "--cached")
	refs := slices.DeleteFunc(strings.Split(l.git("for-each-ref"), "\n"),
		func(ref string) bool { return strings.Contains(ref, "refs/heads/cadre/demo") })
	return strings.Join(append(refs, status, index, diff), "\n")
}

func (l *lab) want(got []string, want ...string) {
	l.Helper()
	if !slices.Equal(got, want) {
		l.Errorf("got %v, want %v", got, want)
	}
}

// tidy checks that a consolidation left nothing but its result.
func (l *lab) tidy() {
	l.Helper()
	for _, pattern := range []string{filepath.Join(l.project, ".git", "*.lock"), filepath.Join(l.project, ".git",
		"refs", "heads", "*.lock"), filepath.Join(l.folder, "worktrees", ".*"), filepath.Join(l.project, ".git",
		"cadre-*"), filepath.Join(l.folder, scratch), filepath.Join(l.folder, "."+RecordFile+"*")} {
		if left, _ := filepath.Glob(pattern); len(left) > 0 {
			l.Errorf("left: %v", left)
		}
	}
}
