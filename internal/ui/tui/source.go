package tui

import (
	"context"
	"errors"
	"sync"
	"time"

	tea "charm.land/bubbletea/v2"

	"cadre/internal/engine"
	"cadre/internal/inspect/attention"
	"cadre/internal/inspect/catalog"
	"cadre/internal/sys/sleep"
	"cadre/internal/team"
)

// source reads what the screen shows, and acts on teams. It implements [outside].
type source struct {
	engine             *engine.Engine
	explain            func(error) string
	self, teamVariable string // the program of the palette, and the variable that names the team to it
	env                []string
	asks               func(output string, status int) string
	send               func(tea.Msg)
	ctx                context.Context // of the screen

	mu         sync.Mutex
	ref        string  // the team to read
	opened     *opened // that team; nil until it is open
	end        context.CancelFunc
	endSession context.CancelFunc
	running    sync.WaitGroup
	// the orders of the last calls
	teamOrder, sessionOrder int
}

// frame is the least time between two messages of a source. A source is busy for at most a tenth of
// the time.
const frame = 50 * time.Millisecond

// rest waits after a message whose making took that long.
func rest(ctx context.Context, took time.Duration) { sleep.For(ctx, max(frame, 9*took)) }

// teams sends the list of teams whenever it may have changed, until ctx ends.
func (s *source) teams() {
	f := s.engine.Attention("")
	defer f.Close()
	f.Log = func(text string) { s.send(actedMsg{err: oneLine(text)}) }
	err := f.Watch(s.ctx, func(found []attention.Found) bool {
		var msg teamsMsg
		for _, one := range found {
			msg.teams = append(msg.teams, rowOf(one))
			msg.items = append(msg.items, itemsOf(one)...)
		}
		s.send(msg)
		rest(s.ctx, 0)
		return false
	})
	if s.ctx.Err() == nil {
		s.send(teamsMsg{err: err})
	}
}

// OpenTeam implements [outside].
func (s *source) OpenTeam(order int, ref string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if order < s.teamOrder || s.ctx.Err() != nil {
		return
	}
	if s.teamOrder = order; s.ref == ref {
		return
	}
	if s.end != nil {
		s.end()
	}
	s.ref = ref
	if ref == "" {
		return
	}
	var ctx context.Context
	ctx, s.end = context.WithCancel(s.ctx)
	s.running.Go(func() { s.follow(ctx, ref) })
}

// follow sends the state of the team after each change, until ctx ends. It retries a team that it
// cannot read.
func (s *source) follow(ctx context.Context, ref string) {
	const again = 2 * time.Second
	for ctx.Err() == nil {
		err := s.followOnce(ctx, ref)
		if ctx.Err() != nil {
			return
		}
		s.send(teamMsg{ref: ref, err: errors.New(s.explain(err))})
		sleep.For(ctx, again)
	}
}

// lookEvery is how often the source checks a team's processes: the history does not say which are
// alive.
const lookEvery = 2 * time.Second

func (s *source) followOnce(ctx context.Context, ref string) error {
	t, err := s.engine.Look(ctx, ref)
	if err != nil {
		return err
	}
	defer t.Close()
	defer s.reads(ctx, ref, t)()
	after, fresh, known := max(0, t.Seq()-mostFeed), true, int64(0)
	defer func() {
		if known > 0 { // an error here loses only the note of what the person has seen
			_ = t.Saw(known)
		}
	}()
	watching, unwatch := context.WithCancel(ctx)
	var tools sync.WaitGroup
	defer tools.Wait()
	defer unwatch()
	looker := t.Looker()
	var view *teamView
	for {
		began := engine.Now()
		outside, err := looker.Look(ctx, time.UnixMilli(int64(began)))
		if err != nil {
			return err
		}
		msg := teamMsg{ref: ref, fresh: fresh}
		seq := t.Seq()
		var records []*team.Record
		for r, err := range t.Read(ctx, after) {
			if err != nil {
				return err
			}
			records = append(records, r)
			msg.steps = append(msg.steps, stepsOf(r)...)
			after = r.Seq
		}
		t.View(func(st *team.State) {
			msg.feed = feedOf(records, st)
			view, seq = viewAfter(view, ref, st, outside), st.Seq()
			msg.view = view
			if of := st.Team(); !msg.view.ended && of.Observed != "" && !catalog.Watched(s.engine.Home, &of) {
				msg.view.state = catalog.Unwatched
			}
		})
		s.send(msg)
		if known, err = s.recall(ctx, ref, t, known, fresh); err != nil {
			return err
		}
		if fresh {
			fresh = false
			tools.Go(func() { s.tools(watching, ref, t) })
		}
		rest(ctx, engine.Now().Sub(began))
		waiting, cancel := context.WithTimeout(ctx, lookEvery)
		err = t.Wait(waiting, seq)
		late := waiting.Err() != nil
		cancel()
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil && !late {
			return err
		}
		if err := t.Refresh(ctx); err != nil {
			return err
		}
	}
}

// Act implements [outside].
func (s *source) Act(ref string, body team.Body, said string) tea.Msg {
	err := s.engine.Act(s.ctx, ref, team.User, body, func(*engine.Team, *team.Record) error { return nil })
	if err != nil {
		return actedMsg{err: oneLine(s.explain(err))}
	}
	return actedMsg{said: said}
}
