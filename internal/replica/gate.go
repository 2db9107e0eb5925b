package replica

import (
	"context"
	"fmt"
	"time"

	"cadre/internal/hook"
	"cadre/internal/team"
)

// Rejected is the refusal of a hook. Its code is [team.Rejected].
type Rejected struct {
	refusal *team.Error
	count   int64 // rejections of the same thing in a row
}

// The pauses between attempts that whoever tries again by itself makes: the first, and the longest.
const (
	firstPause   = 100 * time.Millisecond
	longestPause = time.Second
)

func (r *Rejected) Error() string { return r.refusal.Text }
func (r *Rejected) Unwrap() error { return r.refusal }

// Final reports whether the same thing was rejected so often in a row that the lead was told:
// trying again is a loop.
func (r *Rejected) Final() bool { return r.count >= team.MaxStrikes }

// Pause returns how long to wait before the same thing is tried again without a person or a model
// in between. It doubles with each rejection, so that a hook that always rejects costs little.
func (r *Rejected) Pause() time.Duration {
	pause := firstPause
	for n := int64(1); n < r.count && pause < longestPause; n++ {
		pause *= 2
	}
	return min(pause, longestPause)
}

// gate runs the hooks for a command that has some. Its error says that the command is not to be
// sent.
func (rep *Replica) gate(ctx context.Context, c team.Command) error {
	if !gated(c.Body) {
		return nil
	}
	// What the team refuses anyhow, or has done already, is no hook's affair.
	if err := rep.Refresh(ctx); err != nil {
		return err
	}
	var (
		event hook.Event
		about team.RejectByHook
		t     team.Team
		ask   bool
		err   error
	)
	rep.View(func(s *team.State) {
		var decision team.Decision
		if decision, err = rep.opts.Decide(s, c); err == nil && decision.Record != nil {
			t = s.Team()
			event, about, ask = describe(s, decision.Record)
		}
	})
	if err != nil || !ask {
		return err
	}
	verdict, err := rep.opts.Hooks(ctx, t, event)
	if team.CodeOf(err) != "" && event.Name == hook.TeammateIdle {
		rep.log(err.Error()) // idle it is, whether or not somebody can be asked
		return nil
	}
	if err != nil {
		return err
	}
	for _, note := range verdict.Notes {
		rep.log(note)
	}
	if !verdict.Rejected {
		return nil
	}
	about.Feedback = verdict.Feedback
	receipt, err := rep.send(ctx, team.Command{ID: rep.opts.NewID(), Actor: c.Actor, At: rep.opts.Now(),
		Incarnation: c.Incarnation, Lease: c.Lease, Body: &about})
	if err != nil {
		return fmt.Errorf("the rejection by a hook could not be recorded: %w", err)
	}
	rejected := &Rejected{refusal: &team.Error{Code: team.Rejected, Text: verdict.Feedback}}
	for _, e := range receipt.Record.Events {
		if r, ok := e.(*team.HookRejected); ok {
			rejected.count = r.Count
		}
	}
	if rejected.Final() && about.Hook == hook.TeammateIdle {
		return nil // it may idle; the lead knows
	}
	return rejected
}

// gated reports whether there can be a hook for the command.
func gated(body team.Body) bool {
	switch b := body.(type) {
	case *team.CreateTask, *team.CompleteTask:
		return true
	case *team.ReportStatus:
		return b.Status == team.Idle
	}
	return false
}

// describe says what would happen, for the hooks.
func describe(s *team.State, r *team.Record) (hook.Event, team.RejectByHook, bool) {
	t := s.Team()
	event := hook.Event{TeamID: t.ID, TeamName: t.Name}
	by := func(name string) {
		event.Member, event.MemberID = name, name+"@"+t.Name
		if m, ok := s.Member(name); ok {
			event.SessionID = m.Session
		}
	}
	for _, e := range r.Events {
		switch e := e.(type) {
		case *team.TaskCreated:
			event.Name = hook.TaskCreated
			by(r.Actor)
			event.TaskID, event.TaskSubject, event.TaskDescription = e.Task.ID, e.Task.Subject, e.Task.Description
			return event, team.RejectByHook{Hook: event.Name, Member: r.Actor, Task: e.Task.Subject}, true
		case *team.TaskCompleted:
			task, _ := s.Task(e.Task)
			event.Name = hook.TaskCompleted
			by(e.By)
			event.TaskID, event.TaskSubject, event.TaskDescription, event.DependentTasks = task.ID, task.Subject,
				task.Description, task.Blocks
			if task.StartedAt != 0 {
				event.Duration = time.Duration(r.At-task.StartedAt) * time.Millisecond
			}
			return event, team.RejectByHook{Hook: event.Name, Member: e.By, Task: task.ID}, true
		case *team.MemberStatusChanged:
			event.Name = hook.TeammateIdle
			by(e.Member)
			for task := range s.Tasks() {
				if task.Status != team.Completed {
					event.RemainingTasks++
				} else if task.CompletedBy == e.Member {
					event.CompletedTasks = append(event.CompletedTasks, task.ID)
				}
			}
			event.IdleSince = time.UnixMilli(int64(r.At))
			return event, team.RejectByHook{Hook: event.Name, Member: e.Member}, e.Status == team.Idle &&
				e.Member != t.Lead
		}
	}
	return event, team.RejectByHook{}, false
}

// SettingsHooks is a [Hooks] that reads the settings files anew for every event, so that a change
// counts at once.
func SettingsHooks(claude string, trust hook.Trust, children hook.Runner) Hooks {
	return func(ctx context.Context, t team.Team, e hook.Event) (hook.Verdict, error) {
		var own []hook.Hook
		for _, h := range t.Hooks {
			own = append(own, hook.Hook{Event: h.Event, Command: h.Command,
				Timeout: time.Duration(h.Seconds) * time.Second})
		}
		config, err := hook.Load(claude, t.Dir, own)
		if err != nil {
			// A gate that cannot be read must not be taken for an open one.
			return hook.Verdict{}, &team.Error{Code: team.NotReady, Text: "the hooks cannot be read, so nothing " +
				"passes them: " + err.Error()}
		}
		runner := children
		runner.Config, runner.Trust = config, trust
		verdict, err := runner.Run(ctx, e)
		verdict.Notes = append(config.Notes, verdict.Notes...)
		return verdict, err
	}
}
