// Package worktree gives a member a git worktree and a branch of its own, and keeps its work on
// that branch.
//
// # Authority
//
// The package decides how isolation looks in git. It touches the worktrees that it made and the
// branches of those that belong to members. It never touches HEAD, the index or the work tree of
// the person's checkout, pushes nothing, runs no hooks of the repository, and deletes no commit.
// What brings the branches together is the consolidate package.
//
// # States
//
//	nothing ──Add──▶ worktree on its branch ──Keep───▶ the branch has all of it; it goes where HEAD has that too
//	                       ▲              └──Leave──▶ the same, where nobody knows the project's directory any more
//	             Add, Repair
//	                       │
//	        it, or its repository, moved
//
// # Guarantees
//
//   - Add of a worktree that exists continues with it as it is, whoever was killed in between, also
//     after it or its repository has moved. One that somebody else removed, or put something else
//     in the place of, is refused with a [BrokenError], and nothing there is touched.
//   - Keep and Leave lose nothing: what was not committed is committed first, wherever the member
//     went in its worktree.
//   - A merge that the member did not finish is committed as a plain change, so that nobody takes
//     the other branch for merged.
//   - One worktree at a time is made or removed in a repository, whichever process asks for it.
//   - Killed while the worktree is removed, the next Keep finishes that.
//   - A lock of ours that a kill left is taken over. One of git's own is waited for and never
//     removed from the person's repository: a [git.LockedError] names it.
package worktree

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"cadre/internal/git"
	"cadre/internal/sys/filelock"
	"cadre/internal/sys/proc"
)

// Place is a member's worktree.
type Place struct {
	Repo   string // directory in the repository's own work tree, whose HEAD the branch starts from
	Dir    string // of the worktree
	Branch string
}

// Kept is what became of a member's work.
type Kept struct {
	Commit  string // that the branch names; "" where HEAD has all of it, or there was nothing
	Strayed string // branch with work that does not follow the member's own; "" for none
}

// lockPause is the time between two looks at a lock of somebody else.
const lockPause = 100 * time.Millisecond

// Able says why no worktree can be added to the repository; nil where one can.
func Able(ctx context.Context, procs *proc.Register, repo string) error {
	g := in(procs, repo)
	if _, err := g.Text(ctx, "rev-parse", "--show-prefix"); err != nil {
		return fmt.Errorf("%s is not in a git repository: %w", repo, err)
	}
	if _, err := g.Text(ctx, "rev-parse", "--verify", "--quiet", "HEAD^{commit}"); err != nil {
		return fmt.Errorf("the repository of %s has no commit yet that a branch could start from; commit "+
			"something first", repo)
	}
	return nil
}

// Add makes the worktree, on a new branch that starts at the repository's HEAD, or goes on with the
// one that is there. It returns the directory to work in, which is below Dir when Repo is below the
// top of its repository.
func Add(ctx context.Context, procs *proc.Register, p Place) (string, error) {
	if err := Able(ctx, procs, p.Repo); err != nil {
		return "", err
	}
	g := in(procs, p.Repo)
	prefix, err := g.Text(ctx, "rev-parse", "--show-prefix")
	if err != nil {
		return "", err
	}
	work := filepath.Join(p.Dir, filepath.FromSlash(prefix))
	common, err := g.Text(ctx, "rev-parse", "--path-format=absolute", "--git-common-dir")
	if err != nil {
		return "", err
	}
	if state, err := look(ctx, procs, p, common); state == Whole || err != nil {
		return work, err
	}
	unlock, err := alone(ctx, common) // a worktree that is just being made looks like one that git was killed in
	if err != nil {
		return "", err
	}
	defer unlock()
	state, err := look(ctx, procs, p, common)
	if err == nil && state == Moved {
		if err = g.repair(ctx, p, common); err == nil {
			state, err = look(ctx, procs, p, common)
		}
	}
	if state == Whole || err != nil {
		return work, err
	}
	if state == Partial {
		if err := wipe(p.Dir); err != nil {
			return "", err
		}
	}
	return work, g.make(ctx, p, common)
}

// make makes the worktree where there is none.
func (f folder) make(ctx context.Context, p Place, common string) error {
	if err := unlocked(ctx, branchLock(common, p.Branch)); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(p.Dir), 0o700); err != nil {
		return err
	}
	gone, err := f.missing(ctx, p.Branch)
	if err != nil {
		return err
	}
	for _, dir := range append(gone, p.Dir) { // git lets a branch be in one worktree only, and takes that for one
		if err := f.drop(ctx, dir); err != nil {
			return err
		}
	}
	if err := wipe(removed(p.Dir)); err != nil {
		return err
	}
	there, err := f.hasBranch(ctx, p.Branch)
	if err != nil {
		return err
	}
	args := []string{"worktree", "add", "--quiet"}
	if there {
		args = append(args, p.Dir, p.Branch)
	} else {
		args = append(args, "-b", p.Branch, p.Dir, "HEAD")
	}
	_, err = f.Text(ctx, args...)
	return err
}

