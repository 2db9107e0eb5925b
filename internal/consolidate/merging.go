package consolidate

import (
	"context"
	"fmt"

	"cadre/internal/agent/prompts"
	"cadre/internal/git/worktree"
	"cadre/internal/host"
	"cadre/internal/team"
)

// merging is a merge of branches under way. It is made of commits that nothing refers to.
type merging struct {
	parent string // that HEAD names
	// commit of what the team has changed in its directory, on the parent; the parent itself for
	// nothing
	dir  string
	ours string        // commit of what is merged so far
	tree string        // of that
	in   []team.Branch // that are in it
}

// merging begins to merge the branches into the tree before, which is on the parent.
//
// A branch that conflicted with what was in the team's directory has since been merged with that,
// as it was then. So that git takes what is there now for a later state of it, that commit becomes
// a parent of what is there now.
func (w *work) merging(ctx context.Context, parent, before string, branches []team.Branch) (*merging, error) {
	m := &merging{parent: parent, tree: before}
	parents := []string{parent}
	known := map[string]string{} // by member
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
		if err != nil && !refused(err) { // it may be gone: nobody has merged it then
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

// take adds the branch, with which the tree is the next one.
func (m *merging) take(ctx context.Context, r *repository, b team.Branch, next string) error {
	ours, err := r.commit(ctx, next, "with "+b.Name, m.ours, b.Commit)
	if err != nil {
		return err
	}
	m.ours, m.tree, m.in = ours, next, append(m.in, b)
	return nil
}

// conflicts asks the lead to merge the branch with whatever it conflicts with: what is checked out,
// what the team has changed in its directory, and the branches that are in already.
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
	directory := prompts.Other{Name: "what the team has changed in " + w.repo.top, Ref: m.dir, Files: dir}
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
	default: // with none of them alone
		directory.Files = all.Files
		ask.With, with = []prompts.Other{directory}, m.dir
		for _, one := range m.in {
			ask.With = append(ask.With, prompts.Other{Name: "the branch " + one.Name, Ref: one.Name, Files: all.Files})
		}
	}
	return w.ask(ctx, b, with, ask)
}

// checkedOut is the branch that is checked out in the project, else the commit.
func (w *work) checkedOut(ctx context.Context, commit string) string {
	branch, err := w.repo.Text(ctx, "symbolic-ref", "--quiet", "--short", "HEAD")
	if err != nil {
		return commit
	}
	return branch
}

// about begins what the lead is told of the branch.
func (w *work) about(b team.Branch, trouble string) prompts.Merge {
	place := host.Place(w.Replica.Team(), w.Dir, b.Member)
	return prompts.Merge{Team: w.Replica.Team().Name, Repo: w.repo.top, Dir: place.Dir,
		There: host.Worktree(w.Dir, b.Member), Member: b.Member, Branch: b.Name, Trouble: trouble}
}

// ask asks the lead to merge the branch, and with which commit of ours.
func (w *work) ask(ctx context.Context, b team.Branch, with string, m prompts.Merge) error {
	_, err := w.Replica.Do(ctx, team.Command{Actor: team.User, Body: &team.LeaveBranch{Member: b.Member,
		Commit: b.Commit, With: with, Why: m.String(), Once: w.once}})
	if err != nil {
		return fmt.Errorf("not on the task list, that %s is to be merged: %w", b.Name, err)
	}
	return nil
}
