package main

import (
	"context"
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"cadre/internal/engine"
	"cadre/internal/render"
	"cadre/internal/sys/proc"
	"cadre/internal/team"
	"cadre/internal/ui/settings"
	"cadre/internal/ui/tui"
)

// plainFlag adds the flag that keeps the screen closed.
func (a *app) plainFlag(c *cobra.Command) {
	c.Flags().BoolVar(&a.plain, "plain", false, "print lines, and open no screen")
}

// undrawable says why no screen can be drawn here; "" if one can.
func (a *app) undrawable() string {
	switch {
	case !atTerminal():
		return "standard input is not a terminal"
	case !a.out.terminal():
		return "standard output is not a terminal"
	case os.Getenv("CI") != "":
		return "CI is set"
	case os.Getenv("TERM") == "":
		return "TERM is not set"
	case os.Getenv("TERM") == "dumb":
		return "TERM is dumb"
	}
	return ""
}

// screenless reports whether the settings keep the screen closed.
func (a *app) screenless() bool {
	s, _, err := a.settings()
	return err == nil && s.Screen == settings.NeverScreen
}

// inFront runs this command in a worker if it may open a screen or is to leave the terminal,
// because a worker can continue in the background. In the process in front of the worker it returns
// true, and how the command ended. In the worker, and where no screen can open, it returns false:
// the caller continues.
func (a *app) inFront(ctx context.Context) (bool, error) {
	if a.worker = proc.OpenWorker(); a.worker != nil {
		go a.worker.Signals(func(s os.Signal) { a.haste.asks <- request{signal: s, relayed: true} })
		return false, nil
	}
	drawn := !a.plain && !a.json && a.undrawable() == "" && inForeground(os.Stdin) && !a.screenless()
	if !drawn && !a.leave {
		return false, nil
	}
	was, _ := term.GetState(int(os.Stdin.Fd()))
	ended, err := proc.RunWorker(append([]string{self()}, os.Args[1:]...), a.home.ForOurs(os.Environ()),
		[3]*os.File{os.Stdin, a.out.file, a.err.file})
	switch {
	case err != nil:
		return true, err
	case ended.Left:
		return true, nil
	case ended.Screen:
		tui.Restore(a.out.file)
		if was != nil {
			_ = term.Restore(int(os.Stdin.Fd()), was)
		}
	}
	if ended.Signal != 0 || ended.Screen {
		a.lastWords(ctx, ended)
	}
	if ended.Status == done {
		return true, nil
	}
	return true, exit(ended.Status)
}

// lastWords prints what a worker could not that was killed: the last lines of the run, why it
// ended, and what continues it.
func (a *app) lastWords(ctx context.Context, ended proc.Ended) {
	why := fmt.Errorf("the process of the run ended with status %d", ended.Status)
	if ended.Signal != 0 {
		why = fmt.Errorf("the process of the run was ended by a signal: %s", ended.Signal)
	}
	again := way{"run it again", render.Typed(os.Args[1], os.Args[2:]...)}
	if d, err := a.engine().Look(ctx, ended.Told); ended.Told != "" && err == nil {
		defer d.Close()
		name := a.callable(d.Team())
		if ended.Screen { // otherwise the lines are in the terminal already
			a.lastLines(ctx, d, name)
		}
		again = way{"continue the team", render.Typed("resume", name)}
		if of := d.Team(); of.Ended() {
			again = way{"see what it did", render.Typed("log", name)}
		}
	}
	a.fail(withWays(why, again))
}

// lastLines prints the last lines that a run of the team prints, from its history.
func (a *app) lastLines(ctx context.Context, d *engine.Team, name string) {
	p := &progress{app: a, hidden: true}
	s := &team.State{}
	for r, err := range d.Read(ctx, 0) {
		if err != nil { // cadre log reports it
			break
		}
		s.Apply(r)
		p.show(p.digest.Add(r, s, func(team.Event) bool { return false }))
	}
	p.show(p.digest.End())
	p.reveal(render.Typed("log", name))
}
