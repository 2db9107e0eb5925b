package teams

import (
	"context"
	"errors"

	"cadre/internal/engine"
	"cadre/internal/engine/upkeep"
	"cadre/internal/team"
)

// ResumeOptions say how a team is resumed.
type ResumeOptions struct {
	Dir      string // where its project is now, if it was moved; "" for where it was
	TakeOver bool   // take the lead from another session, also from one that is alive
	Ours     bool   // of two histories continue the one that is here
	TakeBack bool   // continue a team here that this machine had let go of
}

// Continuation is what is left to be done for a team that was resumed.
type Continuation string

// The continuations.
const (
	// ContinueByHand: this program, or the user by commands, leads it. Its sessions run.
	ContinueByHand Continuation = "by hand"
	// ContinueBeside: another session leads it and is alive. What was missing runs now: the sessions
	// of its teammates.
	ContinueBeside Continuation = "beside its lead"
	// ContinueByRun: it was made to be run to its end, which is what [Team.Run] does.
	ContinueByRun Continuation = "run"
	// ContinueByConsolidation: its consolidation was interrupted. [Team.Consolidate] finishes it,
	// and, where it is not made yet, [Team.RollBackConsolidation] gives it up.
	ContinueByConsolidation Continuation = "consolidate"
)

var continuations = map[engine.Continuation]Continuation{engine.LedByHand: ContinueByHand,
	engine.Rehosted: ContinueBeside, engine.NeedsRun: ContinueByRun, engine.Consolidates: ContinueByConsolidation}

// Resumed is a team as it was found before it was resumed, and how it continues.
type Resumed struct {
	Probe
	Continues Continuation // "" where it was not resumed
}

// ResumeTeam continues a team whose lead, teammates, hosts or machine died, as cadre resume does,
// and makes it the manager's. Before anything starts the team is examined: whether it may be
// continued here, whether its directory, repository and worktrees are where they were, who leads
// and who is alive. Then the lead is taken, unless a session leads that is alive and has lost only
// the host of its teammates. Members that had trouble are tried at once, sessions whose host died
// are taken over, and the others are resumed.
//
// The command goes one step further, which needs options that only the caller has. What was found
// says which step that is:
//
//	team, found, err := m.ResumeTeam(ctx, "docs", teams.ResumeOptions{})
//	switch found.Continues {
//	case teams.ContinueByRun:
//		result, err := team.Run(ctx, teams.RunOptions{})
//	case teams.ContinueByConsolidation:
//		record, err := team.Consolidate(ctx, teams.ConsolidateOptions{})
//	}
//
// [Manager.OpenTeam] opens a team that needs none of that. It is refused with ErrNotFound where
// there is no such team, with ErrFinished for one that has ended, with ErrNotReady where another
// session leads it and is alive, or while the manager has a team, with ErrConflict where a session
// that was seen on another machine may still lead it, with ErrInvalid where something of it is not
// in its place, with ErrDenied where this machine let go of it, and for a teammate, and with
// ErrForked where the repository has another history.
func (m *Manager) ResumeTeam(ctx context.Context, name string, o ResumeOptions) (*Team, Resumed, error) {
	m.turn.Lock()
	defer m.turn.Unlock()
	if err := m.pass("Manager.ResumeTeam"); err != nil {
		return nil, Resumed{}, err
	}
	if m.opts.As != "" {
		return nil, Resumed{}, refuse(ErrDenied,
			"a teammate opens its team with OpenTeam; the lead's program resumes it")
	}
	if err := m.vacant(); err != nil {
		return nil, Resumed{}, err
	}
	if err := m.onDisk("ends with its program, and is opened with OpenTeam"); err != nil {
		return nil, Resumed{}, err
	}
	found, err := m.prepare(ctx, name, o)
	if err != nil {
		return nil, found, err
	}
	t, err := m.enter(ctx, m.engine, name)
	return t, found, err
}

// prepare does what comes before the sessions of a team start.
func (m *Manager) prepare(ctx context.Context, name string, o ResumeOptions) (Resumed, error) {
	of, err := m.engine.Open(ctx, name)
	if err != nil {
		return Resumed{}, public(err)
	}
	t := of.Upkeep(team.User)
	how := upkeep.Resumption{Ours: o.Ours, TakeBack: o.TakeBack}
	if o.Dir != "" {
		if how.Dir, err = m.dir(o.Dir); err != nil {
			return Resumed{}, errors.Join(err, of.Close())
		}
	}
	examination, err := of.Prepare(ctx, how)
	if err != nil {
		return Resumed{}, errors.Join(moved(err), of.Close())
	}
	found := Resumed{Probe: viewOf(of).probeOf(examination)}
	takeover := upkeep.LeaveIt
	if o.TakeOver {
		takeover = upkeep.TakeIt
	}
	continues, release, err := of.TakeUp(ctx, examination, takeover)
	if err != nil {
		return found, errors.Join(public(err), of.Close())
	}
	defer release()
	found.Continues = continuations[continues]
	if continues != engine.Consolidates {
		err = upkeep.RetryMembers(ctx, t)
	}
	return found, public(errors.Join(err, of.Close()))
}
