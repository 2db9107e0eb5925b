package main

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/spf13/cobra"

	"cadre/internal/access"
	"cadre/internal/engine"
	"cadre/internal/engine/database"
	"cadre/internal/layout"
	"cadre/internal/render"
	"cadre/internal/render/sanitize"
	"cadre/internal/run"
	"cadre/internal/sys/proc"
	"cadre/internal/team"
)

// app is the state that all commands share.
type app struct {
	home layout.Home
	who  access.Caller // the caller; home is scoped to it
	// actor acts with the command: the member that its flags name, the member in whose session
	// cadre was called, or the user. A command that only reads has none.
	actor string
	reads bool   // the command changes nothing
	named string // the team that an argument names, if the command changes it
	team  string // the team that the command is about; "" for none, or before it is known
	haste haste
	typed []string // the arguments, from the name of the command
	out   output
	err   output
	json  bool
	store string // the flag --store
	// database has the teams; nil for teams on files
	database *database.Database
	others   []*database.Database // that this command uses beside it
	panes    string               // the flag --teammate-mode
	plain    bool                 // the flag --plain
	leave    bool                 // the flag --detach
	// worker is set where another process stands in front of this one, at the terminal on which the
	// screen may open
	worker *proc.Worker
	asking atomic.Bool   // the person at the terminal has not answered a question of confirm yet
	shared engine.Shared // the teams that a run, the screen, the panes and the notifications use
}

func newApp() *app { return &app{out: standardOutput(), err: standardError()} }

// close leaves the place of the teams, and ends the text on both streams.
func (a *app) close() {
	for _, d := range append(a.others, a.database) {
		if d != nil {
			d.Place.Close()
		}
	}
	a.out.Close()
	a.err.Close()
}

const about = `cadre runs teams of coding agents that survive crashes and restarts.

A team has a lead, teammates, a task list with dependencies, a mailbox and one durable history. Kill any of its
processes and continue later.

Start with a team file, which needs no model and no network:
  cadre run --template health           audit the git repository you are in with four shell teammates
  cadre init release                    write a team file of your own

Or step by step:
  cadre create demo
  cadre spawn demo ann --agent shell
  cadre task add demo "say hello" --run "echo hello"
  cadre log demo --follow

TEAM can be left out if CADRE_TEAM is set, or if one unfinished team works in this directory. A command that only
reads also finds the only unfinished team.
The Tab key completes teams, members, tasks and more: cadre completion --help.
Teams are stored in $CADRE_HOME, by default ~/.cadre. A command in a member's session acts as that member, only in its
own team.

Exit status: 0 done; 1 try again: refused now, conflict, not ready; 2 will not work: usage, not found, damaged.`

// entry is a command below another one. It is built when it is called.
type entry struct {
	name, group string
	build       func(*app) *cobra.Command
}

