package consolidate

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"cadre/internal/git"
	"cadre/internal/git/worktree"
	"cadre/internal/host"
	"cadre/internal/sys/regularfile"
	"cadre/internal/team"
)

// join makes the tree of what is the team's in the work tree, which has been staged on the parent
// as before, and of the branches of its members. Where a branch does not come in cleanly the lead
// gets a task for it.
func (w *work) join(ctx context.Context, parent, before string) (tree string, in []team.Branch, err error) {
	branches, err := w.waiting(ctx, parent)
	if err != nil || len(branches) == 0 {
		return before, nil, err
	}
	m, err := w.merging(ctx, parent, before, branches)
	if err != nil {
		return "", nil, err
	}
	for _, b := range branches {
		next, conflict, err := worktree.Join(ctx, w.procs, w.repo.top, m.ours, b.Commit)
		if err != nil {
			return "", nil, err
		}
		if !conflict.None() {
			if err := w.conflicts(ctx, m, b, conflict); err != nil {
				return "", nil, err
			}
			continue
		}
		blocked, err := w.blocked(ctx, before, m.tree, next)
		if err != nil {
			return "", nil, err
		}
		if blocked != "" {
			if err := w.ask(ctx, b, "", w.about(b, blocked)); err != nil {
				return "", nil, err
			}
			continue
		}
		if err := m.take(ctx, w.repo, b, next); err != nil {
			return "", nil, err
		}
	}
	return m.tree, m.in, nil
}

// waiting are the branches that are to come in. Those that the lead leaves out are told of.
func (w *work) waiting(ctx context.Context, parent string) ([]team.Branch, error) {
	if parent == "" { // there is no branch without a commit
		return nil, nil
	}
	all, out, err := host.Waiting(ctx, w.Replica, w.procs)
	for _, b := range out {
		w.Log(fmt.Sprintf("the branch %s is left out: the task that asked to merge it was deleted", b.Name))
	}
	return all, err
}

// leave gives the branches to the lead, because nothing is to be committed here.
func (w *work) leave(ctx context.Context) error {
	if w.repo.top == "" {
		return nil
	}
	parent, err := w.repo.head(ctx)
	if err != nil {
		return err
	}
	branches, err := w.waiting(ctx, parent)
	for _, b := range branches {
		err = errors.Join(err, w.ask(ctx, b, "", w.about(b, "With --no-commit nothing is merged.")))
	}
	return err
}

// blocked says why what the branch brings, from the one tree to the next, cannot come into the work
// tree; "" where it can. Nothing is to be in its way, nor the same thing: that is somebody's.
func (w *work) blocked(ctx context.Context, before, tree, next string) (string, error) {
	brings, err := w.repo.changes(ctx, tree, next)
	if err != nil {
		return "", err
	}
	for _, one := range brings {
		if one.Is == git.Submodule || one.Was == git.Submodule {
			return one.Path + " is a submodule, which cadre does not merge.", nil
		}
	}
	at, err := w.repo.whereabouts(ctx, w.scratch("land"), before, next)
	if refused(err) {
		return err.Error(), nil
	}
	if err != nil {
		return "", err
	}
	in := append(at.there, at.elsewhere...)
	for _, one := range at.here {
		if one.Was == git.Nothing && w.repo.filled(one.Path, at.here) {
			in = append(in, one)
		}
	}
	report := w.aside(w.state()).report
	if slices.ContainsFunc(in, func(one git.Change) bool { return one.Path == report }) {
		return fmt.Sprintf("It brings %s, and in %s that is cadre's own report on the team, which is not committed. "+
			"Move the report elsewhere, or have it committed and merged with the branch: cadre consolidate %s "+
			"--include %s.",
			report, w.repo.top, w.Replica.Team().Name, report), nil
	}
	if len(in) > 0 {
		return fmt.Sprintf("In %s, and in its way, are files that are not committed and not the team's: %s. Whoever "+
			"they belong to has to commit or move them.", w.repo.top, names(pathsOf(in))), nil
	}
	return "", nil
}

// filled reports whether there is a folder at the path, with more in it than the changes remove.
func (r *repository) filled(name string, changes []git.Change) bool {
	err := filepath.WalkDir(r.path(name), func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		if !slices.ContainsFunc(changes, func(c git.Change) bool {
			return c.Is == git.Nothing &&
				r.path(c.Path) == path
		}) {
			return errFilled
		}
		return nil
	})
	return err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR)
}

var errFilled = errors.New("there is more in it")

// land has the work tree hold what comes in from the branches, so that the checks see it, but for
// what somebody has changed. It may be called again when it was killed.
func (w *work) land(ctx context.Context, c team.Consolidation) error {
	if c.Before == "" {
		return nil
	}
	at, err := w.repo.whereabouts(ctx, w.scratch("land"), c.Before, c.Tree)
	if err != nil {
		return err
	}
	return w.put(ctx, c.Tree, at.here)
}

