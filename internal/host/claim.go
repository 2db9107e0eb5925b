package host

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"cadre/internal/agent/prompts"
	"cadre/internal/git"
	"cadre/internal/git/worktree"
	"cadre/internal/replica"
	"cadre/internal/team"
)

// Merged is the merged worktree of a team. It has the commit of HEAD, the team's changes in its
// directory, and the branches of its members.
type Merged struct {
	Dir string // directory to work in; "" where no member works in a worktree
	In  []team.Branch
	Out []team.Branch // branches that conflict, or are left out
}

// mostClaims bounds how many tasks one claim tries.
const mostClaims = 20

// takeTask claims a task for the member, once the work that the task builds on is where the member
// works: in its worktree, or in the merged one. send sends a command as the claimer. A task whose
// blockers conflict waits for the lead, and the next task is tried.
func (s *slot) takeTask(ctx context.Context, c *team.ClaimTask,
	send func(team.Body) (replica.Receipt, error)) (replica.Receipt, error) {
	if !s.places() {
		return send(c)
	}
	for range mostClaims {
		named := *c
		task, ok := s.wouldTake(c)
		if !ok { // unless a task becomes ready in this moment, this is refused with the reason
			named.Merged = []string{}
			receipt, err := send(&named)
			if _, now := s.wouldTake(c); now && team.CodeOf(err) == team.Conflict {
				continue
			}
			return receipt, err
		}
		named.Task, named.Merged = task.ID, s.buildsOn(task.ID)
		why, err := s.ready(ctx, task)
		if err != nil {
			if ctx.Err() == nil {
				s.wantSoon(team.WantWork)
			}
			return replica.Receipt{}, err
		}
		var waits bool
		s.host.Replica.View(func(st *team.State) { t, _ := st.Task(task.ID); waits = len(t.Blocked()) > 0 })
		receipt := replica.Receipt{}
		if !waits || c.Task != "" {
			receipt, err = send(&named)
		}
		switch {
		case c.Task == "" && (waits || team.CodeOf(err) == team.Conflict): // another member was faster
			continue
		case why == "" || err != nil || receipt.Record == nil:
			return receipt, err
		}
		if claimed, ok := team.EventIn[*team.TaskClaimed](receipt.Record); ok {
			_, err = send(&team.FailTask{Task: task.ID, Member: named.Member, Fence: claimed.Fence, Reason: why})
		}
		if c.Task != "" || err != nil {
			return replica.Receipt{}, errors.Join(err, &team.Error{Code: team.NotReady, Text: why})
		}
	}
	return replica.Receipt{}, &team.Error{Code: team.Nothing, Text: "no task is ready for " + s.member}
}

// buildsOn returns the ids of the tasks whose work the task builds on.
func (s *slot) buildsOn(task string) []string {
	ids := []string{}
	s.host.Replica.View(func(st *team.State) {
		for _, b := range st.BuildsOn(task) {
			ids = append(ids, b.ID)
		}
	})
	return ids
}

// places reports whether it matters in this team in which directory a task is done.
func (s *slot) places() (so bool) {
	s.host.Replica.View(func(st *team.State) {
		for _, m := range st.Members() {
			so = so || m.Isolation == team.Worktree
		}
	})
	return so
}

// wouldTake returns the task that the claim would take, if there is one.
func (s *slot) wouldTake(c *team.ClaimTask) (task team.Task, ok bool) {
	s.host.Replica.View(func(st *team.State) {
		if task, ok = st.Next(s.member); c.Task != "" {
			task, ok = st.Task(c.Task)
			ok = ok && task.Status == team.Pending && len(task.Blocked()) == 0
		}
	})
	return task, ok
}

// ready merges the work that the task builds on into the place where the task is done. why names an
// obstacle that the lead must remove. After an error, a later attempt may succeed.
func (s *slot) ready(ctx context.Context, task team.Task) (why string, err error) {
	var m team.Member
	var builds []team.Task
	var held []team.Task
	s.host.Replica.View(func(st *team.State) {
		m, _ = st.Member(s.member)
		builds, held = st.BuildsOn(task.ID), st.Held(s.member)
	})
	if len(builds) == 0 {
		return "", nil
	}
	if task.In == team.InMerged {
		return s.readyMerged(ctx, task, builds)
	}
	if m.Isolation != team.Worktree {
		return "", nil
	}
	if len(held) > 0 {
		return "", &team.Error{Code: team.NotReady, Text: fmt.Sprintf("what task %s builds on is merged into the "+
			"worktree of %s while it has no task in progress; end task %s first", task.Called(), s.member,
			held[0].Called())}
	}
	if err := s.host.tracer.settle(ctx, ""); err != nil { // commit the blockers' work to their branches
		return "", err
	}
	t := s.host.Replica.Team()
	p := Place(t, filepath.Dir(s.host.Hosts), s.member)
	for _, b := range builds {
		branch, commit, err := s.workOf(ctx, t, b.ID)
		if broken, ok := errors.AsType[*uncommittedError](err); ok && ctx.Err() == nil {
			return fmt.Sprintf("the work of task %s is not on the branch of %s: %v", b.Called(), b.CompletedBy, broken), nil
		}
		if err != nil {
			return "", err
		}
		if commit == "" {
			continue // it changed nothing
		}
		at, conflict, err := worktree.Merge(ctx, s.host.Procs, p,
			fmt.Sprintf("Merge the work of task %s of team %s, for task %s", b.Called(), t.Name, task.Called()), commit)
		if locked := (*git.LockedError)(nil); errors.As(err, &locked) || ctx.Err() != nil {
			return "", errors.Join(err, ctx.Err())
		}
		if err != nil {
			return fmt.Sprintf("the work of task %s could not be merged into the worktree of %s: %v", b.Called(),
				s.member, err), nil
		}
		if at == "" {
			continue
		}
		ask := prompts.Merge{Team: t.Name, Repo: t.Dir, Dir: p.Dir, There: true, Member: s.member, Branch: p.Branch,
			With: []prompts.Other{{Name: "the branch " + branch, Ref: commit, Files: conflict.Files}}}
		if len(conflict.Files) == 0 {
			ask.With, ask.Trouble = nil, fmt.Sprintf("It cannot be merged with the branch %s: %s.", branch, conflict)
		}
		tip, err := worktree.Tip(ctx, s.host.Procs, t.Dir, p.Branch)
		if err != nil {
			return "", err
		}
		return s.waitFor(ctx, task, team.LeaveBranch{Member: s.member, Commit: tip, Why: ask.String()},
			fmt.Sprintf("the branches %s and %s have %s", p.Branch, branch, conflict))
	}
	return "", nil
}

