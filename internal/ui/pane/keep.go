package pane

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Member is a member of a team, as its pane shows it.
type Member struct {
	Name  string
	State string // one word
	Color string // by the name that Claude Code has for it
	// Own is set for a member whose pane is its own terminal. Nothing in such a pane sets its title.
	Own bool
}

// Backend is a terminal program that shows panes.
type Backend interface {
	// Open opens a pane that runs the command, which is marked with the member's name.
	Open(ctx context.Context, member string, command []string) error
	// Title shows the member's name and state at its pane. A program that has no titles returns nil.
	Title(ctx context.Context, m Member) error
	// Close closes the pane of the member. It returns nil if there is none.
	Close(ctx context.Context, member string) error
	// Open panes of the team, by member, with the id that the program has for each.
	Panes(ctx context.Context) (map[string]string, error)
}

// Options are what Keep needs.
type Options struct {
	Backend Backend
	// Members returns the members that are to have a pane, in the order in which they joined.
	Members func() []Member
	// Wait returns when the members may have changed, or ctx ends.
	Wait func(ctx context.Context) error
	// Command returns what the pane of a member runs.
	Command func(member string) []string
	// Changed is called with the panes after they changed; nil for nothing.
	Changed func(panes map[string]string)
	// UntilClosed ends Keep when the person has closed all panes.
	UntilClosed bool
}

// callTime bounds what is asked of a terminal program at once.
const callTime = 10 * time.Second

// Keep keeps a pane open for each member until ctx ends. The panes stay then: their viewers end with
// their members. It returns [ErrClosed] if the person closed all of them and Options.UntilClosed is
// set, and another error if the terminal program cannot be used any more.
func Keep(ctx context.Context, o Options) error {
	k := keeper{Options: o, opened: map[string]bool{}, titles: map[string]Member{}}
	for {
		err := k.step(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if errors.Is(err, ErrClosed) {
			return err
		}
		if err != nil {
			return fmt.Errorf("panes: %w", err)
		}
		if o.Wait(ctx) != nil {
			return nil
		}
	}
}

type keeper struct {
	Options
	opened map[string]bool   // members that got a pane or had one
	titles map[string]Member // as shown
	last   map[string]string // the panes that Changed was told of
}

// step opens what is missing, and closes what is left over.
func (k *keeper) step(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	panes, err := k.Backend.Panes(ctx)
	if err != nil {
		return err
	}
	wanted, changed := map[string]bool{}, false
	for _, m := range k.Members() {
		wanted[m.Name] = true
		_, there := panes[m.Name]
		if !there {
			delete(k.titles, m.Name)
			if k.opened[m.Name] { // the person closed it
				continue
			}
			if err := k.Backend.Open(ctx, m.Name, k.Command(m.Name)); err != nil {
				return err
			}
			changed = true
		}
		k.opened[m.Name] = true
		// Its viewer keeps the title from now on, also when this process is killed.
		if m.Own && k.titles[m.Name] != m || !m.Own && !there {
			if err := k.Backend.Title(ctx, m); err != nil {
				return err
			}
			k.titles[m.Name] = m
		}
	}
	for name := range panes {
		if !wanted[name] {
			if err := k.Backend.Close(ctx, name); err != nil {
				return err
			}
			changed = true
		}
	}
	for name := range k.opened {
		if !wanted[name] { // another member may get the name
			delete(k.opened, name)
			delete(k.titles, name)
		}
	}
	if changed {
		if panes, err = k.Backend.Panes(ctx); err != nil {
			return err
		}
	}
	closed := k.UntilClosed && !changed && len(panes) == 0 && len(k.opened) > 0
	if k.Changed != nil && (k.last == nil || !equal(k.last, panes)) {
		k.Changed(panes)
		k.last = panes
	}
	if closed {
		return ErrClosed
	}
	return nil
}

func equal(a, b map[string]string) bool {
	if len(a) != len(b) {
		return false
	}
	for name, id := range a {
		if b[name] != id {
			return false
		}
	}
	return true
}

// ErrClosed reports that the person has closed all panes.
var ErrClosed = errors.New("all panes were closed")

// Gone reports whether the error of [Keep] says that the terminal program has ended.
func Gone(err error) bool { return errors.Is(err, errGone) }
