package consolidate

import (
	"context"
	"fmt"
	"slices"

	"cadre/internal/agent/prompts"
	"cadre/internal/git"
	"cadre/internal/git/worktree"
	"cadre/internal/host"
	"cadre/internal/team"
)

// merging is a merge of branches in progress. It consists of commits that nothing refers to.
type merging struct {
	parent string // the commit that HEAD names
	// commit of the team's changes in its directory, on the parent; the parent itself if there are
	// none
	dir  string
	ours string        // commit of what has been merged so far
	tree string        // tree of that commit
	in   []team.Branch // branches that have been merged
}

// merging starts a merge of the branches into the tree before, which is based on the parent.
//
// A branch that conflicted with the team's directory has since been merged with a commit of that
// directory. That commit becomes a parent of the directory's present state, so that git sees the
// present state as a successor.
func (w *work) merging(ctx context.Context, parent, before string, branches []team.Branch) (*merging, error) {
	m := &merging{parent: parent, tree: before}
	parents := []string{parent}
	known := map[string]string{} // commit by member
	w.Replica.View(func(s *team.State) {
		for _, one := range s.Members() {
			known[one.Name] = one.Left.With
		}
	})
	for _, b := range branches {
		with := known[b.Member]
		if with == "" {
			continue
		}
		merged, err := w.repo.Holds(ctx, "merge-base", "--is-ancestor", with, b.Commit)
		if err != nil && !refused(err) { // git may have removed the commit, if it was not merged
			return nil, err
		}
		if merged {
			parents = append(parents, with)
		}
	}
	var err error
	m.dir, err = w.repo.commit(ctx, before, "What the team has changed in "+w.repo.top, parents...)
	m.ours = m.dir
	return m, err
}

// take records that the branch is merged, with next as the resulting tree.
func (m *merging) take(ctx context.Context, r *repository, b team.Branch, next string) error {
	ours, err := r.commit(ctx, next, "with "+b.Name, m.ours, b.Commit)
	if err != nil {
		return err
	}
	m.ours, m.tree, m.in = ours, next, append(m.in, b)
	return nil
}

// conflicts asks the lead to merge the branch with everything that it conflicts with: what is
// checked out, the team's changes in its directory, and the branches merged so far.
func (w *work) conflicts(ctx context.Context, m *merging, b team.Branch, all worktree.Conflict) error {
	ask, with := w.about(b, ""), ""
	files := func(commit string) ([]string, error) {
		_, c, err := worktree.Join(ctx, w.procs, w.repo.top, commit, b.Commit)
		return c.Files, err
	}
	head, err := files(m.parent)
	if err != nil {
		return err
	}
	dir, err := files(m.dir)
	if err != nil {
		return err
	}
	directory := prompts.Other{Name: "the team's changes in " + w.repo.top, Ref: m.dir, Files: dir}
	switch {
	case len(dir) > len(head):
		ask.With, with = []prompts.Other{directory}, m.dir
	case len(head) > 0:
		ref := w.checkedOut(ctx, m.parent)
		ask.With = []prompts.Other{{Name: fmt.Sprintf("what is checked out in %s (%s)", w.repo.top, ref),
			Ref: ref, Files: head}}
	}
	for _, one := range m.in {
		both, err := files(one.Commit)
		if err != nil {
			return err
		}
		if len(both) > 0 {
			ask.With = append(ask.With, prompts.Other{Name: "the branch " + one.Name, Ref: one.Name, Files: both})
		}
	}
	switch {
	case len(ask.With) > 0:
	case len(all.Files) == 0:
		ask.Trouble = fmt.Sprintf("It cannot be merged: %s.", all)
	default: // it conflicts with their combination only
		directory.Files = all.Files
		ask.With, with = []prompts.Other{directory}, m.dir
		for _, one := range m.in {
			ask.With = append(ask.With, prompts.Other{Name: "the branch " + one.Name, Ref: one.Name, Files: all.Files})
		}
	}
	return w.ask(ctx, b, with, ask)
}

