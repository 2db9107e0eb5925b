package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"cadre/internal/consolidate"
	"cadre/internal/engine/transfer"
	"cadre/internal/engine/upkeep"
	"cadre/internal/git/checkpoint"
	"cadre/internal/git/worktree"
	"cadre/internal/host"
	"cadre/internal/inspect"
	"cadre/internal/inspect/catalog"
	"cadre/internal/team"
)

// Terminal returns the socket of the tmux server whose terminal shows the member's session.
func (t *Team) Terminal(member string) (socket string, err error) {
	var m team.Member
	if t.View(func(s *team.State) { m, err = s.Named(member) }); err != nil {
		return "", err
	}
	if m.Agent != team.ClaudeTmux {
		return "", team.Refuse(team.Invalid, "%s is a member with the agent %s, which has no terminal; only "+
			"claude-tmux has one", m.Name, m.Agent).With(team.Hint{Action: team.ActFollowLog, Team: t.Name})
	}
	if socket = host.Terminal(t.Hosts(), m.Name); socket == "" {
		return "", team.Refuse(team.NotReady, "the terminal of %s is not there, because its session does not run",
			m.Name).With(team.Hint{Action: team.ActShowTeam, Team: t.Name})
	}
	return socket, nil
}

// Examine finds out which members are alive, and which files and folders of the team are not in
// their place. It changes nothing.
func (t *Team) Examine(ctx context.Context) (*inspect.Examination, error) {
	return t.Looker().Examine(ctx, time.Now())
}

// Review describes a team that has ended.
type Review struct {
	*inspect.Examination
	All []team.Task `json:"all"` // all tasks of the team
	// record of the consolidation; nil for a team that was not consolidated
	Record *consolidate.Record `json:"record,omitempty"`
	// Intact reports whether the history is the one that the record was made from.
	Intact bool `json:"-"`
}

// Review describes a team that has ended. It refuses a team that has not.
func (t *Team) Review(ctx context.Context) (r Review, err error) {
	if of := t.Team(); of.Status != team.TeamComplete && of.Status != team.TeamAborted {
		state := string(of.Status)
		if outside, err := t.Looker().Look(ctx, time.Now()); err == nil {
			t.View(func(s *team.State) {
				if s.Dormant(outside) {
					state = "dormant"
				}
			})
		}
		return r, team.Refuse(team.NotReady, "team %s is %s, not at its end", t.Name, state).
			With(team.Hint{Action: team.ActShowTeam, Team: t.Name})
	}
	if r.Examination, err = t.Examine(ctx); err != nil {
		return r, err
	}
	t.View(func(s *team.State) { r.All = slices.Collect(s.Tasks()) })
	if r.Record, err = consolidate.Sealed(ctx, t.Shared()); err == nil && r.Record != nil {
		r.Intact, err = r.Record.Holds(ctx, t)
	}
	return r, err
}

// Upkeep returns the team for maintenance by the actor.
func (t *Team) Upkeep(actor string) upkeep.Team {
	return upkeep.Team{Replica: t.Replica, Dir: t.Dir, Shared: t.Shared(), Actor: actor, Log: t.engine.Note,
		Advise: t.engine.Tell, Warn: t.engine.warn}
}

// MoveComplete records where the project of a complete team is now, whose work is still to be
// consolidated. It returns false for any other team: [Team.Prepare] moves that.
func (t *Team) MoveComplete(ctx context.Context, dir string) (bool, error) {
	if !consolidate.Complete(t.Team()) {
		return false, nil
	}
	return true, lasting(upkeep.Move(ctx, t.Upkeep(team.User), dir))
}

// TakeBackEnded takes back a team that has ended and was released. It returns false for any other
// team: [Team.Prepare] takes that back.
func (t *Team) TakeBackEnded(ctx context.Context) (bool, error) {
	if of := t.Team(); !of.Ended() || of.CheckHere() == nil {
		return false, nil
	}
	_, err := t.Do(ctx, Command(team.User, &team.TakeBackTeam{}))
	return err == nil, err
}

