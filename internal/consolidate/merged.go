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
	mergeScratch = "merging" // folder in the team's
)

// Merge makes the merged worktree of the team, or brings the one that is there up to date: what
// HEAD names, what is the team's in its directory, and the branches of its members, in that order.
// A branch that conflicts is left out, and becomes a task for the lead, once for each of its
// commits. Of what is checked out in the project it touches nothing. Of the options it takes
// Replica, Dir, Except and Log.
func Merge(ctx context.Context, o Options) (host.Merged, error) {
	merged, release, err := Hold(ctx, o, nil)
	if err == nil {
		release()
	}
	return merged, err
}

// Hold is Merge for somebody who works there on top of what these members did; nil for all. Their
// branches come first, and of others that conflict nobody is told. Nobody else merges until release
// is called.
func Hold(ctx context.Context, o Options, members []string) (_ host.Merged, release func(), err error) {
	if o.Log == nil {
		o.Log = func(string) {}
	}
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
	var isolated bool
	o.Replica.View(func(s *team.State) {
		for _, m := range s.Members() {
			isolated = isolated || m.Isolation == team.Worktree
		}
	})
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
	if t.Base.Unknown == "" && t.Base.Top == w.repo.top { // else nobody can tell what is the team's there
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
	builds := func(b team.Branch) bool { return members == nil || slices.Contains(members, b.Member) }
	slices.SortStableFunc(branches, func(a, b team.Branch) int {
		switch {
		case builds(a) == builds(b):
			return 0
		case builds(a):
			return -1
		}
		return 1
	})
	m, err := w.merging(ctx, parent, before, branches)
	if err != nil {
		return host.Merged{}, err
	}
	for _, b := range branches {
		next, conflict, err := worktree.Join(ctx, w.procs, w.repo.top, m.ours, b.Commit)
		switch {
		case err != nil:
			return host.Merged{}, err
		case !conflict.None():
			if builds(b) {
				if err := w.conflicts(ctx, m, b, conflict); err != nil {
					return host.Merged{}, err
				}
			}
			merged.Out = append(merged.Out, b)
			continue
		}
		if err := m.take(ctx, w.repo, b, next); err != nil {
			return host.Merged{}, err
		}
	}
	merged.In = m.in
	merged.Dir, err = worktree.Show(ctx, w.procs, t.Dir, host.MergedDir(o.Dir), m.ours)
	return merged, err
}

// lockMerged waits until nobody else is at the merged worktree.
func lockMerged(ctx context.Context, dir string) (*filelock.Lock, error) {
	lock, err := filelock.Wait(ctx, filepath.Join(dir, mergedLock))
	if errors.Is(err, filelock.ErrHeld) {
		return nil, fmt.Errorf("another process is at the merged worktree of the team: %w", context.Cause(ctx))
	}
	return lock, err
}
