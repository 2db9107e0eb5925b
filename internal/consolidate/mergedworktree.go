package consolidate

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"cadre/internal/git/worktree"
	"cadre/internal/host"
	"cadre/internal/sys/filelock"
	"cadre/internal/sys/proc"
	"cadre/internal/team"
)

const (
	mergedLock   = "merged.lock"
	mergeScratch = "merging" // folder in the team's folder
)

// Merge makes or updates the merged worktree of the team. It has what HEAD names, then the team's
// files in its directory, then the members' branches. A branch that conflicts is left out, and
// becomes a task for the lead, once for each of its commits. Merge does not touch what is checked
// out in the project. It uses the options Replica, Dir, Except and Log.
func Merge(ctx context.Context, o Options) (host.Merged, error) {
	merged, release, err := Hold(ctx, o, nil)
	if err == nil {
		release()
	}
	return merged, err
}

// Hold is Merge for a caller that works on top of the work of these members; nil for all. Their
// branches come first, and conflicts of other branches are not reported. Until release is called,
// no other caller merges.
func Hold(ctx context.Context, o Options, members []string) (_ host.Merged, release func(), err error) {
	o.listen()
	lock, err := lockMerged(ctx, o.Dir)
	if err != nil {
		return host.Merged{}, nil, err
	}
	merged, err := hold(ctx, o, members)
	if err != nil {
		lock.Unlock()
		return host.Merged{}, nil, err
	}
	return merged, func() { lock.Unlock() }, nil
}

func hold(ctx context.Context, o Options, members []string) (merged host.Merged, err error) {
	isolates := func(m team.Member) bool { return m.Isolation == team.Worktree }
	isolated := false
	o.Replica.View(func(s *team.State) { isolated = slices.ContainsFunc(s.Members(), isolates) })
	if !isolated {
		return host.Merged{}, nil
	}
	w := &work{Options: o.within(), once: true}
	if w.procs, err = proc.Open(""); err != nil {
		return host.Merged{}, err
	}
	defer w.procs.Close(context.WithoutCancel(ctx))
	t := o.Replica.Team()
	if w.repo, err = open(ctx, w.procs, t.Dir); err != nil || w.repo.top == "" {
		return host.Merged{}, err
	}
	parent, err := w.repo.head(ctx)
	if parent == "" || err != nil {
		return host.Merged{}, err
	}
	scratch := filepath.Join(o.Dir, mergeScratch)
	defer os.RemoveAll(scratch)
	var paths []string
	if t.Base.Unknown == "" && t.Base.Top == w.repo.top { // otherwise the team's files there are unknown
		s, err := w.selected(ctx, team.Consolidation{})
		if err != nil {
			return host.Merged{}, err
		}
		paths = s.ours
	}
	before, err := w.repo.stage(ctx, filepath.Join(scratch, "index"), parent, paths)
	if err != nil {
		return host.Merged{}, err
	}
	branches, out, err := host.Waiting(ctx, o.Replica, w.procs)
	if err != nil {
		return host.Merged{}, err
	}
	merged.Out = out
	m, conflicting, err := w.joined(ctx, parent, before, branches, func(b team.Branch) bool {
		return members == nil || slices.Contains(members, b.Member)
	})
	if err != nil {
		return host.Merged{}, err
	}
	merged.In, merged.Out = m.in, append(merged.Out, conflicting...)
	merged.Dir, err = worktree.Show(ctx, w.procs, t.Dir, host.MergedDir(o.Dir), m.ours)
	return merged, err
}

// joined merges the branches one after the other and returns those that conflict. Branches that
// others build on come first, so that they win. Members of such a branch are asked to resolve a
// conflict.
func (w *work) joined(ctx context.Context, parent, before string, branches []team.Branch,
	builds func(team.Branch) bool) (m *merging, conflicting []team.Branch, err error) {
	slices.SortStableFunc(branches, func(a, b team.Branch) int {
		switch {
		case builds(a) == builds(b):
			return 0
		case builds(a):
			return -1
		}
		return 1
	})
	if m, err = w.merging(ctx, parent, before, branches); err != nil {
		return nil, nil, err
	}
	for _, b := range branches {
		next, conflict, err := worktree.Join(ctx, w.procs, w.repo.top, m.ours, b.Commit)
		switch {
		case err != nil:
			return nil, nil, err
		case conflict.None():
			err = m.take(ctx, w.repo, b, next)
		case builds(b):
			err = w.conflicts(ctx, m, b, conflict)
			fallthrough
		default:
			conflicting = append(conflicting, b)
		}
		if err != nil {
			return nil, nil, err
		}
	}
	return m, conflicting, nil
}

// lockMerged waits until no other process uses the merged worktree.
func lockMerged(ctx context.Context, dir string) (*filelock.Lock, error) {
	lock, err := filelock.Wait(ctx, filepath.Join(dir, mergedLock))
	if errors.Is(err, filelock.ErrHeld) {
		return nil, fmt.Errorf("another process uses the merged worktree of the team: %w", context.Cause(ctx))
	}
	return lock, err
}