// Head is the commit that is checked out in dir; "" where there is none.
func Head(ctx context.Context, procs *proc.Register, dir string) string {
	commit, err := in(procs, dir).Text(ctx, "rev-parse", "--verify", "--quiet", "HEAD^{commit}")
	if err != nil {
		return ""
	}
	return commit
}

// Leave commits what the member left uncommitted and removes the worktree. It returns the branch
// that has the work, "" where there was none to keep.
func Leave(ctx context.Context, procs *proc.Register, dir, branch, message string) (kept string, err error) {
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	tree, err := open(ctx, procs, dir)
	if err != nil {
		return "", err
	}
	strayed, err := tree.save(ctx, branch, message)
	if err != nil {
		return "", err
	}
	home := in(procs, tree.common)
	// Only the person's branches count: those of checkpoints carry all that members do, and go with
	// their team.
	elsewhere, err := home.Text(ctx, "rev-list", "--count", branch, "--not", "--exclude="+branch,
		"--exclude=cadre/*", "--branches")
	if err != nil {
		return "", err
	}
	nothing := elsewhere == "0" && strayed == ""
	if !nothing {
		kept = branch
	}
	return kept, tree.remove(ctx, home, branch, nothing)
}

// tree is a worktree that was made by Add.
type tree struct {
	folder        // its top
	common string // the repository's own folder
	own    string // that of the worktree in there
}

// open finds the worktree that dir is in. It takes no other work tree for one.
func open(ctx context.Context, procs *proc.Register, dir string) (t tree, err error) {
	g := in(procs, dir)
	out, err := g.Text(ctx, "rev-parse", "--path-format=absolute", "--show-toplevel", "--git-common-dir", "--git-dir")
	if refused := (*git.Refusal)(nil); errors.As(err, &refused) {
		return tree{}, &BrokenError{dir, "is not in a git repository that can be reached: " + refused.Words,
			"Bring the repository back, or move the folder away."}
	}
	if err != nil {
		return tree{}, err
	}
	parts := strings.Split(out, "\n")
	if len(parts) != 3 || parts[1] == parts[2] {
		return tree{}, &BrokenError{dir, "is no git worktree of its own any more", "Move it away."}
	}
	return tree{in(procs, parts[0]), parts[1], parts[2]}, nil
}

// staleLock is how old a lock gets that a living git holds in a worktree whose member has ended.
const staleLock = 2 * time.Second

// unlock removes the locks that a git which was killed left in the worktree and on its branch. Its
// member has ended, so nobody else is at work there for long.
func (t tree) unlock(ctx context.Context, branch string) error {
	return unlocked(ctx, filepath.Join(t.own, "index.lock"), filepath.Join(t.own, "HEAD.lock"),
		branchLock(t.common, branch))
}

func branchLock(common, branch string) string {
	return filepath.Join(common, "refs", "heads", filepath.FromSlash(branch)+".lock")
}

// unlocked waits until nobody has the locks, and removes those that are too old to be a living
// git's.
func unlocked(ctx context.Context, locks ...string) error {
	waiting, cancel := context.WithTimeout(ctx, staleLock)
	defer cancel()
	for _, lock := range locks {
		for {
			if _, err := os.Lstat(lock); errors.Is(err, fs.ErrNotExist) {
				break
			}
			select {
			case <-waiting.Done():
				if ctx.Err() != nil {
					return ctx.Err()
				}
				if err := os.Remove(lock); err != nil && !errors.Is(err, fs.ErrNotExist) {
					return err
				}
			case <-time.After(lockPause):
			}
		}
	}
	return nil
}