// lift takes what came in from the branches out of the work tree again, and puts back what was
// removed there while the checks ran. What somebody has changed since stays, and is named.
func (w *work) lift(ctx context.Context, c team.Consolidation) error {
	if c.Before != "" {
		if err := w.liftBranches(ctx, c); err != nil {
			return err
		}
	}
	return w.restore(ctx, c)
}

// restore puts back the files that were staged and that the work tree lacks, most likely because a
// check removed them. Else the next attempt would take the work of the team for removed by the
// team, and commit without it. A file that was changed is left alone: nobody can tell a check's
// change from a person's.
func (w *work) restore(ctx context.Context, c team.Consolidation) error {
	tree := cmp.Or(c.Before, c.Tree)
	if tree == "" || c.Clean || w.repo.top == "" { // the checks of a clean checkout had no part in it
		return nil
	}
	if _, err := w.repo.Text(ctx, "cat-file", "-e", tree); refused(err) {
		w.Log(fmt.Sprintf("what was removed from %s while the checks ran is not put back: git has removed what "+
			"was staged", w.repo.top))
		return nil
	} else if err != nil {
		return err
	}
	missing, err := w.repo.changes(ctx, c.Parent, tree)
	if err != nil {
		return err
	}
	missing = slices.DeleteFunc(missing, func(one git.Change) bool {
		return one.Is == git.Nothing || one.Is == git.Submodule || w.repo.isFile(one.Path)
	})
	if len(missing) == 0 {
		return nil
	}
	head, err := w.repo.head(ctx)
	if err != nil {
		return err
	}
	if head != c.Parent { // what somebody has committed meanwhile, its removal too, is theirs
		theirs, err := w.repo.changed(ctx, c.Parent, head)
		if err != nil {
			return err
		}
		missing = slices.DeleteFunc(missing, func(one git.Change) bool { return theirs[one.Path] })
	}
	if len(missing) == 0 {
		return nil
	}
	var back, blocked []git.Change
	for _, one := range missing {
		if w.repo.lacks(one.Path) {
			back = append(back, one)
		} else {
			blocked = append(blocked, one)
		}
	}
	if len(blocked) > 0 {
		if err := w.noteMissing(tree, pathsOf(blocked)); err != nil {
			return err
		}
		w.Log(fmt.Sprintf("missing since it was staged, and not put back, because something else is in its place: "+
			"%s; to see it: %s", names(pathsOf(blocked)), w.repo.showing(tree, blocked[0].Path)))
	}
	if len(back) == 0 {
		return nil
	}
	w.Log(fmt.Sprintf("missing since it was staged, and put back: %s", names(pathsOf(back))))
	return w.put(ctx, tree, back)
}

// isFile reports whether there is a file or a link at the path, below folders that are no links.
func (r *repository) isFile(name string) bool {
	info, err := os.Lstat(r.path(name))
	if err != nil || info.IsDir() {
		return false
	}
	for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
		if info, err := os.Lstat(r.path(dir)); err != nil || !info.IsDir() {
			return false
		}
	}
	return true
}

// lacks reports whether there is nothing at the path, and nothing in the way of putting a file
// there: all folders above it are folders, or missing.
func (r *repository) lacks(name string) bool {
	if _, err := os.Lstat(r.path(name)); !errors.Is(err, fs.ErrNotExist) {
		return false
	}
	for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
		info, err := os.Lstat(r.path(dir))
		if err == nil && !info.IsDir() || err != nil && !errors.Is(err, fs.ErrNotExist) {
			return false
		}
	}
	return true
}

func (w *work) liftBranches(ctx context.Context, c team.Consolidation) error {
	if w.repo.top == "" {
		w.Log(fmt.Sprintf("what came in from %s stays in %s, where there is no repository any more", branchers(c),
			w.Replica.Team().Dir))
		return nil
	}
	for _, tree := range []string{c.Before, c.Tree} {
		_, err := w.repo.Text(ctx, "cat-file", "-e", tree)
		if refused(err) {
			w.Log(fmt.Sprintf("what came in from %s stays in %s: git has removed what was there before",
				branchers(c), w.repo.top))
			return nil
		}
		if err != nil {
			return err
		}
	}
	at, err := w.repo.whereabouts(ctx, w.scratch("land"), c.Tree, c.Before)
	if err != nil {
		return err
	}
	removed := func(one git.Change) bool { return one.Is != git.Nothing && !c.Clean && w.repo.lacks(one.Path) }
	for _, one := range at.elsewhere { // by a check: there is nothing of anybody's in the way of what was there before
		if removed(one) {
			at.here = append(at.here, one)
		}
	}
	at.elsewhere = slices.DeleteFunc(at.elsewhere, removed)
	head, err := w.repo.head(ctx)
	if err != nil {
		return err
	}
	if head != c.Parent { // what somebody has committed of it stays
		differs, err := w.repo.changed(ctx, head, c.Tree)
		if err != nil {
			return err
		}
		at.here = slices.DeleteFunc(at.here, func(one git.Change) bool { return !differs[one.Path] })
	}
	if len(at.elsewhere) > 0 {
		w.Log(fmt.Sprintf("what came in from %s was changed since and stays as it is: %s", branchers(c),
			names(pathsOf(at.elsewhere))))
	}
	return w.put(ctx, c.Before, at.here)
}

