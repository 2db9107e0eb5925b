package upkeep

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"cadre/internal/engine/transfer"
	"cadre/internal/host"
	"cadre/internal/inspect"
	"cadre/internal/journal/store"
	"cadre/internal/sys/proc"
	"cadre/internal/sys/sleep"
	"cadre/internal/team"
)

// Resumption says how a team is resumed.
type Resumption struct {
	Dir      string // where its project is now; "" for the recorded place
	Ours     bool   // continue this one of two histories
	TakeBack bool   // also if this machine released it
	Restored bool   // it was restored just now, so no other history counts
}

// StillRunningError says that processes of a team run in its directory, which is to be recorded
// elsewhere.
type StillRunningError struct{ Team, Dir string }

func (e *StillRunningError) Error() string {
	return "processes of team " + e.Team + " are running in " + e.Dir + ", and the team is to be moved from there"
}

func (e *StillRunningError) Unwrap() error {
	return team.Refuse(team.NotReady, "%s", e.Error()).With(team.Hint{Action: team.ActShowAlive, Team: e.Team})
}

// Prepare examines a team before it is resumed, and repairs what prevents that: the place of its
// project, the machine that has it, missing work that has been found, and worktrees that have
// moved. It starts nothing. For a team with another history it returns the error of
// [transfer.Here].
func Prepare(ctx context.Context, t Team, how Resumption) (*inspect.Examination, error) {
	if err := inspect.Refusal(t.Replica.Team()); err != nil {
		return nil, err
	}
	if how.Dir != "" {
		if err := Move(ctx, t, how.Dir); err != nil {
			return nil, err
		}
	}
	if !how.Restored {
		if err := Settle(ctx, t, how); err != nil {
			return nil, err
		}
	}
	found, err := t.examine(ctx)
	if err != nil {
		return nil, err
	}
	if err := inspect.InPlace(found.Team, found.Place); err != nil {
		return nil, err
	}
	whose, err := inspect.Rejoin(ctx, found.Team, found.Place, t.Dir)
	for _, member := range whose {
		t.Log("the worktree of " + member + " is linked to the repository again")
	}
	if err != nil {
		return nil, err
	}
	found.Place = []inspect.Missing{}
	return found, nil
}

// Move records where the team's project is now. No process may work for the team meanwhile.
func Move(ctx context.Context, t Team, to string) error {
	was := t.Replica.Team()
	lock, err := t.claim(ctx)
	if errors.Is(err, store.ErrHeld) || err == nil && host.HostedHere(ctx, t.shared()) {
		if err == nil {
			lock.Release()
		}
		return &StillRunningError{was.Name, was.Dir}
	}
	if err != nil {
		return err
	}
	defer lock.Release()
	body, err := inspect.Move(ctx, t.Replica, t.Dir, to)
	if err != nil {
		return err
	}
	receipt, err := t.Do(ctx, team.Command{Actor: team.User, Body: body})
	if err == nil && receipt.Record != nil {
		t.Log(fmt.Sprintf("team %s now works in %s, not in %s", was.Name, body.Dir, was.Dir))
	}
	return err
}

// Settle makes sure that this copy of the team is the valid one, and checks whether missing work
// has arrived.
func Settle(ctx context.Context, t Team, how Resumption) error {
	if err := transfer.Here(ctx, t.Replica, t.Dir, how.Ours); err != nil {
		return err
	}
	is := t.Replica.Team()
	if is.CheckHere() != nil && how.TakeBack {
		if _, err := t.Do(ctx, team.Command{Actor: team.User, Body: &team.TakeBackTeam{}}); err != nil {
			return err
		}
		t.Log(fmt.Sprintf("team %s is taken back; if another machine has continued it, the team has two histories",
			is.Name))
	} else if err := is.CheckHere(); err != nil {
		return err
	}
	return recheck(ctx, t)
}

// recheck records which missing work has been found, and reports what is still missing.
func recheck(ctx context.Context, t Team) error {
	var missing []team.Missing
	t.View(func(s *team.State) { missing = s.Missing() })
	if len(missing) == 0 {
		return nil
	}
	procs, err := proc.Open("")
	if err != nil {
		return err
	}
	defer procs.Close(context.WithoutCancel(ctx))
	found, err := transfer.Recheck(ctx, procs, t.Replica.Team(), missing)
	if err != nil {
		return err
	}
	if len(found) > 0 {
		if _, err := t.Do(ctx, team.Command{Actor: team.User, Body: &team.ReportFound{Tasks: found}}); err != nil {
			return err
		}
		t.View(func(s *team.State) {
			t.Log("found: the work of task " + strings.Join(s.CalledAll(found), ", "))
			missing = s.Missing()
		})
	}
	for _, m := range missing {
		t.View(func(s *team.State) { t.Advise(m.Advice(s.Team(), s.Called(m.Task))) })
	}
	return nil
}

