package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"cadre/internal/engine"
	"cadre/internal/run"
	"cadre/internal/team"
	"cadre/internal/ui/presence"
	"cadre/internal/ui/tui"
)

// opensAfter is how long a run prints lines before it opens the screen. A run that ends earlier
// never opens it.
const opensAfter = 2 * time.Second

// runScreen opens the screen on the team that this process runs, and acts on how the person leaves
// it. The zero runScreen, without a worker, opens none.
type runScreen struct {
	app      *app
	progress *progress
	asker    *asker

	ended  chan struct{} // closed when the run has ended
	closed chan struct{} // closed when the screen will not open again; nil before the run began
	open   atomic.Bool
	needed bool             // the run ended with something that needs the person; set before ended is closed
	lines  *presence.Viewer // while the terminal shows lines or the screen of the team

	mu           sync.Mutex
	endsNotifies func()
}

func newRunScreen(a *app, p *progress, q *asker) *runScreen {
	if a.worker != nil {
		q.terminal.Store(false) // the screen asks; keys would reach both
		p.notes = make(chan string, 16)
	}
	return &runScreen{app: a, progress: p, asker: q, ended: make(chan struct{})}
}

// follow runs the team, and shows how it goes. It reports whether the run continued an earlier one.
func (s *runScreen) follow(ctx context.Context, o run.Options, shown *shownMembers) (r run.Result, again bool,
	err error) {
	a, p := s.app, s.progress
	o.Engine.Log, o.Said = p.note, p.said
	o.Engine.Shared = &a.shared // the run, its screen and its notifications have one state of the team
	a.shared.LogTo(p.note)
	o.Engine.Advise = func(n team.Advice) { p.beside(func() { a.advise(n) }) }
	o.Engine.Warn = func(err error) { p.beside(func() { a.fail(err) }) }
	o.Began = func(t team.Team, continues bool) {
		again = continues
		p.began(t, again)
		s.begins(ctx, t)
	}
	o.Saw = func(r *team.Record, of *engine.Team) {
		p.saw(r, of)
		s.asker.saw(ctx, r, of)
		shown.saw(ctx, of)
	}
	o.Hurry, o.Kill, o.Pause = a.haste.hurry, a.haste.kill, a.haste.pause
	stop := a.announce(ctx, p.stops, p.sessions)
	r, err = run.Run(ctx, o)
	s.ends(err == nil && ctx.Err() == nil && r.Short != nil && slices.ContainsFunc(r.Attention,
		func(i team.Item) bool { return i.WaitsFor == team.ForUser }))
	stop()
	shown.shown.Stop()
	p.clear()
	return r, again, err
}

// notifies notifies the person of the teams until quiet.
func (s *runScreen) notifies(ctx context.Context) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.endsNotifies = s.app.notifies(ctx, s.progress.note)
}

// quiet ends the notifications. Notifications that are due are still sent.
func (s *runScreen) quiet() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.endsNotifies()
}

// begins opens the screen after a while, in a goroutine, or leaves the terminal at once where the
// person asked for that. Later calls do nothing.
func (s *runScreen) begins(ctx context.Context, t team.Team) {
	if s.lines == nil && s.app.out.terminal() {
		s.lines = presence.Open(s.app.home.Root, os.Getenv)
		s.lines.Show(presence.View{Team: t.ID})
	}
	if s.app.worker == nil || s.closed != nil {
		return
	}
	s.app.worker.Tell(t.ID)
	s.closed = make(chan struct{})
	if s.app.leave {
		close(s.closed)
		if err := s.background(ctx, t, s.app.callable(t)); err != nil {
			s.progress.note(fmt.Sprintf("the team cannot continue in the background: %v", err))
		}
		return
	}
	go func() {
		defer close(s.closed)
		for wait := opensAfter; ; wait = time.Second {
			select {
			case <-time.After(wait):
			case <-s.ended:
				return
			case <-ctx.Done():
				return
			}
			if inForeground(os.Stdin) { // otherwise the shell has the terminal, until fg
				s.show(ctx, t)
				return
			}
		}
	}()
}

// ends closes the screen, because the run has ended, and waits for that. Where the person is needed
// the screen stays open until the person closes it.
func (s *runScreen) ends(needed bool) {
	s.needed = needed
	close(s.ended)
	if s.closed != nil {
		<-s.closed
	}
	s.lines.Close()
}

// show shows the screen until it closes, and does what the person decided.
func (s *runScreen) show(ctx context.Context, t team.Team) {
	a, name := s.app, s.app.callable(t)
	o := a.screenOptions(name)
	o.Presence = presence.Open(a.home.Root, os.Getenv)
	how, err := tui.RunHosted(ctx, o, tui.Hosted{Name: name, Ended: s.ended, Stays: func() bool { return s.needed },
		Notes: s.progress.notes, Opened: func() {
			s.progress.hide()
			a.worker.Shows(true)
			s.open.Store(true)
		}})
	o.Presence.Close()
	if s.open.Swap(false) {
		a.worker.Shows(false)
		s.progress.reveal("cadre log " + name)
	}
	select {
	case <-s.ended:
		return
	case <-ctx.Done():
		return
	default:
	}
	if err != nil {
		s.progress.note(fmt.Sprintf("the screen closed, and lines follow: %v", err))
		s.asker.terminal.Store(a.asks())
		return
	}
	switch how {
	case tui.Pause:
		a.haste.asks <- request{screen: true}
	case tui.Background:
		if err := s.background(ctx, t, name); err != nil {
			s.progress.note(fmt.Sprintf("the team cannot continue in the background: %v", err))
		}
	}
}

// background continues the run in the background. Its lines go to the log of the team's hosts.
func (s *runScreen) background(ctx context.Context, t team.Team, name string) error {
	a := s.app
	folder, err := a.home.Folder(t.ID)
	if err != nil {
		return err
	}
	log, err := engine.HostLog(folder)
	if err != nil {
		return err
	}
	defer log.Close()
	s.lines.Close()
	s.quiet() // the terminal is used for notifications too
	defer s.notifies(context.WithoutCancel(ctx))
	s.progress.printf("team %s continues in the background\n  see it:   cadre watch %s\n  pause it: cadre pause %s\n"+
		"  its log:  %s", name, name, name, log.Name())
	s.progress.leave()
	a.keep(t.ID)
	return a.worker.Leave(log)
}