func branchers(c team.Consolidation) string {
	var all []string
	for _, b := range c.Branches {
		all = append(all, b.Member)
	}
	return strings.Join(all, ", ")
}

// sorted are the paths in which two trees differ, by what the work tree has there: what the first
// tree has, what the second one has, or something else. They are changes from the first to the
// second.
type sorted struct{ here, there, elsewhere []git.Change }

func (r *repository) whereabouts(ctx context.Context, index, from, to string) (s sorted, err error) {
	changes, err := r.changes(ctx, from, to)
	if err != nil {
		return s, err
	}
	var looked []string
	for _, c := range changes {
		if info, err := os.Lstat(r.path(c.Path)); c.Was == git.Nothing && err == nil && info.IsDir() { // and so no file
			continue
		}
		looked = append(looked, c.Path)
	}
	now, err := r.stage(ctx, index, from, looked)
	if err != nil {
		return s, err
	}
	moved, err := r.changed(ctx, from, now)
	if err != nil {
		return s, err
	}
	differs, err := r.changed(ctx, to, now)
	for _, c := range changes {
		switch {
		case !moved[c.Path]:
			s.here = append(s.here, c)
		case !differs[c.Path]:
			s.there = append(s.there, c)
		default:
			s.elsewhere = append(s.elsewhere, c)
		}
	}
	return s, err
}

func (r *repository) changed(ctx context.Context, from, to string) (map[string]bool, error) {
	changes, err := r.changes(ctx, from, to)
	all := map[string]bool{}
	for _, c := range changes {
		all[c.Path] = true
	}
	return all, err
}

func (r *repository) path(name string) string { return filepath.Join(r.top, filepath.FromSlash(name)) }

// put makes these files be as the tree has them, one at a time: each is at every moment as it was,
// or as it is to be.
func (w *work) put(ctx context.Context, tree string, changes []git.Change) error {
	return w.repo.put(ctx, tree, changes, w.scratch("land"), w.Replica.Team().ID, w.step)
}

// put does so with an index of our own. The mark is one that no other process uses in the
// repository.
func (r *repository) put(ctx context.Context, tree string, changes []git.Change, index, mark string,
	step func(string)) error {
	making := filepath.Join(r.dir, "cadre-land-"+mark) // most likely on the disk of the work tree
	if err := os.RemoveAll(making); err != nil {       // of one that was killed
		return err
	}
	var in bytes.Buffer
	var written []string
	for _, c := range changes {
		if c.Is != git.Nothing {
			written = append(written, c.Path)
			in.WriteString(c.Path + "\x00")
			continue
		}
		if err := r.remove(c.Path); err != nil {
			return err
		}
		step("removed")
	}
	if len(written) == 0 {
		return nil
	}
	defer os.RemoveAll(making)
	own := r.with(index)
	if err := forget(own.index); err != nil {
		return err
	}
	if _, err := own.Run(ctx, nil, "read-tree", tree); err != nil {
		return err
	}
	if _, err := own.Run(ctx, in.Bytes(), "checkout-index", "-z", "--stdin", "--prefix="+making+"/"); err != nil {
		return err
	}
	for _, name := range written {
		if err := install(filepath.Join(making, filepath.FromSlash(name)), r.path(name)); err != nil {
			return err
		}
		step("written")
	}
	return nil
}

// remove removes the file, and the folders in which nothing is left.
func (r *repository) remove(name string) error {
	path := r.path(name)
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR) {
		return err
	}
	for dir := filepath.Dir(path); dir != r.top; dir = filepath.Dir(dir) {
		if os.Remove(dir) != nil {
			break
		}
	}
	return nil
}

// install moves the file to its place in one step, also from another disk.
func install(from, to string) error {
	if err := os.MkdirAll(filepath.Dir(to), 0o777); err != nil {
		return err
	}
	info, err := os.Lstat(from)
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() { // a link
		target, err := os.Readlink(from)
		if err != nil {
			return err
		}
		return replace(to, func(making string) error { return os.Symlink(target, making) })
	}
	f, err := regularfile.Open(from)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := f.Sync(); err != nil {
		return err
	}
	if err := os.Rename(from, to); !errors.Is(err, syscall.EXDEV) {
		return err
	}
	return replace(to, func(making string) error {
		out, err := os.OpenFile(making, os.O_CREATE|os.O_EXCL|os.O_WRONLY, info.Mode().Perm())
		if err != nil {
			return err
		}
		_, err = io.Copy(out, f)
		return errors.Join(err, out.Sync(), out.Close())
	})
}

// replace puts what is made under a name of ours beside it in the place of the file.
func replace(to string, put func(making string) error) error {
	making := filepath.Join(filepath.Dir(to), ".cadre-landing")
	if err := os.Remove(making); err != nil && !errors.Is(err, fs.ErrNotExist) { // of one that was killed
		return err
	}
	if err := put(making); err != nil {
		return err
	}
	return os.Rename(making, to)
}
