package worktree_test

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"cadre/internal/git/worktree"
	"cadre/internal/testkit/soak"
)

// TestDigest checks that the digest of a committed file equals that of the file on the disk, for
// every kind of file, and differs from any other.
func TestDigest(t *testing.T) {
	soak.Long(t)
	t.Parallel()
	r := newRepository(t)
	repo := r.place.Repo
	for name, text := range map[string]string{".gitattributes": "lines eol=crlf\n", "file": "x\n", "two\twords": "x\n",
		"other": "y\n", "tool": "x\n", "lines": "a\r\nb\r\n", "twin": "file"} {
		r.write(repo, name, text)
	}
	inner := filepath.Join(repo, "inner")
	err := errors.Join(os.Chmod(filepath.Join(repo, "tool"), 0o700), os.Symlink("file", filepath.Join(repo, "link")),
		os.Mkdir(inner, 0o700))
	if err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"init", "-q"}, {"-c", "user.email=ann@example.org", "-c", "user.name=ann",
		"commit", "-q", "--allow-empty", "-m", "inner"}} {
		r.git(append([]string{"-C", inner}, args...)...)
	}
	r.git("add", "-A")
	r.git("commit", "-q", "-m", "all kinds")
	if err := syscall.Mkfifo(filepath.Join(repo, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	there := func(name string, most int64) (string, error) {
		return worktree.Digest(r.ctx, r.procs, filepath.Join(repo, name), &most)
	}
	of := map[string]string{}
	for _, name := range []string{"file", "other", "tool", "lines", "twin", "link", "inner"} {
		now, err := there(name, 100)
		committed, wrong := worktree.Committed(r.ctx, r.procs, repo, "HEAD", name)
		if err != nil || wrong != nil || now == "" || now != committed {
			t.Errorf("there %s is %q, %v, and committed %q, %v", name, now, err, committed, wrong)
		}
		if same, ok := of[now]; ok {
			t.Errorf("%s is taken for %s", name, same)
		}
		of[now] = name
	}
	if now, err := there("two\twords", 100); err != nil || of[now] != "file" {
		t.Errorf("of the same content is %q, %v", of[now], err)
	}
	if now, err := there("pipe", 0); err != nil || now == "" || of[now] != "" {
		t.Errorf("a pipe is %q, %v", of[now], err)
	}
	for _, name := range []string{"nowhere", "file/below"} {
		now, err := there(name, 100)
		committed, wrong := worktree.Committed(r.ctx, r.procs, repo, "HEAD", name)
		if now != "" || committed != "" || err != nil || wrong != nil {
			t.Errorf("there %s is %q, %v, and committed %q, %v", name, now, err, committed, wrong)
		}
	}
	if _, err := there("file", 1); !errors.Is(err, worktree.ErrTooMuch) {
		t.Errorf("of more than is to be read: %v", err)
	}
}
