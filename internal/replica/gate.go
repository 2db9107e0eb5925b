package replica

import (
	"context"
	"fmt"
	"slices"
	"time"

	"cadre/internal/hook"
	"cadre/internal/team"
)

// Rejected is the refusal of a hook, of a task's check, or of the schema of its result. Its code is
// [team.Rejected].
type Rejected struct {
	refusal *team.Error
	count   int64 // rejections of the same thing in a row
	ended   bool  // the attempt at the task has failed with it
	// the task's check or the schema of its result rejected it, not a hook
	demanded bool
}

// Ended reports whether the attempt at the task has failed with this rejection.
func (r *Rejected) Ended() bool { return r.ended }

// Demanded reports whether the task's check, or the schema of its result, rejected the completion.
func (r *Rejected) Demanded() bool { return r.demanded }

// The first and the longest pause of a caller that tries again by itself.
const (
	firstPause   = 100 * time.Millisecond
	longestPause = time.Second
)

func (r *Rejected) Error() string { return r.refusal.Text }
func (r *Rejected) Unwrap() error { return r.refusal }

// Final reports whether the same thing was rejected so often in a row that the lead was notified,
// or that the attempt at the task has failed. Trying again would be a loop.
func (r *Rejected) Final() bool { return r.ended || r.count >= team.MaxStrikes }

// Pause returns how long to wait before the same thing is tried again without a person or a model
// in between. It doubles with each rejection, so a hook that always rejects costs little.
func (r *Rejected) Pause() time.Duration {
	pause := firstPause
	for n := int64(1); n < r.count && pause < longestPause; n++ {
		pause *= 2
	}
	return min(pause, longestPause)
}

// gate examines a completion, and runs the hooks of a command, if it has any. It returns the
// command to send. An error means that none must be sent.
func (rep *Replica) gate(ctx context.Context, c team.Command) (team.Command, error) {
	if !gated(c.Body) {
		return c, nil
	}
	if err := checkSchemas(c.Body); err != nil {
		return c, err
	}
	c, x := examining(c)
	if x == nil && rep.opts.Hooks == nil {
		return c, nil
	}
	// Nothing is asked about what the team refuses anyway, or has done already.
	if err := rep.Refresh(ctx); err != nil {
		return c, err
	}
	var (
		asked []question
		t     team.Team
		err   error
		news  bool
	)
	rep.View(func(s *team.State) {
		if x != nil {
			x.look(s)
			// without a function that runs checks, nothing is examined, and the team refuses
			x.body.Examined = x.task.Check == nil || rep.opts.Check != nil
		}
		var decision team.Decision
		if decision, err = rep.opts.Decide(s, c); err == nil && decision.Record != nil {
			t, news = s.Team(), true
			asked = questions(s, decision.Record)
		}
	})
	if err == nil && news && x.demanded() {
		err = rep.examine(ctx, c, t, x)
	}
	for _, q := range asked {
		if err == nil && rep.opts.Hooks != nil {
			err = rep.ask(ctx, c, t, q)
		}
	}
	return c, err
}

// question is what the hooks are asked, and what is recorded if they reject it.
type question struct {
	event hook.Event
	about team.RejectByHook
}

// questions returns what the hooks are asked about a record. Each task of a batch is a question.
//
// The hooks are asked about a group, and not about the tasks that it makes, or about its end. They
// are asked about a task when it is submitted to its verifiers, and not about the verifications.
func questions(s *team.State, r *team.Record) (all []question) {
	one := *r
	for _, e := range r.Events {
		switch e := e.(type) {
		case *team.TaskCreated:
			if e.Task.Of != "" || e.Task.Verifies != "" {
				continue
			}
		case *team.TaskCompleted:
			if t, _ := s.Task(e.Task); e.By == "" && (t.Group() || t.ID == "") {
				continue
			}
			if e.Verdict != "" {
				return all
			}
		}
		one.Events = []team.Event{e}
		if event, about, ask := describe(s, &one); ask {
			all = append(all, question{event, about})
			if _, several := e.(*team.TaskCreated); !several {
				break
			}
		}
	}
	return all
}