// LedError says that another process has the lead, or is about to take it.
type LedError struct {
	Team string
	Who  string // a sentence without its full stop
}

func (e *LedError) Error() string { return e.Who }

func (e *LedError) Unwrap() error {
	return team.Refuse(team.NotReady, "%s", e.Who).With(team.Hint{Action: team.ActFollowLog, Team: e.Team},
		team.Hint{Action: team.ActTakeOver, Team: e.Team})
}

// HeldError says that the user has the lead, and that the process that had it does not end.
type HeldError struct{ Team string }

func (e *HeldError) Error() string {
	return "you lead team " + e.Team + " now, but the process that led it has not ended"
}

func (e *HeldError) Unwrap() error {
	return team.Refuse(team.NotReady, "%s", e.Error()).With(team.Hint{Action: team.ActShowAlive, Team: e.Team})
}

// Takeover says whether to take the lead from a session that has it.
type Takeover int

// The values of [Takeover].
const (
	LeaveIt Takeover = iota // a running process that leads keeps the lead
	TakeIt                  // ask it to release the lead, and wait
)

// letGo bounds the wait for a process that was asked to release the lead.
const letGo = 15 * time.Second

// TakeLead takes the right to lead, or says who has it.
func TakeLead(ctx context.Context, t Team, found *inspect.Examination, how Takeover) (store.Lease, error) {
	attach := func() error {
		_, err := t.Do(ctx, team.Command{Actor: team.User, Body: &team.AttachLead{Session: team.User, TakeOver: true}})
		return err
	}
	lock, err := t.claim(ctx)
	switch {
	case err == nil:
		if how == TakeIt && found.Lead.Session != "" && found.Lead.Session != team.User {
			if err := attach(); err != nil {
				lock.Release()
				return nil, err
			}
		}
		return lock, nil
	case !errors.Is(err, store.ErrHeld):
		return nil, err
	case how != TakeIt:
		return nil, led(ctx, t)
	}
	if err := attach(); err != nil {
		return nil, err
	}
	waiting, cancel := context.WithTimeout(ctx, letGo)
	defer cancel()
	for {
		lock, err := t.claim(ctx)
		if !errors.Is(err, store.ErrHeld) {
			return lock, err
		}
		if sleep.For(waiting, 20*time.Millisecond) != nil {
			return nil, &HeldError{t.Replica.Team().Name}
		}
	}
}

// led returns an error that says who leads. Another process may have taken the lead since the team
// was examined.
func led(ctx context.Context, t Team) error {
	if err := t.Refresh(ctx); err != nil {
		return err
	}
	now, err := t.examine(ctx)
	if err != nil {
		return err
	}
	is := now.Team
	who := fmt.Sprintf("Session %s leads team %s and is alive", is.LeadSession, is.Name)
	switch {
	case is.LeadSession == team.User:
		who = fmt.Sprintf("You lead team %s with another command, which is still running", is.Name)
	case now.Lead.Taking || is.LeadSession == "":
		who = fmt.Sprintf("Another process is taking the lead of team %s", is.Name)
	case !now.Lead.Alive:
		who = fmt.Sprintf("Another process led team %s a moment ago", is.Name)
	}
	return &LedError{is.Name, who}
}

// KeepSaved keeps work that members saved without a lead with their tasks, where no running host
// does that.
func KeepSaved(ctx context.Context, t Team) error {
	if host.Hosted(ctx, t.shared()) {
		return nil
	}
	shared := t.shared()
	var members []team.Member
	t.View(func(s *team.State) { members = s.Members() })
	for _, m := range members {
		if _, _, err := host.ReadSaved(ctx, shared, m.Name); err != nil {
			t.Log(fmt.Sprintf("the saved work of %s cannot be read, and is skipped: %v", m.Name, err))
			continue
		}
		if err := host.KeepSaved(ctx, t.Replica, shared, m.Name); err != nil {
			return err
		}
	}
	return nil
}

// RetryMembers tries members that had trouble again at once.
func RetryMembers(ctx context.Context, t Team) error {
	var members []team.Member
	t.View(func(s *team.State) { members = s.Members() })
	for _, m := range members {
		if !m.Status.Running() || m.Agent == team.External || m.Setbacks == 0 {
			continue
		}
		if _, err := t.Do(ctx, team.Command{Actor: team.User, Body: &team.RetryMember{Member: m.Name}}); err != nil {
			return err
		}
	}
	return nil
}
