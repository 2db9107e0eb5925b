package git_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"cadre/internal/git"
	"cadre/internal/sys/proc"
	"cadre/internal/testkit/soak"
)

func TestAnswers(t *testing.T) {
	soak.Long(t)
	t.Parallel()
	l := newLab(t)
	long := strings.Repeat("a line of a large file\n", 1<<16) // more than any pipe holds
	id, err := l.Run(l.ctx, []byte(long), "hash-object", "-w", "--stdin")
	if err != nil {
		t.Fatal(err)
	}
	if out, err := l.Run(l.ctx, nil, "cat-file", "blob", strings.TrimSpace(string(id))); err != nil ||
		string(out) != long {
		t.Errorf("%d bytes of %d, %v", len(out), len(long), err)
	}
	if name := l.text("symbolic-ref", "--short", "HEAD"); name != "main" {
		t.Errorf("it is %q", name)
	}

	l.write("a.txt", "one\n")
	out, err := l.Run(l.ctx, nil, "diff", "--no-index", "--name-only", os.DevNull, "a.txt") // it prints, and refuses
	refused, ok := errors.AsType[*git.Refusal](err)
	if !ok || string(out) != "a.txt\n" || *refused != (git.Refusal{Command: "diff", Status: 1,
		Words: "exit status 1"}) {
		t.Errorf("%q, %v", out, err)
	}
	_, err = l.Text(l.ctx, "rev-parse", "--verify", "nothing")
	if refused, ok = errors.AsType[*git.Refusal](err); !ok || refused.Status != 128 || refused.Command != "rev-parse" ||
		err.Error() != "git rev-parse: fatal: Needed a single revision" {
		t.Errorf("it ends with %v", err)
	}

	for commit, want := range map[string]bool{
		"HEAD": true, l.text("commit-tree", "HEAD^{tree}", "-m", "stranger"): false,
	} {
		if holds, err := l.Holds(l.ctx, "merge-base", "--is-ancestor", commit, "HEAD"); holds != want || err != nil {
			t.Errorf("%s: %t, %v", commit, holds, err)
		}
	}
	if holds, err := l.Holds(l.ctx, "merge-base", "--is-ancestor", "nothing", "HEAD"); holds || err == nil {
		t.Error("what is not there is no answer")
	}
}

// TestChanges checks that the differences between two sides are listed by path, in the format of an
// index.
func TestChanges(t *testing.T) {
	soak.Long(t)
	t.Parallel()
	l := newLab(t)
	const name = "two\n\twords \"é.txt"
	before := l.text("rev-parse", "HEAD^{tree}")
	l.write(name, "one\n")
	l.text("add", "--", name)
	after := l.text("write-tree")
	changes, err := l.Changes(l.ctx, "diff-tree", "-r", before, after)
	want := git.Change{Path: name, Letter: "A", Was: git.Nothing, Is: "100755", WasID: strings.Repeat("0", len(after)),
		IsID: l.text("rev-parse", ":"+name)}
	if err != nil || len(changes) != 1 || changes[0] != want {
		t.Fatalf("it is %+v, %v, and not %+v", changes, err, want)
	}
	own := l.With("GIT_INDEX_FILE=" + filepath.Join(t.TempDir(), "index"))
	if _, err := own.Text(l.ctx, "read-tree", before); err != nil {
		t.Fatal(err)
	}
	if _, err := own.Run(l.ctx, []byte(changes[0].Entry()), "update-index", "-z", "--index-info"); err != nil {
		t.Fatal(err)
	}
	if tree, err := own.Text(l.ctx, "write-tree"); tree != after || err != nil {
		t.Errorf("with it the tree is %s, %v", tree, err)
	}
	l.write(name, "two\n")
	if changes, err = l.Changes(l.ctx, "diff", after); err != nil || len(changes) != 1 || changes[0].Letter != "M" ||
		changes[0].WasID != want.IsID {
		t.Errorf("in the work tree it is %+v, %v", changes, err)
	}
}

