package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"cadre/internal/agent"
	"cadre/internal/agent/drivers"
	"cadre/internal/claude/teamfiles"
	"cadre/internal/guest"
	"cadre/internal/render"
	"cadre/internal/render/sanitize"
	"cadre/internal/team"
)

// teammateFlag is the first argument with which Claude Code starts a teammate. Its setting takes
// only a program, so cadre recognizes the start by this argument.
const teammateFlag = "--agent-id"

// asTeammate adds claude-teammate to the arguments if Claude Code starts cadre as a teammate.
func asTeammate(args []string) []string {
	if len(args) > 0 && (args[0] == teammateFlag || strings.HasPrefix(args[0], teammateFlag+"=")) {
		return append([]string{"claude-teammate"}, args...)
	}
	return args
}

// guestMember has the flags for a member of a Claude Code team.
type guestMember struct {
	team, name, kind, color string
	agent, model, mode      string
	key                     string
	skip, plan, joins       bool
}

func (a *app) teammateCommand() *cobra.Command {
	var s guestMember
	c := &cobra.Command{
		Use: "claude-teammate", Short: "Be a teammate that Claude Code starts, with any agent behind it",
		FParseErrWhitelist: cobra.FParseErrWhitelist{UnknownFlags: true},
		Long: `Be a teammate of a Claude Code team, with any agent behind it. Claude Code starts this command itself,
in a tmux pane, with these settings:

  CLAUDE_CODE_EXPERIMENTAL_AGENT_TEAMS=1 CLAUDE_CODE_TEAMMATE_COMMAND=$(which cadre) claude --teammate-mode tmux

You can also set both variables in "env", and "teammateMode", in Claude Code's settings.json. This file selects the
agent for a teammate, $CADRE_HOME/claude-teammates.yaml:

  teammates:
    - name: build-*        # name of the teammate; * matches any text
      agent: shell         # claude, codex, gemini, opencode, acp:COMMAND, claude-tmux or shell
    - type: reviewer       # the kind of agent that the lead asked for
      agent: gemini
    - agent: codex         # all others

The first matching entry counts. Without one, a teammate whose name or kind is an agent (codex, codex-2) is that
agent, and any other is claude. An entry can also set model, program (instead of the agent's own), args (a list) and
env (names and values). A shell teammate runs the tasks that have a command as "run" in their metadata. If the file
has a mistake, the lead is told.

The pane shows the agent at work. What you type there goes to the agent; y or n answers its permission request.`,
		RunE: func(c *cobra.Command, _ []string) error { // a newer version may pass words that are not known here
			if s.team == "" || s.name == "" {
				return withWays(usage{errors.New("Claude Code starts this command, with --agent-name and --team-name")},
					way{"join a team that runs", "cadre join TEAM --name NAME"})
			}
			return a.runGuest(c.Context(), s)
		},
	}
	f := c.Flags()
	f.String("agent-id", "", "name@team")
	f.StringVar(&s.name, "agent-name", "", "the teammate's name")
	f.StringVar(&s.team, "team-name", "", "the team's name")
	f.StringVar(&s.color, "agent-color", "", "color of its messages")
	f.StringVar(&s.kind, "agent-type", "", "the kind of agent that the lead asked for")
	f.StringVar(&s.model, "model", "", "the model, if the agent is claude")
	f.StringVar(&s.mode, "permission-mode", "", "what it may do without asking")
	f.BoolVar(&s.plan, "plan-mode-required", false, "it needs an approved plan before it changes anything")
	f.BoolVar(&s.skip, "dangerously-skip-permissions", false, "it does not ask before a tool runs")
	f.String("parent-session-id", "", "session of the lead")
	f.StringVar(&s.key, "lead-verify-key", "", "key of the lead's signatures")
	return c
}

