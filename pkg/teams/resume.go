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

// ResumeTeam continues a team whose lead, teammates, hosts or machine died, as cadre resume does,
// and makes it the manager's. Before anything starts the team is examined: whether it may be
// continued here, whether its directory, repository and worktrees are where they were, who leads
// and who is alive. What was found is returned, too. Then the lead is taken, members that had
// trouble are tried at once, sessions whose host died are taken over, and the others are resumed.
//
// [Manager.OpenTeam] opens a team that needs none of that. A team whose consolidation was
// interrupted is returned as it is: [Team.Consolidate] finishes it, or [Team.RollBackConsolidation]
// gives it up. A team that a run was seeing to its end is run on by [Team.Run].
//
// It is refused with ErrNotFound where there is no such team, with ErrFinished for one that has
// ended, with ErrNotReady where another session leads it and is alive, or while the manager has a
// team, with ErrConflict where a session that was seen on another machine may still lead it, with
// ErrInvalid where something of it is not in its place, with ErrDenied where this machine let go of
// it, and for a teammate, and with ErrForked where the repository has another history.
func (m *Manager) ResumeTeam(ctx context.Context, name string, o ResumeOptions) (*Team, Probe, error) {
	m.turn.Lock()
	defer m.turn.Unlock()
	if err := m.pass("Manager.ResumeTeam", nil); err != nil {
		return nil, Probe{}, err
	}
	if m.opts.As != "" {
		return nil, Probe{}, refuse(ErrDenied, "a teammate opens its team with OpenTeam; the lead's program resumes it")
	}
	if err := m.vacant(); err != nil {
		return nil, Probe{}, err
	}
	if err := m.onDisk("ends with its program, and is opened with OpenTeam"); err != nil {
		return nil, Probe{}, err
	}
	found, err := m.prepare(ctx, name, o)
	if err != nil {
		return nil, found, err
	}
	t, err := m.enter(ctx, name)
	return t, found, err
}

// prepare does what comes before the sessions of a team start.
func (m *Manager) prepare(ctx context.Context, name string, o ResumeOptions) (Probe, error) {
	of, err := m.engine.Open(ctx, name)
	if err != nil {
		return Probe{}, public(err)
	}
	t := upkeep.Team{Replica: of.Replica, Dir: of.Dir, Actor: team.User, Log: m.opts.log}
	how := upkeep.Resumption{Ours: o.Ours, TakeBack: o.TakeBack}
	if o.Dir != "" {
		if how.Dir, err = m.dir(o.Dir); err != nil {
			return Probe{}, errors.Join(err, of.Close())
		}
	}
	examination, err := upkeep.Prepare(ctx, t, how)
	if err != nil {
		return Probe{}, errors.Join(moved(err), of.Close())
	}
	found := viewOf(of).probeOf(examination)
	takeover := upkeep.LeaveIt
	if o.TakeOver {
		takeover = upkeep.TakeIt
	}
	continues, release, err := of.TakeUp(ctx, examination, takeover)
	if err != nil {
		return found, errors.Join(public(err), of.Close())
	}
	defer release()
	if continues != engine.Consolidates {
		err = upkeep.RetryMembers(ctx, t)
	}
	return found, public(errors.Join(err, of.Close()))
}
