package engine

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"cadre/internal/consolidate"
	"cadre/internal/engine/transfer"
	"cadre/internal/engine/upkeep"
	"cadre/internal/inspect"
	"cadre/internal/journal/store"
	"cadre/internal/liveness/leader"
	"cadre/internal/team"
)

// Continuation says how a resumed team continues.
type Continuation int

// The values of [Continuation].
const (
	// Consolidates: only an interrupted consolidation remains to be done. Nothing was started.
	Consolidates Continuation = iota
	// Rehosted: the session that leads is alive and keeps the lead; its teammates need a host.
	// [Team.Continue] starts one in the background.
	Rehosted
	// LedByHand: the user leads by commands, and the members need a host, as above.
	LedByHand
	// NeedsRun: a run must lead the team and host its sessions. The run takes the lead itself.
	NeedsRun
)

// Unsealed reports whether the process that consolidated the team was killed before it wrote the
// record of that. [Team.Consolidate] writes it.
func (t *Team) Unsealed(ctx context.Context) bool {
	of := t.Team()
	if of.Status != team.TeamComplete || of.Consolidation.Step != team.Done || of.CleanedUp {
		return false
	}
	record, err := consolidate.Sealed(ctx, t.Shared())
	return record == nil && err == nil
}

// Prepare examines a team before it is resumed, as [upkeep.Prepare] does. It accepts a
// [Team.Unsealed] team, although that is complete.
func (t *Team) Prepare(ctx context.Context, how upkeep.Resumption) (*inspect.Examination, error) {
	if t.Unsealed(ctx) {
		return t.Examine(ctx)
	}
	if err := t.nestedIn(ctx, "resumed", team.ActResume); err != nil {
		return nil, err
	}
	found, err := upkeep.Prepare(ctx, t.Upkeep(team.User), how)
	if err == nil && how.TakeBack {
		err = transfer.TakeBack(ctx, t.engine.Home, t.Team(), t.engine.Note)
	}
	return found, lasting(err)
}

// Continue continues a team that [Team.Prepare] examined, as far as that needs no process that
// stays. It takes the lead as [Team.TakeUp] does, and returns its errors.
func (t *Team) Continue(ctx context.Context, found *inspect.Examination,
	how upkeep.Takeover) (Continuation, error) {
	continues, release, err := t.TakeUp(ctx, found, how)
	if err != nil {
		return 0, err
	}
	defer release()
	if continues == LedByHand || continues == Rehosted {
		err = t.rehost(ctx)
	}
	return continues, err
}

// TakeUp takes the lead of a team that [Team.Prepare] examined from the process that has it, as
// [upkeep.TakeLead] does and with its errors. The user leads a team that is led by hand from then
// on, so a lost lead is found again, and work that members saved meanwhile is kept. TakeUp starts
// nothing. It does nothing to a team that only consolidates, or whose lead is alive and lost only
// the host of its teammates. No other process can take the lead until release is called.
func (t *Team) TakeUp(ctx context.Context, found *inspect.Examination,
	how upkeep.Takeover) (_ Continuation, release func(), err error) {
	of := t.Team()
	if of.Consolidation.Open() || t.Unsealed(ctx) {
		return Consolidates, func() {}, nil
	}
	if t.byHand() && how == upkeep.LeaveIt && found.Lead.Alive && found.Hostless() && !t.Hosted(ctx) {
		return Rehosted, func() {}, nil
	}
	lock, err := upkeep.TakeLead(ctx, t.Upkeep(team.User), found, how)
	if err != nil {
		return 0, nil, err
	}
	continues := NeedsRun
	while, stop := store.While(ctx, lock)
	defer stop()
	if t.byHand() {
		continues = LedByHand
		err = leader.Attach(while, leader.Options{Replica: t.Replica, Shared: t.Shared(), Log: t.engine.Note})
	}
	if err == nil {
		err = upkeep.KeepSaved(while, t.Upkeep(team.User))
	}
	if err != nil {
		lock.Release()
		return 0, nil, err
	}
	return continues, func() { lock.Release() }, nil
}

