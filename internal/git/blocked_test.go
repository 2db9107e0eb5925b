package git_test

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"cadre/internal/git"
)

// A pipe in the place of a file that git reads holds git up for ever: the command ends soon, and its error names the pipe. Nobody
// writes into these pipes.
func TestBlocked(t *testing.T) {
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

// A pipe of the project's own holds up nobody, however long a command takes, and nor does a socket anywhere.
func TestNotBlocked(t *testing.T) {
	l := newLab(t)
	l.write("known.txt", "known\n")
	l.text("add", "known.txt")
	if err := os.Remove(filepath.Join(l.Dir, "known.txt")); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"pipe", "deep.gitignore", "known.txt"} {
		if err := syscall.Mkfifo(filepath.Join(l.Dir, name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	socket, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(socket)
	t.Chdir(l.Dir) // the path of a socket is short
	if err := syscall.Bind(socket, &syscall.SockaddrUnix{Name: ".gitignore"}); err != nil {
		t.Fatal(err)
	}
	// Longer than it takes to be suspected.
	if out, err := l.Text(l.ctx, "-c", "alias.slow=!sleep 2; git status --porcelain", "slow"); err != nil || out == "" {
		t.Errorf("it ended with %q, %v", out, err)
	}
}
