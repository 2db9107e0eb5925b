package worktree_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"cadre/internal/git/worktree"
	"cadre/internal/testkit/soak"
)

func (r *repository) show(commit string) string {
	r.t.Helper()
	before := r.checkedOut()
	work, err := worktree.Show(r.ctx, r.procs, r.place.Repo, r.place.Dir, commit)
	if err != nil {
		r.t.Fatal(err)
	}
	if head, want := r.git("-C", r.place.Dir, "rev-parse", "HEAD"), r.git("rev-parse", commit); head != want {
		r.t.Errorf("it is at %s, not at %s", head, want)
	}
	if status := r.git("-C", r.place.Dir, "status", "--porcelain"); status != "" {
		r.t.Errorf("its status is\n%s", status)
	}
	if after := r.checkedOut(); after != before {
		r.t.Errorf("what is checked out was\n%s\nand is\n%s", before, after)
	}
	return work
}

func (r *repository) hide() {
	r.t.Helper()
	for range 2 {
		if err := worktree.Hide(r.ctx, r.procs, r.place.Repo, r.place.Dir); err != nil {
			r.t.Fatal(err)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(r.place.Dir), "*")); len(left) > 0 {
		r.t.Errorf("left: %v", left)
	}
	if left, _ := filepath.Glob(filepath.Join(r.place.Repo, ".git", "worktrees", "*")); len(left) > 0 {
		r.t.Errorf("the repository knows of %v", left)
	}
	if locks, _ := filepath.Glob(filepath.Join(r.place.Repo, ".git", "*.lock")); len(locks) > 0 {
		r.t.Errorf("locked: %v", locks)
	}
}

// TestShow checks that a worktree for reading is made again, whatever is in its place. The person's
// checkout is never touched, even if a link or a forged file .git leads there.
func TestShow(t *testing.T) {
	soak.Long(t)
	t.Parallel()
	for name, spoil := range map[string]func(r *repository){
		"nothing there": func(*repository) {},
		"as it was":     func(r *repository) { r.show("main~1") },
		"changed": func(r *repository) {
			r.show("main~1")
			r.write(r.place.Dir, "a.txt", "x\n")
			r.write(r.place.Dir, "new/x", "x\n")
		},
		"on a branch": func(r *repository) {
			r.show("main~1")
			r.git("-C", r.place.Dir, "checkout", "-q",
				"-b", "own")
		},
		"locked by a kill": func(r *repository) {
			r.show("main~1")
			r.write(r.git("-C", r.place.Dir, "rev-parse", "--git-dir"), "index.lock", "")
		},
		"in a merge": func(r *repository) {
			r.show("main~1")
			r.run("-C", r.place.Dir, "merge", "--no-commit", "--no-ff", "main")
		},
		"its folder is gone": func(r *repository) { r.show("main~1"); r.remove(r.place.Dir) },
		"half of it is gone": func(r *repository) { r.show("main~1"); r.remove(filepath.Join(r.place.Dir, ".git")) },
		"forgotten": func(r *repository) {
			r.show("main~1")
			r.remove(filepath.Join(r.place.Repo, ".git", "worktrees", "ann"))
		},
		"half of it removed": func(r *repository) {
			r.show("main~1")
			r.moved(r.place.Dir, filepath.Join(filepath.Dir(r.place.Dir), ".ann"))
		},
		"a file":              func(r *repository) { r.write(filepath.Dir(r.place.Dir), "ann", "x\n") },
		"a folder of others":  func(r *repository) { r.write(r.place.Dir, "x", "x\n") },
		"a link to elsewhere": func(r *repository) { r.link(r.place.Repo, r.place.Dir) },
		"a git of elsewhere": func(r *repository) {
			r.show("main~1")
			r.write(r.place.Dir, ".git", "gitdir: "+filepath.Join(r.place.Repo, ".git")+"\n")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRepository(t)
			r.commit("a.txt", "one\n")
			r.commit("sub/b.txt", "two\n")
			r.write(r.place.Repo, "a.txt", "the person's\n")
			spoil(r)
			if work := r.show("main"); work != r.place.Dir {
				t.Errorf("it is in %s", work)
			}
			r.hide()
		})
	}
	r := newRepository(t)
	r.commit("sub/a.txt", "one\n")
	r.place.Repo = filepath.Join(r.place.Repo, "sub")
	if work, err := worktree.Show(r.ctx, r.procs, r.place.Repo, r.place.Dir, "main"); work != filepath.Join(r.place.Dir,
		"sub") || err != nil {
		t.Errorf("it is in %s, %v", work, err)
	}
}

func (r *repository) link(to, at string) {
	r.t.Helper()
	if err := os.MkdirAll(filepath.Dir(at), 0o700); err != nil {
		r.t.Fatal(err)
	}
	if err := os.Symlink(to, at); err != nil {
		r.t.Fatal(err)
	}
}