// ask asks the hooks. An error means that the command must not be sent.
func (rep *Replica) ask(ctx context.Context, c team.Command, t team.Team, q question) error {
	event, about := q.event, q.about
	verdict, err := rep.opts.Hooks(ctx, t, event)
	if team.CodeOf(err) != "" && event.Name == hook.TeammateIdle {
		rep.log(err.Error()) // the member is idle, whether or not the hooks can be asked
		return nil
	}
	if err != nil {
		return err
	}
	for _, note := range verdict.Notes {
		rep.log(note)
	}
	for _, why := range verdict.Untrusted {
		rep.advise(why, team.Hint{Action: team.ActTrust, Dir: t.Dir})
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
	if r, ok := team.EventIn[*team.HookRejected](receipt.Record); ok {
		rejected.count = r.Count
	}
	if rejected.Final() && about.Hook == hook.TeammateIdle {
		return nil // it may go idle; the lead knows
	}
	return rejected
}

// gated reports whether the command can have a hook, or must be examined.
func gated(body team.Body) bool {
	switch b := body.(type) {
	case *team.CreateTask, *team.CompleteTask, *team.ReviseTask:
		return true
	case *team.Batch:
		return slices.ContainsFunc(b.Bodies, gated)
	case *team.ReportStatus:
		return b.Status == team.Idle
	}
	return false
}

// describe describes to the hooks what would happen.
func describe(s *team.State, r *team.Record) (hook.Event, team.RejectByHook, bool) {
	t := s.Team()
	event := hook.Event{TeamID: t.ID, TeamName: t.Name}
	by := func(name string) {
		event.Member, event.MemberID = name, name+"@"+t.Name
		if m, ok := s.Member(name); ok {
			event.SessionID, event.Role = m.Session, m.Role
		}
	}
	for _, e := range r.Events {
		switch e := e.(type) {
		case *team.TaskCreated:
			event.Name = hook.TaskCreated
			by(r.Actor)
			event.TaskID, event.TaskName, event.TaskSubject, event.TaskDescription = e.Task.ID, e.Task.Name,
				e.Task.Subject,
				e.Task.Description
			return event, team.RejectByHook{Hook: event.Name, Member: r.Actor, Task: e.Task.Subject}, true
		case *team.TaskCompleted:
			by(e.By)
			return done(s, r, event, e.Task, e.By, e.Result)
		case *team.TaskSubmitted:
			by(e.By)
			return done(s, r, event, e.Task, e.By, e.Result)
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

// done describes to the hooks that a member is done with a task.
func done(s *team.State, r *team.Record, event hook.Event, id, by, result string) (hook.Event, team.RejectByHook,
	bool) {
	task, _ := s.Task(id)
	event.Name = hook.TaskCompleted
	event.TaskID, event.TaskName, event.TaskSubject, event.TaskDescription, event.DependentTasks = task.ID, task.Name,
		task.Subject, task.Description, task.Blocks
	event.Result = result
	if task.StartedAt != 0 {
		event.Duration = r.At.Sub(task.StartedAt)
	}
	return event, team.RejectByHook{Hook: event.Name, Member: by, Task: task.ID}, true
}

// HooksOf returns the hooks of a team: those in settings files and the team's own, with those
// marked that are switched off for it.
func HooksOf(claude string, t team.Team) (*hook.Config, error) {
	var own []hook.Hook
	for _, h := range t.Hooks {
		own = append(own, hook.Hook{Event: h.Event, Command: h.Command, Timeout: h.Timeout, File: t.Origin})
	}
	config, err := hook.Load(claude, t.Dir, own)
	if err == nil {
		config.SwitchOff(t.HookIsOff)
	}
	return config, err
}

// SettingsHooks returns a [Hooks] that reads the settings files again for every event, so that a
// change takes effect at once.
func SettingsHooks(claude string, trust hook.Trust, children hook.Runner) Hooks {
	return func(ctx context.Context, t team.Team, e hook.Event) (hook.Verdict, error) {
		config, err := HooksOf(claude, t)
		if err != nil {
			// Settings that cannot be read must not count as settings without hooks.
			return hook.Verdict{}, &team.Error{Code: team.NotReady, Text: "the hooks cannot be read, so they cannot " +
				"allow this: " + err.Error()}
		}
		runner := children
		runner.Config, runner.Trust = config, trust
		verdict, err := runner.Run(ctx, e)
		verdict.Notes = append(config.Notes, verdict.Notes...)
		return verdict, err
	}
}
