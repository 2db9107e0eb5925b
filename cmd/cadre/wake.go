package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"cadre/internal/briefing"
	"cadre/internal/heartbeat"
	"cadre/internal/lookout"
	"cadre/internal/proc"
	"cadre/internal/team"
	"cadre/internal/wake"
)

// wakeName is that of a command whose exit status has a meaning for Claude Code: with 2 it wakes its session.
const wakeName = "wake"

func (a *app) wakeCommand() *cobra.Command {
	var name, as string
	c := &cobra.Command{
		Use: wakeName, Short: "Wake an idle Claude Code session when there is news (for its Stop hook)", Args: exactly(0),
		Long: `Wait until there is news for the session that leads the team through cadre mcp, and wake it. It is meant for a Stop hook of Claude Code, which runs it when
a turn ends; in a session without cadre mcp it ends at once.

  ` + wake.Hook + `

Exit status: 2 there is news, which wakes the session; 0 the session has ended, or is none of the team's; 1 it failed.`,
		RunE: func(c *cobra.Command, _ []string) error {
			stays()
			return a.wakeSession(c.Context(), name, as)
		},
	}
	c.Flags().StringVar(&name, "team", os.Getenv("CADRE_TEAM"), "the team; by default one named after the directory")
	c.Flags().StringVar(&as, "as", "", "the member that the session is; the lead by default")
	return c
}

const (
	// wakeLook is the time between two looks whether the session is still there.
	wakeLook = 2 * time.Second
	// wakeGrace is what a tool that is called just now has to bring the news itself.
	wakeGrace = time.Second
	// wakePatience is how long one waits for another that waits for the same session, which may be one that has just ended.
	wakePatience = 3 * wakeLook
)

// wakeSession returns the exit status 2 when there is news for the session that started this process.
func (a *app) wakeSession(ctx context.Context, name, as string) error {
	if !a.who.IsUser() { // its host wakes it
		return nil
	}
	if name == "" {
		var err error
		if name, err = teamOfDirectory(); err != nil {
			return nil // no team is named after such a directory
		}
	}
	d, dir, err := a.open(ctx, name, false)
	if team.CodeOf(err) == team.NotFound {
		return nil
	}
	if err != nil {
		return err
	}
	defer d.Close()
	if as == "" {
		as = d.Team().Lead
	}
	present := func() bool {
		b, known, err := heartbeat.Of(dir).Of(as)
		return err == nil && known && proc.Beside(b.Pid) && proc.Held(lookout.Presence(dir, as))
	}
	lock, err := a.wakeLock(ctx, filepath.Join(dir, "wake-"+as+".lock"), present)
	if err != nil || lock == nil {
		return err
	}
	defer lock.Unlock()
	for present() {
		var seq, news int64
		var over bool
		look := func() {
			d.View(func(s *team.State) {
				m, known := s.Member(as)
				seq, news, over = s.Seq(), s.News(as), !known || !m.Status.Running() || !s.Exists()
			})
		}
		if look(); news > 0 {
			if err := pause(ctx, wakeGrace); err != nil {
				return err
			}
			if err := d.Refresh(ctx); err != nil {
				return err
			}
			look()
		}
		switch {
		case over:
			return nil
		case news > 0:
			a.note(briefing.News)
			return exit(hopeless)
		}
		waiting, cancel := context.WithTimeout(ctx, wakeLook)
		err := d.Wait(waiting, seq)
		quiet := waiting.Err() != nil
		cancel()
		if err != nil && !quiet || ctx.Err() != nil {
			return err
		}
	}
	return nil
}

// wakeLock has one process wait for a session: of several turns that end each starts one. It returns nil when another one waits.
func (a *app) wakeLock(ctx context.Context, path string, present func() bool) (*proc.Lock, error) {
	for deadline := time.Now().Add(wakePatience); present(); {
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
	return nil, nil
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
