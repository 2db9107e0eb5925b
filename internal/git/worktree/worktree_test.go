package worktree_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"cadre/internal/git/worktree"
	"cadre/internal/sys/proc"
	"cadre/internal/testkit/soak"
)

func TestMain(m *testing.M) {
	os.Setenv("GIT_CONFIG_GLOBAL", os.DevNull) // for all tests at once: they run beside each other
	if args := os.Getenv(victim); args != "" {
		os.Exit(mergeUntilKilled(args))
	}
	soak.InMemory()
	dir, err := os.MkdirTemp("", "cadre-worktree-")
	if err == nil {
		plain = filepath.Join(dir, ".git")
		err = makePlain(dir)
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

// plain is the folder .git of a repository without commits, which every test copies.
var plain string

func makePlain(dir string) error {
	for _, args := range [][]string{{"init", "-q", "-b", "main"}, {"config", "user.email", "ann@example.org"},
		{"config", "user.name", "ann"}, {"config", "maintenance.auto", "false"}} {
		if out, err := exec.Command("git", append([]string{"-C", dir}, args...)...).CombinedOutput(); err != nil {
			return fmt.Errorf("git %v: %w: %s", args, err, out)
		}
	}
	return nil
}

// repository is a real repository with one commit.
type repository struct {
	t     *testing.T
	ctx   context.Context
	procs *proc.Register
	place worktree.Place
}

func newRepository(t *testing.T) *repository {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	t.Cleanup(cancel)
	procs, err := proc.Open("")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { procs.Close(context.Background()) })
	dir := t.TempDir()
	r := &repository{t, ctx, procs, worktree.Place{Repo: filepath.Join(dir, "repo"), Dir: filepath.Join(dir, "trees",
		"ann"), Branch: "cadre/demo@ann"}}
	if err := os.Mkdir(r.place.Repo, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(filepath.Join(r.place.Repo, ".git"), os.DirFS(plain)); err != nil {
		t.Fatal(err)
	}
	return r
}

func (r *repository) git(args ...string) string {
	r.t.Helper()
	out, code := r.run(args...)
	if code != 0 {
		r.t.Fatalf("git %v: exit status %d\n%s", args, code, out)
	}
	return out
}

func (r *repository) run(args ...string) (string, int) {
	r.t.Helper()
	cmd := exec.CommandContext(r.ctx, "git", args...)
	cmd.Dir = r.place.Repo
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil {
		r.t.Fatalf("git %v: %v", args, err)
	}
	return strings.TrimSpace(string(out)), cmd.ProcessState.ExitCode()
}

func (r *repository) write(dir, name, text string) {
	r.t.Helper()
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		r.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		r.t.Fatal(err)
	}
}

func (r *repository) remove(path string) {
	r.t.Helper()
	if err := os.RemoveAll(path); err != nil {
		r.t.Fatal(err)
	}
}

// readOnly makes a folder with a file that cannot be removed without a change of modes, except by
// root.
func (r *repository) readOnly(dir string) {
	r.t.Helper()
	r.write(dir, "mod.go", "package mod\n")
	if err := os.Chmod(dir, 0o500); err != nil {
		r.t.Fatal(err)
	}
}

func (r *repository) commit(name, text string) {
	r.t.Helper()
	r.write(r.place.Repo, name, text)
	r.git("add", "-A")
	r.git("commit", "-q", "-m", name)
}

func (r *repository) add() string {
	r.t.Helper()
	dir, err := worktree.Add(r.ctx, r.procs, r.place)
	if err != nil {
		r.t.Fatal(err)
	}
	return dir
}

// keep removes the worktree, and checks that the repository's checkout is unchanged.
func (r *repository) keep() worktree.Kept {
	r.t.Helper()
	before := r.checkedOut()
	kept, err := worktree.Keep(r.ctx, r.procs, r.place, "Work of ann")
	if err != nil {
		r.t.Fatal(err)
	}
	if _, err := os.Stat(r.place.Dir); err == nil {
		r.t.Error("the worktree is still there")
	}
	if after := r.checkedOut(); after != before {
		r.t.Errorf("what is checked out was\n%s\nand is\n%s", before, after)
	}
	return kept
}

// checkedOut returns HEAD, the index and the differences of the person's checkout.
func (r *repository) checkedOut() string {
	r.t.Helper()
	return strings.Join([]string{r.git("ls-files", "--stage"), r.git("status", "--porcelain=v2", "--branch"),
		r.git("diff", "HEAD")}, "\n")
}

// TestWorkStaysOnItsBranch checks that a member's work is only on its branch: not in HEAD, the
// index or the work tree of the person.
func TestWorkStaysOnItsBranch(t *testing.T) {
	soak.Long(t)
	t.Parallel()
	r := newRepository(t)
	r.commit("a.txt", "one\n")
	dir := r.add()
	r.write(dir, "b.txt", "two\n")
	r.write(dir, "a.txt", "ann's\n")
	r.write(r.place.Repo, "a.txt", "the person's, not committed\n")
	if again := r.add(); again != dir {
		t.Errorf("added again it is %s, not %s", again, dir)
	}
	if files, err := worktree.Changed(r.ctx, r.procs, dir); err != nil ||
		!slices.Equal(files, []string{"a.txt", "b.txt"}) {
		t.Errorf("changed: %v, %v", files, err)
	}
	for range 2 { // a second time it finds what the first one did
		if kept := r.keep(); kept != (worktree.Kept{Commit: r.git("rev-parse", r.place.Branch)}) {
			t.Errorf("%+v", kept)
		}
	}
	if got := r.git("show", r.place.Branch+":b.txt"); got != "two" {
		t.Errorf("b.txt is %q", got)
	}
}

func TestNothingDone(t *testing.T) {
	soak.Long(t)
	t.Parallel()
	r := newRepository(t)
	r.commit("a.txt", "one\n")
	r.add()
	if kept := r.keep(); kept != (worktree.Kept{}) || r.git("branch", "--list", "cadre/*") != "" {
		t.Errorf("%+v", kept)
	}
}

// TestMergeThatWasNotFinished checks that a merge which the member left with conflicts does not
// count as merged: a later merge finds the conflicts again.
func TestMergeThatWasNotFinished(t *testing.T) {
	if testing.Short() {
		t.Skip("it runs git many times; not with -short")
	}
	t.Parallel()
	r := newRepository(t)
	r.commit("a.txt", "one\n")
	dir := r.add()
	r.write(dir, "a.txt", "ann's\n")
	r.git("-C", dir, "commit", "-qam", "hers")
	r.commit("a.txt", "main's\n")
	r.run("-C", dir, "merge", "main")
	kept := r.keep()
	if parents := strings.Fields(r.git("rev-parse", kept.Commit+"^@")); len(parents) != 1 {
		t.Errorf("the commit has the parents %v", parents)
	}
	if got := r.git("show", kept.Commit+":a.txt"); !strings.Contains(got, "ann's") ||
		!strings.Contains(got, "<<<<<<<") {
		t.Errorf("a.txt is %q", got)
	}
}

func TestSubdirectory(t *testing.T) {
	soak.Long(t)
	t.Parallel()
	r := newRepository(t)
	r.commit("sub/a.txt", "one\n")
	r.place.Repo = filepath.Join(r.place.Repo, "sub")
	dir := r.add()
	if _, err := os.Stat(filepath.Join(dir, "a.txt")); err != nil {
		t.Error(err)
	}
	r.place.Dir = dir
	r.write(dir, "b.txt", "two\n")
	r.keep()
	if got := r.git("show", r.place.Branch+":sub/b.txt"); got != "two" {
		t.Errorf("b.txt is %q", got)
	}
}

func TestNoRepository(t *testing.T) {
	t.Parallel()
	r := newRepository(t)
	if _, err := worktree.Add(r.ctx, r.procs, r.place); err == nil || !strings.Contains(err.Error(), "no commit yet") {
		t.Errorf("without a commit: %v", err)
	}
	r.place.Repo = t.TempDir()
	if _, err := worktree.Add(r.ctx, r.procs, r.place); err == nil || !strings.Contains(err.Error(),
		"not in a git repository") {
		t.Errorf("outside of a repository: %v", err)
	}
}

// TestManyAtOnce makes and removes several worktrees at once, in any order.
func TestManyAtOnce(t *testing.T) {
	if testing.Short() {
		t.Skip("it runs git many times; not with -short")
	}
	t.Parallel()
	r := newRepository(t)
	r.commit("a.txt", "one\n")
	const many = 8
	places := make([]worktree.Place, many)
	var beginning sync.WaitGroup
	for i := range places {
		beginning.Go(func() {
			name := fmt.Sprintf("m%d", i)
			places[i] = worktree.Place{Repo: r.place.Repo, Dir: filepath.Join(filepath.Dir(r.place.Dir), name),
				Branch: "cadre/demo@" + name}
			if _, err := worktree.Add(r.ctx, r.procs, places[i]); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
	if beginning.Wait(); t.Failed() {
		return
	}
	for i, p := range places {
		name := filepath.Base(p.Dir)
		r.write(p.Dir, name+".txt", "mine\n")
		if i%2 == 1 {
			r.write(p.Dir, "a.txt", name+"\n")
		}
	}
	var ending sync.WaitGroup
	for _, p := range places {
		ending.Go(func() {
			if kept, err := worktree.Keep(r.ctx, r.procs, p, "Work"); err != nil || kept.Commit == "" {
				t.Errorf("%s: %+v, %v", p.Branch, kept, err)
			}
		})
	}
	ending.Wait()
	if branches := strings.Fields(r.git("branch", "--list", "--format=%(refname:short)", "cadre/*")); len(
		branches) != many {
		t.Errorf("the branches are %v", branches)
	}
	if trees := r.git("worktree", "list"); strings.Contains(trees, "\n") {
		t.Errorf("the worktrees: %s", trees)
	}
	if status := r.git("status", "--porcelain"); status != "" {
		t.Errorf("the work tree: %s", status)
	}
}

// TestThePersonMerges checks that an unfinished merge of the person stays unchanged.
func TestThePersonMerges(t *testing.T) {
	soak.Long(t)
	t.Parallel()
	r := newRepository(t)
	r.commit("a.txt", "one\n")
	dir := r.add()
	r.write(dir, "b.txt", "ann's\n")
	r.git("checkout", "-q", "-b", "topic")
	r.commit("a.txt", "topic\n")
	r.git("checkout", "-q", "main")
	r.commit("a.txt", "main\n")
	r.run("merge", "topic")
	r.write(r.place.Repo, "a.txt", "half resolved\n")
	r.keep()
	if text, _ := os.ReadFile(filepath.Join(r.place.Repo, "a.txt")); string(text) != "half resolved\n" ||
		r.git("rev-parse", "MERGE_HEAD") == "" {
		t.Errorf("a.txt is %q", text)
	}
	if got := r.git("show", "cadre/demo@ann:b.txt"); got != "ann's" {
		t.Errorf("on the branch b.txt is %q", got)
	}
}

// TestBranchElsewhere checks the refusal of a worktree whose branch another directory has checked
// out, as after a takeover by another home: it names that directory, which stays as it is.
func TestBranchElsewhere(t *testing.T) {
	t.Parallel()
	r := newRepository(t)
	r.git("commit", "-q", "--allow-empty", "-m", "first")
	other := filepath.Join(t.TempDir(), "other")
	r.git("worktree", "add", "-q", "-b", r.place.Branch, other)
	_, err := worktree.Add(r.ctx, r.procs, r.place)
	if err == nil || !strings.Contains(err.Error(), "its branch "+r.place.Branch+" is checked out in ") ||
		!strings.Contains(err.Error(), "other: by another home or machine") {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(other, ".git")); err != nil {
		t.Error(err)
	}
}

// TestAstray checks that a member's work is kept, whatever branch it has checked out in its
// worktree.
func TestAstray(t *testing.T) {
	if testing.Short() {
		t.Skip("it runs git many times; not with -short")
	}
	t.Parallel()
	for name, c := range map[string]struct {
		astray  []string // git commands in the worktree
		follows bool
	}{
		"on a branch that follows": {[]string{"checkout -q -b mine"}, true},
		"on no branch, behind":     {[]string{"checkout -q --detach"}, true},
		"on a branch that does not follow": {[]string{"commit -q --allow-empty -m own",
			"checkout -q -b mine HEAD~1"}, false},
		"on no branch, elsewhere": {[]string{"commit -q --allow-empty -m own",
			"checkout -q --detach HEAD~1"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRepository(t)
			r.commit("a.txt", "one\n")
			dir := r.add()
			for _, command := range c.astray {
				r.git(append([]string{"-C", dir}, strings.Fields(command)...)...)
			}
			r.write(dir, "b.txt", "two\n")
			kept := r.keep()
			on := r.place.Branch
			if !c.follows {
				on = kept.Strayed
			}
			if (kept.Strayed == "") != c.follows || on == "" {
				t.Fatalf("%+v", kept)
			}
			if got := r.git("show", on+":b.txt"); got != "two" {
				t.Errorf("b.txt is %q", got)
			}
		})
	}
}

// TestLeave checks that unmerged work stays on its branch, and that a branch without commits is
// removed.
func TestLeave(t *testing.T) {
	soak.Long(t)
	t.Parallel()
	r := newRepository(t)
	r.commit("a.txt", "one\n")
	leave := func() string {
		t.Helper()
		kept, err := worktree.Leave(r.ctx, r.procs, r.place.Dir, r.place.Branch, "Work of ann")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(r.place.Dir); err == nil {
			t.Error("the worktree is still there")
		}
		return kept
	}
	dir := r.add()
	r.write(dir, "b.txt", "two\n")
	if kept := leave(); kept != r.place.Branch {
		t.Errorf("kept is %q", kept)
	}
	if got := r.git("show", r.place.Branch+":b.txt"); got != "two" {
		t.Errorf("b.txt is %q", got)
	}
	if again := leave(); again != "" {
		t.Errorf("once more: %q", again)
	}
	r.place.Branch = "cadre/demo@bob"
	r.add()
	if kept := leave(); kept != "" || r.git("branch", "--list", "cadre/demo@bob") != "" {
		t.Errorf("kept for nothing is %q", kept)
	}
}

// TestNoWorktreeAnyMore checks that a folder that is not a worktree any more is not committed: git
// would use the repository around it.
func TestNoWorktreeAnyMore(t *testing.T) {
	t.Parallel()
	r := newRepository(t)
	r.commit("a.txt", "one\n")
	r.place.Dir = filepath.Join(r.place.Repo, "trees", "ann")
	r.add()
	if err := os.Remove(filepath.Join(r.place.Dir, ".git")); err != nil {
		t.Fatal(err)
	}
	before := r.git("rev-parse", "HEAD")
	_, err := worktree.Keep(r.ctx, r.procs, r.place, "Work of ann")
	_, left := worktree.Leave(r.ctx, r.procs, r.place.Dir, r.place.Branch, "Work of ann")
	if err == nil || left == nil || r.git("rev-parse", "HEAD") != before {
		t.Errorf("kept with %v, left with %v", err, left)
	}
}
