package teams_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"cadre/pkg/teams"
)

// TestSwitchHooks checks that the hooks of settings files, of the team and of the program are in
// one list. Each can be tried and disabled. A disabled hook stays disabled for the next manager.
func TestSwitchHooks(t *testing.T) {
	if testing.Short() {
		t.Skip("it waits for hooks; not with -short")
	}
	t.Parallel()
	o := folders(t)
	ok(t, os.MkdirAll(o.ClaudeHome, 0o700))
	settings := filepath.Join(o.ClaudeHome, "settings.json")
	ok(t, os.WriteFile(settings, []byte(`{"hooks": {"TaskCreated": [{"matcher": "x", "hooks": [
		{"type": "command", "command": "echo no >&2; exit 2", "timeout": 5}]}]}}`), 0o600))
	said := ""
	o.Hooks = []teams.Hook{{Name: "mine", Event: teams.HookTaskCreated,
		Ask: func(_ context.Context, e teams.HookEvent) error {
			said += e.Subject + ";"
			return teams.Reject("not mine")
		}}}
	m := manage(t, o)
	team, err := m.CreateTeam(limited(t), teams.TeamConfig{Name: "core", Hooks: []teams.HookCommand{
		{Event: teams.HookTaskCreated, Command: "sleep 1000", Timeout: time.Second}}})
	ok(t, err)
	hooks, err := team.Hooks(limited(t))
	ok(t, err)
	equal(t, "hooks", len(hooks), 3)
	user, own, function := hooks[0], hooks[1], hooks[2]
	equal(t, "the user's", user, teams.TeamHook{ID: user.ID, Event: teams.HookTaskCreated, Source: teams.HookOfUser,
		Command: "echo no >&2; exit 2", File: settings, Line: 2, Matcher: "x", Timeout: 5 * time.Second,
		State: teams.HookOn})
	equal(t, "the team's", own, teams.TeamHook{ID: own.ID, Event: teams.HookTaskCreated, Source: teams.HookOfTeam,
		Command: "sleep 1000", Timeout: time.Second, State: teams.HookOn})
	equal(t, "the function", function, teams.TeamHook{ID: function.ID, Event: teams.HookTaskCreated,
		Source: teams.HookOfProgram, Name: "mine", State: teams.HookOn})

	trial, err := team.TryHook(limited(t), user.ID, nil)
	ok(t, err)
	trial.Took = 0
	equal(t, "the user's", trial, teams.HookTrial{ExitCode: 2, Stderr: "no\n", Rejected: true, Feedback: "no"})
	trial, err = team.TryHook(limited(t), own.ID, &teams.HookEvent{Subject: "look"})
	ok(t, err)
	equal(t, "timed out", trial.TimedOut && !trial.Rejected && trial.Took >= time.Second, true)
	trial, err = team.TryHook(limited(t), function.ID, &teams.HookEvent{Subject: "look"})
	ok(t, err)
	equal(t, "the function", trial.Feedback, "not mine")
	equal(t, "asked about", said, "look;")
	_, err = team.TryHook(limited(t), "TaskCreated", nil) // two commands have this event
	want(t, err, teams.ErrNotFound)
	_, err = team.TryHook(limited(t), "none", nil)
	want(t, err, teams.ErrNotFound)

	create := func() error {
		_, err := team.Tasks().Create(limited(t), teams.TaskConfig{Subject: "look"})
		return err
	}
	want(t, create(), teams.ErrRejected)
	want(t, team.DisableHook(limited(t), "none"), teams.ErrNotFound)
	ok(t, team.DisableHook(limited(t), user.ID))
	ok(t, team.DisableHook(limited(t), user.ID)) // it is disabled already
	ok(t, team.DisableHook(limited(t), own.ID))
	want(t, create(), teams.ErrRejected) // by the function
	ok(t, team.DisableHook(limited(t), function.ID))
	ok(t, create())
	switched := first(t, team, func(e teams.HookSwitched) bool { return e.ID == function.ID })
	equal(t, "event", switched, teams.HookSwitched{ID: function.ID, Event: teams.HookTaskCreated,
		Source: teams.HookOfProgram, Command: "mine", Off: true})
	ok(t, m.Close())

	again, err := teams.New(o)
	ok(t, err)
	t.Cleanup(func() { again.Close() })
	team, err = again.OpenTeam(limited(t), "core")
	ok(t, err)
	ok(t, create())
	hooks, err = team.Hooks(limited(t))
	ok(t, err)
	for _, h := range hooks {
		if h.State != teams.HookOff || h.By != teams.User || h.At.IsZero() || h.Gone {
			t.Errorf("a disabled hook: %+v", h)
		}
	}
	ok(t, os.Remove(settings))
	ok(t, again.RemoveHook("mine"))
	hooks, err = team.Hooks(limited(t))
	ok(t, err)
	equal(t, "hooks", len(hooks), 3)
	equal(t, "gone", hooks[1].Gone && hooks[2].Gone && !hooks[0].Gone, true)
	ok(t, team.EnableHook(limited(t), user.ID))
	ok(t, team.EnableHook(limited(t), function.ID))
	hooks, err = team.Hooks(limited(t))
	ok(t, err)
	equal(t, "hooks", len(hooks), 1)
	broken := errors.New("cannot judge")
	ok(t, again.AddHook(teams.Hook{Name: "mine", Event: teams.HookTaskCreated,
		Ask: func(context.Context, teams.HookEvent) error { return broken }}))
	trial, err = team.TryHook(limited(t), function.ID, nil)
	ok(t, err)
	equal(t, "error", trial.Err, broken)
	ok(t, os.WriteFile(settings, []byte(`{`), 0o600))
	if _, err = team.Hooks(limited(t)); err == nil {
		t.Error("unreadable settings return no error")
	}
}

// TestHooksInMemory checks that a team in memory has only function hooks.
func TestHooksInMemory(t *testing.T) {
	m := manage(t, teams.Options{Hooks: []teams.Hook{{Event: teams.HookTaskCreated,
		Ask: func(context.Context, teams.HookEvent) error { return teams.Reject("no") }}}})
	team := create(t, m, "core")
	hooks, err := team.Hooks(limited(t))
	ok(t, err)
	equal(t, "hooks", len(hooks), 1)
	ok(t, team.DisableHook(limited(t), hooks[0].ID))
	_, err = team.Tasks().Create(limited(t), teams.TaskConfig{Subject: "look"})
	ok(t, err)
}
