package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"cadre/internal/hook"
	"cadre/internal/replica"
	"cadre/internal/sys/proc"
	"cadre/internal/sys/regularfile"
	"cadre/internal/team"
)

// HookState says whether a hook runs.
type HookState string

// The states of a hook.
const (
	HookOn        HookState = "on"
	HookOff       HookState = "off"       // the user switched it off for the team
	HookUntrusted HookState = "untrusted" // it came with the repository, and the user has not trusted its present form
)

// Hook is one hook of a project or a team, and whether it runs.
type Hook struct {
	ID      string        `json:"id"`                // id of the hook
	Event   string        `json:"event"`             // TeammateIdle, TaskCreated or TaskCompleted
	Command string        `json:"command"`           // command for /bin/sh; for a function its name
	State   HookState     `json:"state"`             // on, off or untrusted
	Source  hook.Source   `json:"source"`            // where it is set up: user, project, local, team or program
	File    string        `json:"file,omitempty"`    // path of the settings file or team file; "" for none
	Line    int           `json:"line,omitempty"`    // line of the file on which it begins; 0 if unknown
	Matcher string        `json:"matcher,omitempty"` // matcher in the settings file; it has no effect
	Timeout team.Duration `json:"millis,omitempty"`  // its timeout; 0 for a function
	By      string        `json:"by,omitempty"`      // who switched it off
	At      team.Time     `json:"at,omitempty"`      // when it was switched off
	Gone    bool          `json:"gone,omitempty"`    // it is switched off, and no settings file has it any more

	hook hook.Hook
}

// HookList has the hooks of a project, or of a team.
type HookList struct {
	Dir   string
	Team  team.Team // the zero Team for a project
	Hooks []Hook    // in the order in which they run, and then those that are not set up any more
	Notes []string  // settings that have no effect

	config *hook.Config
	trust  hook.Trust
}

// ListHooks reads the hooks of the project in dir.
func (e *Engine) ListHooks(dir string) (HookList, error) {
	config, err := hook.Load(e.Home.Claude, dir, nil)
	return e.hookList(config, team.Team{}, nil, err)
}

// ListHooks reads the hooks of the team, also those that are switched off. Functions are hooks of
// the calling program. An engine without settings files has only these.
func (t *Team) ListHooks(functions ...hook.Hook) (HookList, error) {
	of := t.Team()
	if err := of.CheckOurs(); err != nil {
		return HookList{}, err
	}
	return t.engine.hooksOf(of, functions)
}

func (e *Engine) hooksOf(of team.Team, functions []hook.Hook) (HookList, error) {
	if e.NoSettingsHooks || e.Memory != nil {
		return e.hookList(&hook.Config{Dir: of.Dir}, of, functions, nil)
	}
	config, err := replica.HooksOf(e.Home.Claude, of)
	return e.hookList(config, of, functions, err)
}

func (e *Engine) hookList(config *hook.Config, of team.Team, functions []hook.Hook, err error) (HookList, error) {
	if _, is := errors.AsType[*hook.SettingsError](err); is {
		return HookList{}, team.Refuse(team.Invalid, "%s", err)
	}
	if err != nil {
		return HookList{}, err
	}
	list := HookList{Dir: config.Dir, Team: of, Notes: config.Notes, config: config, trust: e.trust()}
	trusted, err := list.trust.Trusted(config)
	if err != nil {
		return HookList{}, err
	}
	for _, h := range slices.Concat(config.Hooks, functions) {
		list.Hooks = append(list.Hooks, listed(h, of, trusted))
	}
	for _, off := range of.HooksOff {
		if !slices.ContainsFunc(list.Hooks, func(h Hook) bool { return h.ID == off.ID }) {
			list.Hooks = append(list.Hooks, Hook{ID: off.ID, Event: off.Event, Command: off.Command, State: HookOff,
				Source: hook.Source(off.Source), By: off.By, At: off.At, Gone: true})
		}
	}
	return list, nil
}

func listed(h hook.Hook, of team.Team, trusted bool) Hook {
	one := Hook{ID: h.ID(), Event: h.Event, Command: h.Command, State: HookOn, Source: h.Source, File: h.File,
		Line: h.Line, Matcher: h.Matcher, hook: h}
	if h.Source != hook.Program {
		one.Timeout = team.Duration(h.Limit())
	}
	if h.Source.NeedsTrust() && !trusted {
		one.State = HookUntrusted
	}
	for _, off := range of.HooksOff {
		if off.ID == one.ID {
			one.State, one.By, one.At = HookOff, off.By, off.At
		}
	}
	return one
}

// Find returns the hook that a person names: by its ID, or by its event if the event has just one
// hook. Hooks that are not set up any more are found only by their ID.
func (l HookList) Find(name string) (Hook, error) {
	var of []Hook
	var names []string
	known := "no hooks are set up"
	for i, h := range l.Hooks {
		if h.ID == name {
			return h, nil
		}
		names = append(names, h.Event, h.ID)
		if h.Event == name && !h.Gone {
			of = append(of, h)
		}
		if i == 0 {
			known = "the hooks are "
		} else {
			known += ", "
		}
		known += fmt.Sprintf("%s (%s)", h.ID, h.Event)
	}
	if len(of) == 1 {
		return of[0], nil
	}
	if len(of) > 1 {
		return Hook{}, &NoHookError{fmt.Sprintf("%q names several hooks. Name one by its id; %s", name, known)}
	}
	if near := team.Nearest(name, names); near != "" {
		return Hook{}, &NoHookError{fmt.Sprintf("no hook is called %q, did you mean %s?", name, near)}
	}
	return Hook{}, &NoHookError{fmt.Sprintf("no hook is called %q; %s", name, known)}
}

