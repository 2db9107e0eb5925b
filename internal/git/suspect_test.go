package git

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"cadre/internal/sys/proc"
	"cadre/internal/testkit/soak"
)

// TestSuspect checks that, where the system does not show what git waits for, only a pipe under a
// name that git opens by itself is suspected.
func TestSuspect(t *testing.T) {
	soak.Long(t)
	t.Parallel()
	for _, c := range []struct {
		pipe, link string // where it is, and to what a link leads instead
		found      bool
	}{
		{pipe: ".git/config", found: true}, {pipe: ".git/config.worktree", found: true},
		{pipe: ".git/HEAD", found: true}, {pipe: ".git/index", found: true},
		{pipe: ".git/packed-refs", found: true}, {pipe: ".git/commondir", found: true},
		{pipe: ".git/shallow", found: true}, {pipe: ".git/info/exclude", found: true},
		{pipe: ".git/info/attributes", found: true}, {pipe: ".git/info/grafts", found: true},
		{pipe: ".git/info/sparse-checkout", found: true},
		{pipe: ".git/objects/info/alternates", found: true}, {pipe: ".git/refs/heads/deep/er", found: true},
		{pipe: ".gitignore", found: true}, {pipe: "src/deep/.gitattributes", found: true},
		{pipe: ".gitmodules", found: true},
		{pipe: ".git/hooks/pre-push"}, {pipe: ".git/own"}, {pipe: ".git/.gitignore"}, {pipe: ".git/hooks/.gitignore"},
		{pipe: "build/.gitignore"}, {pipe: "build/deep/.gitattributes"},
		{pipe: "pipe"}, {pipe: "src/a.gitignore"},
		{pipe: ".git/hooks/post-commit", link: os.DevNull}, {pipe: ".git/x", link: "/dev/tty"},
		{pipe: ".git/config", link: os.DevNull}, {pipe: ".git/packed-refs", link: "/dev/tty"},
		{pipe: ".git/packed-refs", link: "../pipe", found: true},
	} {
		t.Run(c.pipe+" "+c.link, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			procs, err := proc.Open("")
			if err != nil {
				t.Fatal(err)
			}
			defer procs.Close(context.Background())
			if out, err := exec.Command("git", "init", "-q", dir).CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			path := filepath.Join(dir, c.pipe)
			if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
				t.Fatal(err)
			}
			if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700),
				os.WriteFile(filepath.Join(dir, ".git/info/attributes"), nil, 0o600)); err != nil {
				t.Fatal(err)
			}
			if c.pipe != ".gitignore" {
				if err := os.WriteFile(filepath.Join(dir, ".gitignore"), []byte("build/\n"), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			os.Remove(path)
			switch c.link {
			case "":
				err = syscall.Mkfifo(path, 0o600)
			case "../pipe":
				err = errors.Join(syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600), os.Symlink(c.link, path))
			default:
				err = os.Symlink(c.link, path)
			}
			if err != nil {
				t.Fatal(err)
			}
			r := Runner{Procs: procs, Dir: dir}
			got := r.suspect(t.Context())
			for until := time.Now().Add(time.Minute); c.found && got == "" && time.Now().Before(until); {
				got = r.suspect(t.Context()) // on a busy machine, as the guard does
			}
			if c.found && got != path || !c.found && got != "" {
				t.Errorf("suspected is %q", got)
			}
		})
	}
}

// TestSuspectOnABusyMachine checks that no pipe is suspected while git does not say whether its
// folder is ignored.
func TestSuspectOnABusyMachine(t *testing.T) {
	if testing.Short() {
		t.Skip("it waits seconds for git; not with -short")
	}
	t.Parallel()
	dir := t.TempDir()
	procs, err := proc.Open("")
	if err != nil {
		t.Fatal(err)
	}
	defer procs.Close(context.Background())
	if out, err := exec.Command("git", "init", "-q", dir).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	slow := filepath.Join(t.TempDir(), "excludes") // git does not answer while it waits for this pipe
	if err := errors.Join(os.WriteFile(filepath.Join(dir, ".gitignore"), []byte("build/\n"), 0o600),
		os.Mkdir(filepath.Join(dir, "build"), 0o700), syscall.Mkfifo(filepath.Join(dir, "build", ".gitignore"), 0o600),
		syscall.Mkfifo(slow, 0o600)); err != nil {
		t.Fatal(err)
	}
	r := Runner{Procs: procs, Dir: dir, Settings: []string{"core.excludesFile=" + slow}}
	if got := r.suspect(t.Context()); got != "" {
		t.Errorf("suspected is %q", got)
	}
}
