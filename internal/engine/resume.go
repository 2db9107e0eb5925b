package engine

import (
	"context"

	"cadre/internal/engine/upkeep"
	"cadre/internal/host"
	"cadre/internal/inspect"
	"cadre/internal/liveness/leader"
	"cadre/internal/team"
)

// Continuation is how a team continues that was resumed.
type Continuation int

// The continuations.
const (
	// Consolidates: an interrupted consolidation is all that is left of it. Nothing was started.
	Consolidates Continuation = iota
	// Rehosted: the session that leads it lives, and its teammates have a host in the background.
	Rehosted
	// LedByHand: the user leads it by commands; [Team.Continue] has its sessions run in the background.
	LedByHand
	// NeedsRun: a run is to lead it and to host its sessions, and takes the lead itself.
	NeedsRun
)

// Continue continues a team that was examined by [upkeep.Prepare], as far as that needs no process
// that stays. The lead is taken as [Team.TakeUp] says, with its errors.
func (t *Team) Continue(ctx context.Context, found *inspect.Examination,
	how upkeep.Takeover) (Continuation, error) {
	of := t.Team()
	if !of.Consolidation.Open() && t.byHand() && how == upkeep.LeaveIt && found.Lead.Lives && found.Hostless() &&
		!host.Hosted(t.Hosts()) {
		return Rehosted, t.rehost(ctx)
	}
	continues, release, err := t.TakeUp(ctx, found, how)
	if err != nil {
		return 0, err
	}
	defer release()
	if continues == LedByHand {
		err = t.rehost(ctx)
	}
	return continues, err
}

// TakeUp takes the lead of a team that was examined by [upkeep.Prepare] from whoever had it, as
// [upkeep.TakeLead] says and with its errors. A team that is led by hand is led by the user from
// then on, so that a lead that was lost is one no more; and what members saved while there was none
// is kept. It starts nothing, and does nothing to a team that only consolidates. Nobody else takes
// the lead until release is called.
func (t *Team) TakeUp(ctx context.Context, found *inspect.Examination,
	how upkeep.Takeover) (_ Continuation, release func(), err error) {
	of := t.Team()
	if of.Consolidation.Open() {
		return Consolidates, func() {}, nil
	}
	lock, err := upkeep.TakeLead(ctx, t.upkeep(), found, how)
	if err != nil {
		return 0, nil, err
	}
	continues := NeedsRun
	if t.byHand() {
		continues = LedByHand
		err = leader.Attach(ctx, leader.Options{Replica: t.Replica, Dir: t.Dir, Log: t.engine.Note})
	}
	if err == nil {
		err = upkeep.KeepSaved(ctx, t.upkeep())
	}
	if err != nil {
		lock.Unlock()
		return 0, nil, err
	}
	return continues, func() { lock.Unlock() }, nil
}

// byHand reports whether the user leads the team by commands, or a program of theirs does, and not
// a run or an agent.
func (t *Team) byHand() bool {
	of := t.Team()
	return of.Origin == "" && t.Lead().Agent == team.External
}

// rehost sees to it that everybody whose session cadre runs has a living host, in the background
// where there is none, and is tried at once.
func (t *Team) rehost(ctx context.Context) error {
	if err := upkeep.RetryMembers(ctx, t.upkeep()); err != nil {
		return err
	}
	var hosted []string
	t.View(func(s *team.State) {
		for _, m := range s.Members() {
			if m.Status.Running() && m.Agent != team.External {
				hosted = append(hosted, m.Name)
			}
		}
	})
	return t.EnsureHost(ctx, hosted...)
}

// upkeep is the team for what the user does to it.
func (t *Team) upkeep() upkeep.Team {
	return upkeep.Team{Replica: t.Replica, Dir: t.Dir, Actor: team.User, Log: t.engine.Note}
}
