package consolidate

import (
	"context"
	"fmt"
	"slices"

	"cadre/internal/team"
)

// wrote lists the files that differ from what is staged, after the checks.
type wrote struct {
	tracked []string // staged files, which would be different in a clone
	fresh   []string // new files that are not staged
	theirs  []string // tracked files with changes that the user had made before the team was created
}

func (f wrote) all() []string { return slices.Concat(f.tracked, f.fresh) }

// settle compares the files with what is staged, after the checks. If the checks changed tracked
// files, it returns an error, or stages these too. In the second case, again reports that the
// checks have to run again.
func (w *work) settle(ctx context.Context, c team.Consolidation, at site) (again bool, err error) {
	if at.repo == nil || len(w.Replica.Team().Checks) == 0 {
		return false, nil
	}
	found, err := w.wrote(ctx, c, at)
	if err != nil {
		return false, err
	}
	again, err = w.judge(c, found)
	if len(found.theirs) > 0 && !again {
		note := team.Advice{Text: fmt.Sprintf("the checks ran with your changes of %s, which are not committed",
			names(found.theirs))}
		if err != nil { // otherwise the team is complete now, and accepts no other options
			note.Hints = []team.Hint{w.hint(team.ActCheckClean)}
		}
		w.Advise(note)
	}
	if again {
		err = w.restage(ctx, c, at, found.all())
	} else if left := found.leftOut(c); err == nil && len(left) > 0 {
		w.Advise(team.Advice{Text: fmt.Sprintf("the checks left %s, which is not committed; commit it yourself, or let "+
			"git ignore it", names(left))})
	}
	return again, err
}

// judge returns an error if the checks may not have changed these files. Otherwise, again reports
// that the files are committed too, after the checks ran again.
func (w *work) judge(c team.Consolidation, found wrote) (again bool, err error) {
	all := found.all()
	switch {
	case c.Changes && len(all) > 0 && c.Rounds >= team.MaxRounds:
		return false, notReady("the checks change files on every run: %s; let git ignore them, or change "+
			"the checks so that they do not touch them", names(all))
	case c.Changes && len(all) > 0:
		return true, nil
	case len(found.tracked) > 0:
		return false, notReady("the checks changed %s, or it was changed while they ran, so they did not pass "+
			"with what would be committed", names(found.tracked)).With(w.hint(team.ActKeepCheckChanges))
	}
	return false, nil
}

// leftOut returns the new files that the checks wrote and that are not committed.
func (f wrote) leftOut(c team.Consolidation) []string {
	if c.Clean || c.Changes {
		return nil
	}
	return f.fresh
}

func (w *work) wrote(ctx context.Context, c team.Consolidation, at site) (found wrote, err error) {
	if c.Clean {
		return wroteThere(ctx, at)
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
	most := int64(maxBytes)
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

// wroteThere lists what checks changed in a worktree of their own, in which nothing else changes.
func wroteThere(ctx context.Context, at site) (found wrote, err error) {
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

// restage stages the files together with the rest. The checks have to run again, because they saw
// other content.
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
	case c.Clean && c.Before == "": // land writes them into the work tree, as it does for branches
		body.Before = tree
	case !c.Clean &&
		c.Before != "": // the checks' changes of the team's files are in the work tree, and stay there
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
	w.Log(fmt.Sprintf("the checks changed %s: this is committed too, and the checks run again", names(files)))
	if body.Tree == c.Tree {
		return notReady("%s was changed while the checks ran; check it, and consolidate again", names(files))
	}
	return w.do(ctx, body)
}
