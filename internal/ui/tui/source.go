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
	"cadre/internal/render"
	"cadre/internal/sys/sleep"
	"cadre/internal/team"
)

// source reads what the screen shows, and acts on teams. It implements [outside].
type source struct {
	engine             *engine.Engine
	first              string // the team that the screen was started with; "" for none
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
	endSearch  context.CancelFunc
	running    sync.WaitGroup
	commands   sync.WaitGroup // commands of the palette
	// the orders of the last calls
	teamOrder, sessionOrder int
}

// frame is the least time between two messages of a source. A source is busy for at most a tenth of
// the time.
const frame = 50 * time.Millisecond

// rest waits after a message whose making took that long.
func rest(ctx context.Context, took time.Duration) { sleep.For(ctx, max(frame, 9*took)) }

// teams sends the list of teams whenever it may have changed, until ctx ends. It calls the team
// that the screen was started with as the person did: by its name or by its id.
func (s *source) teams() {
	first := "" // its id
	if s.first != "" {
		of, _ := s.engine.Glance(s.ctx, s.first) // why it cannot be read is shown where it is open
		first = of.ID
	}
	f := s.engine.Attention("")
	defer f.Close()
	f.Log = func(text string) { s.send(actedMsg{err: oneLine(text)}) }
	err := f.Watch(s.ctx, func(found []attention.Found) bool {
		var msg teamsMsg
		for _, one := range found {
			row, items := rowOf(one), itemsOf(one)
			if first != "" && one.Team.ID == first {
				row.ref = s.first
				for i := range items {
					items[i].ref = s.first
				}
			}
			msg.teams, msg.items = append(msg.teams, row), append(msg.items, items...)
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
		s.send(teamMsg{ref: ref, err: errors.New(explain(err))})
		sleep.For(ctx, again)
	}
}

// followOnce follows the team until ctx ends or the team cannot be read.
func (s *source) followOnce(ctx context.Context, ref string) error {
	t, err := s.engine.Look(ctx, ref)
	if err != nil {
		return err
	}
	defer t.Close()
	defer s.reads(ctx, ref, t)()
	known := int64(0) // the record up to which the person has seen the team
	defer func() {
		if known > 0 { // an error here loses only the note of what the person has seen
			_ = t.Saw(context.WithoutCancel(ctx), known)
		}
	}()
	watching, unwatch := context.WithCancel(ctx)
	var tools sync.WaitGroup
	defer tools.Wait()
	defer unwatch()
	f := following{source: s, ref: ref, team: t, after: max(0, t.Seq()-mostFeed)}
	looker := t.Looker()
	for fresh := true; ; fresh = false {
		began := engine.Now()
		outside, err := looker.Look(ctx, time.UnixMilli(int64(began)))
		if err != nil {
			return err
		}
		msg, err := f.message(ctx, outside)
		if err != nil {
			return err
		}
		msg.fresh = fresh
		s.send(msg)
		if known, err = s.recall(ctx, ref, t, known, fresh); err != nil {
			return err
		}
		if fresh {
			tools.Go(func() { s.tools(watching, ref, t) })
		}
		rest(ctx, engine.Now().Sub(began))
		if err := f.wait(ctx, looker.Due(time.UnixMilli(int64(engine.Now())))); err != nil {
			return err
		}
	}
}

// following is a team that a source follows, and how far it has read it.
type following struct {
	*source
	ref   string
	team  *engine.Team
	view  *teamView
	seq   int64 // the record after which view shows the team
	after int64 // the last record that was sent
}

// message returns the state of the team, with the records that were not sent yet.
func (f *following) message(ctx context.Context, outside *team.Outside) (teamMsg, error) {
	msg := teamMsg{ref: f.ref}
	var records []*team.Record
	for r, err := range f.team.Read(ctx, f.after) {
		if err != nil {
			return msg, err
		}
		records = append(records, r)
		msg.steps = append(msg.steps, stepsOf(r)...)
		f.after = r.Seq
	}
	f.team.View(func(st *team.State) {
		msg.feed = feedOf(records, st)
		f.view, f.seq = viewAfter(f.view, f.ref, st, outside), st.Seq()
		of := st.Team()
		if !f.view.ended && of.Observed != "" && !catalog.Watched(f.engine.Home, &of) {
			f.view.state = catalog.Unwatched
		}
	})
	msg.view = f.view
	return msg, nil
}

// wait returns after the next record, or when it is time to look at the processes again: the
// history does not say which of them are alive.
func (f *following) wait(ctx context.Context, due time.Duration) error {
	waiting, cancel := context.WithTimeout(ctx, due)
	defer cancel()
	if err := f.team.Wait(waiting, f.seq); ctx.Err() != nil {
		return ctx.Err()
	} else if err != nil && waiting.Err() == nil {
		return err
	}
	return f.team.Refresh(ctx)
}

// Act implements [outside].
func (s *source) Act(ref string, body team.Body, said string) tea.Msg {
	err := s.engine.Act(s.ctx, ref, team.User, body, func(*engine.Team, *team.Record) error { return nil })
	if err != nil {
		return actedMsg{err: oneLine(explain(err))}
	}
	return actedMsg{said: said}
}

// explain returns an error as text for a person.
func explain(err error) string { return render.Explain(err, engine.HintsOf(err)) }
