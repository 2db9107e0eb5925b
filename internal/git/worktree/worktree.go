// Package worktree gives a member a git worktree and a branch of its own, and keeps its work on
// that branch.
//
// # Authority
//
// The package decides how isolation works in git. It touches only the worktrees that it made, and
// their branches that belong to members. It never touches HEAD, the index or the work tree of the
// user's checkout. It pushes nothing, runs no hooks of the repository, and deletes no commit.
// Package consolidate merges the branches.
//
// # States
//
//	nothing ──Add──▶ worktree on its branch ──Keep───▶ the branch has all of it; it is removed if HEAD has that too
//	                       ▲              └──Leave──▶ the same, if the project's directory is unknown
//	             Add, Repair
//	                       │
//	        it, or its repository, was moved
//
// # Guarantees
//
//   - Add continues an existing worktree as it is, after any kill, and after it or its repository
//     was moved. If another program removed it or put something else in its place, Add returns a
//     [BrokenError], and touches nothing there.
//   - Keep and Leave lose nothing: uncommitted work is committed first, wherever the member went in
//     its worktree.
//   - An unfinished merge of the member is committed as a plain change, so that the other branch
//     does not count as merged.
//   - One worktree at a time is made or removed in a repository, across processes.
//   - After a kill while the worktree is removed, the next Keep finishes that.
//   - A lock of ours that a kill left is taken over. So is a git's lock on what only cadre or the
//     member changes: the member's worktree and branch, once its session has ended, and cadre's own
//     references. Other locks of git's are waited for and never removed: a [git.LockedError] names
//     them.
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
	Repo   string // directory in the repository's own work tree; the branch starts from its HEAD
	Dir    string // of the worktree
	Branch string
}

// Kept describes what became of a member's work.
type Kept struct {
	Commit  string // commit that the branch names; "" if HEAD has all of it, or there was nothing
	Strayed string // branch with work that does not follow the member's own; "" for none
}

// lockPause is the time between two checks of another process's lock.
const lockPause = 100 * time.Millisecond

// Able returns an error if no worktree can be added to the repository.
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

