package git_test

import (
	"cmp"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"

	"cadre/internal/git"
	"cadre/internal/testkit/soak"
)

// TestBlocked checks that a command ends soon if a pipe is in the place of a file that git reads,
// and that the error names the pipe. No process writes into these pipes.
func TestBlocked(t *testing.T) {
	soak.Long(t)
	t.Parallel()
	for name, c := range map[string]struct {
		pipe   string
		args   []string
		linked bool
	}{
		"ignored files":         {pipe: ".gitignore", args: []string{"status"}},
		"in a folder":           {pipe: "deep/er/.gitignore", args: []string{"status"}},
		"attributes":            {pipe: ".gitattributes", args: []string{"add", "a.txt"}},
		"submodules":            {pipe: ".gitmodules", args: []string{"grep", "--recurse-submodules", "known"}},
		"of the repository":     {pipe: ".git/info/exclude", args: []string{"status"}},
		"configuration":         {pipe: ".git/config", args: []string{"status"}},
		"in a linked worktree":  {pipe: ".gitignore", args: []string{"status"}, linked: true},
		"of its own repository": {pipe: ".git/info/exclude", args: []string{"status"}, linked: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t)
			l.write("known.txt", "known\n")
			l.text("add", "known.txt")
			l.text("commit", "-q", "-m", "second")
			l.write("a.txt", "a\n")
			l.write("deep/er/a.txt", "a\n")
			pipe := filepath.Join(l.Dir, c.pipe)
			if c.linked {
				dir := l.Dir + "-linked"
				t.Cleanup(func() { os.RemoveAll(dir) })
				l.text("worktree", "add", "-q", dir)
				if l.Dir = dir; filepath.Dir(c.pipe) == "." {
					pipe = filepath.Join(dir, c.pipe)
				}
			}
			if err := os.Remove(pipe); err != nil && !errors.Is(err, os.ErrNotExist) {
				t.Fatal(err)
			}
			if err := syscall.Mkfifo(pipe, 0o600); err != nil {
				t.Fatal(err)
			}
			_, err := l.Run(l.ctx, nil, c.args...)
			blocked, ok := errors.AsType[*git.BlockedError](err)
			if !ok || blocked.File.Path != pipe {
				t.Errorf("git %q ended with %v", c.args, err)
			}
		})
	}
}

// TestBlockedAnywhere checks that on Linux any pipe for which git waits is named, even one that
// another process holds open without writing.
func TestBlockedAnywhere(t *testing.T) {
	soak.Long(t)
	if runtime.GOOS != "linux" {
		t.Skip("the system does not tell")
	}
	t.Parallel()
	for name, settings := range map[string]string{
		"files that the person ignores": "core.excludesFile",
		"attributes of the person":      "core.attributesFile",
		"included configuration":        "include.path",
		"with a writer":                 "include.path",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t)
			l.write("a.txt", "a\n")
			pipe := filepath.Join(t.TempDir(), "pipe")
			if err := syscall.Mkfifo(pipe, 0o600); err != nil {
				t.Fatal(err)
			}
			if name == "with a writer" {
				f, err := os.OpenFile(pipe, os.O_RDWR, 0)
				if err != nil {
					t.Fatal(err)
				}
				defer f.Close()
			}
			l.Settings = []string{settings + "=" + pipe}
			_, err := l.Run(l.ctx, nil, "add", "a.txt")
			blocked, ok := errors.AsType[*git.BlockedError](err)
			if !ok || blocked.File.Path != pipe {
				t.Errorf("it ended with %v", err)
			}
		})
	}
}

// TestNotBlocked checks that a pipe that git does not open, a socket or a device does not end a
// command, however long it takes. Each command here runs long enough for the guard to look.
func TestNotBlocked(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("its commands take two seconds each; not with -short")
	}
	fifo := func(t *testing.T, path string) {
		t.Helper()
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), syscall.Mkfifo(path, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	link := func(t *testing.T, to, path string) {
		t.Helper()
		if err := os.Symlink(to, path); err != nil {
			t.Fatal(err)
		}
	}
	const slow = "#!/bin/sh\nsleep 2\n"
	for name, c := range map[string]struct {
		hook string // pre-push
		make func(t *testing.T, l *lab)
	}{
		"pipes of the project": {make: func(t *testing.T, l *lab) {
			l.write("known.txt", "known\n")
			l.text("add", "known.txt")
			if err := os.Remove(filepath.Join(l.Dir, "known.txt")); err != nil {
				t.Fatal(err)
			}
			for _, name := range []string{"pipe", "deep.gitignore", "known.txt"} {
				fifo(t, filepath.Join(l.Dir, name))
			}
		}},
		"a hook that is a device": {make: func(t *testing.T, l *lab) {
			link(t, os.DevNull, filepath.Join(l.Dir, ".git/hooks/post-commit"))
		}},
		"a hook that is a pipe": {make: func(t *testing.T, l *lab) {
			fifo(t, filepath.Join(l.Dir, ".git/hooks/notes"))
		}},
		"a pipe of a hook's": {make: func(t *testing.T, l *lab) {
			fifo(t, filepath.Join(l.Dir, ".git/hook-pipe"))
		}},
		"a terminal": {make: func(t *testing.T, l *lab) {
			link(t, "/dev/tty", filepath.Join(l.Dir, ".git/x"))
		}},
		"a pipe in an ignored folder": {make: func(t *testing.T, l *lab) {
			l.write(".gitignore", "build/\n")
			fifo(t, filepath.Join(l.Dir, "build/deep/.gitignore"))
		}},
		"a hook that waits for a pipe": {hook: "#!/bin/sh\nmkfifo .git/own\n(sleep 2; echo >.git/own) &\nread " +
			"x <.git/own\nwait\n"},
		"a git of a hook's that reads a pipe": {hook: "#!/bin/sh\nmkfifo .git/own\n(exec >.git/own; sleep 2; echo) " +
			"&\ngit hash-object --stdin <.git/own >&2\nwait\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t)
			remote := t.TempDir()
			l.text("init", "-q", "--bare", remote)
			l.write(".git/hooks/pre-push", cmp.Or(c.hook, slow))
			if c.make != nil {
				c.make(t, l)
			}
			l.Remote = true
			if _, err := l.Text(l.ctx, "push", "-q", remote, "main"); err != nil {
				t.Errorf("the push ended with %v", err)
			}
			l.Remote = false
			if _, err := l.Text(l.ctx, "-c", "alias.slow=!sleep 2; git status --porcelain", "slow"); err != nil {
				t.Errorf("the status ended with %v", err)
			}
		})
	}
}

// TestNotBlockedBySocket checks that a socket in the place of a file that git reads does not block.
func TestNotBlockedBySocket(t *testing.T) {
	if testing.Short() {
		t.Skip("its command takes two seconds; not with -short")
	}
	l := newLab(t)
	socket, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(socket)
	t.Chdir(l.Dir) // the path of a socket is short
	if err := syscall.Bind(socket, &syscall.SockaddrUnix{Name: ".gitignore"}); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Text(l.ctx, "-c", "alias.slow=!sleep 2; git status --porcelain", "slow"); err != nil {
		t.Errorf("it ended with %v", err)
	}
}
