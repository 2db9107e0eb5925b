// Package upkeep does to a team what a person does from outside its work: end it, remove it, take a
// task from a member, record facts, roll a task back, review it, check the team's files.
//
// # Authority
//
// The core decides what is allowed: each step is one of its commands. This package knows what else
// belongs to a step outside the journal, and in which order. Processes end before a folder is
// removed, work is kept before a task changes hands, and branches are removed before the records
// that name them. Package access decides who may call, and the caller decides what a person is
// told.
//
// # Removing a team
//
//	recorded ──▶ its processes have ended ──▶ branches named, or removed ──▶ traces dropped ──▶ folder gone
//
// # Guarantees
//
//   - After a kill between any two steps, the same call finishes the job.
//   - A commit that no other branch has is removed only with Force.
//   - Nothing of another team is touched, even if that team took the name meanwhile.
package upkeep

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"cadre/internal/consolidate"
	"cadre/internal/git"
	"cadre/internal/host"
	"cadre/internal/inspect"
	"cadre/internal/journal/store"
	"cadre/internal/journal/store/filestore"
	"cadre/internal/liveness/leader"
	"cadre/internal/replica"
	"cadre/internal/sys/proc"
	"cadre/internal/team"
)

// Team is an open team and the actor.
type Team struct {
	*replica.Replica
	Dir    string     // its folder
	Shared store.Team // what its processes share; nil for what is in Dir
	Actor  string
	// Outermost is the team that a nested team is in, however deep. A nested team may work in the
	// worktree of a member, which does not last; the directory of the outermost team is in the same
	// repository. It is the zero Team for a team that is not nested.
	Outermost team.Team
	Log       func(string)
	Advise    func(team.Advice)
	Warn      func(error) // gets errors that do not end the call
}

// lasting returns the team, with a directory that is in its repository also when the one in which
// it works was removed.
func (t Team) lasting() team.Team {
	of := t.Replica.Team()
	if t.Outermost.ID != "" {
		of.Dir, of.Base.Top = t.Outermost.Dir, t.Outermost.Base.Top
	}
	return of
}

// emptied reports whether the worktree in which a nested team worked was removed. What was there is
// on the branch of the member.
func (t Team) emptied() bool {
	of := t.Replica.Team()
	_, err := os.Lstat(of.Dir)
	return of.Parent.Worktree && errors.Is(err, fs.ErrNotExist)
}

// examine examines the team as it is now.
func (t Team) examine(ctx context.Context) (*inspect.Examination, error) {
	return (&inspect.Looker{Replica: t.Replica, Dir: t.Dir, Shared: t.Shared}).Examine(ctx, time.Now())
}

// shared returns what the processes of the team share.
func (t Team) shared() store.Team { return filestore.Or(t.Shared, t.Dir) }

// claim takes the right to lead the team.
func (t Team) claim(ctx context.Context) (store.Lease, error) {
	return leader.Claim(ctx, t.shared())
}

// LingeringError says that a team has ended, and that one of its processes is still running. The
// same call tries again.
type LingeringError struct {
	Ended string // aborted, or ended for a team that is removed
	What  string // a process of it, or its consolidation
	Err   error
}

func (e *LingeringError) Error() string {
	return "the team is " + e.Ended + ", but " + e.What + ": " + e.Err.Error()
}

func (e *LingeringError) Unwrap() []error {
	return []error{&team.Error{Code: team.NotReady, Text: e.Error()}, e.Err}
}

// Abort ends the team and all its sessions at once. Its record and its work are kept. It may be
// called again while something is still running, or after an earlier caller was killed.
func Abort(ctx context.Context, t Team, reason string) error {
	if err := t.Refresh(ctx); err != nil {
		return err
	}
	if t.Replica.Team().Status != team.TeamAborted {
		if _, err := t.Do(ctx, team.Command{Actor: t.Actor, Body: &team.SetStatus{Status: team.TeamAborted,
			Reason: reason}}); err != nil {
			return err
		}
	}
	if err := host.Settle(ctx, t.shared(), filepath.Join(t.Dir, "hosts"), t.lasting().Dir, t.Log); err != nil {
		return &LingeringError{Ended: "aborted", What: "a process of it is still there", Err: err}
	}
	cut, err := cutShort(ctx, t)
	if err == nil && cut && !t.emptied() {
		err = consolidate.Settle(ctx, consolidate.Options{Replica: t.Replica, Dir: t.Dir, Shared: t.Shared, Log: t.Log})
	}
	if err != nil {
		return &LingeringError{Ended: "aborted", What: "its consolidation has not ended", Err: err}
	}
	return host.KeepWork(ctx, t.Dir, t.lasting().Dir, t.Log)
}