// Patch returns the patch of a task's work, in the form that git apply takes. If there is none, the
// refusal says where the task's owner works on it.
func (t *Team) Patch(ctx context.Context, ref string) ([]byte, error) {
	var task team.Task
	var owner team.Member
	var err error
	t.View(func(s *team.State) {
		task, err = s.Find(ref)
		owner, _ = s.Member(task.Owner)
	})
	if err != nil {
		return nil, err
	}
	patch, err := upkeep.Patch(ctx, t.Upkeep(team.User), task)
	if !errors.Is(err, upkeep.ErrNoWork) {
		return patch, err
	}
	if e, _, err := t.present(ctx, task, owner); err != nil || len(e.Patch) > 0 {
		return e.Patch, err
	}
	where, of := "", t.Team()
	dir := of.Dir
	switch began := task.Work; {
	case task.Status == team.InProgress:
		if owner.Isolation == team.Worktree {
			dir = host.Place(of, t.Dir, owner.Name).Dir
		}
		if where = fmt.Sprintf(" %s works on it in %s.", task.Owner, dir); owner.Machine != "" {
			where = fmt.Sprintf(" %s works on it on the machine %s.", task.Owner, owner.Machine)
		}
	case task.Attempts > 0 && task.Status == team.Pending:
		if began != nil && began.Branch != "" {
			dir = host.Place(of, t.Dir, began.Member).Dir
		}
		where = " Uncommitted changes of this one may be in " + dir + "."
	}
	return nil, team.Refuse(team.Nothing, "no work on task %s was saved or recorded. Only the work of completed "+
		"tasks is recorded.%s", task.Called(), where).
		With(task.Hint(&of, team.ActShowTask))
}

// Saved returns what a member saved of the task, a patch for each file; nil if there is nothing.
func (t *Team) Saved(ctx context.Context, task team.Task) ([]worktree.Patch, error) {
	patch, err := consolidate.Patch(ctx, t.Shared(), task)
	if err != nil {
		return nil, err
	}
	return worktree.Patches(patch), nil
}

// lastingError is an error of checkpoints that repeats until its cause is fixed.
type lastingError struct{ error }

func (e lastingError) Unwrap() []error {
	return []error{e.error, team.Refuse(team.Invalid, "%s", e.Error())}
}

// lasting makes an error of checkpoints that repeats also a refusal.
func lasting(err error) error {
	_, damage := errors.AsType[*checkpoint.DamageError](err)
	if damage || checkpoint.Lasting(err) || errors.Is(err, checkpoint.ErrNone) ||
		errors.Is(err, checkpoint.ErrNoRemote) || errors.Is(err, transfer.ErrNoRepository) {
		return lastingError{err}
	}
	return err
}

// Checkpoint records the team's state on its branch of checkpoints. The paths, from the top of the
// work tree, are included from now on whatever they contain.
func (t *Team) Checkpoint(ctx context.Context, include ...string) (checkpoint.Checkpoint, error) {
	of := t.Team()
	if err := of.CheckOurs(); err != nil {
		return checkpoint.Checkpoint{}, err
	}
	if err := t.current(); err != nil {
		return checkpoint.Checkpoint{}, err
	}
	if t.engine.Home.Place != nil {
		return checkpoint.Checkpoint{}, team.Refuse(team.Invalid, "team %s lives in %s, which keeps it: it has no checkpoints",
			of.Name, t.engine.Home.Place.Called)
	}
	t.engine.tellElsewhere(of)
	made, err := host.Checkpoint(ctx, t.Replica, t.Dir, include...)
	return made, lasting(err)
}

// Consolidate checks and commits the team's work and completes the team. It continues an earlier
// attempt. It fills in the options about the team and its place. It refuses a team that has been
// removed.
func (t *Team) Consolidate(ctx context.Context, o consolidate.Options) (*consolidate.Record, error) {
	o, err := t.consolidating(ctx, o)
	if err != nil {
		return nil, err
	}
	return consolidate.Run(ctx, o)
}

