package teams

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"cadre/internal/engine"
	"cadre/internal/team"
	"cadre/internal/ui/pane"
)

// presence is the state of a manager while it has a team.
type presence struct {
	opened *engine.Team
	host   *engine.Host // nil for a teammate's manager
	// leaveShow ends the projections of a teammate's manager, and returns when they have ended.
	leaveShow func()
	panes     *pane.Shown // nil without panes

	closing sync.Once
	closed  error
	gone    chan struct{} // closed once everything is released
}

// open opens the team as the manager's actor and, for the lead, starts its host.
func (m *Manager) open(ctx context.Context, e *engine.Engine, name string) (_ *Team, err error) {
	of, err := e.Open(ctx, name)
	if err != nil {
		return nil, err
	}
	p := &presence{opened: of, leaveShow: func() {}, gone: make(chan struct{})}
	t, err := m.teamOf(p)
	if err == nil && m.opts.As == "" {
		p.host, err = of.Host(ctx, engine.HostOptions{Agent: m.opts.agents(t), Offers: m.opts.offers(of.Lead().Agent),
			Env: m.opts.Env, StopGrace: m.opts.StopGrace})
		if err == nil {
			if p.panes, err = m.display(ctx, of); err != nil {
				p.host.End()
			}
		}
	}
	if err != nil {
		return nil, moved(errors.Join(err, of.Close()))
	}
	if p.host == nil {
		p.show(ctx)
	} else {
		go func() { // errors are reported when the team is closed
			if err := p.host.Err(); err != nil {
				m.engine.Note("the host ended: " + err.Error())
			}
		}()
	}
	return t, nil
}

// show updates the projection for Claude Code while the team changes, as a host does.
func (p *presence) show(ctx context.Context) {
	p.opened.Project(ctx)
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var showing sync.WaitGroup
	showing.Go(func() { p.opened.KeepProjections(ctx) })
	p.leaveShow = func() {
		cancel()
		showing.Wait()
	}
}

// teamOf returns the handle of the manager's actor, which must be a member.
func (m *Manager) teamOf(p *presence) (*Team, error) {
	t := &Team{View: viewOf(p.opened), presence: p, home: m.engine.Home, opts: m.opts, who: m.who,
		functions: &m.hooks}
	t.me = actor{team: t, name: t.lead}
	if as := m.opts.As; as != "" {
		if err := t.member(as); err != nil {
			return nil, err
		}
		t.me.name = as
	} else if p.opened.Lead().Agent != External { // an agent that leads reads its own mail
		t.me.name = team.User
	}
	return t, nil
}

// leave ends the host and its sessions, and closes the replica. The field closed then has the
// errors. If ctx ends first, the work continues in the background, and leave can be called again.
func (p *presence) leave(ctx context.Context) error {
	p.closing.Do(func() {
		go func() {
			defer close(p.gone)
			if p.host != nil {
				p.closed = p.host.End()
			}
			p.panes.Stop()
			p.leaveShow()
			p.closed = errors.Join(p.closed, p.opened.Close())
		}()
	})
	select {
	case <-p.gone:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("the team's sessions are still ending: %w", ctx.Err())
	}
}

// until waits until see accepts the team. It checks again after each change of the team.
func (p *presence) until(ctx context.Context, see func(*team.State) bool) error {
	if err := p.opened.Refresh(ctx); err != nil {
		return public(err)
	}
	for {
		seq, done := int64(0), false
		p.opened.View(func(s *team.State) { seq, done = s.Seq(), see(s) })
		if done {
			return nil
		}
		if err := p.opened.Wait(ctx, seq); err != nil {
			return public(err)
		}
	}
}
