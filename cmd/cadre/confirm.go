package main

import (
	"bufio"
	"context"
	"errors"
	"os"
	"strings"
)

// asks reports whether there is a person to ask: a terminal on both sides, and no program that
// reads JSON.
func (a *app) asks() bool { return !a.json && atTerminal() && a.err.terminal() }

// needsConfirmation begins the refusal of a command that could not ask for a confirmation. The
// screen of cadre watch asks the person instead.
const needsConfirmation = "this needs a confirmation"

// confirm asks the person at the terminal, and returns nil if they agree. Without a terminal it
// refuses, and otherwise is what to type instead.
func (a *app) confirm(ctx context.Context, question string, otherwise ...way) error {
	if !a.asks() {
		return withWays(usage{errors.New(needsConfirmation + ", and standard input is not a terminal")}, otherwise...)
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

// errNotConfirmed says that the person did not agree.
var errNotConfirmed = errors.New("not confirmed; nothing was changed")