func (a *app) joinCommand() *cobra.Command {
	s := guestMember{joins: true}
	c := &cobra.Command{
		Use: "join TEAM", Short: "Join a team that Claude Code runs, with any agent", Args: exactly(1),
		Long: `Join a team that Claude Code runs, as one more teammate with any agent behind it. The lead and the
teammates can write to it by its name, and it takes part in the task list. It leaves when the lead shuts it down, when
the team ends, and with Ctrl-C. After a kill, the same command resumes it with its history.

TEAM is the name of a folder in Claude Code's teams folder: ls ~/.claude/teams
A lead that has not spawned a teammate itself does not read its mail: let it spawn one, or start it with the settings of
cadre claude-teammate.`,
		RunE: func(c *cobra.Command, args []string) error {
			if s.team = args[0]; s.name == "" {
				return usage{errors.New("name the teammate with --name NAME")}
			}
			return a.runGuest(c.Context(), s)
		},
	}
	c.Flags().StringVar(&s.name, "name", "", "name on the team (needed)")
	c.Flags().StringVar(&s.agent, "agent", "", strings.Join(drivers.Running(), ", ")+
		"; by default the one in $CADRE_HOME/"+guest.ConfigFile)
	c.Flags().StringVar(&s.model, "model", "", "the agent's model")
	c.Flags().StringVar(&s.kind, "type", "general-purpose", "what kind of agent it is, as the others see it")
	c.Flags().StringVar(&s.mode, "permission-mode", "", "what it may do without asking: "+strings.Join(
		team.PermissionModes, ", "))
	return c
}

// again returns the command with which a person resumes the member after a kill: with all flags
// that make it the same agent under the same rules.
func (s guestMember) again() string {
	words, kind := []string{"cadre", "claude-teammate", "--agent-name", s.name, "--team-name", s.team}, "--agent-type"
	if s.joins {
		words, kind = []string{"cadre", "join", s.team, "--name", s.name}, "--type"
	}
	for _, flag := range []struct{ name, value string }{{"--agent", s.agent}, {kind, s.kind}, {"--model", s.model},
		{"--agent-color", s.color}, {"--permission-mode", s.mode}} {
		if flag.value != "" {
			words = append(words, flag.name, sanitize.Quote(flag.value))
		}
	}
	if s.plan && !s.joins { // then its mode says so
		words = append(words, "--plan-mode-required")
	}
	if s.skip {
		words = append(words, "--dangerously-skip-permissions")
	}
	return strings.Join(words, " ")
}

// reportKilledCommand is what the watchdog runs after the process of a member was killed.
func (a *app) reportKilledCommand() *cobra.Command {
	return &cobra.Command{
		Use: "report-killed TEAM NAME COMMAND", Hidden: true, Args: exactly(3),
		Short: "Tell the lead of a Claude Code team that a member was killed, and how to start it again",
		RunE: func(c *cobra.Command, args []string) error {
			ctx, cancel := context.WithTimeout(c.Context(), reportKilledTime)
			defer cancel()
			return guest.ReportKilled(ctx, a.home.Claude, a.home.Guests(), args[0], args[1], args[2])
		},
	}
}

// reportKilledTime is longer than the member's stale locks are respected: a minute each, for the
// team's configuration, the lead's inbox and its own.
const reportKilledTime = 5 * time.Minute

// excuseTime bounds the wait for the lead's inbox.
const excuseTime = 10 * time.Second

// behind returns the agent that runs the teammate. If the flags name no agent, it is the one in the
// user's configuration.
func (a *app) behind(s guestMember) (choice guest.Choice, driver agent.Agent, err error) {
	choice.Agent = s.agent
	if s.agent == "" {
		if choice, err = guest.Choose(filepath.Join(a.home.Root, guest.ConfigFile), s.name, s.kind,
			drivers.Known); err != nil {
			return choice, nil, withWays(usage{err}, way{seeHelp, "cadre claude-teammate --help"})
		}
	}
	if driver = agents().Agent(choice.Agent); driver == nil {
		err = usage{fmt.Errorf("%q is not an agent; use one of: %s", choice.Agent,
			strings.Join(drivers.Running(), ", "))}
	}
	return choice, driver, err
}

// ofClaudeCode are variables by which Claude Code marks its own child processes. A session of cadre
// is not one.
var ofClaudeCode = []string{"CLAUDECODE", "CLAUDE_CODE_ENTRYPOINT", "CLAUDE_CODE_EXPERIMENTAL_AGENT_TEAMS",
	"CLAUDE_CODE_TEAMMATE_COMMAND", "CLAUDE_CODE_SSE_PORT"}