// workOf returns the commit of the task's work, and its branch; "" for no work.
func (s *slot) workOf(ctx context.Context, t team.Team, id string) (branch, commit string, err error) {
	var task team.Task
	s.host.Replica.View(func(st *team.State) { task, _ = st.Task(id) })
	w := task.Work
	switch {
	case w.Open(): // the host that it ran on must record it first
		return "", "", &team.Error{Code: team.NotReady,
			Text: fmt.Sprintf("the work of task %s is not recorded yet", id)}
	case w != nil && w.Commit != "":
		return w.Branch, w.Commit, nil
	}
	// It could not be recorded, or the task was completed before its start was recorded, or by an older
	// version of cadre. What the member left uncommitted is then on no branch yet.
	p := Place(t, filepath.Dir(s.host.Hosts), task.CompletedBy)
	if err := s.host.tracer.commit(ctx, p, fmt.Sprintf("Task %s (%s, team %s)\n", id, task.CompletedBy,
		t.Name)); err != nil {
		return "", "", err
	}
	commit, err = worktree.Tip(ctx, s.host.Procs, t.Dir, p.Branch)
	return p.Branch, commit, err
}

// readyMerged checks that the merged worktree has the work that the task builds on.
func (s *slot) readyMerged(ctx context.Context, task team.Task, builds []team.Task) (why string, err error) {
	merged, release, err := s.merge(ctx, builds)
	if err != nil {
		if ctx.Err() != nil {
			return "", err
		}
		return "the work of members could not be merged: " + err.Error(), nil
	}
	release()
	for _, b := range builds {
		for _, out := range merged.Out {
			if out.Member == b.CompletedBy || b.Work != nil && out.Member == b.Work.Member {
				return s.waitFor(ctx, task, team.LeaveBranch{Member: out.Member, Commit: out.Commit},
					"the branch "+out.Name+" conflicts with what is merged before it")
			}
		}
	}
	return "", nil
}

// merge makes the merged worktree for a task that builds on these tasks, and locks it until release
// is called.
func (s *slot) merge(ctx context.Context, builds []team.Task) (m Merged, release func(), err error) {
	if s.host.Merge == nil {
		return m, nil, errors.New("this host has no merged worktree")
	}
	members := []string{} // not nil, which would mean all members
	for _, b := range builds {
		members = append(members, b.CompletedBy)
	}
	if err := s.host.tracer.settle(ctx, ""); err != nil {
		return m, nil, err
	}
	return s.host.Merge(ctx, members)
}

// waitFor makes the task wait until the lead has merged that branch. If the lead was asked before
// and has not merged it, the task cannot be done.
func (s *slot) waitFor(ctx context.Context, task team.Task, ask team.LeaveBranch,
	conflict string) (why string, err error) {
	ask.Once, ask.Blocks = true, []string{task.ID}
	if _, err := s.host.send(ctx, team.Command{Actor: team.User, Body: &ask}); err != nil {
		return "", err
	}
	var asked string
	s.host.Replica.View(func(st *team.State) { m, _ := st.Member(ask.Member); asked = m.Left.Task })
	return strings.TrimSpace(fmt.Sprintf("%s; task %s asked to merge them", conflict, asked)), nil
}

// where returns the directory in which the task is done, and locks it until done is called. It
// implements [agent.Spec.Where].
func (s *slot) where(ctx context.Context, task team.Task) (dir string, done func(), err error) {
	if task.In != team.InMerged {
		return s.dir, func() {}, nil
	}
	var builds []team.Task
	s.host.Replica.View(func(st *team.State) { builds = st.BuildsOn(task.ID) })
	m, done, err := s.merge(ctx, builds)
	if err != nil {
		return "", nil, err
	}
	if m.Dir == "" { // no member works in a worktree, so all work is in the team's directory
		m.Dir = s.host.Replica.Team().Dir
	}
	return m.Dir, done, nil
}
