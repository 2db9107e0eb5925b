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

// AwaitEnd waits for the end of a program that has closed its output. If the program keeps running,
// AwaitEnd ends it. lost then says so, for [Died], unless the program was being stopped anyway.
func AwaitEnd(child *proc.Child, stopping func() bool) (lost string) {
	select {
	case <-child.Done():
		return ""
	case <-time.After(silence):
	}
	if stopping() {
		return ""
	}
	child.Stop(context.Background(), proc.Ladder{Stdin: time.Second, Term: time.Second})
	return "it closed its output and kept running; "
}

// Died returns an error about a program that ended by itself, with its last output.
func Died(program, lost string, exit proc.Exit, stderr string) error {
	words := program + " ended: " + lost + exit.String()
	if more := strings.TrimSpace(stderr); more != "" {
		words += ": " + Tail(more)
	}
	return errors.New(words)
}