// checkedOut returns the branch that is checked out in the project, or else the commit.
func (w *work) checkedOut(ctx context.Context, commit string) string {
	branch, err := w.repo.Text(ctx, "symbolic-ref", "--quiet", "--short", "HEAD")
	if err != nil {
		return commit
	}
	return branch
}

// about returns the start of the message to the lead about the branch.
func (w *work) about(b team.Branch, trouble string) prompts.Merge {
	place := host.Place(w.Replica.Team(), w.Dir, b.Member)
	return prompts.Merge{Team: w.Replica.Team().Name, Repo: w.repo.top, Dir: place.Dir,
		There: host.Worktree(w.Dir, b.Member), Member: b.Member, Branch: b.Name, Trouble: trouble}
}

// ask asks the lead to merge the branch with the commit with.
func (w *work) ask(ctx context.Context, b team.Branch, with string, m prompts.Merge) error {
	_, err := w.Replica.Do(ctx, team.Command{Actor: team.User, Body: &team.LeaveBranch{Member: b.Member,
		Commit: b.Commit, With: with, Why: m.String(), Once: w.once}})
	if err != nil {
		return fmt.Errorf("could not create a task to merge %s: %w", b.Name, err)
	}
	return nil
}

// join makes the tree of the team's work. It has the files that were staged from the work tree
// (before, on the parent), and the members' branches. A branch that does not merge cleanly becomes
// a task for the lead. A file of the user in the way of a branch is refused.
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
		trouble, err := w.blocked(ctx, b, before, m.tree, next)
		if err != nil {
			return "", nil, err
		}
		if trouble != "" {
			if err := w.ask(ctx, b, "", w.about(b, trouble)); err != nil {
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

// waiting returns the branches to merge. It logs those that the lead leaves out.
func (w *work) waiting(ctx context.Context, parent string) ([]team.Branch, error) {
	if parent == "" { // without a commit there are no branches
		return nil, nil
	}
	all, out, err := host.Waiting(ctx, w.Replica, w.procs)
	for _, b := range out {
		w.Log(fmt.Sprintf("the branch %s is left out: the task that asked to merge it was deleted", b.Name))
	}
	return all, err
}

// leave says which branches are not merged, because nothing is committed here. No task asks to
// merge them: whoever completes a team without a commit decides about its work with git.
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
		merge := w.hint(team.ActMergeBranch)
		merge.Name, merge.Dir = b.Name, w.repo.top
		w.Advise(team.Advice{Text: fmt.Sprintf("nothing is committed, so work of %s stays on the branch %s, which is not "+
			"merged", b.Member, b.Name), Hints: []team.Hint{merge}})
	}
	return err
}

// blocked returns why the branch's changes, from one tree to the next, cannot be merged by cadre;
// "" if they can. It refuses them if a file of the user is in their way in the work tree, even one
// with the same content: only its owner may decide about it.
func (w *work) blocked(ctx context.Context, b team.Branch, before, tree, next string) (trouble string, err error) {
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
	if len(in) > 0 {
		return "", w.inTheWay(b, pathsOf(in))
	}
	return "", nil
}

// inTheWay refuses a branch that changes files of the user, or cadre's report on the team.
func (w *work) inTheWay(b team.Branch, files []string) error {
	if report := w.aside(w.state()).report; slices.Contains(files, report) {
		return notReady("the branch %s has %s, which in %s is cadre's report on the team, and is not committed. Move "+
			"the report elsewhere, and consolidate again", b.Name, report, w.repo.top)
	}
	yours, them := "a file of yours is", "it"
	if len(files) > 1 {
		yours, them = "files of yours are", "them"
	}
	return notReady("%s in the way of the branch %s in %s: %s. Commit, move or stash %s, and consolidate again",
		yours, b.Name, w.repo.top, names(files), them)
}