// Rehost continues a team whose sessions may run again, for example because its budget was raised.
// If the user or a live session leads by commands, it starts a host in the background and returns
// true. Otherwise it returns the action by which a person continues the team. Both are zero if a
// process runs the team already, or nothing is left to run.
func (t *Team) Rehost(ctx context.Context) (started bool, next team.Hint, err error) {
	if err := t.awaitEnding(ctx); err != nil {
		return false, next, err
	}
	outside, err := t.Looker().Look(ctx, time.Now())
	if err != nil {
		return false, next, err
	}
	var lost, waits bool
	of := t.Team()
	t.View(func(s *team.State) {
		lost = of.LeadLost != 0 || of.LeadSession != "" && of.LeadSession != team.User && !outside.Led
		waits = s.Dormant(outside) || len(s.Unhosted(outside)) > 0
	})
	switch {
	case !t.OnDisk() || !waits || of.Exhausted != "" || of.Consolidation.Open():
		return false, next, nil
	case !t.byHand() || lost || outside.Directory != "" || outside.Elsewhere != "" || of.CheckHere() != nil:
		next = team.Hint{Action: team.ActResume, Team: t.Name}
		if of.Parent.Team != "" {
			next = of.Aim(next)
		}
		return false, next, nil
	}
	return true, next, t.rehost(ctx)
}

// awaitEnding waits until a host has a session of the team, or no host runs. A host whose sessions
// have ended may be about to end itself, and takes no member any more. awaitEnding waits for a host
// that stays and takes no member as long as for a new one.
func (t *Team) awaitEnding(ctx context.Context) error {
	if !t.OnDisk() {
		return nil
	}
	late := errors.New("a host runs, and takes no member")
	err := t.awaitHost(ctx, late, func() (bool, error) {
		idle := false
		t.View(func(s *team.State) {
			idle = s.Paused() && s.Team().Exhausted == "" && slices.ContainsFunc(s.Members(), func(m team.Member) bool {
				return m.Status.Running() && m.Agent != team.External && m.Exhausted == ""
			})
		})
		return !idle || !t.Hosted(ctx), nil
	})
	if errors.Is(err, late) {
		return nil
	}
	return err
}

// byHand reports whether the user or their program leads the team by commands, and not a run or an
// agent.
func (t *Team) byHand() bool {
	of := t.Team()
	return of.Origin == "" && t.Lead().Agent == team.External
}

// rehost makes sure that a running host has every member with a session of ours. It starts one in
// the background if necessary. Members in trouble are tried at once. A member whose own budget is
// spent gets no session.
func (t *Team) rehost(ctx context.Context) error {
	if err := errors.Join(t.unpause(ctx), upkeep.RetryMembers(ctx, t.Upkeep(team.User))); err != nil {
		return err
	}
	var hosted []string
	t.View(func(s *team.State) {
		for _, m := range s.Members() {
			if m.Status.Running() && m.Agent != team.External && m.Exhausted == "" && len(m.RunsOn) == 0 {
				hosted = append(hosted, m.Name)
			}
		}
	})
	if err := t.EnsureHost(ctx, hosted...); err != nil {
		return err
	}
	return t.ensureItems(ctx)
}

// ensureItems makes sure that a running host finds the items of the tasks that are due.
func (t *Team) ensureItems(ctx context.Context) error {
	found := func() (so bool) {
		t.View(func(s *team.State) { so = len(s.Unfound(&team.Outside{})) == 0 })
		return so || t.Hosted(ctx)
	}
	if found() {
		return nil
	}
	l, err := t.Launch()
	if err != nil {
		return err
	}
	defer l.Close()
	started := false
	return t.awaitHost(ctx, fmt.Errorf("no host finds the items of tasks; its log is %s", filepath.Join(t.Dir, hostLog)),
		func() (bool, error) {
			if found() || started {
				return found(), nil
			}
			started = true
			return false, l.start(ctx)
		})
}