// commands are all commands. The help shows the groups in this order.
var commands = []entry{
	{"run", "team", (*app).runCommand}, {"init", "team", (*app).initCommand},
	{"templates", "team", (*app).templatesCommand}, {"ls", "team", (*app).lsCommand},
	{"status", "team", (*app).statusCommand},
	{"watch", "team", (*app).watchCommand},
	{"attention", "team", (*app).attentionCommand}, {"log", "team", (*app).logCommand},
	{"search", "team", (*app).searchCommand},
	{"validate", "team", (*app).validateCommand},
	{"observe", "team", (*app).observeCommand}, {"schema", "team", (*app).schemaCommand},
	{"create", "team", (*app).createCommand}, {"spawn", "team", (*app).spawnCommand},
	{"shutdown", "team", (*app).shutdownCommand}, {"cleanup", "team", (*app).cleanupCommand},
	{"serve", "team", (*app).serveCommand}, {"board", "team", (*app).boardCommand},
	{"host", "team", (*app).hostCommand}, {"hosts", "team", (*app).hostsCommand},
	{"resume", "team", (*app).resumeCommand},
	{"pause", "team", (*app).pauseCommand}, {"probe", "team", (*app).probeCommand},
	{"consolidate", "team", (*app).consolidateCommand},
	{"review", "team", (*app).reviewCommand}, {"abort", "team", (*app).abortCommand},
	{"checkpoint", "team", (*app).checkpointCommand}, {"export", "team", (*app).exportCommand},
	{"push", "team", (*app).pushCommand},
	{"pull", "team", (*app).pullCommand},

	{"permit", "lead", (*app).permitCommand}, {"permission", "lead", (*app).permissionCommand},
	{"plan", "lead", (*app).planCommand},
	{"mode", "lead", (*app).modeCommand}, {"attach", "lead", (*app).attachCommand},
	{"panes", "lead", (*app).panesCommand},
	{"delegate", "lead", (*app).delegateCommand}, {"handover", "lead", (*app).handoverCommand},
	{"interrupt", "lead", (*app).interruptCommand}, {"lift", "lead", (*app).liftCommand},
	{"budget", "lead", (*app).budgetCommand}, {"reassign", "lead", (*app).reassignCommand},
	{"resend", "lead", (*app).resendCommand}, {"facts", "lead", (*app).factsCommand},

	{"task", "work", (*app).taskCommand}, {"send", "work", (*app).sendCommand},
	{"broadcast", "work", (*app).broadcastCommand}, {"inbox", "work", (*app).inboxCommand},
	{"note", "work", (*app).noteCommand}, {"leave", "work", (*app).leaveCommand},
	{"mcp", "work", (*app).mcpCommand}, {wakeName, "work", (*app).wakeCommand}, {"join", "work", (*app).joinCommand},
	{"claude-teammate", "work", (*app).teammateCommand}, {"report-killed", "work", (*app).reportKilledCommand},

	{"fsck", "care", (*app).fsckCommand}, {"trust", "care", (*app).trustCommand},
	{"hooks", "care", (*app).hooksCommand}, {"notify", "care", (*app).notifyCommand},
	{"store", "care", (*app).storeCommand},
	{"doctor", "care", (*app).doctorCommand}, {"version", "care", (*app).versionCommand},

	{"gemini-hook", "", (*app).geminiHookCommand}, // hidden
}

// root returns the command line for the arguments. Building all commands takes longer than most
// commands run. If the arguments start with the name of a command, only that command is built.
// Otherwise, for example for help, completion and mistakes, all are.
func (a *app) root(args []string) *cobra.Command {
	asked := false // for the version
	root := &cobra.Command{
		Use: "cadre", Short: "Teams of coding agents that survive crashes and restarts", Long: about,
		SilenceErrors: true, SilenceUsage: true, Args: subcommand,
		RunE: func(c *cobra.Command, _ []string) error {
			if asked {
				return a.printVersion()
			}
			next := ""
			if a.out.terminal() {
				next = a.here(c.Context())
			}
			return a.daily(next)
		},
		PersistentPreRunE: func(c *cobra.Command, _ []string) (err error) {
			if asked || c.Name() == "version" { // which needs no folders
				return nil
			}
			if a.home, err = findHome(); err != nil {
				return err
			}
			if err := a.findPlace(); err != nil {
				return err
			}
			return a.admit(c)
		},
	}
	root.SetOut(a.out)
	root.SetErr(a.err)
	root.SetFlagErrorFunc(flagMistake)
	root.Flags().BoolVar(&asked, "version", false, "print the version")
	root.PersistentFlags().BoolVar(&a.json, "json", false, "print one JSON value instead of text")
	root.PersistentFlags().StringVar(&a.store, "store", "", "`address` of the PostgreSQL database "+
		"that has the teams (default CADRE_STORE, else files)")
	root.PersistentFlags().Var(colorFlag{a}, "color", "colors in text: auto (on a terminal), always or never")
	root.RegisterFlagCompletionFunc("color", cobra.FixedCompletions([]string{autoColor, alwaysColor, neverColor},
		cobra.ShellCompDirectiveNoFileComp))
	root.SetArgs(args)
	usual := a.fitted(root.HelpFunc())
	root.SetHelpCommand(helpCommand(usual))
	root.SetHelpFunc(func(c *cobra.Command, args []string) {
		if c == root {
			a.daily("")
			return
		}
		usual(c, args)
	})
	root.AddGroup(&cobra.Group{ID: "team", Title: "Teams:"}, &cobra.Group{ID: "lead", Title: "Lead a team:"},
		&cobra.Group{ID: "work", Title: "Work in a team:"}, &cobra.Group{ID: "care", Title: "Care:"})
	a.typed = withoutGlobal(args)
	a.addCommands(root)
	return root
}

