package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"cadre/internal/engine"
	"cadre/internal/team"
)

// interruptedError is the cause when a signal, cadre pause or the person at the screen ends a
// command.
type interruptedError struct {
	signal os.Signal // nil for cadre pause and the screen
	screen bool      // the person at the screen did
}

func (e *interruptedError) Error() string {
	switch {
	case e.screen:
		return "you paused it"
	case e.signal == nil:
		return "cadre pause was called"
	}
	return fmt.Sprintf("%s signal received", e.signal)
}

// haste is how urgently the process was asked to end, after it was asked once.
type haste struct {
	hurry <-chan struct{} // closed by a second signal: sessions end within a second
	kill  <-chan struct{} // closed by a third one: they are killed
	asks  chan<- request  // asks as a signal does
	ready <-chan struct{} // closed when a signal does not end the process any more; nil for at once
}

// request asks the process to end.
type request struct {
	signal os.Signal // nil for cadre pause and the screen
	screen bool      // the person at the screen asks
	// relayed marks a signal to the process in front of this worker. A terminal signals both.
	relayed bool
}

// killTime bounds the time after the third signal for recording how the sessions ended. Anything
// else is found out when the team is resumed.
const killTime = 5 * time.Second

// interruptible returns a context that ends with the first signal, and the meaning of further ones.
// The handler is installed concurrently, because the runtime takes a tenth of a millisecond for it,
// a large part of a short command. A signal before haste.ready ends the process, as before main.
func interruptible() (context.Context, haste) {
	ctx, cancel := context.WithCancelCause(context.Background())
	hurry, kill, asks := make(chan struct{}), make(chan struct{}), make(chan request, 4)
	ready := make(chan struct{})
	go func() {
		signals := make(chan os.Signal, 4)
		signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
		close(ready)
		var late <-chan time.Time
		var here, relayed int // how often this process was asked, and the one in front of it
		for asked := 0; ; {
			select {
			case s := <-signals:
				here++
				cancel(&interruptedError{signal: s})
			case r := <-asks:
				if relayed++; !r.relayed {
					here = max(here, asked) + 1
					relayed = here
				}
				cancel(&interruptedError{r.signal, r.screen})
			case <-late:
				os.Exit(128 + int(syscall.SIGINT)) // what it leaves is ended by its watchdog
			}
			if max(here, relayed) == asked {
				continue
			}
			switch asked++; asked {
			case 2:
				close(hurry)
			case 3:
				close(kill)
				late = time.After(killTime)
			case 4:
				os.Exit(128 + int(syscall.SIGINT))
			}
		}
	}()
	return ctx, haste{hurry, kill, asks, ready}
}

// pause asks this process to pause the team that it runs, for cadre pause.
func (h haste) pause() { h.asks <- request{} }

// announce prints at once what the command does after a signal, because ending sessions takes a
// while. running returns how many sessions run. It prints nothing more after stop.
func (a *app) announce(ctx context.Context, note func(string), running func() int) (stop func()) {
	over, said := make(chan struct{}), make(chan struct{})
	happens := func(what <-chan struct{}) bool {
		select {
		case <-what:
			return true
		case <-over:
			return false
		}
	}
	members := func() string {
		if n := running(); n > 0 {
			return team.Count(n, "member")
		}
		return "remaining processes"
	}
	go func() {
		defer close(said)
		if !happens(ctx.Done()) || a.asking.Load() { // nothing has begun before the answer
			return
		}
		why, signaled := errors.AsType[*interruptedError](context.Cause(ctx))
		switch {
		case !signaled:
			note(fmt.Sprintf("stopping %s: %v", members(), context.Cause(ctx)))
		case why.screen:
			note("stopping " + members() + "; press Ctrl-C to hurry, a second time to kill")
		case why.signal == os.Interrupt:
			note("stopping " + members() + "; press Ctrl-C again to hurry, a third time to kill")
		default:
			note("stopping " + members())
		}
		if !happens(a.haste.hurry) {
			return
		}
		note("hurrying: " + members() + " must end within a second; press Ctrl-C again to kill")
		if happens(a.haste.kill) {
			note("killing " + members())
		}
	}()
	return func() {
		close(over)
		<-said
	}
}

// announceStop prints at once what a signal stops, because a check may take a while to end. It
// prints nothing after stop.
func (a *app) announceStop(ctx context.Context, what func() string) (stop func()) {
	said := make(chan struct{})
	unused := context.AfterFunc(ctx, func() {
		defer close(said)
		if _, signaled := errors.AsType[*interruptedError](context.Cause(ctx)); signaled && !a.asking.Load() {
			a.note("stopping " + what())
		}
	})
	return func() {
		if !unused() {
			<-said
		}
	}
}

// sessions counts the members of the team whose sessions run.
func sessions(of *engine.Team) (n int) {
	of.View(func(s *team.State) {
		for _, m := range s.Members() {
			if m.Host != "" && m.Status.Running() {
				n++
			}
		}
	})
	return n
}
