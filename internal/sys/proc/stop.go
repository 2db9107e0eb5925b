package proc

import (
	"context"
	"fmt"
	"os"
	"syscall"
	"time"
)

// Ladder sets how long each step of [Child.Stop] may take before the next one. 0 means the default;
// a negative duration skips the step.
type Ladder struct {
	Stdin time.Duration // after closing standard input, for a child with Cmd.StdinPipe; default 5 s
	Term  time.Duration // after SIGTERM to the group; default 5 s
	Kill  time.Duration // after SIGKILL to the group; cannot be skipped; default 10 s
}

// defaultLadder is the meaning of a zero Ladder.
var defaultLadder = Ladder{Stdin: 5 * time.Second, Term: 5 * time.Second, Kill: 10 * time.Second}

func (l Ladder) withDefaults() Ladder {
	if l.Stdin == 0 {
		l.Stdin = defaultLadder.Stdin
	}
	if l.Term == 0 {
		l.Term = defaultLadder.Term
	}
	if l.Kill <= 0 {
		l.Kill = defaultLadder.Kill
	}
	return l
}

// Stop ends the child: it closes its standard input, then sends SIGTERM to the whole group, then
// SIGKILL. Each step is taken only if the one before did not suffice. Stop returns when the child
// has ended. When ctx ends, Stop sends SIGKILL at once; it never returns without SIGKILL while the
// child is running. It may be called more than once, also concurrently.
func (c *Child) Stop(ctx context.Context, ladder Ladder) error {
	ladder = ladder.withDefaults()
	if c.cmd.StdinPipe {
		c.stdin.Close()
		if ladder.Stdin > 0 && c.endsWithin(ctx, ladder.Stdin) {
			return c.err
		}
	}
	if ladder.Term > 0 && ctx.Err() == nil {
		c.signal(syscall.SIGTERM)
		c.signal(syscall.SIGCONT) // a stopped process would not handle SIGTERM
		if c.endsWithin(ctx, ladder.Term) {
			return c.err
		}
	}
	return c.kill(ladder.Kill)
}

// Kill ends the child with SIGKILL and returns when it has ended.
func (c *Child) Kill() error { return c.kill(defaultLadder.Kill) }

func (c *Child) kill(grace time.Duration) error {
	c.signalKill()
	if c.endsWithin(context.Background(), grace) {
		return c.err
	}
	return fmt.Errorf("process %d has not ended %v after SIGKILL: %w", c.pid, grace, ErrLeft)
}

func (c *Child) signalKill() {
	c.signal(syscall.SIGKILL)
	c.once.Do(func() { close(c.killed) })
}

func (c *Child) endsWithin(ctx context.Context, grace time.Duration) bool {
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-c.done:
		return true
	case <-timer.C:
	case <-ctx.Done():
	}
	return false
}

// signalGroup refuses the numbers that kill(2) interprets as "every process" and "my own group",
// because a damaged record could contain them.
func signalGroup(group int, sig syscall.Signal) error {
	if group <= 1 || group == syscall.Getpgrp() {
		return fmt.Errorf("signal group %d: %w", group, os.ErrInvalid)
	}
	return syscall.Kill(-group, sig)
}

func signalProcess(pid int, sig syscall.Signal) error {
	if pid <= 1 || pid == os.Getpid() {
		return fmt.Errorf("signal process %d: %w", pid, os.ErrInvalid)
	}
	return syscall.Kill(pid, sig)
}
