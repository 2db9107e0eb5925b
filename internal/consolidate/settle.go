package consolidate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"time"

	"cadre/internal/git/worktree"
	"cadre/internal/sys/atomicfile"
	"cadre/internal/sys/regularfile"
	"cadre/internal/team"
)

// site is where the checks run: the team's directory, or a clean checkout of what is to be
// committed.
type site struct {
	repo   *repository // nil where no checks are to be held to files
	dir    string
	before map[string]string // digests of files that differ from the last commit and were not named to be committed
}

// clean is the folder of the clean checkout.
func (w *work) clean() string { return w.scratch("clean") }

// site makes ready where the checks run.
func (w *work) site(ctx context.Context, c team.Consolidation) (at site, err error) {
	t := w.Replica.Team()
	at = site{dir: t.Dir}
	switch {
	case c.Clean && w.repo.top == "":
		return at, notReady("%s is in no git repository, and so there is no clean checkout of it for the checks; "+
			"consolidate without --clean", t.Dir)
	case c.Clean:
		return w.checkout(ctx, c)
	case w.repo.top == "" || c.NoCommit:
		return at, nil
	}
	at.repo = w.repo
	if len(c.Only) > 0 {
		at.before, err = w.noted(ctx, c)
	}
	return at, err
}

// checkout makes a clean checkout, in the place of one that a kill left.
func (w *work) checkout(ctx context.Context, c team.Consolidation) (at site, err error) {
	commit := c.Parent
	if c.Tree != "" {
		commit, err = w.make(ctx, c)
	} else if commit == "" {
		commit, err = w.repo.head(ctx)
	}
	if err == nil && commit == "" {
		err = notReady("there is no commit yet that the checks could run in; consolidate without --clean")
	}
	if err == nil {
		err = w.sweep(ctx)
	}
	if err != nil {
		return at, err
	}
	if at.dir, err = worktree.Show(ctx, w.procs, w.Replica.Team().Dir, w.clean(), commit); err != nil {
		return at, err
	}
	w.step("checkout")
	at.repo, err = open(ctx, w.procs, w.clean())
	return at, err
}

// sweep removes the clean checkout, if there may be one.
func (w *work) sweep(ctx context.Context) error {
	if _, err := os.Lstat(w.clean()); errors.Is(err, fs.ErrNotExist) && !w.state().Clean {
		return nil
	}
	return worktree.Hide(ctx, w.procs, w.Replica.Team().Dir, w.clean())
}

// make makes the commit of what is staged. Each time that is the same one, so that what the checks
// see as HEAD in a clean checkout is what is committed.
func (w *work) make(ctx context.Context, c team.Consolidation) (string, error) {
	parents := []string{c.Parent}
	for _, b := range c.Branches {
		parents = append(parents, b.Commit)
	}
	at := fmt.Sprintf("%d %s", int64(c.BeganAt)/1000, time.UnixMilli(int64(c.BeganAt)).Format("-0700"))
	dated := *w.repo
	dated.Runner = w.repo.With("GIT_AUTHOR_DATE="+at, "GIT_COMMITTER_DATE="+at)
	return dated.commit(ctx, c.Tree, w.message(c), parents...)
}

