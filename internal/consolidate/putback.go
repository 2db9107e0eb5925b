package consolidate

import (
	"context"
	"fmt"
	"path/filepath"

	"cadre/internal/git"
	"cadre/internal/sys/proc"
	"cadre/internal/team"
)

// Return restores work that was done elsewhere in a work tree.
type Return struct {
	Procs   *proc.Register
	Dir     string // a directory in the work tree
	Scratch string // folder for a separate index; no other process may use it at the same time
	Mark    string // distinguishes this use from all others in the repository: the id of the team

	// From and To are commits without and with the work; From is "" if there was no commit.
	From, To string

	// Step is called between any two changes of the work tree, for tests; may be nil.
	Step func(string)
}

// Put writes the changes from From to To into the work tree. It writes only files that are as From
// has them, so it overwrites nothing of the user's. It may be called again after a kill. It returns
// the paths that now are as To has them, and those where something else is in the way.
func (r Return) Put(ctx context.Context) (there, blocked []git.Change, err error) {
	repo, err := r.open(ctx)
	if err != nil {
		return nil, nil, err
	}
	at, err := repo.whereabouts(ctx, r.index(), r.From, r.To)
	if err != nil {
		return nil, nil, err
	}
	var free []git.Change
	for _, c := range at.here {
		switch {
		case c.Is == git.Submodule || c.Was == git.Submodule, c.Was == git.Nothing && repo.filled(c.Path, at.here):
			blocked = append(blocked, c)
		default:
			free = append(free, c)
		}
	}
	step := r.Step
	if step == nil {
		step = func(string) {}
	}
	if err := repo.put(ctx, r.To, free, r.index(), r.Mark, step); err != nil {
		return nil, nil, err
	}
	return append(at.there, free...), append(blocked, at.elsewhere...), nil
}

// Lacks returns the paths that differ between From and To and are not in the work tree as To has
// them.
func (r Return) Lacks(ctx context.Context) ([]git.Change, error) {
	repo, err := r.open(ctx)
	if err != nil {
		return nil, err
	}
	at, err := repo.whereabouts(ctx, r.index(), r.From, r.To)
	return append(at.here, at.elsewhere...), err
}

func (r Return) open(ctx context.Context) (*repository, error) {
	repo, err := open(ctx, r.Procs, r.Dir)
	if err == nil && repo.top == "" {
		err = fmt.Errorf("%s is not in a git work tree", r.Dir)
	}
	return repo, err
}

func (r Return) index() string { return filepath.Join(r.Scratch, "index") }

// Head returns the commit that is checked out in the directory, and the top of its work tree; "" if
// there is none.
func Head(ctx context.Context, procs *proc.Register, dir string) (commit, top string, err error) {
	repo, err := open(ctx, procs, dir)
	if err != nil || repo.top == "" {
		return "", "", err
	}
	commit, err = repo.head(ctx)
	return commit, repo.top, err
}

// Without returns the project's base for a work tree that already has part of the team's work. The
// paths of that work count as the team's.
func Without(base team.Base, work []git.Change) team.Base {
	ours := map[string]bool{}
	for _, c := range work {
		ours[c.Path] = true
	}
	var dirty []team.Fact
	for _, f := range base.Dirty {
		if !ours[f.Path] {
			dirty = append(dirty, f)
		}
	}
	base.Dirty = dirty
	return base
}
