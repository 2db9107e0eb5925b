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
	"cadre/internal/sys/regularfile"
	"cadre/internal/team"
)

// filled reports whether the path is a folder with more in it than the changes remove.
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

var errFilled = errors.New("the folder has other files")

// land puts the changes of the branches into the work tree, so that the checks see them. It skips
// files that were changed. It may be called again after a kill.
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

// lift takes the changes of the branches out of the work tree, and restores files that disappeared
// while the checks ran. It leaves files that were changed since, and names them.
func (w *work) lift(ctx context.Context, c team.Consolidation) error {
	if c.Before != "" {
		if err := w.liftBranches(ctx, c); err != nil {
			return err
		}
	}
	return w.restore(ctx, c)
}

// restore restores staged files that the work tree lacks, most likely because a check removed them.
// Otherwise the next attempt would treat them as removed by the team, and commit without them. A
// changed file is left alone, because the change may be a person's.
func (w *work) restore(ctx context.Context, c team.Consolidation) error {
	tree := cmp.Or(c.Before, c.Tree)
	if tree == "" || c.Clean || w.repo.top == "" { // the checks of a clean checkout did not touch the work tree
		return nil
	}
	if _, err := w.repo.Text(ctx, "cat-file", "-e", tree); refused(err) {
		w.Log(fmt.Sprintf("files that disappeared from %s while the checks ran cannot be restored: git has removed "+
			"what was staged", w.repo.top))
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
	if head != c.Parent { // a commit made in the meantime, even of a removal, is a person's
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
		if err := w.recordMissing(tree, pathsOf(blocked)); err != nil {
			return err
		}
		w.Advise(team.Advice{Text: "missing since it was staged, and not restored, because something else is in its " +
			"place: " + names(pathsOf(blocked)), Hints: []team.Hint{w.showing(tree, blocked[0].Path)}})
	}
	if len(back) == 0 {
		return nil
	}
	w.Log(fmt.Sprintf("missing since it was staged, and restored: %s", names(pathsOf(back))))
	return w.put(ctx, tree, back)
}

// isFile reports whether the path is a file or a symbolic link, with no links among the folders
// above it.
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

// lacks reports whether the path is free: nothing exists there, and each folder above it is a
// folder or missing.
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
		w.Log(fmt.Sprintf("the changes from %s stay in %s, where there is no repository any more", memberNames(c),
			w.Replica.Team().Dir))
		return nil
	}
	for _, tree := range []string{c.Before, c.Tree} {
		_, err := w.repo.Text(ctx, "cat-file", "-e", tree)
		if refused(err) {
			w.Log(fmt.Sprintf("the changes from %s stay in %s: git has removed the previous files",
				memberNames(c), w.repo.top))
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
	for _, one := range at.elsewhere { // a check removed these, so the previous files can be restored
		if removed(one) {
			at.here = append(at.here, one)
		}
	}
	at.elsewhere = slices.DeleteFunc(at.elsewhere, removed)
	head, err := w.repo.head(ctx)
	if err != nil {
		return err
	}
	if head != c.Parent { // a file that was committed stays
		differs, err := w.repo.changed(ctx, head, c.Tree)
		if err != nil {
			return err
		}
		at.here = slices.DeleteFunc(at.here, func(one git.Change) bool { return !differs[one.Path] })
	}
	if len(at.elsewhere) > 0 {
		w.Log(fmt.Sprintf("files from %s were changed since, and are left alone: %s", memberNames(c),
			names(pathsOf(at.elsewhere))))
	}
	return w.put(ctx, c.Before, at.here)
}

func memberNames(c team.Consolidation) string {
	var all []string
	for _, b := range c.Branches {
		all = append(all, b.Member)
	}
	return strings.Join(all, ", ")
}

// sorted has the changes from one tree to another, sorted by what the work tree has of each file.
type sorted struct {
	here      []git.Change // the content of the first tree
	there     []git.Change // the content of the second tree
	elsewhere []git.Change // other content
}

func (r *repository) whereabouts(ctx context.Context, index, from, to string) (s sorted, err error) {
	changes, err := r.changes(ctx, from, to)
	if err != nil {
		return s, err
	}
	var looked []string
	for _, c := range changes {
		if info, err := os.Lstat(r.path(c.Path)); c.Was == git.Nothing && err == nil && info.IsDir() { // not the file
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

// of returns the part of s that is about the paths of the changes.
func (s sorted) of(changes []git.Change) sorted {
	paths := map[string]bool{}
	for _, c := range changes {
		paths[c.Path] = true
	}
	other := func(c git.Change) bool { return !paths[c.Path] }
	return sorted{slices.DeleteFunc(s.here, other), slices.DeleteFunc(s.there, other),
		slices.DeleteFunc(s.elsewhere, other)}
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

// put writes files of the tree to the work tree, one at a time. At every moment, a file has its old
// or its new content.
func (w *work) put(ctx context.Context, tree string, changes []git.Change) error {
	return w.repo.put(ctx, tree, changes, w.scratch("land"), w.Replica.Team().ID, w.step)
}

// put does the same with an index of our own. No other process uses the mark in this repository.
func (r *repository) put(ctx context.Context, tree string, changes []git.Change, index, mark string,
	step func(string)) error {
	making := filepath.Join(r.dir, "cadre-land-"+mark) // usually on the same disk as the work tree
	if err := os.RemoveAll(making); err != nil {       // left by a killed process
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

// remove removes the file, and the folders that become empty.
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

// install moves the file to its place in one step, even from another disk.
func install(from, to string) error {
	if err := os.MkdirAll(filepath.Dir(to), 0o777); err != nil {
		return err
	}
	info, err := os.Lstat(from)
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() { // a symbolic link
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

// replace replaces a file in one step. put first makes the new file under a name of ours beside it.
func replace(to string, put func(making string) error) error {
	making := filepath.Join(filepath.Dir(to), ".cadre-landing")
	if err := os.Remove(making); err != nil && !errors.Is(err, fs.ErrNotExist) { // left by a killed process
		return err
	}
	if err := put(making); err != nil {
		return err
	}
	return os.Rename(making, to)
}
