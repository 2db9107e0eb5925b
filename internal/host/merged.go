package host

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"cadre/internal/team"
)

// Merged is the merged worktree of a team. It has the commit of HEAD, the team's changes in its
// directory, and the branches of its members.
type Merged struct {
	Dir string // directory to work in; "" where no member works in a worktree
	In  []team.Branch
	Out []team.Branch // branches that conflict, or are left out
}

// holdMerged makes the merged worktree for a task that builds on these tasks, and locks it until
// release is called, which it must be also after an error. why names an obstacle that the lead must
// remove.
func (h *Host) holdMerged(ctx context.Context, task team.Task, builds []team.Task) (dir string, release func(),
	why string, err error) {
	m, release, err := h.merge(ctx, builds)
	switch {
	case team.CodeOf(err) == team.NotReady:
		return "", release, "", err
	case err != nil && ctx.Err() == nil:
		return "", release, "the work of members could not be merged: " + err.Error(), nil
	case err != nil:
		return "", release, "", err
	}
	for _, b := range builds {
		for _, out := range m.Out {
			if out.Member == b.Doer() || b.Work != nil && out.Member == b.Work.Member {
				why, err = h.waitFor(ctx, task, team.LeaveBranch{Member: out.Member, Commit: out.Commit},
					"the branch "+out.Name+" conflicts with what is merged before it")
				return "", release, why, err
			}
		}
	}
	return m.Dir, release, "", nil
}

// merge makes the merged worktree for a task that builds on these tasks, and locks it until release
// is called, which it must be also after an error. If no member works in a worktree, its Dir is the
// team's directory, which has all work.
func (h *Host) merge(ctx context.Context, builds []team.Task) (m Merged, release func(), err error) {
	release = func() {}
	if h.Merge == nil {
		return m, release, errors.New("this host has no merged worktree")
	}
	members := []string{} // not nil, which would mean all members
	for _, b := range builds {
		members = append(members, b.Doer())
	}
	if err = h.tracer.settle(ctx, ""); err != nil {
		return m, release, err
	}
	if err = cmp.Or(h.awaitRecords(builds), Arrive(ctx, h.Replica, h.Procs, h.machine())); err != nil {
		return m, release, err
	}
	m, unlock, err := h.Merge(ctx, members)
	if err != nil {
		return m, release, err
	}
	m.Dir = cmp.Or(m.Dir, h.Replica.Team().Dir)
	return m, unlock, nil
}

// waitFor makes the task wait until the lead has merged that branch. If the lead was asked before
// and has not merged it, the task cannot be done.
func (h *Host) waitFor(ctx context.Context, task team.Task, ask team.LeaveBranch,
	conflict string) (why string, err error) {
	ask.Once, ask.Blocks = true, []string{task.ID}
	if _, err := h.send(ctx, team.Command{Actor: team.User, Body: &ask}); err != nil {
		return "", err
	}
	var asked string
	h.Replica.View(func(st *team.State) { m, _ := st.Member(ask.Member); asked = m.Left.Task })
	return strings.TrimSpace(fmt.Sprintf("%s; task %s asked to merge them", conflict, asked)), nil
}
