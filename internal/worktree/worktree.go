// Package worktree gives a member a git worktree and a branch of its own, and brings its work back.
//
// # Authority
//
// The package decides how isolation looks in git. It touches the worktree that it made, that one's branch, and, when it merges, the branch that is
// checked out in the team's directory. It pushes nothing, runs no hooks of the repository, and deletes no commit.
//
// # States
//
//	nothing ──Add──▶ worktree on its branch ──Finish──▶ merged, worktree and branch gone
//	                       ▲              │    └──────▶ left: the branch stays, with all that was done on it
//	             Add, Repair              ├──Keep─────▶ left, where HEAD has not all of it, for somebody to merge
//	                       │              └──Leave────▶ left
//	        it, or its repository, moved
//
// # Guarantees
//
//   - Add of a worktree that is there already goes on with it as it is, whoever was killed in between, also after it or its repository has moved. One that
//     somebody else removed, or put something else in the place of, is refused with a [BrokenError], and nothing there is touched.
//   - Finish and Leave lose nothing: what was not committed is committed first, wherever the member went in its worktree, and a branch that does not
//     merge cleanly stays as it is, with the merge undone.
//   - One merge at a time goes into a repository, and one worktree at a time is made or removed, whichever process asks for it.
//   - Killed in a merge, what the person has not committed is as it was, and the next Finish finishes it. Killed while the worktree goes, the next Finish
//     has it gone, and says so where its branch was not merged.
//   - A lock of ours that a kill left is taken over. One of git's own is waited for and never removed from the person's repository: a [git.LockedError] names it.
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
	"cadre/internal/proc"
)

// Place is a member's worktree.
type Place struct {
	Repo   string // directory in the repository's own work tree, which the branch starts from and goes back to
	Dir    string // of the worktree
	Branch string
}

// Result is what became of a member's work.
type Result struct {
	Merged bool
	Left   string // why the branch was left as it is; "" when it was merged, or there was nothing on it
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
		return fmt.Errorf("the repository of %s has no commit yet that a branch could start from; commit something first", repo)
	}
	return nil
}

// Add makes the worktree, on a new branch that starts at the repository's HEAD, or goes on with the one that is there. It returns the directory to
// work in, which is below Dir when Repo is below the top of its repository.
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

// Finish commits what the member left uncommitted, merges its branch into the one that is checked out in Repo, and removes worktree and branch.
// Where that does not go cleanly the branch stays, and Result says why. The worktree is gone in either case, unless there is an error.
func Finish(ctx context.Context, procs *proc.Register, p Place, message string) (Result, error) {
	if _, err := os.Stat(p.Dir); errors.Is(err, fs.ErrNotExist) {
		return tidy(ctx, in(procs, p.Repo), p)
	}
	tree, err := open(ctx, procs, p.Dir)
	if err != nil {
		return Result{}, err
	}
	strayed, err := tree.save(ctx, p.Branch, message)
	if err != nil {
		return Result{}, err
	}
	home := in(procs, p.Repo)
	result := Result{Left: strayed}
	if strayed == "" {
		if result, err = merge(ctx, home, tree.common, p.Branch, message); err != nil {
			return Result{}, err
		}
	}
	return result, tree.remove(ctx, home, p.Branch, result.Left == "")
}

// Leave commits what the member left uncommitted and removes the worktree. It returns the branch that has the work, "" where there was none to keep.
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
	elsewhere, err := home.Text(ctx, "rev-list", "--count", branch, "--not", "--exclude="+branch, "--branches")
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
	if err != nil {
		return tree{}, err
	}
	parts := strings.Split(out, "\n")
	if len(parts) != 3 || parts[1] == parts[2] {
		return tree{}, fmt.Errorf("%s is no git worktree of its own any more", dir)
	}
	return tree{in(procs, parts[0]), parts[1], parts[2]}, nil
}

// staleLock is how old a lock gets that a living git holds in a worktree whose member has ended.
const staleLock = 2 * time.Second

// unlock removes the locks that a git which was killed left in the worktree and on its branch. Its member has ended, so nobody else is at work there for long.
func (t tree) unlock(ctx context.Context, branch string) error {
	return unlocked(ctx, filepath.Join(t.own, "index.lock"), filepath.Join(t.own, "HEAD.lock"), branchLock(t.common, branch))
}

func branchLock(common, branch string) string {
	return filepath.Join(common, "refs", "heads", filepath.FromSlash(branch)+".lock")
}

// unlocked waits until nobody has the locks, and removes those that are too old to be a living git's.
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

// save commits what is not committed, and moves the branch to where the member got. Where that does not follow the branch, strayed says what has the rest.
func (t tree) save(ctx context.Context, branch, message string) (strayed string, err error) {
	if err := t.unlock(ctx, branch); err != nil {
		return "", err
	}
	left, err := t.Text(ctx, "status", "--porcelain")
	if err != nil {
		return "", err
	}
	if left != "" {
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
	return "some of the work is on " + current + ", which does not follow the branch", nil
}

// remove removes the worktree, and its branch if that is merged or empty. The worktree goes at once, and then what it was made of: a part of one is never
// taken for what the member left.
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

// forget has nothing left of a worktree that is not in its place any more, nor of its branch if that is merged or empty. What it was goes last: for as long as that is
// there, nobody takes the worktree for one that somebody else removed.
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

// drop has the repository forget the worktree, which is not there, also one that its member has locked.
func (f folder) drop(ctx context.Context, dir string) error {
	_, err := f.Text(ctx, "worktree", "remove", "--force", "--force", dir)
	if err != nil && strings.Contains(err.Error(), "is not a working tree") {
		return nil
	}
	return err
}

// wipe removes the folder, also where what is in it may not be written: caches of modules are like that.
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
func tidy(ctx context.Context, home folder, p Place) (Result, error) {
	common, err := home.Text(ctx, "rev-parse", "--path-format=absolute", "--git-common-dir")
	if err != nil { // in no repository there was none
		return Result{}, ctx.Err()
	}
	unlock, err := alone(ctx, common)
	if err != nil {
		return Result{}, err
	}
	defer unlock()
	there, err := home.hasBranch(ctx, p.Branch)
	if err != nil {
		return Result{}, err
	}
	merged := false
	if there {
		_, err := home.Text(ctx, "merge-base", "--is-ancestor", "refs/heads/"+p.Branch, "HEAD")
		merged = err == nil
	}
	if ctx.Err() != nil {
		return Result{}, ctx.Err()
	}
	var result Result
	if there && !merged {
		result.Left = "there is work on it that was not merged when the worktree was removed"
	}
	return result, home.forget(ctx, p.Dir, p.Branch, merged)
}

// alone waits until nobody else merges into the repository with that folder, or makes or removes worktrees of it.
func alone(ctx context.Context, common string) (unlock func(), err error) {
	path := filepath.Join(common, "cadre.lock")
	for {
		lock, err := proc.NewLock(path)
		if err == nil {
			return func() { os.Remove(path); lock.Unlock() }, nil
		}
		if !errors.Is(err, proc.ErrHeld) {
			return nil, err
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("another process is at the repository and does not end: %w", ctx.Err())
		case <-time.After(lockPause):
		}
	}
}

// folder is one that git runs in.
type folder struct{ git.Runner }

func in(procs *proc.Register, dir string) folder { return folder{git.Runner{Procs: procs, Dir: dir}} }

func (f folder) hasBranch(ctx context.Context, name string) (bool, error) {
	return f.Holds(ctx, "rev-parse", "--verify", "--quiet", "refs/heads/"+name)
}