// runGuest runs a member of a Claude Code team to its end.
func (a *app) runGuest(ctx context.Context, s guestMember) (err error) {
	stays()
	t, err := teamfiles.Open(a.home.Claude, s.team)
	if err != nil {
		return err
	}
	choice, driver, err := a.chosenFor(ctx, s, t)
	if err != nil {
		return err
	}
	s.plan = s.plan || s.joins && s.mode == "plan"
	mode, err := s.permissions()
	if err != nil {
		return err
	}
	dir, err := workDir(".")
	if err != nil {
		return err
	}
	for _, name := range ofClaudeCode {
		os.Unsetenv(name)
	}
	if err := guest.Sweep(ctx, a.home.Claude, a.home.Guests()); err != nil {
		a.fail(err) // files of other members stay
	}
	slot, err := guest.TakeSlot(ctx, a.home.Guests(), t, s.name, choice.Agent)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, slot.Leave(context.WithoutCancel(ctx))) }()
	var key *teamfiles.LeadKey
	if !s.joins {
		if key, err = slot.LeadKey(ctx, s.key); err != nil {
			return usage{err}
		}
	}
	if err := slot.Procs.RunOnDeath("/usr/bin/env", "CADRE_HOME="+a.home.Root, "CLAUDE_CONFIG_DIR="+a.home.Claude,
		self(), "report-killed", s.team, s.name, s.again()); err != nil {
		return err
	}
	if s.joins {
		if err := s.enroll(ctx, slot, choice.Model, mode, dir); err != nil {
			return err
		}
	}
	a.note(fmt.Sprintf("%s is %s on team %s; what you type goes to it", choice.Agent, s.name, s.team))
	return guest.Work(ctx, guest.Options{Team: t, Name: s.name, Agent: driver, AgentName: choice.Agent,
		PlanRequired: s.plan, LeadKey: key, Color: s.color, Pane: os.Getenv("TMUX_PANE"),
		Leaves: s.joins, Slot: slot, Relay: agents().Relay(), Show: a.out.Writer, Input: lines(os.Stdin),
		Spec: agent.Spec{Model: choice.Model, Program: choice.Program, Args: choice.Args, Env: choice.Env, Dir: dir,
			Scratch: slot.Scratch(), Procs: slot.Procs,
			Access: agent.Access{Mode: mode}}})
}

// chosenFor returns the agent that works as the member. If no agent was chosen, it tells the lead
// that started the member.
func (a *app) chosenFor(ctx context.Context, s guestMember, t *teamfiles.Team) (
	choice guest.Choice, driver agent.Agent, err error) {
	if c, err := t.Config(ctx); err != nil {
		return choice, nil, err
	} else if c.Cadre != nil {
		return choice, nil, withWays(
			usage{fmt.Errorf("team %s is one of cadre's, which Claude Code's folder only shows", s.team)},
			way{"add a teammate", render.Typed("spawn", s.team, s.name)})
	}
	choice, driver, err = a.behind(s)
	if err != nil && !s.joins {
		excusing, cancel := context.WithTimeout(ctx, excuseTime)
		defer cancel()
		return choice, nil, errors.Join(err, guest.ReportNotStarted(excusing, t, s.name, s.color, err))
	}
	// The names of the lead's models mean nothing to other agents.
	if s.model != "" && (choice.Model == "" && choice.Agent == team.Claude || s.joins) {
		choice.Model = s.model
	}
	return choice, driver, err
}

func (s guestMember) permissions() (string, error) {
	switch {
	case s.skip:
		return "bypassPermissions", nil
	case s.mode == "" || s.mode == "plan":
		return "default", nil
	case !slices.Contains(team.PermissionModes, s.mode):
		if s.joins {
			return "", usage{fmt.Errorf("%q is not a permission mode; use one of: %s", s.mode,
				strings.Join(team.PermissionModes, ", "))}
		}
		return "default", nil // a mode of a newer version: asking more is safe
	}
	return s.mode, nil
}

// enroll adds the member to the roster.
func (s guestMember) enroll(ctx context.Context, slot *guest.Slot, model, mode, dir string) error {
	prompt, pane := "", os.Getenv("TMUX_PANE")
	active, backend := false, "tmux"
	if pane == "" {
		pane, backend = "in-process", "in-process"
	}
	return slot.Join(ctx, teamfiles.Member{AgentID: s.name + "@" + s.team, Name: s.name, AgentType: s.kind,
		Model: &model, Prompt: &prompt, Color: s.color, PlanModeRequired: &s.plan,
		JoinedAt: time.Now().UnixMilli(), TmuxPaneID: pane, Cwd: dir, Subscriptions: []string{}, BackendType: backend,
		IsActive: &active, Mode: mode})
}

// mostTyped bounds a line; pasted text may be long.
const mostTyped = 1 << 20

// lines returns the typed lines, until the input ends.
func lines(in *os.File) <-chan string {
	all := make(chan string)
	go func() {
		defer close(all)
		scan := bufio.NewScanner(in)
		for scan.Buffer(nil, mostTyped); scan.Scan(); {
			all <- scan.Text()
		}
	}()
	return all
}