// Add makes the worktree, on a new branch that starts at the repository's HEAD, or continues an
// existing one. It returns the directory to work in, which is below Dir if Repo is below the top of
// its repository.
func Add(ctx context.Context, procs *proc.Register, p Place) (string, error) {
	if err := Able(ctx, procs, p.Repo); err != nil {
		return "", err
	}
	g := in(procs, p.Repo)
	work, err := Work(ctx, procs, p)
	if err != nil {
		return "", err
	}
	common, err := g.common(ctx)
	if err != nil {
		return "", err
	}
	state, err := look(ctx, procs, p, common)
	if err != nil {
		return "", err
	}
	if state == Whole { // its member has no session now
		return work, tree{common: common, own: entryOf(common, p.Dir).dir}.unlock(ctx, p.Branch)
	}
	unlock, err := alone(ctx, common) // a worktree in the making looks like one of a killed git
	if err != nil {
		return "", err
	}
	defer unlock()
	state, err = look(ctx, procs, p, common)
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

// Work returns the directory in which the member works: the one in its worktree that stands for
// p.Repo. It does not look whether the worktree exists.
func Work(ctx context.Context, procs *proc.Register, p Place) (string, error) {
	prefix, err := in(procs, p.Repo).Text(ctx, "rev-parse", "--show-prefix")
	if err != nil {
		return "", err
	}
	return filepath.Join(p.Dir, filepath.FromSlash(prefix)), nil
}

// make makes the worktree if there is none.
func (f folder) make(ctx context.Context, p Place, common string) error {
	if err := unlocked(ctx, branchLock(common, p.Branch)); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(p.Dir), 0o700); err != nil {
		return err
	}
	gone, elsewhere, err := f.missing(ctx, p.Branch)
	if err != nil {
		return err
	}
	if elsewhere != "" && elsewhere != p.Dir { // git would refuse it, without a word about its owner
		return fmt.Errorf("its branch %s is checked out in %s: by another home or machine that has the team, or by hand. "+
			"End the team there, or check out another branch there, and try again", p.Branch, elsewhere)
	}
	for _, dir := range append(gone, p.Dir) { // git allows a branch in only one worktree, and these count
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

// Head returns the commit that is checked out in dir, or "".
func Head(ctx context.Context, procs *proc.Register, dir string) string {
	commit, err := in(procs, dir).Text(ctx, "rev-parse", "--verify", "--quiet", "HEAD^{commit}")
	if err != nil {
		return ""
	}
	return commit
}

// Leave commits what the member left uncommitted and removes the worktree. It returns the branch
// with the work; "" if there was none to keep.
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
	// Only the user's branches count: branches of checkpoints have all work of members, and are
	// removed with their team.
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

// tree is a worktree that Add made.
type tree struct {
	folder        // its top
	common string // the repository's own folder
	own    string // the worktree's folder in there
}

// open finds the worktree of dir. It accepts no other work tree.
func open(ctx context.Context, procs *proc.Register, dir string) (t tree, err error) {
	g := in(procs, dir)
	out, err := g.Text(ctx, "rev-parse", "--path-format=absolute", "--show-toplevel", "--git-common-dir", "--git-dir")
	if refused := (*git.Refusal)(nil); errors.As(err, &refused) {
		return tree{}, &BrokenError{Dir: dir, Why: "is not in a git repository that can be reached: " + refused.Words,
			Try: "Bring the repository back, or move the folder away."}
	}
	if err != nil {
		return tree{}, err
	}
	parts := strings.Split(out, "\n")
	if len(parts) != 3 || parts[1] == parts[2] {
		return tree{}, &BrokenError{Dir: dir, Why: "is not a git worktree of its own any more", Try: "Move it away."}
	}
	return tree{in(procs, parts[0]), parts[1], parts[2]}, nil
}

// unlock removes the locks that a killed git left in the worktree and on its branch. Its member has
// ended, so no other process works there for long.
func (t tree) unlock(ctx context.Context, branch string) error {
	return unlocked(ctx, filepath.Join(t.own, "index.lock"), filepath.Join(t.own, "HEAD.lock"),
		branchLock(t.common, branch))
}

func branchLock(common, branch string) string {
	return filepath.Join(common, "refs", "heads", filepath.FromSlash(branch)+".lock")
}

// unlocked waits until the locks are free, and removes those that are too old for a running git.
func unlocked(ctx context.Context, locks ...string) error {
	waiting, cancel := context.WithTimeout(ctx, git.StaleLock)
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

// save commits uncommitted work, and moves the branch to the member's last commit. If that does not
// follow the branch, strayed is the branch with the rest.
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

// quitMerge ends a merge with unresolved conflicts. The files stay as they are, with the conflict
// markers.
func (t tree) quitMerge(ctx context.Context) error {
	unmerged, err := t.Text(ctx, "ls-files", "--unmerged")
	if unmerged == "" || err != nil {
		return err
	}
	_, err = t.Text(ctx, "merge", "--quit")
	return err
}

// remove removes the worktree, and its branch if that is merged or empty. The worktree is first
// moved away in one step, so that a part of it never counts as what the member left.
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

// removed returns the path to which a worktree is moved while it is removed.
func removed(dir string) string {
	return filepath.Join(filepath.Dir(dir), "."+filepath.Base(dir))
}

// forget removes the rest of a worktree that was moved out of its place, and its branch if that is
// merged or empty. The moved worktree is removed last: as long as it exists, the worktree does not
// count as removed by another program.
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

// drop removes the repository's record of a missing worktree, even if its member has locked it.
func (f folder) drop(ctx context.Context, dir string) error {
	_, err := f.Text(ctx, "worktree", "remove", "--force", "--force", dir)
	if err != nil && strings.Contains(err.Error(), "is not a working tree") {
		return nil
	}
	return err
}

// wipe removes the folder, even if its content is read-only, as in Go's module cache.
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

// tidy finishes a removal that a killed process had started.
func tidy(ctx context.Context, home folder, p Place) error {
	common, err := home.common(ctx)
	if err != nil { // outside a repository there was no worktree
		return ctx.Err()
	}
	unlock, err := alone(ctx, common)
	if err != nil {
		return err
	}
	defer unlock()
	if err := unlocked(ctx, branchLock(common, p.Branch)); err != nil {
		return err
	}
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

// alone waits until no other process makes or removes worktrees of the repository with that folder.
func alone(ctx context.Context, common string) (unlock func(), err error) {
	path := filepath.Join(common, "cadre.lock")
	lock, err := filelock.Wait(ctx, path)
	switch {
	case errors.Is(err, filelock.ErrHeld):
		return nil, fmt.Errorf("another process is using the repository and does not finish: %w", ctx.Err())
	case err != nil:
		return nil, err
	}
	return func() { os.Remove(path); lock.Unlock() }, nil
}

// folder is a directory in which git runs.
type folder struct{ git.Runner }

func in(procs *proc.Register, dir string) folder { return folder{git.Runner{Procs: procs, Dir: dir}} }

// common returns the folder that all worktrees of the repository share.
func (f folder) common(ctx context.Context) (string, error) {
	return f.Text(ctx, "rev-parse", "--path-format=absolute", "--git-common-dir")
}

// lock returns the folder that all worktrees share, once no other process makes or removes
// worktrees of the repository.
func (f folder) lock(ctx context.Context) (common string, unlock func(), err error) {
	if common, err = f.common(ctx); err == nil {
		unlock, err = alone(ctx, common)
	}
	return common, unlock, err
}

func (f folder) hasBranch(ctx context.Context, name string) (bool, error) {
	return f.Holds(ctx, "rev-parse", "--verify", "--quiet", "refs/heads/"+name)
}