// noted takes down the files that differ from the last commit before the first check runs. A kill
// does not have what checks wrote taken for what was there before.
func (w *work) noted(ctx context.Context, c team.Consolidation) (map[string]string, error) {
	var note struct {
		Attempt, Rounds int64
		Files           []team.Fact
	}
	path := w.scratch("before.json")
	data, err := regularfile.Read(path, 1<<30)
	if err == nil && json.Unmarshal(data, &note) == nil && note.Attempt == c.Attempt {
		return digests(note.Files), nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	files, err := w.repo.differing(ctx, w.aside(c))
	if err != nil {
		return nil, err
	}
	note.Attempt = c.Attempt
	if note.Files, err = w.repo.facts(ctx, files); err != nil {
		return nil, notReady("what the checks change could not be told from what is there: %v", err)
	}
	if data, err = json.Marshal(note); err == nil {
		err = atomicfile.Write(path, data)
	}
	return digests(note.Files), err
}

func digests(files []team.Fact) map[string]string {
	all := make(map[string]string, len(files))
	for _, f := range files {
		all[f.Path] = f.SHA256
	}
	return all
}

// wrote is how files differ from what is staged after the checks.
type wrote struct {
	tracked []string // that a clone would have otherwise
	fresh   []string // that nobody has staged
	theirs  []string // tracked files of the person's that are as they were before the team
}

// settle compares the files with what is staged, after the checks. Where they changed tracked ones
// it refuses, or stages these, too: then it reports that the checks have to run again.
func (w *work) settle(ctx context.Context, c team.Consolidation, at site) (again bool, err error) {
	if at.repo == nil || len(w.Replica.Team().Checks) == 0 {
		return false, nil
	}
	found, err := w.wrote(ctx, c, at)
	if err != nil {
		return false, err
	}
	name := w.Replica.Team().Name
	if len(found.theirs) > 0 {
		w.Log(fmt.Sprintf("the checks ran with your changes of %s, which are not committed; to have them run "+
			"without: cadre consolidate %s --clean", names(found.theirs), name))
	}
	all := slices.Concat(found.tracked, found.fresh)
	switch {
	case c.Changes && len(all) > 0 && c.Rounds >= team.MaxRounds:
		return false, notReady("the checks change files each time that they run: %s; have git ignore them, or have "+
			"the checks leave them alone", names(all))
	case c.Changes && len(all) > 0:
		return true, w.restage(ctx, c, at, all)
	case len(found.tracked) > 0:
		return false, notReady("the checks changed %s, or somebody did while they ran, and so they have not passed "+
			"with what would be committed", names(found.tracked)).With(w.hint(team.ActKeepCheckChanges))
	case len(found.fresh) > 0 && !c.Clean:
		w.Log(fmt.Sprintf("the checks left %s, which is not committed; to commit that, too: cadre consolidate %s "+
			"--with-check-changes", names(found.fresh), name))
	}
	return false, nil
}

func (w *work) wrote(ctx context.Context, c team.Consolidation, at site) (found wrote, err error) {
	if c.Clean {
		files, err := at.repo.differing(ctx, aside{})
		for _, e := range files {
			switch {
			case e.submodule && !e.moved:
			case e.tracked:
				found.tracked = append(found.tracked, e.path)
			default:
				found.fresh = append(found.fresh, e.path)
			}
		}
		return found, err
	}
	staged := map[string]bool{}
	if c.Tree != "" {
		changes, err := w.repo.changes(ctx, c.Parent, c.Tree)
		if err != nil {
			return found, err
		}
		for _, one := range changes {
			staged[one.Path] = true
		}
		if found.tracked, err = w.repo.unstaged(ctx, w.scratch("settle"), c.Parent, c.Tree); err != nil {
			return found, err
		}
	}
	files, err := w.repo.differing(ctx, w.aside(c))
	if err != nil {
		return found, err
	}
	before := map[string]team.Fact{}
	for _, f := range w.Replica.Team().Base.Dirty {
		before[f.Path] = f
	}
	most := int64(mostBytes)
	for _, e := range files {
		was, known := before[e.path]
		other, noted := at.before[e.path]
		if staged[e.path] || e.submodule && !e.moved {
			continue
		}
		if known && was.Name != team.ByChecks || noted {
			now, err := w.repo.digest(ctx, e, &most)
			if err != nil {
				return found, err
			}
			if known && now == was.SHA256 || noted && now == other {
				if e.tracked {
					found.theirs = append(found.theirs, e.path)
				}
				continue
			}
		}
		if e.tracked {
			found.tracked = append(found.tracked, e.path)
		} else {
			found.fresh = append(found.fresh, e.path)
		}
	}
	return found, nil
}

// restage stages the files with the rest. What was checked before was something else.
func (w *work) restage(ctx context.Context, c team.Consolidation, at site, files []string) error {
	tree := c.Tree
	if tree == "" {
		base, err := w.repo.base(ctx, c.Parent)
		if err == nil {
			tree, err = w.repo.Text(ctx, "rev-parse", base+"^{tree}")
		}
		if err != nil {
			return err
		}
	}
	body := &team.ReportStaged{Attempt: c.Attempt, Parent: c.Parent, Before: c.Before, Branches: c.Branches}
	var err error
	if body.Tree, err = at.repo.stage(ctx, w.scratch("settle"), tree, files); err != nil {
		return err
	}
	switch {
	case c.Clean && c.Before == "": // they come into the work tree as what branches bring does
		body.Before = tree
	case !c.Clean &&
		c.Before != "": // what checks did to files that no branch brought is in the work tree, and stays there
		brought, err := w.repo.changed(ctx, c.Before, c.Tree)
		if err != nil {
			return err
		}
		own := slices.DeleteFunc(slices.Clone(files), func(path string) bool { return brought[path] })
		if body.Before, err = w.repo.stage(ctx, w.scratch("settle"), c.Before, own); err != nil {
			return err
		}
	}
	changes, err := w.repo.changes(ctx, c.Parent, body.Tree)
	if err != nil {
		return err
	}
	body.Files = int64(len(changes))
	w.step("settled")
	w.fresh = false
	w.Log(fmt.Sprintf("the checks changed %s: that is committed, too, and they run again", names(files)))
	if body.Tree == c.Tree {
		return notReady("%s was changed while the checks ran; look at it, and consolidate again", names(files))
	}
	return w.do(ctx, body)
}
