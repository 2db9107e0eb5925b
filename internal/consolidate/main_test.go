package consolidate

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"cadre/internal/desk"
	"cadre/internal/journal/filejournal"
	"cadre/internal/proc"
	"cadre/internal/team"
)

// victim names, to a copy of the test program, the team's folder and the point at which it is to be killed: it consolidates the team until then.
const victim = "CADRE_TEST_CONSOLIDATE"

func TestMain(m *testing.M) {
	if at := os.Getenv(victim); at != "" {
		os.Exit(consolidateUntil(at))
	}
	goleak.VerifyTestMain(m)
}

// consolidateUntil ends itself as kill -9 would at the nth point that it comes to.
func consolidateUntil(at string) int {
	dir, n := "", 0
	if _, err := fmt.Sscanf(at, "%d %s", &n, &dir); err != nil {
		return 3
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	procs, err := proc.Open("")
	if err != nil {
		return 3
	}
	j, err := filejournal.Open(dir, filejournal.Options{})
	if err != nil {
		return 3
	}
	d, err := desk.Open(ctx, j, desk.Options{})
	if err != nil {
		return 3
	}
	_, err = Run(ctx, Options{Desk: d, Dir: dir, Procs: procs, Actor: team.User, Checkpoint: func(context.Context) error { return nil }, at: func(point string) {
		fmt.Println(point)
		if n--; n < 0 {
			syscall.Kill(os.Getpid(), syscall.SIGKILL)
		}
	}})
	if err != nil {
		fmt.Println("error:", err)
		return 1
	}
	return 0
}

// lab is a project with a repository, and a team that works in it.
type lab struct {
	*testing.T
	ctx     context.Context
	project string
	folder  string // the team's
	procs   *proc.Register
	desk    *desk.Desk
}

func newLab(t *testing.T) *lab {
	t.Helper()
	config := filepath.Join(t.TempDir(), "gitconfig")
	if err := os.WriteFile(config, []byte("[user]\n\tname = Ann Example\n\temail = ann@example.org\n[init]\n\tdefaultBranch = main\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("GIT_CONFIG_GLOBAL", config)
	t.Setenv("GIT_CONFIG_NOSYSTEM", "1")
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	procs, err := proc.Open("")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { procs.Close(context.Background()) })
	l := &lab{T: t, ctx: ctx, project: filepath.Join(t.TempDir(), "project"), folder: filepath.Join(t.TempDir(), "demo"), procs: procs}
	l.project, err = filepath.EvalSymlinks(filepath.Dir(l.project))
	if err != nil {
		t.Fatal(err)
	}
	l.project = filepath.Join(l.project, "project")
	if err := errors.Join(os.Mkdir(l.project, 0o700), os.Mkdir(l.folder, 0o700)); err != nil {
		t.Fatal(err)
	}
	l.git("init", "-q")
	l.write("a.txt", "one\n")
	l.write("b.txt", "one\n")
	l.git("add", "-A")
	l.git("commit", "-q", "-m", "first")
	return l
}

// found creates the team, with one external member whose task is done.
func (l *lab) found(checks ...team.Check) {
	l.Helper()
	state := &team.State{}
	var records [][]byte
	for i, c := range []team.Command{
		{Actor: team.User, Body: &team.CreateTeam{TeamID: "T1", Name: "demo", Goal: "Port the parser\nto the new grammar", Dir: l.project, Checks: checks, Base: Look(l.ctx, l.project)}},
		{Actor: "lead", Body: &team.SpawnMember{Name: "ann", Agent: team.External}},
		{Actor: "lead", Body: &team.CreateTask{Subject: "port it"}},
		{Actor: "ann", Body: &team.ClaimTask{Task: "1"}},
		{Actor: "ann", Body: &team.CompleteTask{Task: "1", Result: "done"}},
	} {
		c.ID, c.At = fmt.Sprint("found", i), desk.Now()
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
	if l.desk, err = desk.Open(l.ctx, j, desk.Options{}); err != nil {
		l.Fatal(err)
	}
	d := l.desk
	l.Cleanup(func() { d.Close() })
}

func (l *lab) options() Options {
	return Options{Desk: l.desk, Dir: l.folder, Procs: l.procs, Actor: team.User, Log: func(text string) { l.Log(text) }}
}

func (l *lab) do(actor string, body team.Body) {
	l.Helper()
	if _, err := l.desk.Do(l.ctx, team.Command{Actor: actor, Body: body}); err != nil {
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

// refused consolidates, which is to fail, and say these words.
func (l *lab) refused(words ...string) error {
	l.Helper()
	_, err := Run(l.ctx, l.options())
	if err == nil {
		l.Fatal("it was consolidated")
	}
	for _, word := range words {
		if !strings.Contains(err.Error(), word) {
			l.Errorf("%q does not say %q", err, word)
		}
	}
	return err
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
	cmd.Dir, cmd.Env = l.project, plain(os.Environ())
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

// files of the last commit, each with what became of it.
func (l *lab) committed() []string {
	l.Helper()
	return strings.Fields(strings.ReplaceAll(l.git("show", "--format=", "--name-status", "--no-renames", "HEAD"), "\t", ":"))
}

func (l *lab) commits() int {
	l.Helper()
	return len(strings.Fields(l.git("rev-list", "HEAD")))
}

// scene is everything in the repository that a rollback leaves as it was.
func (l *lab) scene() string {
	l.Helper()
	status := l.git("status", "--porcelain=v2", "--branch", "--untracked-files=all")
	index := l.git("ls-files", "--stage")
	diff := l.git("diff", "HEAD") + l.git("diff", "--cached")
	return strings.Join([]string{status, index, diff, l.git("for-each-ref")}, "\n")
}

func (l *lab) want(got []string, want ...string) {
	l.Helper()
	if !slices.Equal(got, want) {
		l.Errorf("got %v, want %v", got, want)
	}
}

// tidy checks that nothing of a consolidation is left but its result.
func (l *lab) tidy() {
	l.Helper()
	for _, pattern := range []string{filepath.Join(l.project, ".git", "*.lock"), filepath.Join(l.project, ".git", "cadre-*"), filepath.Join(l.folder, scratch), filepath.Join(l.folder, "."+RecordFile+"*")} {
		if left, _ := filepath.Glob(pattern); len(left) > 0 {
			l.Errorf("left: %v", left)
		}
	}
}
