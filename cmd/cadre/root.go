package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"cadre/internal/access"
	"cadre/internal/claude/projection"
	"cadre/internal/hook"
	"cadre/internal/layout"
	"cadre/internal/render/sanitize"
	"cadre/internal/replica"
	"cadre/internal/sys/proc"
	"cadre/internal/team"
)

// lockWait bounds how long a command waits for other writers of its team.
const lockWait = 30 * time.Second

// app is what the commands share.
type app struct {
	home layout.Home
	who  access.Caller // who calls; home is scoped to it
	// actor acts with the command: whom its flags name, the member in whose session cadre was
	// called, or the user. A command that only reads has none.
	actor string
	out   output
	err   output
	json  bool
}

func newApp() *app { return &app{out: standardOutput(), err: standardError()} }

// close ends the text on both streams.
func (a *app) close() {
	a.out.Close()
	a.err.Close()
}

const about = `cadre runs teams of coding agents that people can trust to finish.

A team has a lead, teammates, a task list with dependencies, a mailbox and one durable history. It outlives every process
that takes part in it: kill anything, and go on.

Begin with a team file, which needs no model and no network:
  cadre run examples/health.yaml        audit the git repository you are in with four shell teammates

Or step by step:
  cadre create demo
  cadre spawn demo ann --agent shell
  cadre task add demo "say hello" --run "echo hello"
  cadre log demo --follow

TEAM may be left out where it is clear which one is meant: CADRE_TEAM names it, or there is one unfinished team.
Teams are kept in $CADRE_HOME, else ~/.cadre. What runs in a member's session acts as that member, in its own team alone.

Exit status: 0 done; 1 try again: refused now, conflict, not ready; 2 it will not work: usage, not found, damaged.`

// root is the command line.
func (a *app) root() *cobra.Command {
	asked := false // for the version
	root := &cobra.Command{
		Use: "cadre", Short: "Teams of coding agents that people can trust to finish", Long: about,
		SilenceErrors: true, SilenceUsage: true, Args: subcommand,
		RunE: func(c *cobra.Command, _ []string) error {
			if asked {
				return a.printVersion()
			}
			return c.Help()
		},
		PersistentPreRunE: func(c *cobra.Command, _ []string) (err error) {
			if asked || c.Name() == "version" { // which needs no folders
				return nil
			}
			if a.home, err = layout.Find(); err != nil {
				return err
			}
			return a.admit(c)
		},
	}
	root.SetOut(a.out)
	root.SetErr(a.err)
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return usage{fmt.Errorf("%w; see: %s --help", err, c.CommandPath())}
	})
	root.Flags().BoolVar(&asked, "version", false, "print the version")
	root.PersistentFlags().BoolVar(&a.json, "json", false, "print one JSON value instead of text")
	root.AddGroup(&cobra.Group{ID: "team", Title: "Teams:"}, &cobra.Group{ID: "lead", Title: "Lead a team:"},
		&cobra.Group{ID: "work", Title: "Work in a team:"}, &cobra.Group{ID: "care", Title: "Care:"})
	group(root, "team", a.runCommand(), a.lsCommand(), a.statusCommand(), a.attentionCommand(), a.logCommand(),
		a.observeCommand(), a.schemaCommand(), a.createCommand(), a.spawnCommand(), a.shutdownCommand(),
		a.cleanupCommand(), a.hostCommand(), a.resumeCommand(), a.probeCommand(), a.consolidateCommand(),
		a.reviewCommand(), a.abortCommand(), a.checkpointCommand(), a.pushCommand(), a.pullCommand())
	group(root, "lead", a.permitCommand(), a.planCommand(), a.modeCommand(), a.attachCommand(), a.delegateCommand(),
		a.handoverCommand(), a.budgetCommand(), a.reassignCommand(), a.resendCommand(), a.factsCommand())
	group(root, "work", a.taskCommand(), a.sendCommand(), a.broadcastCommand(), a.inboxCommand(), a.mcpCommand(),
		a.wakeCommand(), a.joinCommand(), a.teammateCommand(), a.buryCommand())
	group(root, "care", a.fsckCommand(), a.trustCommand(), a.doctorCommand(), a.versionCommand())
	root.AddCommand(a.geminiHookCommand())
	return root
}

