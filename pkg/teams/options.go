package teams

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"path/filepath"
	"slices"
	"time"

	"cadre/internal/agent"
	"cadre/internal/agent/drivers"
	"cadre/internal/engine"
	"cadre/internal/layout"
	"cadre/internal/team"
)

// Options of a [Manager]. The zero Options are the lead of teams in the user's own folders.
type Options struct {
	// Home is the folder in which teams are kept; "" for $CADRE_HOME, else ~/.cadre.
	Home string
	// ClaudeHome is Claude Code's folder, where teams/<team>/config.json and tasks/<team>/ show the
	// team to that program, and whose settings.json can have hooks and whose agents folder can have
	// roles; "" for $CLAUDE_CONFIG_DIR, else ~/.claude. The coding agents themselves go by their
	// environment.
	ClaudeHome string
	// Memory, when not nil, keeps the teams in memory, for tests and for programs that need them no
	// longer than they run. Home and ClaudeHome are not used then, nothing is shown to Claude Code,
	// of the hooks only the functions run, and of the roles only the project's are found.
	Memory *Memory

	// Dir is where teams work unless their TeamConfig says otherwise; "" for the current directory.
	Dir string
	// As is the teammate that this manager acts as, in a team opened with OpenTeam; "" for the
	// lead. A teammate's manager cannot create a team, spawn, shut down or clean up, and runs no
	// sessions. A program that runs in a member's session acts as that member, whatever it says
	// here. It finds the name in $CADRE_MEMBER_NAME and its team's in $CADRE_TEAM.
	As string

	// Agents are your own agents, by the name that MemberConfig.Agent uses; they stand before the
	// ones that are always there. A lead that is an agent may spawn them too. A member whose agent
	// no manager knows waits for one that does.
	Agents map[string]Agent
	// Env is added to the environment of sessions, and so of what their tools run, each as
	// "name=value".
	Env []string
	// Helper is the command line of a program that Gemini, OpenCode and ACP agents start to reach
	// their team: the cadre program, or one that calls the function [Helper]. nil is for cadre from
	// PATH; without that, these agents cannot be started.
	Helper []string

	// Hooks are asked before something happens in a team, in this order. [Manager.AddHook] adds
	// others.
	Hooks []Hook
	// NoSettingsHooks turns the commands in settings.json files off. A project's own hooks also
	// need to be trusted once, with the command cadre trust.
	NoSettingsHooks bool

	// Gate makes New fail with ErrDisabled unless the feature is enabled; see [Enabled].
	Gate bool

	// ShutdownWithin is what [Team.Shutdown] gives a teammate to end before it is ended; 0 for 30
	// s.
	ShutdownWithin time.Duration
	// StopGrace is what a session gets for the friendly part of its end, once that is decided; 0
	// for 5 s.
	StopGrace time.Duration

	// Logger is told what is worth knowing and no error, and what agents say, from any goroutine;
	// nil for nobody. Where something would change what it is told, that is the attribute "hints", a
	// list of [Hint].
	Logger *slog.Logger
}

const defaultShutdownWithin = 30 * time.Second

// log tells the logger.
func (o Options) log(text string) { o.Logger.Info(text) }

// advise tells the logger, with the hints as an attribute.
func (o Options) advise(n team.Note) {
	hints := make([]Hint, len(n.Hints))
	for i, h := range n.Hints {
		hints[i] = hint(h)
	}
	o.Logger.Info(n.Text, "hints", hints)
}

// Validate reports what is wrong with the options.
func (o Options) Validate() error {
	for name, a := range o.Agents {
		switch {
		case name == "" || a == nil:
			return fmt.Errorf("teams: agent %q: an agent needs a name and a value", name)
		case name == External:
			return errors.New("teams: an agent cannot be named external: that is a member without a session")
		}
	}
	switch {
	case o.ShutdownWithin < 0 || o.StopGrace < 0:
		return errors.New("teams: ShutdownWithin and StopGrace cannot be negative")
	case o.As != "" && !team.ValidName(o.As):
		return fmt.Errorf("teams: As %q is not the name of a member", o.As)
	}
	return nil
}

// withDefaults checks the options and fills in what was left out.
func (o Options) withDefaults() (Options, error) {
	if err := o.Validate(); err != nil {
		return o, err
	}
	if o.Gate && !Enabled(o) {
		return o, ErrDisabled
	}
	if o.ShutdownWithin == 0 {
		o.ShutdownWithin = defaultShutdownWithin
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Helper == nil {
		o.Helper = usualHelper()
	}
	var err error
	o.Dir, err = filepath.Abs(o.Dir)
	return o, err
}

// Memory keeps teams in memory. The zero Memory is empty and ready for use; managers that have it
// in common see the same teams, as processes do that have a folder in common. What sessions need of
// the disk is in a temporary folder while a manager has the team open, and longer where a member
// left work in a worktree there.
type Memory struct{ kept engine.Memory }

// engine opens teams where the options say that they are kept.
func (o Options) engine() (*engine.Engine, error) {
	e := &engine.Engine{Agents: o.drivers(), NoSettingsHooks: o.NoSettingsHooks, Log: o.log, Advise: o.advise}
	if o.Memory != nil {
		e.Memory = &o.Memory.kept
		return e, nil
	}
	h := &e.Home
	h.Dir = o.Dir
	var err error
	if o.Home == "" || o.ClaudeHome == "" {
		found, err := layout.Find()
		if err != nil {
			return nil, err
		}
		*h = found.In(o.Dir)
	}
	for _, folder := range []struct {
		to  *string
		set string
	}{{&h.Root, o.Home}, {&h.Claude, o.ClaudeHome}} {
		if folder.set == "" {
			continue
		}
		if *folder.to, err = filepath.Abs(folder.set); err != nil {
			return nil, err
		}
	}
	return e, nil
}

// agents are all that a host of this manager can run sessions of, in that team.
func (o Options) agents(t *Team) func(name string) agent.Agent {
	return func(name string) agent.Agent {
		if a, ok := o.Agents[name]; ok {
			return plug{a, t}
		}
		return o.drivers().Agent(name)
	}
}

func (o Options) drivers() drivers.Set { return drivers.Set{Helper: o.Helper} }

func (o Options) knows(agent string) bool { return o.Agents[agent] != nil || drivers.Known(agent) }

// agentWords are the names of agents, for an error.
func (o Options) agentWords() []string {
	return unique(slices.Sorted(maps.Keys(o.Agents)), drivers.Words())
}

// offers are the agents that a lead may spawn: its own, those that are installed, and the
// program's.
func (o Options) offers(lead string) []string {
	return unique(drivers.Offers(lead), slices.Sorted(maps.Keys(o.Agents)))
}

// unique is one list after the other, without what comes again.
func unique(lists ...[]string) (all []string) {
	for _, name := range slices.Concat(lists...) {
		if !slices.Contains(all, name) {
			all = append(all, name)
		}
	}
	return all
}