// cutShort reports whether the abort ended a consolidation. If so, changes that the consolidation
// made in the work tree may still be there. Only the history shows that: a consolidation that was
// abandoned earlier looks the same otherwise, but it restored the work tree, and the changes there
// now are the user's or a member's work.
func cutShort(ctx context.Context, t Team) (bool, error) {
	if t.Replica.Team().Consolidation.Step != team.Abandoned {
		return false, nil
	}
	for r, err := range t.Read(ctx, 0) {
		if err != nil {
			return false, err
		}
		abandoned := false
		for _, e := range r.Events {
			switch e := e.(type) {
			case *team.ConsolidationAbandoned:
				abandoned = true
			case *team.TeamStatusChanged:
				if abandoned && e.Status == team.TeamAborted {
					return true, nil
				}
			}
		}
	}
	return false, nil
}

// BusyError says that the member that works on the task is not known to be offline.
type BusyError struct {
	Task   string
	Member inspect.Member
}

func (e *BusyError) Error() string { return e.Member.Name + " works on task " + e.Task }

func (e *BusyError) Unwrap() error { return &team.Error{Code: team.NotReady, Text: e.Error()} }

// Reassignment gives a task to another member.
type Reassignment struct {
	Task, To string
	Force    bool // also from a member that is alive and works on it
}

// Reassign gives a task to another member, with its owner's uncommitted changes and last words. A
// task that is out of retries is tried again. It returns the task as it is then.
func Reassign(ctx context.Context, t Team, r Reassignment) (team.Task, error) {
	task, there := t.task(r.Task)
	if !there {
		return task, team.Refuse(team.NotFound, "no task %q in team %s", r.Task, t.Replica.Team().Name).
			With(team.Hint{Action: team.ActShowTasks, Team: t.Replica.Team().Name})
	}
	if r.To != "" { // the core accepts an owner that joins later, but a task is reassigned only to a present member
		var err error
		t.View(func(s *team.State) { _, err = s.Named(r.To) })
		if err != nil {
			return task, err
		}
	}
	if task.Status == team.InProgress && task.Owner != r.To {
		found, err := t.examine(ctx)
		if err != nil {
			return task, err
		}
		i := slices.IndexFunc(found.Members, func(m inspect.Member) bool { return m.Name == task.Owner })
		if i >= 0 && found.Members[i].Life != inspect.Offline && !r.Force {
			return task, &BusyError{Task: task.Called(), Member: found.Members[i]}
		}
		if err := host.KeepDone(ctx, t.Replica, t.Dir, t.shared(), task); err != nil {
			if ctx.Err() != nil {
				return task, err
			}
			t.Warn(err) // the reassignment continues without the saved work
		}
	}
	if _, err := t.Do(ctx, team.Command{Actor: t.Actor, Body: &team.UpdateTask{Task: r.Task,
		Owner: &r.To}}); err != nil {
		return task, err
	}
	if task.OutOfRetries() {
		if _, err := t.Do(ctx, team.Command{Actor: t.Actor, Body: &team.ReleaseTask{Task: r.Task}}); err != nil {
			return task, err
		}
	}
	task, _ = t.task(r.Task)
	return task, nil
}

func (t Team) task(id string) (one team.Task, there bool) {
	t.View(func(s *team.State) { one, there = s.Task(id) })
	return one, there
}

// RecordFacts records the files that all members rely on, as they are now: the recorded ones, and
// those in add, which replace others of the same name.
func RecordFacts(ctx context.Context, t Team, add ...team.Fact) error {
	facts := slices.Clone(t.Replica.Team().Facts)
	for _, f := range add {
		if _, err := inspect.Recorded(ctx, t.Replica.Team().Dir, []team.Fact{f}); err != nil {
			return err
		}
		facts = append(slices.DeleteFunc(facts, func(old team.Fact) bool { return old.Name == f.Name }), f)
	}
	facts, err := inspect.Facts(ctx, t.Replica.Team().Dir, facts)
	if err != nil {
		return err
	}
	_, err = t.Do(ctx, team.Command{Actor: t.Actor, Body: &team.RecordFacts{Facts: facts}})
	return err
}

// ErrNoWork is returned by [Patch] if no work on the task was saved or recorded.
var ErrNoWork = errors.New("no work on the task was saved or recorded")

// Patch returns the patch of a task's work, in the form that git apply takes: of its recorded work,
// else of what its member saved.
func Patch(ctx context.Context, t Team, task team.Task) ([]byte, error) {
	if w := task.Work; w != nil && w.Commit != "" {
		procs, err := proc.Open("")
		if err != nil {
			return nil, err
		}
		defer procs.Close(context.WithoutCancel(ctx))
		g, done, err := git.Runner{Procs: procs, Dir: t.Replica.Team().Dir}.Shown(ctx)
		if err != nil {
			return nil, err
		}
		defer done()
		return g.Run(ctx, nil, "diff", "--binary", "--no-renames", "--no-ext-diff", "--no-textconv", "--no-color",
			"--src-prefix=a/", "--dst-prefix=b/", w.Base, w.Commit)
	}
	patch, err := consolidate.Patch(ctx, t.shared(), task)
	if err == nil && len(patch) == 0 {
		err = ErrNoWork
	}
	return patch, err
}
