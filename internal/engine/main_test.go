package engine_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"cadre/internal/consolidate"
	"cadre/internal/engine"
	"cadre/internal/journal/store"
	"cadre/internal/layout"
	"cadre/internal/replica"
	"cadre/internal/team"
	"cadre/internal/testkit/hosttest"
	"cadre/internal/testkit/soak"
)

func TestMain(m *testing.M) {
	// The person's git settings must not affect a test.
	os.Setenv("GIT_CONFIG_GLOBAL", os.DevNull)
	os.Setenv("GIT_CONFIG_NOSYSTEM", "1")
	hosttest.Main()
	soak.InMemory()
	goleak.VerifyTestMain(m)
}

// lab is a home, a project that is a git repository, and an engine.
type lab struct {
	*engine.Engine
	t       *testing.T
	project string
}

func newLab(t *testing.T) *lab {
	t.Helper()
	l := &lab{Engine: &engine.Engine{Home: layout.Home{Root: filepath.Join(t.TempDir(), "cadre"),
		Claude: filepath.Join(t.TempDir(), "claude")}, Log: func(text string) { t.Log(text) }}, t: t,
		project: t.TempDir()}
	t.Cleanup(func() { hosttest.Await(t, l.Home.Root) })
	l.HostCommand = hosttest.Command(l.Home)
	l.git("init", "-q", "-b", "main")
	l.git("commit", "-q", "--allow-empty", "-m", "first")
	return l
}

func (l *lab) git(args ...string) string {
	l.t.Helper()
	out, err := exec.Command("git", append([]string{"-C", l.project, "-c", "user.name=Ann", "-c",
		"user.email=ann@example.org"}, args...)...).CombinedOutput()
	if err != nil {
		l.t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// create makes the team demo, with those commands of the user.
func (l *lab) create(more ...team.Body) {
	l.t.Helper()
	bodies := append([]team.Body{&team.CreateTeam{TeamID: "demo-" + strings.ToLower(replica.NewID()), Name: "demo",
		Dir: l.project, Base: consolidate.Look(l.t.Context(), l.project)}}, more...)
	var commands []team.Command
	for _, body := range bodies {
		commands = append(commands, team.Command{ID: replica.NewID(), Actor: team.User, At: replica.Now(), Body: body})
	}
	if err := l.Create("demo", commands); err != nil {
		l.t.Fatal(err)
	}
}

// open opens the team demo, until the test ends.
func (l *lab) open() *engine.Team {
	l.t.Helper()
	t, err := l.Open(within(l.t), "demo")
	if err != nil {
		l.t.Fatal(err)
	}
	l.t.Cleanup(func() { t.Close() })
	return t
}

// host hosts the team until the test ends, with shells that end at once.
func (l *lab) host(t *engine.Team, o engine.HostOptions) *engine.Host {
	l.t.Helper()
	o.Agent = hosttest.Shells
	h, err := t.Host(within(l.t), o)
	if err != nil {
		l.t.Fatal(err)
	}
	l.t.Cleanup(func() { h.End() })
	return h
}

func (l *lab) do(t *engine.Team, actor string, body team.Body) {
	l.t.Helper()
	if _, err := t.Do(within(l.t), team.Command{Actor: actor, Body: body}); err != nil {
		l.t.Fatal(err)
	}
}

func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeoutCause(t.Context(), 30*time.Second, errors.New("the test takes too long"))
	t.Cleanup(cancel)
	return ctx
}

// until waits until see reports true for the team.
func until(t *testing.T, of *engine.Team, see func(*team.State) bool) {
	t.Helper()
	ctx := within(t)
	for {
		var seq int64
		var done bool
		of.View(func(s *team.State) { seq, done = s.Seq(), see(s) })
		if done {
			return
		}
		if err := of.Wait(ctx, seq); err != nil {
			t.Fatal(context.Cause(ctx), err)
		}
	}
}

// eventually waits for things outside the team's history.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	ctx := within(t)
	for !is() {
		select {
		case <-ctx.Done():
			t.Fatalf("it does not come to this: %s", what)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// unled waits until no process has the lead. A child that another test is just starting may have
// the lock for a moment longer.
func (l *lab) unled(of *engine.Team) {
	l.t.Helper()
	eventually(l.t, "the lead is released", func() bool { return !of.Shared().Held(l.t.Context(), store.Lead) })
}

func completed(id string) func(*team.State) bool {
	return func(s *team.State) bool {
		task, _ := s.Task(id)
		return task.Status == team.Completed
	}
}

// names returns the names of the files in the folder.
func names(dir string) (all []string) {
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return all
}

func hinted(err error, a team.Action) bool {
	return slices.ContainsFunc(team.HintsOf(err), func(h team.Hint) bool { return h.Action == a })
}