// TestNoAnswer checks that a git without an answer does not count as a refusal, whatever the
// reason, and that all of its processes end.
func TestNoAnswer(t *testing.T) {
	soak.Long(t)
	t.Parallel()
	for name, c := range map[string]struct {
		script string
		limit  time.Duration
		cause  error // for which the caller leaves when the script has started
		says   string
		is     error
	}{
		"its time is over":    {"sleep 1000", time.Second, nil, "it took longer than 1s", context.DeadlineExceeded},
		"the caller has left": {"sleep 1000 & echo $! $$ >began; wait", 0, errLeft, errLeft.Error(), context.Canceled},
		"it was killed":       {"kill -KILL $PPID", 0, nil, "ended by signal: killed", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t)
			l.write("script", "#!/bin/sh\n"+c.script+"\n")
			began := l.pipe("began")
			ctx, leave := context.WithCancelCause(l.ctx)
			defer leave(nil)
			var started sync.WaitGroup
			var pids []int
			if c.cause != nil {
				started.Go(func() {
					pids = make([]int, 2)
					if _, err := fmt.Fscan(began, &pids[0], &pids[1]); err != nil {
						t.Error(err)
					}
					leave(c.cause)
				})
			}
			r := l.Runner
			r.Limit = c.limit
			_, err := r.Run(ctx, nil, "-c", "alias.slow=!./script", "slow")
			started.Wait()
			if refused, ok := errors.AsType[*git.Refusal](err); ok {
				t.Errorf("it refused: %+v", refused)
			}
			if err == nil || strings.Count(err.Error(), c.says) != 1 || c.is != nil && !errors.Is(err, c.is) ||
				c.cause != nil && !errors.Is(err, c.cause) {
				t.Errorf("it ends with %v", err)
			}
			for _, pid := range pids {
				if start, err := proc.StartTime(pid); err == nil && proc.Alive(pid, start) {
					t.Errorf("process %d lives", pid)
				}
			}
		})
	}
	if _, err := (git.Runner{Procs: newLab(t).Procs}).Text(canceled(), "version"); !errors.Is(err, context.Canceled) {
		t.Errorf("it ends with %v", err)
	}
}

var errLeft = errors.New("the team has ended")

func canceled() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

// TestLocked checks that a command waits for a lock of another git as long as its patience lasts,
// and then names the lock.
func TestLocked(t *testing.T) {
	soak.Long(t)
	t.Parallel()
	for _, name := range []string{"index.lock", "HEAD.lock", "packed-refs.lock", "refs/heads/main.lock"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t)
			l.text("tag", "old")
			l.text("pack-refs", "--all")
			l.write("a.txt", "one\n")
			args := map[string][]string{
				"index.lock":       {"add", "a.txt"},
				"HEAD.lock":        {"commit", "-q", "--allow-empty", "-m", "second"},
				"packed-refs.lock": {"tag", "-d", "old"},
				"refs/heads/main.lock": {"update-ref", "refs/heads/main",
					l.text("commit-tree", "HEAD^{tree}", "-p", "HEAD", "-m", "second")},
			}[name]
			l.write(".git/"+name, "")
			lock := filepath.Join(l.Dir, ".git", filepath.FromSlash(name))
			for _, patience := range []time.Duration{-1, 100 * time.Millisecond} {
				r := l.Runner
				r.Patience = patience
				started := time.Now()
				_, err := r.Text(l.ctx, args...)
				locked, ok := errors.AsType[*git.LockedError](err)
				if !ok || locked.File != lock || !strings.Contains(err.Error(), "remove that file") ||
					time.Since(started) < patience {
					t.Errorf("with a patience of %s it ends after %s with %v", patience, time.Since(started), err)
				}
			}
			ctx, cancel := context.WithTimeout(l.ctx, 300*time.Millisecond)
			defer cancel()
			if _, err := l.Text(ctx, args...); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("whose time is over gets %v", err)
			}
			freed := time.AfterFunc(200*time.Millisecond, func() { os.Remove(lock) })
			defer freed.Stop()
			if _, err := l.Text(l.ctx, args...); err != nil {
				t.Errorf("it does not continue: %v", err)
			}
		})
	}
}

