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
	// LedByHand: the user leads it by commands, and its sessions run in the background.
	LedByHand
	// NeedsRun: a run is to lead it and to host its sessions, and takes the lead itself.
	NeedsRun
)

// Continue continues a team that was examined by [upkeep.Prepare], as far as that needs no process
// that stays. The lead is taken as [upkeep.TakeLead] says, with its errors.
func (t *Team) Continue(ctx context.Context, found *inspect.Examination,
	how upkeep.Takeover) (Continuation, error) {
	of := t.Team()
	if of.Consolidation.Open() {
		return Consolidates, nil
	}
	byHand := of.Origin == "" && t.Lead().Agent == team.External
	if byHand && how == upkeep.LeaveIt && found.Lead.Lives && found.Hostless() && !host.Hosted(t.Hosts()) {
		return Rehosted, t.rehost(ctx)
	}
	lock, err := upkeep.TakeLead(ctx, t.upkeep(), found, how)
	if err != nil {
		return 0, err
	}
	defer lock.Unlock()
	if byHand {
		if err := leader.Attach(ctx, leader.Options{Replica: t.Replica, Dir: t.Dir, Log: t.engine.Note}); err != nil {
			return 0, err
		}
	}
	if err := upkeep.KeepSaved(ctx, t.upkeep()); err != nil || !byHand {
		return NeedsRun, err
	}
	return LedByHand, t.rehost(ctx)
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
