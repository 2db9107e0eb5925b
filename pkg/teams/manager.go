package teams

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"cadre/internal/access"
	"cadre/internal/engine"
	"cadre/internal/team"
)

// Manager is one session of one actor, with one team at a time. Call Close when it is no longer
// needed.
type Manager struct {
	opts   Options
	engine *engine.Engine
	who    access.Caller // who runs this program

	hooks hookSet

	turn sync.Mutex // held while the manager gains or loses its team

	mu     sync.Mutex
	team   *Team
	closed bool
}

// New returns a manager without a team. It returns [ErrDisabled] if Options.Gate is set and the
// feature is not enabled. It returns another error if the options are wrong, or if no home folder
// is known. In a program that runs in a member's session the manager acts as that member, in that
// team only, and another Options.As returns ErrDenied.
func New(o Options) (*Manager, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	m := &Manager{opts: o}
	for _, h := range o.Hooks {
		if err := m.hooks.add(h); err != nil {
			return nil, err
		}
	}
	if m.engine, err = o.engine(); err != nil {
		return nil, err
	}
	m.engine.Hooks = m.gate
	if o.Memory == nil {
		if err := m.admit(); err != nil {
			return nil, public(err)
		}
	}
	return m, nil
}

// admit determines who runs this program, and restricts the manager accordingly.
func (m *Manager) admit() (err error) {
	if m.who, err = access.Who(m.engine.Home); err != nil || m.who.IsUser() {
		return err
	}
	if err := m.who.Entry("New", nil); err != nil {
		return err
	}
	if m.opts.As, err = m.who.Actor("Options.As", m.opts.As); err != nil {
		return err
	}
	m.engine.Home = m.who.Scoped(m.engine.Home)
	return nil
}

// pass returns an error for an entry that only the user may call, if the program runs in a member's
// session. fields are the parameters that have rules of their own, by name, and whether each is
// set.
func (m *Manager) pass(entry string) error { return pass(m.who, entry, nil) }

func pass(who access.Caller, entry string, fields map[string]bool) error {
	return public(who.Entry(entry, func(field string) bool { return fields[field] }))
}

// CreateTeam creates a team and makes it the manager's. It returns ErrNotReady while the manager
// has another team, and ErrNameTaken if a team has that name. It returns ErrInvalid for a wrong
// config, and ErrDenied for a teammate. It does not wait for the sessions of the config's lead and
// members. If ctx ends, the team may exist although the error says otherwise; OpenTeam opens it.
func (m *Manager) CreateTeam(ctx context.Context, c TeamConfig) (*Team, error) {
	m.turn.Lock()
	defer m.turn.Unlock()
	if err := m.pass("Manager.CreateTeam"); err != nil {
		return nil, err
	}
	if err := m.vacant(); err != nil {
		return nil, err
	}
	commands, err := m.founding(ctx, c)
	if err != nil {
		return nil, err
	}
	if err := m.engine.Create(c.Name, commands); err != nil {
		return nil, public(err)
	}
	e := m.engine
	if create, is := commands[0].Body.(*team.CreateTeam); is {
		e = e.In(create.Dir)
	}
	return m.enter(ctx, e, c.Name)
}

// OpenTeam makes an existing team the manager's and continues it. It restarts members whose host
// has died, and returns their tasks to the queue. name is the team's name or its id. OpenTeam
// returns an [*AmbiguousError] for a name that stands for teams of several other projects.
//
// It returns ErrNotFound if the team does not exist or has no member for Options.As, and
// ErrNotReady while the manager has a team. Before it starts a session of an unfinished team, it
// may return further errors: ErrInvalid if the team's directory does not exist, and ErrDenied if
// this machine released the team. It returns ErrForked if the repository has another history of the
// team, or a later state.
func (m *Manager) OpenTeam(ctx context.Context, name string) (*Team, error) {
	m.turn.Lock()
	defer m.turn.Unlock()
	if err := m.pass("Manager.OpenTeam"); err != nil {
		return nil, err
	}
	if err := m.vacant(); err != nil {
		return nil, err
	}
	return m.enter(ctx, m.engine, name)
}

func (m *Manager) vacant() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case m.closed:
		return refuse(ErrFinished, "the manager is closed")
	case m.team != nil:
		return refuse(ErrNotReady, fmt.Sprintf("team %s is active; clean it up before another one: a manager has one "+
			"team at a time", m.team.name))
	}
	return nil
}

func (m *Manager) enter(ctx context.Context, e *engine.Engine, name string) (*Team, error) {
	t, err := m.open(ctx, e, name)
	if err != nil {
		return nil, public(err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.team = t
	return t, nil
}

// Team returns the manager's team, or nil.
func (m *Manager) Team() *Team {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.team
}

// Cleanup removes the team and everything that belongs to it. Then the manager can have another
// team. It returns ErrNotReady while a teammate runs, with its name; [Team.Abort] ends all of them.
// Without a team it does nothing. After an error it can be called again.
func (m *Manager) Cleanup(ctx context.Context) error {
	m.turn.Lock()
	defer m.turn.Unlock()
	if err := m.pass("Manager.Cleanup"); err != nil {
		return err
	}
	t := m.Team()
	if t == nil {
		return nil
	}
	if !t.cleaned {
		if _, err := t.me.do(ctx, &team.CleanUp{}); err != nil {
			return err
		}
		t.cleaned = true // its handles are closed from now on
	}
	if err := t.leave(ctx); err != nil {
		return err
	}
	if t.closed != nil {
		m.opts.log(t.closed.Error())
	}
	if err := t.of.Remove(ctx); err != nil {
		return &Error{Code: ErrNotReady, Text: "the team is ended, but something of it is still there: " + err.Error() +
			"; clean it up again", Hints: hintsOf(err)}
	}
	m.forget()
	return nil
}

// Close ends the sessions that this manager runs and releases the team, which continues when it is
// opened again. The team's handles return errors from then on. It may be called more than once.
func (m *Manager) Close() error {
	m.turn.Lock()
	defer m.turn.Unlock()
	m.mu.Lock()
	m.closed = true
	t := m.team
	m.mu.Unlock()
	if place := m.engine.Home.Place; place != nil {
		defer place.Close()
	}
	if t == nil {
		return nil
	}
	defer m.forget()
	return errors.Join(t.leave(context.Background()), public(t.closed))
}

func (m *Manager) forget() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.team = nil
}
