package worktree

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"cadre/internal/sys/paths"
	"cadre/internal/sys/proc"
)

// Show makes dir a worktree of the repository at that commit, on no branch, for reading. It updates
// an existing one to the commit: it removes changes and new files there, except ignored ones. Show
// returns the directory in it that corresponds to repo.
//
// Show removes anything else in the place, even an incomplete worktree that a killed process left.
// It names the worktree to git explicitly, so that nothing that a member wrote there redirects git
// to the user's checkout.
func Show(ctx context.Context, procs *proc.Register, repo, dir, commit string) (work string, err error) {
	if err := Able(ctx, procs, repo); err != nil {
		return "", err
	}
	g := in(procs, repo)
	prefix, err := g.Text(ctx, "rev-parse", "--show-prefix")
	if err != nil {
		return "", err
	}
	common, unlock, err := g.lock(ctx)
	if err != nil {
		return "", err
	}
	defer unlock()
	work = filepath.Join(dir, filepath.FromSlash(prefix))
	if err := g.rejoin(ctx, common, dir); err != nil {
		return "", err
	}
	if g.update(ctx, common, dir, commit) == nil {
		return work, nil
	}
	if err := g.clear(ctx, dir); err != nil {
		return "", err
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o700); err != nil {
		return "", err
	}
	_, err = g.Text(ctx, "worktree", "add", "--quiet", "--detach", dir, commit)
	return work, err
}

// Hide removes what Show has made, however far that got. If the repository is unknown, repo is "",
// and a complete worktree names it.
func Hide(ctx context.Context, procs *proc.Register, repo, dir string) error {
	if repo == "" {
		tree, err := open(ctx, procs, dir)
		if err != nil {
			return ctx.Err()
		}
		repo = tree.common
	}
	g := in(procs, repo)
	common, err := g.common(ctx)
	if err != nil { // without a repository, there is no record of the worktree
		return errors.Join(ctx.Err(), wipe(removed(dir)), wipe(dir))
	}
	if !exists(dir) && !exists(removed(dir)) && entryOf(common, dir).dir == "" {
		return nil
	}
	unlock, err := alone(ctx, common)
	if err != nil {
		return err
	}
	defer unlock()
	if err := g.rejoin(ctx, common, dir); err != nil {
		return err
	}
	return g.clear(ctx, dir)
}

// rejoin reconnects the worktree in the place with its record in the repository if either was
// moved. Otherwise the record would stay for ever under the old path. A worktree with another name
// or folder is not ours, whatever its file .git says, and neither is a copy.
func (f folder) rejoin(ctx context.Context, common, dir string) error {
	link, err := readLink(filepath.Join(dir, ".git"), "gitdir: ")
	if err != nil {
		return nil
	}
	e := entry{filepath.Join(common, "worktrees", filepath.Base(link))}
	was := filepath.Dir(e.tree())
	if !e.there() || tail(was) != tail(dir) || was == dir && exists(link) {
		return nil
	}
	if back, err := readLink(e.tree(), "gitdir: "); err == nil && was != dir &&
		filepath.Base(back) == filepath.Base(link) && exists(back) {
		return nil
	}
	for range 2 { // git corrects one link by means of the other
		if _, err := f.Text(ctx, "worktree", "repair", dir); ctx.Err() != nil {
			return ctx.Err()
		} else if err == nil {
			break
		}
	}
	return nil
}

// tail returns the name of a directory with the name of its folder.
func tail(dir string) string {
	return filepath.Join(filepath.Base(filepath.Dir(dir)), filepath.Base(dir))
}

// clear removes the worktree in the place, and the repository's record of it.
func (f folder) clear(ctx context.Context, dir string) error {
	if err := wipe(removed(dir)); err != nil {
		return err
	}
	if err := os.Rename(dir, removed(dir)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := f.drop(ctx, dir); err != nil {
		return err
	}
	return wipe(removed(dir))
}

var errNotShown = errors.New("it is not that worktree")

// update updates the worktree in the place to the commit. Any error means that it has to be made
// again.
func (f folder) update(ctx context.Context, common, dir, commit string) error {
	own := entryOf(common, dir)
	info, err := os.Lstat(dir)
	if err != nil || !info.IsDir() || own.dir == "" || own.partial() {
		return errNotShown
	}
	link, err := readLink(filepath.Join(dir, ".git"), "gitdir: ")
	if err != nil || !paths.Same(link, own.dir) {
		return errNotShown
	}
	if err := unlocked(ctx, filepath.Join(own.dir, "index.lock"), filepath.Join(own.dir, "HEAD.lock")); err != nil {
		return err
	}
	t := in(f.Procs, dir).With("GIT_DIR="+own.dir, "GIT_WORK_TREE="+dir)
	for _, args := range [][]string{{"checkout", "--quiet", "--detach", "--force", commit}, {"clean", "-ffdq"}} {
		if _, err := t.Text(ctx, args...); err != nil {
			return err
		}
	}
	if left, err := t.Text(ctx, "status", "--porcelain"); left != "" || err != nil {
		return errors.Join(errNotShown, err)
	}
	return nil
}

// entryOf returns the record of the worktree in that directory; its dir is "" if it has none.
func entryOf(common, dir string) entry {
	for _, e := range entries(common) {
		if e.names(dir) {
			return e
		}
	}
	return entry{}
}
