package main

import (
	"bufio"
	"context"
	"errors"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"cadre/internal/team"
)

// asks reports whether there is a person to ask.
func (a *app) asks() bool { return a.unattended() == "" }

// unattended says why there is no person to ask; "" if there is one: a terminal on both sides, and
// no program that reads JSON or drives the terminal.
func (a *app) unattended() string {
	switch {
	case !atTerminal():
		return "standard input is not a terminal"
	case !a.err.terminal():
		return "standard error is not a terminal"
	case a.json:
		return "with --json no question is asked"
	}
	return scripted()
}

// scripted says why a terminal is one of a script, which has nobody to answer; "" if it is not.
func scripted() string {
	switch {
	case os.Getenv("CI") != "":
		return "CI is set"
	case os.Getenv("TERM") == "dumb":
		return "TERM is dumb"
	}
	return ""
}

// needsConfirmation begins the refusal of a command that could not ask for a confirmation. The
// screen of cadre watch asks the person instead.
const needsConfirmation = "this needs a confirmation"

// confirm asks the person at the terminal, and returns nil if they agree. Without a terminal it
// refuses, and otherwise is what to type instead.
func (a *app) confirm(ctx context.Context, question string, otherwise ...way) error {
	if why := a.unattended(); why != "" {
		return withWays(usage{errors.New(needsConfirmation + ", and " + why)}, otherwise...)
	}
	a.asking.Store(true) // and it stays so when a signal ends the command
	if err := a.err.Printf("%s [y/N] ", question); err != nil {
		return err
	}
	answers := make(chan string, 1)
	go func() { // it ends with the program, because a read from a terminal cannot be cancelled
		line, _ := bufio.NewReader(os.Stdin).ReadString('\n')
		answers <- strings.ToLower(strings.TrimSpace(line))
	}()
	select {
	case answer := <-answers:
		a.asking.Store(false)
		if answer == "y" || answer == "yes" {
			return nil
		}
		return errNotConfirmed
	case <-ctx.Done():
		if _, signaled := errors.AsType[*interruptedError](context.Cause(ctx)); !signaled {
			return context.Cause(ctx)
		}
		return errors.Join(a.err.Printf("\n"), errNotConfirmed)
	}
}

// confirmEnd asks before the command of a shell member ends, if there is a person to ask. The
// command of another member, or of one whose session does not run, does not end.
func (a *app) confirmEnd(ctx context.Context, name, member string) error {
	if !a.asks() || a.actor != team.User {
		return nil
	}
	of, err := a.engine().Look(ctx, name)
	if err != nil {
		return err
	}
	defer of.Close()
	question := ""
	if of.Served(ctx, member) {
		of.View(func(s *team.State) { question = s.EndOfCommand(member) })
	}
	if question == "" {
		return nil
	}
	return a.confirm(ctx, question)
}

// endFlag adds the flag of commands that may end the command of a shell member.
func endFlag(c *cobra.Command, yes *bool) {
	c.Flags().BoolVar(yes, "yes", false, "do not ask before the command of a shell member ends")
}

// errNotConfirmed says that the person did not agree.
var errNotConfirmed = errors.New("not confirmed; nothing was changed")
