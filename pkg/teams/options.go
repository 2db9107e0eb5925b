package teams

import (
	"cmp"
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
	"cadre/internal/engine/database"
	"cadre/internal/layout"
	"cadre/internal/run"
	"cadre/internal/run/templates"
	"cadre/internal/team"
	"cadre/internal/ui/settings"
)

// Options configure a [Manager]. The zero Options lead teams in the user's own folders.
type Options struct {
	// Home is the folder in which teams are kept; "" for $CADRE_HOME, else ~/.cadre.
	Home string
	// ClaudeHome is Claude Code's folder; "" for $CLAUDE_CONFIG_DIR, else ~/.claude. Its
	// teams/<team>/config.json and tasks/<team>/ show the team to Claude Code, its settings.json
	// can have hooks, and its agents folder can have roles. The coding agents themselves use their
	// environment.
	ClaudeHome string
	// Store is the address of a PostgreSQL database that has the teams instead of Home: a URL, or a
	// list of parameters. "" stands for $CADRE_STORE, and without that for teams in Home. Home
	// still has what belongs to this machine. cadre store init makes the tables. So that no session
	// of an agent inherits the address, New removes CADRE_STORE and all variables that begin with
	// PG from the environment of the program.
	Store string
	// Memory, if not nil, keeps the teams in memory. It is for tests, and for programs that need
	// teams only while they run. Home and ClaudeHome are not used then: Claude Code does not see
	// the teams, only hooks that are functions run, and only the project's roles are found.
	Memory *Memory

	// Dir is where teams work unless their TeamConfig says otherwise; "" for the current directory.
	Dir string
	// As is the teammate that this manager acts as, in a team opened with OpenTeam; "" for the
	// lead. A teammate's manager cannot create a team, spawn, shut down or clean up, and runs no
	// sessions. A program that runs in a member's session always acts as that member. It finds the
	// member's name in $CADRE_MEMBER_NAME and the team's in $CADRE_TEAM.
	As string

	// Agents are your own agents, by the name in MemberConfig.Agent. They take precedence over the
	// built-in ones. An agent that leads may spawn them too. A member whose agent this manager does
	// not know waits for another manager that knows it.
	Agents map[string]Agent
	// Env is added to the environment of sessions and their tools, each as "name=value".
	Env []string
	// Helper is the command line of a program that Gemini, OpenCode and ACP agents start to reach
	// their team: the cadre program, or one that calls the function [Helper]. nil uses cadre from
	// PATH; if that does not exist, these agents cannot start.
	Helper []string

	// Hooks run before something happens in a team, in this order. [Manager.AddHook] adds more.
	Hooks []Hook
	// NoSettingsHooks turns off the commands in settings.json files. The hooks of a project also
	// have to be trusted once, with the command cadre trust.
	NoSettingsHooks bool

	// Gate makes New fail with ErrDisabled unless the feature is enabled; see [Enabled].
	Gate bool

	// ShutdownWithin bounds the time that [Team.Shutdown] gives a teammate to end; 0 for 30 s.
	ShutdownWithin time.Duration
	// StopGrace bounds the friendly part of a session's end; 0 for 5 s.
	StopGrace time.Duration

	// DisplayMode says where the members that this manager runs are shown; "" means
	// [DisplayInProcess]. A pane runs cadre attach, so panes need cadre in PATH, or in Helper.
	// Logger gets a message that says where the members are. CreateTeam and other methods that open
	// a team return ErrInvalid for a mode that does not work here.
	DisplayMode DisplayMode

	// Logger gets information that is not an error, and what agents say, from any goroutine; nil
	// for none. If an action of the user would help, the attribute "hints" has it, as a list of
	// [Hint].
	Logger *slog.Logger
}

// DisplayMode is where members are shown.
type DisplayMode string

// The modes, with the names of Claude Code's setting teammateMode.
const (
	DisplayAuto      DisplayMode = "auto"       // in panes, if the program's terminal has them
	DisplayInProcess DisplayMode = "in-process" // not shown; [View.Session] has their output
	DisplayTmux      DisplayMode = "tmux"       // in panes of tmux, if the program runs in tmux
	DisplayITerm2    DisplayMode = "iterm2"     // in panes of iTerm2
)

const defaultShutdownWithin = 30 * time.Second

// log sends the text to the logger.
func (o Options) log(text string) { o.Logger.Info(text) }

// advise sends the note to the logger, with the hints as an attribute.
func (o Options) advise(n team.Advice) {
	hints := make([]Hint, len(n.Hints))
	for i, h := range n.Hints {
		hints[i] = hint(h)
	}
	o.Logger.Info(n.Text, "hints", hints)
}

// Validate returns an error if the options are wrong.
func (o Options) Validate() error {
	if err := o.DisplayMode.validate(o.Memory != nil); err != nil {
		return err
	}
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

// Memory keeps teams in memory. The zero Memory is empty and ready for use. Managers with the same
// Memory see the same teams, as processes with the same home do. Files that sessions need are in a
// temporary folder while a manager has the team open. The folder stays longer if a member left work
// in a worktree there.
type Memory struct{ kept engine.Memory }

// engine returns the engine for teams on disk or in memory.
func (o Options) engine() (*engine.Engine, error) {
	e := &engine.Engine{Agents: o.drivers(), NoSettingsHooks: o.NoSettingsHooks, Log: o.log, Advise: o.advise}
	e.Nested = run.Nested(func(name, dir string) (run.Source, error) {
		return templates.Places{Home: e.Home}.Loader().Template(name, dir)
	})
	e.MachineTurns = func() (int, error) {
		s, err := settings.Load(settings.File(e.Home.Root))
		return s.MaxParallel, err
	}
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
	if address := cmp.Or(o.Store, database.Address()); address != "" {
		d, err := database.Open(address, e.Note)
		if err != nil {
			return nil, public(err)
		}
		h.Place = d.Place
	}
	return e, nil
}

// agents returns the agents whose sessions a host of this manager can run in that team.
func (o Options) agents(t *Team) func(name string) agent.Agent {
	return func(name string) agent.Agent {
		if a, ok := o.Agents[name]; ok {
			return agentAdapter{a, t}
		}
		return o.drivers().Agent(name)
	}
}

func (o Options) drivers() drivers.Set { return drivers.Set{Helper: o.Helper} }

func (o Options) knows(agent string) bool { return o.Agents[agent] != nil || drivers.Known(agent) }

// agentWords returns the names of agents, for an error.
func (o Options) agentWords() []string {
	return unique(slices.Sorted(maps.Keys(o.Agents)), drivers.Words())
}

// offers returns the agents that a lead may spawn: its own kind, the installed ones, and the
// program's.
func (o Options) offers(lead string) []string {
	return unique(drivers.Offers(lead), slices.Sorted(maps.Keys(o.Agents)))
}

// unique joins the lists without duplicates.
func unique(lists ...[]string) (all []string) {
	for _, name := range slices.Concat(lists...) {
		if !slices.Contains(all, name) {
			all = append(all, name)
		}
	}
	return all
}
