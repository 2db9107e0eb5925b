package git_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"cadre/internal/git"
	"cadre/internal/sys/proc"
	"cadre/internal/testkit/soak"
)

func TestMain(m *testing.M) {
	os.Setenv("GIT_CONFIG_GLOBAL", os.DevNull)
	os.Setenv("GIT_CONFIG_NOSYSTEM", "1")
	soak.Beside(24)
	soak.InMemory()
	goleak.VerifyTestMain(m)
}

// lab is a real repository with one commit, and a runner at its top.
type lab struct {
	t *testing.T
	git.Runner
	ctx context.Context
}

func newLab(t *testing.T) *lab {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	t.Cleanup(cancel)
	procs, err := proc.Open("")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := procs.Close(context.WithoutCancel(ctx)); err != nil {
			t.Error(err)
		}
	})
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	l := &lab{t, git.Runner{Procs: procs, Dir: dir}, ctx}
	l.text("init", "-q", "-b", "main")
	l.text("config", "user.name", "Ann Example")
	l.text("config", "user.email", "ann@example.org")
	l.text("commit", "-q", "--allow-empty", "-m", "first")
	return l
}

// text returns the output of git, which must succeed.
func (l *lab) text(args ...string) string {
	l.t.Helper()
	out, err := l.Text(l.ctx, args...)
	if err != nil {
		l.t.Fatal(err)
	}
	return out
}

func (l *lab) write(name, text string) {
	l.t.Helper()
	path := filepath.Join(l.Dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		l.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o700); err != nil {
		l.t.Fatal(err)
	}
}

// pipe returns a pipe with which a script reports something, for half a minute.
func (l *lab) pipe(name string) *os.File {
	l.t.Helper()
	path := filepath.Join(l.Dir, name)
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		l.t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_RDWR|syscall.O_NONBLOCK, 0) // for both, so that it has no end
	if err != nil {
		l.t.Fatal(err)
	}
	l.t.Cleanup(func() { f.Close() })
	if err := f.SetReadDeadline(time.Now().Add(30 * time.Second)); err != nil {
		l.t.Fatal(err)
	}
	return f
}

func (l *lab) exists(name string) bool {
	_, err := os.Lstat(filepath.Join(l.Dir, name))
	return err == nil
}

// persons returns the output of a person's git, in the environment that [git.Local] gives it.
func (l *lab) persons(args ...string) string {
	l.t.Helper()
	cmd := exec.CommandContext(l.ctx, "git", args...)
	cmd.Dir, cmd.Env = l.Dir, git.Local(os.Environ())
	out, err := cmd.Output()
	if err != nil {
		l.t.Fatalf("git %v: %v", args, err)
	}
	return strings.TrimSpace(string(out))
}
