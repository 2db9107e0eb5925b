package teams

import (
	"context"
	"errors"
	"time"

	"cadre/internal/engine"
	"cadre/internal/hook"
	"cadre/internal/team"
)

// TeamHook is one hook of a team: a command of a settings file or of the team, or a function of
// this program.
type TeamHook struct {
	// ID identifies the hook by its source, event and command. A hook whose command changes is
	// another hook. The ID of a function has its name in place of the command.
	ID      string
	Event   HookName
	Source  HookSource
	Command string // "" for a function
	Name    string // of a function
	File    string // the settings file or team file; "" for none
	Line    int    // where the hook begins in a settings file; 0 if unknown
	Matcher string // as the file has it; it has no effect
	Timeout time.Duration
	State   HookState
	By      string // who switched it off
	At      time.Time
	// Gone reports that the hook is switched off and no longer configured, or that it is a function
	// of another program.
	Gone bool
}

// HookTrial is one run of a hook, and what its answer means. For a function, only Rejected,
// Feedback, Took and Err are set.
type HookTrial struct {
	ExitCode int    // -1 if a signal ended the command, or if it could not be run
	Signal   string // the signal that ended it; "" for none
	Stdout   string // long output is shortened in the middle
	Stderr   string
	Took     time.Duration
	TimedOut bool // it did not end within its timeout and was killed
	Rejected bool
	Feedback string // of a rejection
	Stop     bool   // it answered {"continue": false}
	Err      error  // why it could not be run, or could not judge
}

// Hooks returns the hooks of the team, in the order in which they run, and those that are switched
// off. The functions are those of this program.
func (t *Team) Hooks(ctx context.Context) ([]TeamHook, error) {
	list, err := t.listHooks(ctx)
	if err != nil {
		return nil, err
	}
	var all []TeamHook
	for _, h := range list.Hooks {
		all = append(all, teamHookOf(h))
	}
	return all, nil
}

func teamHookOf(h engine.Hook) TeamHook {
	one := TeamHook{ID: h.ID, Event: HookName(h.Event), Source: HookSource(h.Source), Command: h.Command, File: h.File,
		Line: h.Line, Matcher: h.Matcher, Timeout: h.Timeout.Std(), State: HookState(h.State),
		By: h.By, At: clock(h.At), Gone: h.Gone}
	if one.Source == HookOfProgram {
		one.Name, one.Command = h.Command, ""
	}
	return one
}

// DisableHook switches a hook off for this team, in every process and until [Team.EnableHook]. The
// name is an ID from [Team.Hooks], or an event that has just one hook. It returns ErrNotFound if
// the team has no such hook.
func (t *Team) DisableHook(ctx context.Context, name string) error {
	return t.switchHook(ctx, "Team.DisableHook", name, true)
}

// EnableHook switches a hook on again, even if it is no longer configured.
func (t *Team) EnableHook(ctx context.Context, name string) error {
	return t.switchHook(ctx, "Team.EnableHook", name, false)
}

func (t *Team) switchHook(ctx context.Context, entry, name string, off bool) error {
	user, err := t.asUser(entry, "switch hooks on and off")
	if err != nil {
		return err
	}
	_, h, err := t.findHook(ctx, name)
	if err == nil {
		_, err = user.do(ctx, h.Switch(off))
	}
	return err
}

// TryHook runs a hook once and changes nothing in the team. The hook gets the event, or a sample
// event if e is nil. The hook may be switched off. For a project's hook that is not trusted,
// TryHook returns ErrDenied.
func (t *Team) TryHook(ctx context.Context, name string, e *HookEvent) (HookTrial, error) {
	if _, err := t.asUser("Team.TryHook", "try hooks"); err != nil {
		return HookTrial{}, err
	}
	list, h, err := t.findHook(ctx, name)
	if err != nil {
		return HookTrial{}, err
	}
	event := list.Sample(h)
	if e != nil {
		event = e.core(list.Team)
	}
	event.Name = h.Event
	for _, f := range t.functions.list() {
		if one := f.core(); one.ID() == h.ID {
			return f.try(ctx, event), nil
		}
	}
	trial, err := list.Try(ctx, h, event)
	if err != nil {
		return HookTrial{}, public(err)
	}
	return trialOf(trial), nil
}

func trialOf(trial engine.HookTrial) HookTrial {
	result := HookTrial{ExitCode: trial.ExitCode, Signal: trial.Signal, Stdout: trial.Stdout, Stderr: trial.Stderr,
		Took: trial.Took.Std(), TimedOut: trial.TimedOut, Rejected: trial.Rejected,
		Feedback: trial.Feedback, Stop: trial.Stop}
	if trial.Error != "" {
		result.Err = errors.New(trial.Error)
	}
	return result
}

// try calls the function once.
func (h Hook) try(ctx context.Context, e hook.Event) HookTrial {
	began := time.Now()
	err := h.Ask(ctx, hookEventOf(e))
	trial := HookTrial{Took: time.Since(began)}
	if r, rejected := errors.AsType[rejection](err); rejected {
		trial.Rejected, trial.Feedback = true, string(r)
	} else {
		trial.Err = err
	}
	return trial
}

func (t *Team) listHooks(ctx context.Context) (engine.HookList, error) {
	if err := t.of.Refresh(ctx); err != nil {
		return engine.HookList{}, public(err)
	}
	var functions []hook.Hook
	for _, f := range t.functions.list() {
		functions = append(functions, *f.core())
	}
	list, err := t.of.ListHooks(functions...)
	return list, public(err)
}

func (t *Team) findHook(ctx context.Context, name string) (engine.HookList, engine.Hook, error) {
	list, err := t.listHooks(ctx)
	if err != nil {
		return list, engine.Hook{}, err
	}
	h, err := list.Find(name)
	return list, h, public(err)
}

// core returns the function as a hook of the team.
func (h Hook) core() *hook.Hook {
	return &hook.Hook{Event: string(h.Event), Source: hook.Program, Command: h.Name}
}

// core returns the event as a command would get it.
func (e *HookEvent) core(of team.Team) hook.Event {
	return hook.Event{TeamID: of.ID, TeamName: of.Name, Member: e.Member, MemberID: e.Member + "@" + of.Name,
		TaskID: e.Task, TaskSubject: e.Subject, TaskDescription: e.Description, DependentTasks: e.Dependents,
		Duration: e.Duration, Result: e.Result, CompletedTasks: e.Completed, RemainingTasks: e.Remaining}
}

// hookEventOf returns an event in the form for functions.
func hookEventOf(e hook.Event) HookEvent {
	return HookEvent{Name: HookName(e.Name), Team: e.TeamName, Member: e.Member, Task: e.TaskID,
		Subject: e.TaskSubject, Description: e.TaskDescription, Dependents: e.DependentTasks, Duration: e.Duration,
		Result:    e.Result,
		Completed: e.CompletedTasks, Remaining: e.RemainingTasks}
}