// save commits what is not committed, and moves the branch to where the member got. Where that does
// not follow the branch, strayed is the branch that has the rest.
func (t tree) save(ctx context.Context, branch, message string) (strayed string, err error) {
	if err := t.unlock(ctx, branch); err != nil {
		return "", err
	}
	left, err := t.Text(ctx, "status", "--porcelain")
	if err != nil {
		return "", err
	}
	if left != "" {
		if err := t.quitMerge(ctx); err != nil {
			return "", err
		}
		if _, err := t.Text(ctx, "add", "--all"); err != nil {
			return "", err
		}
		if _, err := t.Committing(ctx).Text(ctx, "commit", "--quiet", "--no-verify", "-m", message); err != nil {
			return "", err
		}
	}
	current, err := t.Text(ctx, "symbolic-ref", "--short", "--quiet", "HEAD")
	detached := err != nil
	if current == branch {
		return "", nil
	}
	if _, err := t.Text(ctx, "merge-base", "--is-ancestor", branch, "HEAD"); err == nil {
		_, err := t.Text(ctx, "checkout", "--quiet", "-B", branch)
		return "", err
	}
	if detached {
		head, err := t.Text(ctx, "rev-parse", "--short", "HEAD")
		if err != nil {
			return "", err
		}
		current = branch + "-" + head
		if _, err := t.Text(ctx, "branch", "--force", current, "HEAD"); err != nil {
			return "", err
		}
	}
	return current, nil
}

// quitMerge forgets a merge with conflicts that nobody has resolved. The files stay as they are,
// with the marks of the conflicts.
func (t tree) quitMerge(ctx context.Context) error {
	unmerged, err := t.Text(ctx, "ls-files", "--unmerged")
	if unmerged == "" || err != nil {
		return err
	}
	_, err = t.Text(ctx, "merge", "--quit")
	return err
}

// remove removes the worktree, and its branch if that is merged or empty. The worktree goes at
// once, and then what it was made of: a part of one is never taken for what the member left.
func (t tree) remove(ctx context.Context, home folder, branch string, merged bool) error {
	unlock, err := alone(ctx, t.common)
	if err != nil {
		return err
	}
	defer unlock()
	if err := wipe(removed(t.Dir)); err != nil {
		return err
	}
	if err := os.Rename(t.Dir, removed(t.Dir)); err != nil {
		return err
	}
	return home.forget(ctx, t.Dir, branch, merged)
}

// removed is where a worktree is while it is removed.
func removed(dir string) string {
	return filepath.Join(filepath.Dir(dir), "."+filepath.Base(dir))
}

// forget has nothing left of a worktree that is not in its place any more, nor of its branch if
// that is merged or empty. What it was goes last: for as long as that is there, nobody takes the
// worktree for one that somebody else removed.
func (f folder) forget(ctx context.Context, dir, branch string, merged bool) error {
	if err := f.drop(ctx, dir); err != nil {
		return err
	}
	if err := wipe(removed(dir)); err != nil || !merged {
		return err
	}
	_, err := f.Text(ctx, "branch", "--quiet", "-D", branch)
	return err
}

// drop has the repository forget the worktree, which is not there, also one that its member has
// locked.
func (f folder) drop(ctx context.Context, dir string) error {
	_, err := f.Text(ctx, "worktree", "remove", "--force", "--force", dir)
	if err != nil && strings.Contains(err.Error(), "is not a working tree") {
		return nil
	}
	return err
}

// wipe removes the folder, also where what is in it may not be written: caches of modules are like
// that.
func wipe(dir string) error {
	if os.RemoveAll(dir) == nil {
		return nil
	}
	filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if e != nil && e.IsDir() {
			os.Chmod(path, 0o700) // before it is read
		}
		return nil
	})
	return os.RemoveAll(dir)
}

// tidy ends what a process that was killed began: the worktree is not in its place any more.
func tidy(ctx context.Context, home folder, p Place) error {
	common, err := home.Text(ctx, "rev-parse", "--path-format=absolute", "--git-common-dir")
	if err != nil { // in no repository there was none
		return ctx.Err()
	}
	unlock, err := alone(ctx, common)
	if err != nil {
		return err
	}
	defer unlock()
	there, err := home.hasBranch(ctx, p.Branch)
	if err != nil {
		return err
	}
	merged := false
	if there {
		if merged, err = home.has(ctx, p.Branch); err != nil {
			return err
		}
	}
	return home.forget(ctx, p.Dir, p.Branch, merged)
}

// alone waits until nobody else makes or removes worktrees of the repository with that folder.
func alone(ctx context.Context, common string) (unlock func(), err error) {
	path := filepath.Join(common, "cadre.lock")
	lock, err := filelock.Wait(ctx, path)
	switch {
	case errors.Is(err, filelock.ErrHeld):
		return nil, fmt.Errorf("another process is at the repository and does not end: %w", ctx.Err())
	case err != nil:
		return nil, err
	}
	return func() { os.Remove(path); lock.Unlock() }, nil
}

// folder is one that git runs in.
type folder struct{ git.Runner }

func in(procs *proc.Register, dir string) folder { return folder{git.Runner{Procs: procs, Dir: dir}} }

func (f folder) hasBranch(ctx context.Context, name string) (bool, error) {
	return f.Holds(ctx, "rev-parse", "--verify", "--quiet", "refs/heads/"+name)
}
