package teams

import (
	"context"
	"errors"

	"cadre/internal/engine"
	"cadre/internal/engine/upkeep"
	"cadre/internal/team"
)

// ResumeOptions configure how a team is resumed.
type ResumeOptions struct {
	Dir      string // where its project is now, if it was moved; "" if it was not
	TakeOver bool   // take the lead from another session, even if it is alive
	Ours     bool   // of two histories, continue the local one
	TakeBack bool   // continue a team here that this machine had released
}

// Continuation says how a resumed team continues.
type Continuation string

// The continuations.
const (
	// ContinueByHand: this program leads the team, or the user does with commands. Its sessions
	// run.
	ContinueByHand Continuation = "by hand"
	// ContinueBeside: another live session leads the team. This program now runs the teammates'
	// sessions.
	ContinueBeside Continuation = "beside its lead"
	// ContinueByRun: the team was made to be run to its end; call [Team.Run].
	ContinueByRun Continuation = "run"
	// ContinueByConsolidation: the team's consolidation was interrupted. [Team.Consolidate]
	// finishes it. If the commit is not made yet, [Team.RollBackConsolidation] abandons it.
	ContinueByConsolidation Continuation = "consolidate"
)

var continuations = map[engine.Continuation]Continuation{engine.LedByHand: ContinueByHand,
	engine.Rehosted: ContinueBeside, engine.NeedsRun: ContinueByRun, engine.Consolidates: ContinueByConsolidation}

// Resumed describes a team before it was resumed, and how it continues.
type Resumed struct {
	Probe
	Continues Continuation // "" if it was not resumed
}

// ResumeTeam continues a team whose lead, teammates, hosts or machine died, as cadre resume does,
// and makes it the manager's. First it examines the team: whether it may continue here, whether its
// directory, repository and worktrees exist, who leads, and who is alive. Then it takes the lead,
// unless a session leads that is alive and has lost only the host of its teammates. Members that
// had trouble are tried again at once. Sessions whose host died are taken over, and the others are
// resumed.
//
// The command cadre resume goes one step further. That step needs options that only the caller has,
// and Resumed says which one it is:
//
//	team, found, err := m.ResumeTeam(ctx, "docs", teams.ResumeOptions{})
//	switch found.Continues {
//	case teams.ContinueByRun:
//		result, err := team.Run(ctx, teams.RunOptions{})
//	case teams.ContinueByConsolidation:
//		record, err := team.Consolidate(ctx, teams.ConsolidateOptions{})
//	}
//
// [Manager.OpenTeam] opens a team that needs none of that. ResumeTeam returns ErrNotFound if the
// team does not exist, and ErrFinished if it has ended. It returns ErrNotReady if another session
// leads it and is alive, or while the manager has a team. It returns ErrConflict if a session that
// was seen on another machine may still lead it. It returns ErrInvalid if its directory, repository
// or a worktree is missing. It returns ErrDenied if this machine released the team, and for a
// teammate, and ErrForked if the repository has another history.
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

// prepare does what must happen before the sessions of a team start.
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
	found := Resumed{Probe: probeOf(examination)}
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
