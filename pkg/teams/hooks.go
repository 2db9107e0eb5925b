package teams

import (
	"context"
	"errors"
	"fmt"
	"time"

	"cadre/internal/hook"
	"cadre/internal/replica"
	"cadre/internal/team"
)

// Hooks are functions that are asked before something happens in a team. They are asked about what
// is done through this manager, its handles and the sessions it runs; what other processes do
// passes their hooks. The commands in settings.json files (see Options.NoSettingsHooks) come first,
// and each of both can reject.
//
// A function returns nil to allow, [Reject] to reject, and any other error to say that it could not
// judge, which is logged and allows: a broken hook never stops a team. It may use the team's
// handles, but a hook that does what it is asked about asks itself.
type Hooks struct {
	// TeammateIdle is asked before a teammate goes idle. A rejection keeps it working: it gets the
	// feedback as a message.
	TeammateIdle func(context.Context, HookEvent) error
	// TaskCreated is asked before a task is on the list. A rejection is the error of the call that
	// creates it.
	TaskCreated func(context.Context, HookEvent) error
	// TaskCompleted is asked before a task is completed. A rejected one stays in progress, and the
	// rejection is the error of the call that completes it.
	TaskCompleted func(context.Context, HookEvent) error
}

// HookEvent is what is about to happen. Fields that do not belong to the event are left at zero.
type HookEvent struct {
	Name        HookName
	Team        string
	Member      string // who goes idle, creates the task or completes it
	Task        string // id, of a new task the one that it will have
	Subject     string
	Description string
	Dependents  []string      // ids of the tasks that wait for it
	Duration    time.Duration // TaskCompleted: since the claim
	Completed   []string      // TeammateIdle: ids of what the teammate completed
	Remaining   int           // TeammateIdle: tasks of the team that are not completed
}

// Reject is the error with which a hook says no. The feedback is for the agent that is to act on
// it.
func Reject(feedback string) error { return rejection(feedback) }

type rejection string

func (r rejection) Error() string { return string(r) }

func (h Hooks) of(event string) func(context.Context, HookEvent) error {
	switch event {
	case hook.TeammateIdle:
		return h.TeammateIdle
	case hook.TaskCreated:
		return h.TaskCreated
	case hook.TaskCompleted:
		return h.TaskCompleted
	}
	return nil
}

// gate is what a replica of this manager asks: what settings files have, and then the functions.
func (m *Manager) gate(settings replica.Hooks) replica.Hooks {
	return func(ctx context.Context, t team.Team, e hook.Event) (hook.Verdict, error) {
		v, err := settings(ctx, t, e)
		if err != nil {
			return v, err
		}
		ask := m.opts.Hooks.of(e.Name)
		if ask == nil || v.Stop && e.Name == hook.TeammateIdle {
			return v, nil
		}
		err = ask(ctx, HookEvent{Name: HookName(e.Name), Team: e.TeamName, Member: e.Member, Task: e.TaskID,
			Subject:     e.TaskSubject,
			Description: e.TaskDescription, Dependents: e.DependentTasks, Duration: e.Duration,
			Completed: e.CompletedTasks, Remaining: e.RemainingTasks})
		v.Ran++
		if r, rejected := errors.AsType[rejection](err); rejected {
			if v.Rejected {
				v.Feedback += "\n"
			}
			v.Rejected, v.Feedback = true, v.Feedback+string(r)
		} else if err != nil {
			v.Notes = append(v.Notes, fmt.Sprintf("the hook function %s failed: %v; it counts as allowed", e.Name, err))
		}
		return v, nil
	}
}
