package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"cadre/internal/engine"
	"cadre/internal/render"
	"cadre/internal/render/sanitize"
	"cadre/internal/team"
)

func (a *app) hooksCommand() *cobra.Command {
	var dir string
	c := &cobra.Command{
		Use: "hooks [TEAM]", Short: "List, switch off and try the hooks of a team", Args: atMost(1),
		Long: `List the hooks of a team: those in the settings files of the user and the project, and those of the
team itself. Without a team, list the hooks of the project in this directory.

A hook is a command for the event TaskCreated, TaskCompleted or TeammateIdle. If it ends with status 2, it rejects that.
Write it into settings.json in ~/.claude, or in .claude of the project, as for Claude Code:

  {"hooks": {"TaskCompleted": [{"hooks": [{"type": "command", "command": "make test"}]}]}}

Each hook has an ID, by which cadre hooks disable switches it off for the team and cadre hooks try runs it. A hook is
identified by its source, event and command: if the command changes, it is another hook. A project's hooks do not run
before cadre trust. Functions that a Go program added are known only to that program.`,
		Example: "  cadre hooks demo\n  cadre hooks disable demo 3f2a9c10\n  cadre hooks try demo TaskCompleted",
		RunE: func(c *cobra.Command, args []string) error {
			list, err := a.hooksFor(c, dir, args)
			if err != nil {
				return err
			}
			return a.printHooks(list)
		},
	}
	c.Flags().StringVar(&dir, "dir", "", "the hooks of this project, without a team")
	c.AddCommand(a.hookSwitch("disable", "Switch a hook off for a team", true),
		a.hookSwitch("enable", "Switch a hook of a team on again", false), a.hookTry())
	return c
}

// hooksFor returns the hooks of the project in dir. Without dir it returns those of the team, or of
// the project in the current directory if no team is named or meant.
func (a *app) hooksFor(c *cobra.Command, dir string, args []string) (list engine.HookList, err error) {
	if dir != "" && len(args) > 0 {
		return list, usage{errors.New("name a team or a directory, not both")}
	}
	var name string
	if len(args) > 0 {
		name = args[0]
	} else if dir == "" {
		name, err = a.theTeam(c)
		_, unclear := errors.AsType[usage](err)
		switch {
		case unclear || team.CodeOf(err) == team.NotFound:
			dir = "."
		case err != nil:
			return list, err
		}
	}
	if dir != "" {
		path, err := workDir(dir)
		if err != nil {
			return list, err
		}
		return a.engine().ListHooks(path)
	}
	of, err := a.engine().Look(c.Context(), name)
	if err != nil {
		return list, err
	}
	defer of.Close()
	return of.ListHooks()
}

// hookFrom says briefly where the hook comes from; the source implies the folder of the file.
func hookFrom(h engine.Hook) string {
	from := string(h.Source)
	switch {
	case h.Gone:
		return from + ", gone"
	case h.File != "":
		from += " " + filepath.Base(h.File)
	}
	if h.Line > 0 {
		from += fmt.Sprintf(":%d", h.Line)
	}
	return from
}

// hooksListed are the hooks in force.
type hooksListed struct {
	Team  string        `json:"team,omitempty"` // whose hooks they are; left out for a project's
	Dir   string        `json:"dir"`            // the project
	Hooks []engine.Hook `json:"hooks"`
	Notes []string      `json:"notes,omitempty"` // what is wrong with the settings files
}

// switched is a hook that was switched on or off for a team.
type switched struct {
	Team    string           `json:"team"`    // name of the team
	ID      string           `json:"id"`      // id of the hook
	Event   string           `json:"event"`   // TeammateIdle, TaskCreated or TaskCompleted
	Command string           `json:"command"` // command of the hook
	State   engine.HookState `json:"state"`   // on or off
}

func (a *app) printHooks(list engine.HookList) error {
	value := hooksListed{list.Team.Name, list.Dir, append([]engine.Hook{}, list.Hooks...), list.Notes}
	where := list.Dir
	if value.Team != "" {
		where = "team " + value.Team
	}
	return a.print(value, func(w *sanitize.Writer) error {
		if len(list.Hooks) == 0 {
			return w.Printf("%s has no hooks. How to write one: cadre hooks --help\n", where)
		}
		t := render.Table{Texts: []string{"COMMAND"}, Spare: []string{"TIMEOUT", "FROM"}}
		t.Row("ID", "EVENT", "STATE", "TIMEOUT", "FROM", "COMMAND")
		untrusted := false
		for _, h := range list.Hooks {
			limit := ""
			if h.Timeout > 0 {
				limit = fmt.Sprintf("%g s", h.Timeout.Std().Seconds())
			}
			untrusted = untrusted || h.State == engine.HookUntrusted
			t.Row(h.ID, h.Event, string(h.State), limit, hookFrom(h), h.Command)
		}
		err := t.Write(w)
		for _, note := range list.Notes {
			a.note(note)
		}
		if untrusted {
			a.note("this project's hooks are not trusted, and do not run. Read them, then: cadre trust --dir " +
				list.Dir)
		}
		return err
	})
}

