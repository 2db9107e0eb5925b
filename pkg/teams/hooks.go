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

// Hook is a function that runs before something happens in a team. It runs for actions of this
// manager, its handles and its sessions; actions of other processes run the hooks of those
// processes. The commands in settings.json files (see Options.NoSettingsHooks) run first, and each
// hook can reject.
type Hook struct {
	Name string // unique among the manager's hooks; "" for the name of the event
	// Event is the event that it runs for. A rejected [HookTeammateIdle] keeps the teammate
	// working, and it gets the feedback as a message. A rejected [HookTaskCreated] keeps a task off
	// the list, and a rejected [HookTaskCompleted] leaves it in progress. The call returns the
	// rejection as its error.
	Event HookName
	// Ask returns nil to allow and [Reject] to reject. Any other error means that it could not
	// decide; it is logged, and the event is allowed, so a broken hook never stops a team. Ask may
	// use the team's handles, but an action of the same kind runs the hook again.
	Ask func(context.Context, HookEvent) error
}

// HookCommand is a hook that is a command. /bin/sh runs it in the team's directory, with the event
// as JSON on its standard input. Exit status 2 rejects, with the standard error as feedback.
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

// HookEvent is the event that a hook runs for. Fields that the event does not use are zero.
type HookEvent struct {
	Name        HookName
	Team        string
	Member      string // the member that goes idle, creates the task or completes it
	Task        string // its id; for a new task the id that it will get
	Subject     string
	Description string
	Dependents  []string      // ids of the tasks that wait for it
	Duration    time.Duration // HookTaskCompleted: since the claim
	Result      string        // HookTaskCompleted: the result
	Completed   []string      // HookTeammateIdle: ids of the tasks that the teammate completed
	Remaining   int           // HookTeammateIdle: tasks of the team that are not completed
}

// HookResult is the answer of a hook.
type HookResult struct {
	At       time.Time
	Hook     string // its name; [SettingsHooks] for all commands in settings.json files together
	Event    HookEvent
	Rejected bool
	Feedback string // of a rejection
	Err      error  // why it did not decide; nil if it did
	Took     time.Duration
}

// SettingsHooks is [HookResult].Hook of the commands in settings.json files.
const SettingsHooks = "settings.json"

// Reject returns the error with which a hook rejects an event. The feedback is for the agent that
// must act on it.
func Reject(feedback string) error { return rejection(feedback) }

type rejection string

func (r rejection) Error() string { return string(r) }

// mostResults bounds how many results of hooks a manager keeps.
const mostResults = 100

// hookSet holds a manager's hooks and their results.
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

// AddHook adds a hook after the existing ones. It returns ErrNameTaken if the name is in use, and
// ErrInvalid for a hook without a function or with an unknown event.
func (m *Manager) AddHook(h Hook) error {
	if err := m.pass("Manager.AddHook"); err != nil {
		return err
	}
	return m.hooks.add(h)
}

// RemoveHook removes the hook of that name, or returns ErrNotFound. A call of the hook that is
// running still counts.
func (m *Manager) RemoveHook(name string) error {
	if err := m.pass("Manager.RemoveHook"); err != nil {
		return err
	}
	return m.hooks.remove(name)
}

// Hooks returns the manager's hooks, in the order in which they run.
func (m *Manager) Hooks() []Hook { return m.hooks.list() }

// HookResults returns the last hundred answers of hooks, the oldest first.
func (m *Manager) HookResults() []HookResult {
	m.hooks.mu.Lock()
	defer m.hooks.mu.Unlock()
	return slices.Clone(m.hooks.results)
}

// gate returns the hooks of a replica of this manager: those of settings files, and then the
// functions.
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

// ask runs one hook, and adds its answer to the verdict.
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
