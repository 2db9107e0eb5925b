package main

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"cadre/internal/agent/prompts"
	"cadre/internal/agent/wake"
	"cadre/internal/liveness/detector"
	"cadre/internal/liveness/heartbeat"
	"cadre/internal/sys/proc"
	"cadre/internal/team"
)

// wakeName is that of a command whose exit status has a meaning for Claude Code: with 2 it wakes
// its session.
const wakeName = "wake"

func (a *app) wakeCommand() *cobra.Command {
	var name, as string
	c := &cobra.Command{
		Use: wakeName, Short: "Wake an idle Claude Code session when there is news (for its Stop hook)",
		Args: exactly(0),
		Long: `Wait until there is news for the session that is a member of a team through cadre mcp, and wake it, once for each message. It is meant for a Stop hook of
Claude Code, which runs it when a turn ends. It finds the team and the member by the session that runs it; in a session without cadre mcp it ends at once.

  ` + wake.Hook + `

Exit status: 2 there is news, which wakes the session; 0 the session has ended, or is none of the team's; 1 it failed.`,
		RunE: func(c *cobra.Command, _ []string) error {
			stays()
			return a.wakeSession(c.Context(), name, as)
		},
	}
	c.Flags().StringVar(&name, "team", "", "only when the session is in this team")
	c.Flags().StringVar(&as, "as", "", "only when the session is this member")
	return c
}

const (
	// wakeLook is the time between two looks whether the session is still there.
	wakeLook = 2 * time.Second
	// wakeGrace is what a tool that is called just now has to bring the news itself.
	wakeGrace = time.Second
	// wakePatience is how long one waits for another that waits for the same session, which may be
	// one that has just ended.
	wakePatience = 3 * wakeLook
)

// seat is a place in a team that the session has which started this process.
type seat struct{ dir, team, member string }

// server returns the process that serves the tools of the session, and how far above this one the
// session is; ok is false when it is not above.
func (s seat) server() (pid, steps int, ok bool) {
	b, known, err := heartbeat.Of(s.dir).Of(s.member)
	if err != nil || !known {
		return 0, 0, false
	}
	steps, beside := proc.Beside(b.Pid)
	return b.Pid, steps, beside && proc.Held(detector.Presence(s.dir, s.member))
}

// seats returns those of the session that this process is beside; it has several where it has
// several servers of tools. Of a session within another one's, only its own count. With a team or a
// member, only theirs do.
func (a *app) seats(name, as string) ([]seat, error) {
	names, err := a.home.Names()
	if err != nil {
		return nil, err
	}
	var nearest []seat
	least := 0
	for _, one := range names {
		if name != "" && name != one {
			continue
		}
		dir, err := a.home.Folder(one)
		if team.CodeOf(err) == team.NotFound { // it has just gone
			continue
		}
		if err != nil {
			return nil, err
		}
		members, err := detector.Present(dir)
		if err != nil {
			return nil, err
		}
		for _, member := range members {
			s := seat{dir, one, member}
			_, steps, beside := s.server()
			if !beside || as != "" && as != member || len(nearest) > 0 && steps > least {
				continue
			}
			if len(nearest) > 0 && steps < least {
				nearest = nil
			}
			nearest, least = append(nearest, s), steps
		}
	}
	return nearest, nil
}

// wakeSession returns the exit status 2 when there is news for the session that started this
// process.
func (a *app) wakeSession(ctx context.Context, name, as string) error {
	if !a.who.IsUser() { // its host wakes it
		return nil
	}
	seats, err := a.seats(name, as)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var woken atomic.Bool
	ended := make(chan error, len(seats))
	for _, s := range seats {
		go func() {
			err := a.wakeSeat(ctx, s, &woken)
			if woken.Load() {
				cancel()
			}
			ended <- err
		}()
	}
	var failed error
	for range seats {
		failed = errors.Join(failed, <-ended)
	}
	if woken.Load() {
		a.note(prompts.News)
		return exit(hopeless)
	}
	return failed
}

// wakeSeat returns when there is news for the session, which then is woken unless it is already, or
// when there is nothing to wait for any more.
func (a *app) wakeSeat(ctx context.Context, at seat, woken *atomic.Bool) error {
	rep, dir, err := a.open(ctx, at.team, false)
	if team.CodeOf(err) == team.NotFound {
		return nil
	}
	if err != nil {
		return err
	}
	defer rep.Close()
	lock, err := a.wakeLock(ctx, wake.Lock(dir, at.member), at)
	if err != nil || lock == nil {
		return err
	}
	defer lock.Unlock()
	for {
		server, _, present := at.server()
		if !present {
			return nil
		}
		var seq, news int64
		var over bool
		look := func() {
			rep.View(func(s *team.State) {
				m, known := s.Member(at.member)
				seq, news, over = s.Seq(), s.News(at.member), !known || !m.Status.Running() || !s.Exists()
			})
			news = wake.News(dir, at.member, server, news)
		}
		if look(); news > 0 {
			if err := pause(ctx, wakeGrace); err != nil {
				return err
			}
			if err := rep.Refresh(ctx); err != nil {
				return err
			}
			look()
		}
		switch {
		case over:
			return nil
		case news > 0 && !woken.CompareAndSwap(false, true):
			return nil
		case news > 0:
			if err := wake.Tell(dir, at.member, server, news); err != nil { // it would be woken at the end of each turn
				woken.Store(false)
				return fmt.Errorf("the session is not woken: %w", err)
			}
			return nil
		}
		waiting, cancel := context.WithTimeout(ctx, wakeLook)
		err := rep.Wait(waiting, seq)
		quiet := waiting.Err() != nil
		cancel()
		if err != nil && !quiet || ctx.Err() != nil {
			return err
		}
	}
}

// wakeLock has one process wait for a session: of several turns that end each starts one. It
// returns nil when another one waits.
func (a *app) wakeLock(ctx context.Context, path string, at seat) (*proc.Lock, error) {
	for deadline := time.Now().Add(wakePatience); ; {
		if _, _, present := at.server(); !present {
			return nil, nil
		}
		lock, err := proc.NewLock(path)
		if !errors.Is(err, proc.ErrHeld) || time.Now().After(deadline) {
			if errors.Is(err, proc.ErrHeld) {
				err = nil
			}
			return lock, err
		}
		if err := pause(ctx, wakeGrace/4); err != nil {
			return nil, err
		}
	}
}

// pause returns after so long, or with the error of ctx when that ends first.
func pause(ctx context.Context, long time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(long):
		return nil
	}
}