func (a *app) hookSwitch(word, short string, off bool) *cobra.Command {
	state := engine.HookOn
	long := "Switch a hook on again that cadre hooks disable switched off. HOOK is an ID from cadre hooks."
	if off {
		state = engine.HookOff
		long = "Switch a hook off for one team, from now on and in every process. HOOK is an ID from cadre hooks, " +
			"or an event that has\njust one hook. The hook still runs for other teams."
	}
	return a.onTeam(1, &cobra.Command{
		Use: word + " [TEAM] HOOK", Short: short, Long: long,
		Example: fmt.Sprintf("  cadre hooks %s demo 3f2a9c10", word),
	}, func(c *cobra.Command, name string, args []string) error {
		see := func(h engine.Hook, already bool) error {
			words := "is switched"
			if already {
				words = "was already"
			}
			return a.print(switched{name, h.ID, h.Event, h.Command, state},
				said("the %s hook %s [%s] %s %s for team %s", h.Event, h.ID, h.Command, words, state, name))
		}
		return unknownHook(a.engine().SwitchHook(c.Context(), name, a.actor, args[0], off, see), name)
	})
}

// unknownHook adds to the refusal of a hook how to list those of the team, or of the directory.
func unknownHook(err error, words ...string) error {
	if _, is := errors.AsType[*engine.NoHookError](err); is {
		return withWays(err, way{"see the hooks", render.Typed("hooks", words...)})
	}
	return err
}

func (a *app) hookTry() *cobra.Command {
	var input, dir string
	c := &cobra.Command{
		Use: "try [TEAM] HOOK", Short: "Run a hook once and show what it answers",
		Long: `Run a hook once, with a made-up event or with --input, and show its exit status, its output and what
cadre makes of it. Nothing changes in the team. HOOK is an ID from cadre hooks, or an event that has just one hook. A
hook that is switched off can be tried; one of a project that is not trusted cannot.

The input is the JSON object that the hook reads on its standard input. The exit status of cadre
says whether the hook could be run, not what it answered.`,
		Example: "  cadre hooks try demo TaskCompleted\n  cadre hooks try --dir . 3f2a9c10 --input event.json",
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) != 1 && len(args) != 2 {
				return miscounted(c, args, 1, 2)
			}
			last := len(args) - 1
			list, err := a.hooksFor(c, dir, args[:last])
			if err != nil {
				return err
			}
			h, err := list.Find(args[last])
			if err != nil {
				where := []string{"--dir", list.Dir}
				if list.Team.Name != "" {
					where = []string{a.callable(list.Team)}
				}
				err = unknownHook(err, where...)
				return a.forgotten(c, args, 1, err)
			}
			var trial engine.HookTrial
			if input != "" {
				trial, err = list.TryWith(c.Context(), h, input, c.InOrStdin())
			} else {
				trial, err = list.Try(c.Context(), h, list.Sample(h))
			}
			if err != nil {
				return err
			}
			return a.print(trial, func(w *sanitize.Writer) error { return writeTrial(w, trial) })
		},
	}
	c.Flags().StringVar(&input, "input", "", "a file with the event as JSON; - for standard input")
	c.Flags().StringVar(&dir, "dir", "", "a hook of this project, without a team")
	return c
}

func writeTrial(w *sanitize.Writer, trial engine.HookTrial) error {
	how := fmt.Sprintf("exit status %d", trial.ExitCode)
	switch {
	case trial.TimedOut:
		how = "killed at its timeout"
	case trial.Error != "":
		how = "could not be run"
	case trial.Signal != "":
		how = "ended by signal: " + trial.Signal
	}
	verdict := "allowed"
	switch {
	case trial.Rejected:
		verdict = "rejected: " + sanitize.Line(trial.Feedback)
	case trial.Stop:
		verdict = "allowed, and a teammate may go idle whatever other hooks say"
	}
	err := errors.Join(w.Printf("%s hook %s: %s\n", trial.Event, trial.ID, sanitize.Line(trial.Command)),
		w.Printf("%s after %s\n%s\n", how, team.Span(trial.Took.Std()), verdict))
	for _, note := range trial.Notes {
		err = errors.Join(err, w.Printf("note: %s\n", sanitize.Line(note)))
	}
	for _, out := range []struct{ name, text string }{{"standard output", trial.Stdout},
		{"standard error", trial.Stderr}} {
		if text := strings.TrimRight(sanitize.Strip(out.text), "\n"); text != "" {
			err = errors.Join(err, w.Printf("%s:\n%s\n", out.name, sanitize.Block(text)))
		}
	}
	return err
}
