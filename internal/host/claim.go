package host

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"cadre/internal/agent/prompts"
	"cadre/internal/git"
	"cadre/internal/git/worktree"
	"cadre/internal/replica"
	"cadre/internal/team"
)

// mostClaims bounds how many tasks one claim tries.
const mostClaims = 20

// takeTask claims a task for the member, once the work that the task builds on is where the member
// works: in its worktree, or in the merged one. send sends a command as the claimer. A task whose
// blockers conflict waits for the lead, and the next task is tried.
func (s *slot) takeTask(ctx context.Context, c *team.ClaimTask,
	send func(team.Body) (replica.Receipt, error)) (replica.Receipt, error) {
	if err := s.host.drained(); err != nil {
		return replica.Receipt{}, err
	}
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
		waits := s.host.waits(task.ID)
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

// waits reports whether the task waits for others now.
func (h *Host) waits(task string) (so bool) {
	h.Replica.View(func(s *team.State) { t, _ := s.Task(task); so = len(t.Blocked()) > 0 })
	return so
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
		_, release, why, err := s.host.holdMerged(ctx, task, builds)
		release()
		return why, err
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
			return fmt.Sprintf("the work of task %s is not on the branch of %s: %v", b.Called(), b.Doer(),
				broken), nil
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
		with := prompts.Other{Name: "the branch " + branch, Ref: commit, Files: conflict.Files}
		return s.conflicts(ctx, task, p, with, fmt.Sprintf("It cannot be merged with the branch %s: %s.", branch,
			conflict),
			fmt.Sprintf("the branches %s and %s have %s", p.Branch, branch, conflict))
	}
	return "", nil
}

// conflicts asks for a merge of the member's branch with another one before the task starts.
// trouble says why that is not possible, where no file conflicts.
func (s *slot) conflicts(ctx context.Context, task team.Task, p worktree.Place, with prompts.Other, trouble,
	reason string) (why string, err error) {
	t := s.host.Replica.Team()
	ask := prompts.Merge{Team: t.Name, Repo: t.Dir, Dir: p.Dir, There: true, Member: s.member, Branch: p.Branch}
	if len(with.Files) == 0 {
		ask.Trouble = trouble
	} else {
		ask.With = []prompts.Other{with}
	}
	tip, err := worktree.Tip(ctx, s.host.Procs, t.Dir, p.Branch)
	if err != nil {
		return "", err
	}
	return s.host.waitFor(ctx, task, team.LeaveBranch{Member: s.member, Commit: tip, Why: ask.String()}, reason)
}

// workOf returns the commit of the task's work, and its branch; "" for no work.
func (s *slot) workOf(ctx context.Context, t team.Team, id string) (branch, commit string, err error) {
	var task team.Task
	s.host.Replica.View(func(st *team.State) { task, _ = st.Task(id) })
	w := task.Work
	switch {
	case w.Open(): // the host that it ran on must record it first
		return "", "", &team.Error{Code: team.NotReady,
			Text: fmt.Sprintf("the work of task %s is not recorded yet", task.Called())}
	case w != nil && w.Commit != "":
		return w.Branch, w.Commit, s.host.reach(ctx, t, w.Commit)
	}
	// It could not be recorded, or the task was completed before its start was recorded, or by an
	// older version of cadre. What the member left uncommitted is then on no branch yet.
	p := Place(t, filepath.Dir(s.host.Hosts), task.Doer())
	if err := s.host.tracer.commit(ctx, p, fmt.Sprintf("Task %s (%s, team %s)\n", id, task.Doer(),
		t.Name)); err != nil {
		return "", "", err
	}
	commit, err = worktree.Tip(ctx, s.host.Procs, t.Dir, p.Branch)
	return p.Branch, commit, err
}

// where returns the directory in which the task is done, and locks it until done is called. It
// implements [agent.Spec.Where].
func (s *slot) where(ctx context.Context, task team.Task) (dir string, done func(), err error) {
	if task.In != team.InMerged {
		return s.dir, func() {}, nil
	}
	var builds []team.Task
	s.host.Replica.View(func(st *team.State) { builds = st.BuildsOn(task.ID) })
	m, done, err := s.host.merge(ctx, builds)
	return m.Dir, done, err
}
