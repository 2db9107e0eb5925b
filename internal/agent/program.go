package agent

import (
	"context"
	"errors"
	"strings"
	"time"

	"cadre/internal/sys/proc"
)

// silence is how long a program may take to end after the end of its output.
const silence = 2 * time.Second

// Hushed sees a program to its end that says nothing any more. One that lives on is ended, unless
// it is being stopped anyway; lost says so, for [Died].
func Hushed(child *proc.Child, stopping func() bool) (lost string) {
	select {
	case <-child.Done():
		return ""
	case <-time.After(silence):
	}
	if stopping() {
		return ""
	}
	child.Stop(context.Background(), proc.Ladder{Stdin: time.Second, Term: time.Second})
	return "it said nothing any more; "
}

// Died tells how a program ended by itself, and the last that it said about that.
func Died(program, lost string, exit proc.Exit, stderr string) error {
	words := program + " ended: " + lost + exit.String()
	if more := strings.TrimSpace(stderr); more != "" {
		words += ": " + Tail(more)
	}
	return errors.New(words)
}