// TestUpdateOwn checks that the lock which a killed git left on a reference of cadre's own is
// removed. A lock of a running git is waited for, and another file's lock is named.
func TestUpdateOwn(t *testing.T) {
	soak.Long(t)
	t.Parallel()
	const ref = "refs/cadre/demo/work"
	lab := func(lock string, age time.Duration) (*lab, string, func() error) {
		l := newLab(t)
		l.text("update-ref", ref, "HEAD")
		l.text("pack-refs", "--all")
		next := l.text("commit-tree", "HEAD^{tree}", "-p", "HEAD", "-m", "second")
		l.write(".git/"+lock, "")
		lock = filepath.Join(l.Dir, ".git", filepath.FromSlash(lock))
		if err := os.Chtimes(lock, time.Time{}, time.Now().Add(-age)); err != nil {
			t.Fatal(err)
		}
		return l, lock, func() error {
			err := l.UpdateOwn(l.ctx, ref, "-m", "why", ref, next, l.text("rev-parse", "HEAD"))
			if now := l.text("rev-parse", ref); (err == nil) != (now == next) {
				t.Errorf("it ends with %v, and the reference is %s", err, now)
			}
			return err
		}
	}
	t.Run("killed", func(t *testing.T) {
		t.Parallel()
		l, _, update := lab(ref+".lock", time.Hour)
		if err := update(); err != nil || l.exists(".git/"+ref+".lock") {
			t.Errorf("it ends with %v", err)
		}
		if err := l.UpdateOwn(l.ctx, ref, "-d", ref); err != nil {
			t.Error(err)
		}
	})
	t.Run("running", func(t *testing.T) {
		t.Parallel()
		_, lock, update := lab(ref+".lock", 0)
		var released atomic.Bool
		release := time.AfterFunc(300*time.Millisecond, func() { released.Store(true); os.Remove(lock) })
		defer release.Stop()
		if err := update(); err != nil || !released.Load() {
			t.Errorf("it ends with %v; the lock was released: %t", err, released.Load())
		}
	})
	t.Run("from the future", func(t *testing.T) {
		if testing.Short() {
			t.Skip("it waits seconds for the lock; not with -short")
		}
		t.Parallel()
		l, lock, update := lab(ref+".lock", -time.Hour)
		l.Patience = 100 * time.Millisecond
		err := update()
		if locked, ok := errors.AsType[*git.LockedError](err); !ok || locked.File != lock {
			t.Errorf("it ends with %v", err)
		}
	})
	t.Run("of another file", func(t *testing.T) {
		t.Parallel()
		l, lock, _ := lab("packed-refs.lock", time.Hour)
		l.Patience = 100 * time.Millisecond
		err := l.UpdateOwn(l.ctx, ref, "-d", ref)
		if locked, ok := errors.AsType[*git.LockedError](err); !ok || locked.File != lock ||
			!l.exists(".git/packed-refs.lock") {
			t.Errorf("it ends with %v", err)
		}
	})
}

// TestIndex checks that the index is locked as git locks it. A lock of ours that a kill left is
// taken over, and one that a git left is not.
func TestIndex(t *testing.T) {
	soak.Long(t)
	t.Parallel()
	l := newLab(t)
	folder := filepath.Join(l.Dir, ".git")
	path := filepath.Join(folder, "index")
	l.write("a.txt", "one\n")
	l.text("add", "a.txt")
	hold := func() *git.Index {
		t.Helper()
		index, err := l.HoldIndex(l.ctx, folder, path, "test")
		if err != nil {
			t.Fatal(err)
		}
		return index
	}
	hold() // and be killed
	index := hold()
	r := l.Runner
	r.Patience = 100 * time.Millisecond
	if _, err := r.Text(l.ctx, "add", "--all"); err == nil || !strings.Contains(err.Error(), path+".lock") {
		t.Errorf("git changes what is held: %v", err)
	}
	if other, err := r.HoldIndex(l.ctx, folder, path, "other"); err == nil {
		other.Release()
		t.Error("two hold it")
	}
	l.write("b.txt", "two\n")
	if _, err := l.With("GIT_INDEX_FILE="+index.Next()).Text(l.ctx, "add", "b.txt"); err != nil {
		t.Fatal(err)
	}
	if files := l.text("ls-files"); files != "a.txt" {
		t.Errorf("before it is installed it has %q", files)
	}
	if err := index.Install(); err != nil {
		t.Fatal(err)
	}
	index.Release()
	if files := l.text("ls-files"); files != "a.txt\nb.txt" {
		t.Errorf("it has %q", files)
	}
	index = hold()
	if _, err := l.With("GIT_INDEX_FILE="+index.Next()).Text(l.ctx, "rm", "-q", "--cached", "b.txt"); err != nil {
		t.Fatal(err)
	}
	index.Release()
	if files := l.text("ls-files"); files != "a.txt\nb.txt" {
		t.Errorf("what was not installed counts: %q", files)
	}
	if left, _ := filepath.Glob(filepath.Join(folder, "*index*")); len(left) != 1 {
		t.Errorf("left: %v", left)
	}
	if err := os.WriteFile(path+".lock", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := r.HoldIndex(l.ctx, folder, path, "test"); err == nil || !l.exists(".git/index.lock") ||
		l.exists(".git/cadre-index-test") {
		t.Errorf("a lock of git's own: %v", err)
	}
}

func TestInstalled(t *testing.T) {
	l := newLab(t)
	if err := git.Installed(); err != nil {
		t.Error(err)
	}
	t.Setenv("PATH", t.TempDir())
	if git.Installed() == nil {
		t.Error("it is nowhere")
	}
	_, err := l.Text(l.ctx, "version")
	if _, refused := errors.AsType[*git.Refusal](err); err == nil || refused {
		t.Errorf("it ends with %v", err)
	}
}
