package teams

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"cadre/internal/consolidate"
	"cadre/internal/host"
	"cadre/internal/replica"
	"cadre/internal/sys/proc"
	"cadre/internal/team"
)

// projectEvery is the least time between two showings of the team to Claude Code.
const projectEvery = 200 * time.Millisecond

// engine is what runs in the background while a manager has a team.
type engine struct {
	room    *room
	replica *replica.Replica
	procs   *proc.Register // of a host; nil for a teammate's manager
	cancel  context.CancelFunc
	work    sync.WaitGroup
	hosting chan struct{} // closed when the host ended, with the reason in failure; nil without a host
	failure error

	closing sync.Once
	closed  error
	gone    chan struct{} // closed once everything is let go of
}

// open opens the team as the manager's actor and, for the lead, starts its host.
func (m *Manager) open(ctx context.Context, name string) (_ *Team, err error) {
	r, err := m.place.open(name, m.opts.Log)
	if err != nil {
		return nil, err
	}
	e := &engine{room: r, gone: make(chan struct{})}
	id := strings.ToLower(replica.NewID())
	if m.opts.As == "" {
		if err = host.Clear(ctx, r.hosts, m.opts.Log); err == nil {
			e.procs, err = host.Enroll(r.hosts, id)
		}
		if err != nil {
			err = errors.Join(err, r.journal.Close())
			r.leave()
			return nil, err
		}
	}
	if e.replica, err = replica.Open(ctx, r.journal, replica.Options{Hooks: m.gate(e.procs), Project: r.project,
		Log: m.opts.Log}); err != nil {
		if e.procs != nil {
			err = errors.Join(err, e.procs.Close(context.WithoutCancel(ctx)))
		}
		r.leave()
		return nil, err
	}
	t, err := m.teamOf(e)
	if err == nil && m.opts.As == "" {
		err = e.counts(ctx)
	}
	if err != nil {
		err = errors.Join(err, e.replica.Close())
		if e.procs != nil {
			err = errors.Join(err, e.procs.Close(context.WithoutCancel(ctx)))
		}
		r.leave()
		return nil, err
	}
	background, cancel := context.WithCancel(context.WithoutCancel(ctx))
	e.cancel = cancel
	if e.procs != nil {
		e.host(background, host.Options{Replica: e.replica, Agent: m.opts.agents(t),
			Offers: m.opts.offers(e.whoLeads().Agent), Relay: m.opts.drivers().Relay(), Role: r.role,
			Hosts: r.hosts, Procs: e.procs, ID: id, Env: m.opts.Env, StopGrace: m.opts.StopGrace, Log: m.opts.Log,
			Merge: func(ctx context.Context, members []string) (host.Merged, func(), error) {
				return consolidate.Hold(ctx, consolidate.Options{Replica: e.replica, Dir: filepath.Dir(r.hosts),
					Log: m.opts.Log}, members)
			}})
	}
	e.project(ctx)
	e.work.Go(func() { e.keepProjecting(background) })
	return t, nil
}

// teamOf is the handle of the manager's actor, who must be a member.
func (m *Manager) teamOf(e *engine) (*Team, error) {
	info := e.replica.Team()
	if err := info.CheckOurs(); err != nil {
		return nil, err
	}
	t := &Team{engine: e, opts: m.opts, who: m.who, id: info.ID, name: info.Name, dir: info.Dir, lead: info.Lead}
	t.me = actor{team: t, name: info.Lead}
	if as := m.opts.As; as != "" {
		if err := t.member(as); err != nil {
			return nil, err
		}
		t.me.name = as
	} else if e.whoLeads().Agent != External { // it speaks for itself, and has its own mail
		t.me.name = team.User
	}
	return t, nil
}

// whoLeads is the lead.
func (e *engine) whoLeads() (m team.Member) {
	e.replica.View(func(s *team.State) { m, _ = s.Member(s.Team().Lead) })
	return m
}

func (e *engine) host(ctx context.Context, o host.Options) {
	e.hosting = make(chan struct{})
	host := host.New(o)
	e.work.Go(func() {
		defer close(e.hosting)
		if e.failure = host.Run(ctx); e.failure != nil {
			o.Log("the host ended: " + e.failure.Error())
		}
	})
}

// keepProjecting keeps what Claude Code is shown up to date while the team changes.
func (e *engine) keepProjecting(ctx context.Context) {
	if e.room.project == nil {
		return
	}
	pause := time.NewTimer(projectEvery)
	defer pause.Stop()
	for seq := e.replica.Seq(); e.replica.Wait(ctx, seq) == nil; {
		seq = e.replica.Seq()
		e.project(ctx)
		pause.Reset(projectEvery)
		select {
		case <-pause.C:
		case <-ctx.Done():
		}
	}
}

func (e *engine) project(ctx context.Context) { e.replica.Project(ctx) }

// leave ends the host and its sessions and closes the replica; what went wrong with that is in
// closed. When ctx ends first it goes on in the background, and leave can be called again.
func (e *engine) leave(ctx context.Context) error {
	e.closing.Do(func() {
		go func() {
			defer close(e.gone)
			e.cancel()
			e.work.Wait()
			e.closed = errors.Join(e.failure, e.replica.Close())
		}()
	})
	select {
	case <-e.gone:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("the team's sessions are still ending: %w", ctx.Err())
	}
}

// until waits until see is satisfied with the team, looking at it again whenever it changed.
func (e *engine) until(ctx context.Context, see func(*team.State) bool) error {
	if err := e.replica.Refresh(ctx); err != nil {
		return public(err)
	}
	for {
		seq, done := int64(0), false
		e.replica.View(func(s *team.State) { seq, done = s.Seq(), see(s) })
		if done {
			return nil
		}
		if err := e.replica.Wait(ctx, seq); err != nil {
			return public(err)
		}
	}
}
