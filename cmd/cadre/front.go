package main

import (
	"os"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"cadre/internal/sys/proc"
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

// inFront runs this command in a worker if it may open a screen or is to leave the terminal, because
// a worker can continue in the background. In the process in front of the worker it returns true, and
// how the command ended. In the worker, and where no screen can open, it returns false: the caller
// continues.
func (a *app) inFront() (bool, error) {
	if a.worker = proc.OpenWorker(); a.worker != nil {
		go a.worker.Signals(func(s os.Signal) { a.haste.asks <- request{s, true} })
		return false, nil
	}
	drawn := !a.plain && !a.json && a.undrawable() == "" && inForeground(os.Stdin) && !a.screenless()
	if !drawn && !a.leave {
		return false, nil
	}
	was, _ := term.GetState(int(os.Stdin.Fd()))
	ended, err := proc.RunWorker(append([]string{self()}, os.Args[1:]...), os.Environ(),
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
	if ended.Status == done {
		return true, nil
	}
	return true, exit(ended.Status)
}