// addCommands adds the commands that the arguments need.
func (a *app) addCommands(root *cobra.Command) {
	args := a.typed
	needed := mentioned(commands, args)
	root.CompletionOptions.DisableDefaultCmd = len(needed) == 1 // it is one more command
	for _, one := range needed {
		c := one.build(a)
		c.GroupID = one.group
		root.AddCommand(c)
	}
	if slices.Contains(args, "completion") {
		root.InitDefaultCompletionCmd(args...)
		completesInBash(root)
	}
	if len(args) > 0 && strings.HasPrefix(args[0], cobra.ShellCompRequestCmd) {
		for _, c := range root.Commands() {
			a.completes(c)
		}
	}
}

// mentioned returns the command whose name the arguments begin with, or all of them.
func mentioned(all []entry, args []string) []entry {
	if len(args) > 0 {
		if i := slices.IndexFunc(all, func(e entry) bool { return e.name == args[0] }); i >= 0 {
			return all[i : i+1]
		}
	}
	return all
}

// withoutGlobal removes global flags before the name of a command.
func withoutGlobal(args []string) []string {
	for len(args) > 0 {
		switch {
		case args[0] == "--json" || strings.HasPrefix(args[0], "--color="):
			args = args[1:]
		case args[0] == "--color" && len(args) > 1:
			args = args[2:]
		default:
			return args
		}
	}
	return args
}

// engine returns the engine with which commands open teams. It has the home of the caller, so it is
// made once the caller is known.
func (a *app) engine() *engine.Engine {
	return &engine.Engine{Home: a.home, Agents: agents(), Log: a.note, Advise: a.advise, Warn: a.fail,
		Elsewhere: a.tellProject,
		MachineTurns: func() (int, error) {
			s, _, err := a.settings()
			return s.MaxParallel, err
		},
		HostCommand: func(team string) []string { return []string{self(), "host", team} }, Kept: a.keep, Room: a.room,
		Nested: run.Nested(a.places("").Loader().Template)}
}

// sharing returns an engine that has one state of each team together with the screen, the panes and
// the notifications of this process.
func (a *app) sharing() *engine.Engine {
	e := a.engine()
	e.Shared = &a.shared
	return e
}

// tellProject says which project a command of the user acts on, if its argument names a team of
// another project than the one that the user is in. A name that is unique in the home is clear
// enough to act, but the user may have another team in mind. An id is never mistaken for another
// team.
func (a *app) tellProject(of team.Team) {
	if a.named == of.Name && a.actor == team.User {
		a.note(fmt.Sprintf("team %s in %s", of.Name, of.Dir))
		a.named = "" // once is enough
	}
}

// callable returns what the person calls the team from here: its name, or its id if the name stands
// for another team here, or for several.
func (a *app) callable(t team.Team) string {
	own, err := a.home.In(t.Dir).Folder(t.Name)
	dir, nowhere := os.Getwd()
	if err != nil || nowhere != nil {
		return t.Name
	}
	if folder, err := a.home.In(dir).Folder(t.Name); err != nil || folder != own {
		return t.ID
	}
	return t.Name
}

// resumable returns the name of the team with which the person resumes this one.
func (a *app) resumable(t team.Team) string {
	if t.Parent.Team != "" {
		return t.Outermost()
	}
	return a.callable(t)
}

// now is the present time.
func now() team.Time { return engine.Now() }

// note prints a message for the person that is not a result.
func (a *app) note(text string) { say(a.err.Writer, render.Plain, notePrefix, text) }

// print prints the value as JSON, or calls text.
func (a *app) print(value any, text func(w *sanitize.Writer) error) error {
	if a.json {
		return a.out.Value(value)
	}
	return text(a.out.Writer)
}

func said(format string, args ...any) func(*sanitize.Writer) error {
	return func(w *sanitize.Writer) error { return w.Printf(format+"\n", args...) }
}

// findPlace has the teams in a database, if the person names one.
func (a *app) findPlace() (err error) {
	address := cmp.Or(a.store, database.Address())
	if address == "" {
		return nil
	}
	if a.database, err = database.Open(address, a.note); err == nil {
		a.home.Place = a.database.Place
	}
	return err
}

// findHome returns the user's home. Names there are those of the working directory's project.
func findHome() (layout.Home, error) {
	home, err := layout.Find()
	if err != nil {
		return home, err
	}
	dir, err := os.Getwd()
	if err != nil { // the directory was removed: a name means the only team with it
		return home, nil
	}
	return home.In(dir), nil
}