// TestHideAlone checks that the worktree itself names its repository if that is unknown.
func TestHideAlone(t *testing.T) {
	if testing.Short() {
		t.Skip("it runs git many times; not with -short")
	}
	t.Parallel()
	r := newRepository(t)
	r.commit("a.txt", "one\n")
	repo := r.place.Repo
	r.show("main")
	r.place.Repo = ""
	if err := worktree.Hide(r.ctx, r.procs, "", r.place.Dir); err != nil {
		t.Fatal(err)
	}
	r.place.Repo = repo
	r.hide()
}

// TestKilledShow kills git at any moment while it makes the worktree. It is made again, and its
// removal leaves nothing.
func TestKilledShow(t *testing.T) {
	if testing.Short() {
		t.Skip("many kills")
	}
	t.Parallel()
	r := newRepository(t)
	for _, name := range strings.Fields("a b c d e f g h") { // each takes its time to be checked out
		r.write(r.place.Repo, name+".slow", "text\n")
	}
	r.write(r.place.Repo, ".gitattributes", "*.slow filter=slow\n")
	r.git("config", "filter.slow.smudge", "sleep 0.02; cat")
	r.git("config", "filter.slow.clean", "cat")
	r.commit("z.txt", "one\n")
	began := time.Now()
	r.show("main")
	whole := time.Since(began)
	for i := range 8 {
		r.hide()
		c := exec.Command("git", "-C", r.place.Repo, "worktree", "add", "-q", "--detach", r.place.Dir, "main")
		if i%2 == 1 { // or while it is brought to another commit
			r.show("main")
			r.commit("z.txt", strings.Repeat("more\n", i))
			for _, name := range strings.Fields("a b c d") {
				r.write(r.place.Repo, name+".slow", strings.Repeat("more\n", i))
			}
			r.commit("y.txt", "one\n")
			c = exec.Command("git", "-C", r.place.Dir, "checkout", "-q", "--detach", "main")
		}
		c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(whole * time.Duration(i+1) / 10) // the moment of the kill is what differs
		syscall.Kill(-c.Process.Pid, syscall.SIGKILL)
		c.Wait()
		if i%3 == 2 {
			r.hide()
		}
		r.show("main")
	}
	r.hide()
}

// TestShowMoved checks that a worktree that was moved, alone or with its repository, is recognized,
// and leaves nothing under its old path. A copy, or one whose file .git names another entry,
// removes nothing.
func TestShowMoved(t *testing.T) {
	if testing.Short() {
		t.Skip("it runs git many times; not with -short")
	}
	t.Parallel()
	r := newRepository(t)
	r.commit("a.txt", "one\n")
	first := r.git("rev-parse", "HEAD")
	r.commit("a.txt", "two\n")
	second := r.git("rev-parse", "HEAD")
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	old, place := filepath.Join(top, "old", "demo", "merged"), filepath.Join(top, "new", "demo", "merged")
	show := func(dir, commit string) {
		t.Helper()
		if _, err := worktree.Show(r.ctx, r.procs, r.place.Repo, dir, commit); err != nil {
			t.Fatal(err)
		}
		if at := r.git("-C", dir, "rev-parse", "HEAD"); at != commit {
			t.Errorf("%s is at %s", dir, at)
		}
	}
	trees := func(want ...string) {
		t.Helper()
		var all []string
		for line := range strings.Lines(r.git("worktree", "list", "--porcelain")) {
			if dir, ok := strings.CutPrefix(strings.TrimSpace(line), "worktree "); ok {
				all = append(all, dir)
			}
		}
		if got := slices.Sorted(slices.Values(all[1:])); !slices.Equal(got, slices.Sorted(slices.Values(want))) {
			t.Errorf("the worktrees are %q, not %q", got, want)
		}
	}
	show(old, first)
	if err := os.Rename(filepath.Join(top, "old"), filepath.Join(top, "new")); err != nil {
		t.Fatal(err)
	}
	show(place, second)
	trees(place)

	copied := filepath.Join(top, "copy", "demo", "merged")
	if err := os.CopyFS(copied, os.DirFS(place)); err != nil {
		t.Fatal(err)
	}
	show(copied, first)
	trees(place, copied)
	if at := r.git("-C", place, "rev-parse", "HEAD"); at != second {
		t.Errorf("the other one is at %s", at)
	}
	if err := worktree.Hide(r.ctx, r.procs, r.place.Repo, copied); err != nil {
		t.Fatal(err)
	}

	ann := r.add()
	if err := os.Rename(ann, ann+"-away"); err != nil {
		t.Fatal(err)
	}
	link, err := os.ReadFile(filepath.Join(ann+"-away", ".git"))
	if err == nil {
		err = os.WriteFile(filepath.Join(place, ".git"), link, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	show(place, first)
	trees(ann, place)
}
