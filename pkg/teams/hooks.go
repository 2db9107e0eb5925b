package teams

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"cadre/internal/hook"
	"cadre/internal/replica"
	"cadre/internal/team"
)

// Hook is a function that is asked before something happens in a team. It is asked about what is
// done through this manager, its handles and the sessions it runs; what other processes do passes
// their hooks. The commands in settings.json files (see Options.NoSettingsHooks) come first, and
// each hook can reject.
type Hook struct {
	Name string // unique among the manager's hooks; "" for the name of the event
	// Event is what it is asked about. A rejected [HookTeammateIdle] keeps the teammate working: it
	// gets the feedback as a message. A rejected [HookTaskCreated] keeps a task off the list, and a
	// rejected [HookTaskCompleted] leaves it in progress; the rejection is the error of the call.
	Event HookName
	// Ask returns nil to allow, [Reject] to reject, and any other error to say that it could not
	// judge, which is logged and allows: a broken hook never stops a team. It may use the team's
	// handles, but a hook that does what it is asked about asks itself.
	Ask func(context.Context, HookEvent) error
}

// HookCommand is a hook that is a command, run by /bin/sh in the team's directory, with the event as
// JSON on its standard input. Exit status 2 rejects, with the standard error as feedback.
type HookCommand struct {
	Event   HookName
	Command string
	Timeout time.Duration // in whole seconds; 0 for the usual one
}

func hooksOf(all []HookCommand) (hooks []team.Hook) {
	for _, h := range all {
		hooks = append(hooks, team.Hook{Event: string(h.Event), Command: h.Command, Timeout: h.Timeout})
	}
	return hooks
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
	Duration    time.Duration // HookTaskCompleted: since the claim
	Result      string        // HookTaskCompleted: what the member says came of the task
	Completed   []string      // HookTeammateIdle: ids of what the teammate completed
	Remaining   int           // HookTeammateIdle: tasks of the team that are not completed
}

// HookResult is how a hook answered.
type HookResult struct {
	At       time.Time
	Hook     string // its name; [SettingsHooks] for the commands in settings.json files, taken together
	Event    HookEvent
	Rejected bool
	Feedback string // of a rejection
	Err      error  // why it could not judge; nil where it could
	Took     time.Duration
}

// SettingsHooks is [HookResult].Hook of the commands in settings.json files.
const SettingsHooks = "settings.json"

// Reject is the error with which a hook says no. The feedback is for the agent that is to act on
// it.
func Reject(feedback string) error { return rejection(feedback) }

type rejection string

func (r rejection) Error() string { return string(r) }

// mostResults is how many results of hooks a manager keeps.
const mostResults = 100

// hookSet is a manager's hooks, and how they answered.
type hookSet struct {
	mu      sync.Mutex
	hooks   []Hook
	results []HookResult
}

func (s *hookSet) add(h Hook) error {
	if h.Name == "" {
		h.Name = string(h.Event)
	}
	switch {
	case h.Event != HookTeammateIdle && h.Event != HookTaskCreated && h.Event != HookTaskCompleted:
		return refuse(ErrInvalid, fmt.Sprintf("no hook is asked about %q; the events are %s, %s and %s", h.Event,
			HookTeammateIdle, HookTaskCreated, HookTaskCompleted))
	case h.Ask == nil:
		return refuse(ErrInvalid, "hook "+h.Name+" has no function")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if slices.ContainsFunc(s.hooks, func(one Hook) bool { return one.Name == h.Name }) {
		return refuse(ErrNameTaken, "there is a hook named "+h.Name+" already")
	}
	s.hooks = append(s.hooks, h)
	return nil
}

func (s *hookSet) remove(name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := len(s.hooks)
	if s.hooks = slices.DeleteFunc(s.hooks, func(one Hook) bool { return one.Name == name }); len(s.hooks) == before {
		return refuse(ErrNotFound, "there is no hook named "+name)
	}
	return nil
}

func (s *hookSet) list() []Hook {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.hooks)
}

func (s *hookSet) answered(r HookResult) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.results) == mostResults {
		s.results = slices.Delete(s.results, 0, 1)
	}
	s.results = append(s.results, r)
}

// AddHook has a hook asked from now on, after the ones that there are. It is refused with
// ErrNameTaken where there is one of that name, and with ErrInvalid for one that cannot be asked.
func (m *Manager) AddHook(h Hook) error {
	if err := m.pass("Manager.AddHook"); err != nil {
		return err
	}
	return m.hooks.add(h)
}

// RemoveHook has the hook of that name not asked any more, or is refused with ErrNotFound. A call
// of it that is under way still counts.
func (m *Manager) RemoveHook(name string) error {
	if err := m.pass("Manager.RemoveHook"); err != nil {
		return err
	}
	return m.hooks.remove(name)
}

// Hooks returns the manager's hooks, in the order in which they are asked.
func (m *Manager) Hooks() []Hook { return m.hooks.list() }

// HookResults returns how hooks answered, the last hundred times, the oldest first.
func (m *Manager) HookResults() []HookResult {
	m.hooks.mu.Lock()
	defer m.hooks.mu.Unlock()
	return slices.Clone(m.hooks.results)
}

// gate is what a replica of this manager asks: what settings files have, and then the functions.
func (m *Manager) gate(settings replica.Hooks) replica.Hooks {
	return func(ctx context.Context, t team.Team, e hook.Event) (hook.Verdict, error) {
		event := hookEventOf(e)
		began := time.Now()
		v, err := settings(ctx, t, e)
		if v.Ran > 0 || err != nil {
			m.hooks.answered(HookResult{At: began, Hook: SettingsHooks, Event: event, Rejected: v.Rejected,
				Feedback: v.Feedback, Err: err, Took: time.Since(began)})
		}
		if err != nil || v.Stop && e.Name == hook.TeammateIdle {
			return v, err
		}
		for _, h := range m.hooks.list() {
			if h.Event == event.Name && !t.HookIsOff(h.core().ID()) {
				m.ask(ctx, h, event, &v)
			}
		}
		return v, nil
	}
}

// ask asks one hook, and adds its answer to the verdict.
func (m *Manager) ask(ctx context.Context, h Hook, event HookEvent, v *hook.Verdict) {
	began := time.Now()
	err := h.Ask(ctx, event)
	result := HookResult{At: began, Hook: h.Name, Event: event, Took: time.Since(began)}
	v.Ran++
	if r, rejected := errors.AsType[rejection](err); rejected {
		if v.Rejected {
			v.Feedback += "\n"
		}
		v.Rejected, v.Feedback = true, v.Feedback+string(r)
		result.Rejected, result.Feedback = true, string(r)
	} else if err != nil {
		v.Notes = append(v.Notes, fmt.Sprintf("the hook %s failed: %v; it counts as allowed", h.Name, err))
		result.Err = err
	}
	m.hooks.answered(result)
}