// TryChecks runs the team's checks and commits nothing. It fills in the options and refuses as
// [Team.Consolidate] does.
func (t *Team) TryChecks(ctx context.Context, o consolidate.Options) (*consolidate.Trial, error) {
	o, err := t.consolidating(ctx, o)
	if err != nil {
		return nil, err
	}
	return consolidate.Try(ctx, o)
}

// PlanConsolidation returns what [Team.Consolidate] would do now, and changes nothing. It fills in
// the options as Consolidate does.
func (t *Team) PlanConsolidation(ctx context.Context, o consolidate.Options) (*consolidate.Plan, error) {
	o, err := t.consolidating(ctx, o)
	if err != nil {
		return nil, err
	}
	return consolidate.Preview(ctx, o)
}

// RollBack abandons a consolidation that is under way, or the mark for one. It fills in the options
// and refuses as [Team.Consolidate] does.
func (t *Team) RollBack(ctx context.Context, o consolidate.Options, reason string) error {
	o, err := t.consolidating(ctx, o)
	if err != nil {
		return err
	}
	return consolidate.RollBack(ctx, o, reason)
}

// RollBackTask undoes the work of a task and returns the task to the queue. It refuses as
// [Team.Consolidate] does.
//
// With only, paths from the top of the work tree, it restores just these files.
func (t *Team) RollBackTask(ctx context.Context, actor, ref, reason string, only ...string) (consolidate.Undone,
	error) {
	o, err := t.consolidating(ctx, consolidate.Options{Actor: actor, Only: only})
	if err != nil {
		return consolidate.Undone{}, err
	}
	var id string
	if t.View(func(s *team.State) { id, err = s.TaskID(ref) }); err != nil {
		return consolidate.Undone{}, err
	}
	return consolidate.RollBackTask(ctx, o, id, reason)
}

// consolidating fills in the options about the team and its place. Without may name tasks as people
// do. It refuses a nested team, which [Team.ConsolidateChild] consolidates.
func (t *Team) consolidating(ctx context.Context, o consolidate.Options) (consolidate.Options, error) {
	o, err := t.placed(ctx, o)
	if err != nil {
		return o, err
	}
	if err := t.nestedIn(ctx, "checked and committed", team.ActConsolidate); err != nil {
		return o, err
	}
	of := t.Team()
	o.Beside = func(ctx context.Context) ([]string, error) {
		return catalog.Beside(ctx, t.engine.Home, of, t.engine.Note, func(name string, err error) {
			t.engine.warn(fmt.Errorf("whether team %s works in the same work tree is not known: %w", name, err))
		})
	}
	t.View(func(s *team.State) { o.Without, err = s.TaskIDs(o.Without) })
	return o, err
}

// placed fills in the options about the place of the team. It refuses a team that has been removed
// or aborted.
func (t *Team) placed(ctx context.Context, o consolidate.Options) (consolidate.Options, error) {
	if err := t.Refresh(ctx); err != nil {
		return o, err
	}
	if of := t.Team(); of.CleanedUp || of.Status == team.TeamAborted {
		return o, team.Refuse(team.Finished, "team %s is %s, and has no work left to consolidate", t.Name,
			of.Status).With(team.Hint{Action: team.ActShowReview, Team: t.Name})
	}
	place := t.Consolidation()
	o.Replica, o.Dir, o.Shared, o.Except = place.Replica, place.Dir, place.Shared, place.Except
	o.Log, o.Advise, o.Foreign = place.Log, place.Advise, place.Foreign
	return o, nil
}

// Pending reports whether a consolidation would have something to check or commit. It returns true
// if that cannot be found out.
func (t *Team) Pending(ctx context.Context) bool {
	of := t.Team()
	if len(of.Checks) > 0 || of.Base.Unknown != "" {
		return true
	}
	p, err := consolidate.LookPending(ctx, t.Consolidation())
	return err != nil || p.Unknown != "" || len(p.Branches) > 0 || len(p.Files) > 0
}