// NoHookError says that no hook, or more than one, has a name.
type NoHookError struct{ said string }

func (e *NoHookError) Error() string { return e.said }

func (e *NoHookError) Unwrap() error { return team.Refuse(team.NotFound, "%s", e.said) }

// Switch returns the command that switches the hook off for a team, or on again.
func (h Hook) Switch(off bool) *team.SwitchHook {
	return &team.SwitchHook{ID: h.ID, Event: h.Event, Source: string(h.Source), Command: h.Command, Off: off}
}

// SwitchHook switches the named hook of the team off or on, as the actor; see is called with the
// hook, and with whether it was so already.
func (e *Engine) SwitchHook(ctx context.Context, name, actor, hook string, off bool,
	see func(h Hook, already bool) error) error {
	var one Hook
	return e.ActOn(ctx, name, actor, func(s *team.State) (team.Body, error) {
		list, err := e.hooksOf(s.Team(), nil)
		if err == nil {
			one, err = list.Find(hook)
		}
		return one.Switch(off), err
	}, func(_ *Team, r *team.Record) error { return see(one, r == nil) })
}

// HookTrial is one run of one hook, and how its answer is read.
type HookTrial struct {
	ID      string      `json:"id"`      // id of the hook
	Event   string      `json:"event"`   // TeammateIdle, TaskCreated or TaskCompleted
	Command string      `json:"command"` // command that was run by /bin/sh
	Source  hook.Source `json:"source"`  // where it is set up: user, project, local or team
	// exit status; -1 if a signal ended the command, or if it could not be run
	ExitCode int           `json:"exitCode"`
	Signal   string        `json:"signal,omitempty"`   // signal that ended the command; "" for none
	Stdout   string        `json:"stdout"`             // its standard output; long output is cut in the middle
	Stderr   string        `json:"stderr"`             // its standard error; long output is cut in the middle
	Took     team.Duration `json:"millis"`             // how long it ran
	TimedOut bool          `json:"timedOut"`           // it was ended at its timeout
	Error    string        `json:"error,omitempty"`    // why it could not be run
	Rejected bool          `json:"rejected"`           // it rejects the event
	Feedback string        `json:"feedback,omitempty"` // what it would tell the agent, if it rejects
	Stop     bool          `json:"stop,omitempty"`     // it answered {"continue": false}
	Reason   string        `json:"reason,omitempty"`   // its reason to stop
	Notes    []string      `json:"notes,omitempty"`    // what is wrong with its answer
}

// Sample returns a made-up event for a trial of the hook.
func (l HookList) Sample(h Hook) hook.Event {
	event := hook.Sample(h.Event)
	if l.Team.ID != "" {
		event.TeamID, event.TeamName, event.MemberID = l.Team.ID, l.Team.Name, event.Member+"@"+l.Team.Name
	}
	return event
}

// Try runs the hook once and changes nothing in the team. It refuses an untrusted hook and one that
// is gone.
func (l HookList) Try(ctx context.Context, h Hook, event hook.Event) (HookTrial, error) {
	return l.try(ctx, h, event, nil)
}

// mostInput bounds the input of a hook that is tried, in bytes: more than any event has.
const mostInput = 8 << 20

// TryWith is Try with the JSON in a file as the input; - stands for standard input. The event that
// the input names, if any, must be the hook's.
func (l HookList) TryWith(ctx context.Context, h Hook, file string, stdin io.Reader) (HookTrial, error) {
	var data []byte
	var err error
	if file != "-" {
		data, err = regularfile.Read(file, mostInput)
	} else if data, err = io.ReadAll(io.LimitReader(stdin, mostInput+1)); err == nil && len(data) > mostInput {
		err = fmt.Errorf("standard input has more than %d bytes", mostInput)
	}
	var event hook.Event
	if err == nil {
		event, err = hook.ReadEvent(data)
	}
	if err == nil && event.Name != "" && event.Name != h.Event {
		err = fmt.Errorf("the input is for the event %q, and hook %s is for %s", event.Name, h.ID, h.Event)
	}
	if err != nil {
		return HookTrial{}, team.Refuse(team.Invalid, "%s", err)
	}
	return l.try(ctx, h, event, data)
}

func (l HookList) try(ctx context.Context, h Hook, event hook.Event, input []byte) (HookTrial, error) {
	if h.Gone || h.Source == hook.Program {
		return HookTrial{}, team.Refuse(team.NotFound, "hook %s [%s] is not set up here any more", h.ID, h.Command)
	}
	children, err := proc.Open("")
	if err != nil {
		return HookTrial{}, err
	}
	defer children.Close(context.WithoutCancel(ctx))
	runner := hook.Runner{Config: l.config, Trust: l.trust, Children: children}
	t, err := runner.Try(ctx, h.hook, event, input)
	if errors.Is(err, hook.ErrUntrusted) {
		err = team.Refuse(team.Denied, "%s", err).With(team.Hint{Action: team.ActTrust, Dir: l.Dir})
	}
	trial := HookTrial{ID: h.ID, Event: h.Event, Command: h.Command, Source: h.Source, ExitCode: t.ExitCode,
		Signal: t.Signal, Stdout: t.Stdout, Stderr: t.Stderr, Took: team.Duration(t.Duration), TimedOut: t.TimedOut,
		Rejected: t.Rejected, Feedback: t.Feedback, Stop: t.Stop, Reason: t.Reason, Notes: t.Notes}
	if t.Err != nil {
		trial.Error = t.Err.Error()
	}
	return trial, err
}
