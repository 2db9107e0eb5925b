package pane

import (
	"context"
	"errors"
	"fmt"
)

// Member is a member of a team, as its pane shows it.
type Member struct {
	Name  string
	State string // one word
	Color string // by the name that Claude Code uses
	// Own is set if the pane is the member's own terminal. No program in such a pane sets its
	// title.
	Own bool
}

// Backend is a terminal program that shows panes. Each method returns within a limited time, also
// if the program hangs.
type Backend interface {
	// Open opens a pane for the member, and runs the command in it.
	Open(ctx context.Context, member string, command []string) error
	// Title shows the member's name and state at its pane. It returns nil if the program has no
	// titles.
	Title(ctx context.Context, m Member) error
	// Close closes the member's pane. If the member has no pane, Close does nothing and returns
	// nil.
	Close(ctx context.Context, member string) error
	// Panes returns the ids of the team's open panes, by member.
	Panes(ctx context.Context) (map[string]string, error)
}

// Options configure [Keep].
type Options struct {
	Backend Backend
	// Members returns the members that should have a pane, in the order in which they joined.
	Members func() []Member
	// Wait blocks until the members may have changed, or ctx ends.
	Wait func(ctx context.Context) error
	// Command returns the command that runs in a member's pane.
	Command func(member string) []string
	// Changed is called with the panes after each change; it may be nil.
	Changed func(panes map[string]string)
	// UntilClosed ends Keep when the person has closed all panes.
	UntilClosed bool
}

// Keep keeps a pane open for each member until ctx ends. The panes stay open then: their viewers
// end with the members. It returns [ErrClosed] if Options.UntilClosed is set and the person closed
// all panes. It returns another error if the terminal program cannot be used any more.
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
	opened map[string]bool   // members that have a pane, or had one
	titles map[string]Member // as shown
	last   map[string]string // the panes that Changed got last
}

// step opens the panes that are missing, and closes those that are not needed.
func (k *keeper) step(ctx context.Context) error {
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
		// From now on the viewer sets the title, even if this process is killed.
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

// ErrClosed reports that the person closed all panes.
var ErrClosed = errors.New("all panes were closed")

// Gone reports whether an error of [Keep] means that the terminal program has ended.
func Gone(err error) bool { return errors.Is(err, errGone) }