func group(root *cobra.Command, id string, commands ...*cobra.Command) {
	for _, c := range commands {
		c.GroupID = id
		root.AddCommand(c)
	}
}

// subcommand refuses the name of a command that there is not; one that there is does not come here.
func subcommand(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	hint := ""
	c.SuggestionsMinimumDistance = 2
	if near := c.SuggestionsFor(args[0]); len(near) > 0 {
		hint = ", did you mean " + strings.Join(near, " or ") + "?"
	}
	return usage{fmt.Errorf("there is no command %q%s; see: %s --help", args[0], hint, c.CommandPath())}
}

func (a *app) glance(ctx context.Context, name string) (team.Team, error) {
	rep, _, err := a.open(ctx, name, false)
	if err != nil {
		return team.Team{}, err
	}
	defer rep.Close()
	return rep.Team(), nil
}

// open opens a replica on the team; a writing one has hooks and keeps the projections, and is
// refused for a team that is only observed. It also returns the team's folder.
func (a *app) open(ctx context.Context, name string, writing bool) (*replica.Replica, string, error) {
	j, dir, err := a.home.Open(name, a.note)
	if err != nil {
		return nil, "", err
	}
	options := replica.Options{Log: a.note}
	if writing {
		// A session that stays, such as a lead without a host, is not to end with a sync that
		// failed.
		options.Reopen = func(context.Context) (replica.Journal, error) {
			j, _, err := a.home.Open(name, a.note)
			return j, err
		}
		options.Hooks = a.hooks(nil)
		options.Project = a.projector(dir)
	}
	rep, err := replica.Open(ctx, j, options)
	if err != nil || !writing {
		return rep, dir, err
	}
	t := rep.Team()
	if err := t.CheckOurs(); err != nil {
		return nil, dir, errors.Join(err, rep.Close())
	}
	return rep, dir, nil
}

// note tells the person something that is no result.
func (a *app) note(text string) { say(a.err.Writer, text) }

func (a *app) projector(dir string) func(context.Context, replica.Journal, *team.State) error {
	return a.projection(dir).Project
}

func (a *app) projection(dir string) *projection.Projector {
	return &projection.Projector{Claude: a.home.Claude, Mark: filepath.Join(dir, projection.MarkFile), Log: a.note}
}

// hooks runs the hooks of settings files. procs returns the register that starts them: a host's, in
// which they are marked as the user's. Where it is nil, or returns nil, one is made for each event.
func (a *app) hooks(procs func() *proc.Register) replica.Hooks {
	return func(ctx context.Context, t team.Team, e hook.Event) (hook.Verdict, error) {
		var children *proc.Register
		if procs != nil {
			children = procs()
		}
		if children == nil {
			var err error
			if children, err = proc.Open(""); err != nil {
				return hook.Verdict{}, err
			}
			defer children.Close(context.WithoutCancel(ctx))
		}
		return replica.SettingsHooks(a.home.Claude, hook.Trust{File: a.home.Trust()},
			hook.Runner{Children: children})(ctx, t, e)
	}
}

// print prints the value as JSON, or what text writes.
func (a *app) print(value any, text func(w *sanitize.Writer) error) error {
	if a.json {
		return a.out.Value(value)
	}
	return text(a.out.Writer)
}

func said(format string, args ...any) func(*sanitize.Writer) error {
	return func(w *sanitize.Writer) error { return w.Printf(format+"\n", args...) }
}

// find returns the first event of its kind in the record.
func find[E team.Event](r *team.Record) (e E, ok bool) {
	if r != nil {
		for _, one := range r.Events {
			if e, ok = one.(E); ok {
				return e, true
			}
		}
	}
	return e, false
}

func workDir(dir string) (string, error) {
	path, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	info, err := os.Stat(path)
	if err == nil && !info.IsDir() {
		err = errors.New(path + " is not a directory")
	}
	if err != nil {
		return "", usage{err}
	}
	return path, nil
}
