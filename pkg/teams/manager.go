package teams

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"cadre/internal/access"
	"cadre/internal/agent/drivers"
	"cadre/internal/engine"
	"cadre/internal/team"
)

// Manager is one session of one actor, with one team at a time. It is to be closed.
type Manager struct {
	opts   Options
	engine *engine.Engine
	who    access.Caller // who runs this program

	turn sync.Mutex // held by what begins or ends having a team

	mu     sync.Mutex
	team   *Team
	closed bool
}

// New returns a manager without a team. The error is [ErrDisabled] behind a closed gate, else it
// says what is wrong with the options, or that there is no home folder. In a program that runs in a
// member's session the manager acts as that member, in that team alone, and another Options.As is
// refused with Denied.
func New(o Options) (*Manager, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	m := &Manager{opts: o}
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

// admit finds out who runs this program, and restricts the manager to what that reaches.
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

// pass refuses an entry that is the user's alone to a program in a member's session. fields are
// those of what the entry takes that have rules of their own, by their names, and whether they are
// set.
func (m *Manager) pass(entry string, fields map[string]bool) error { return pass(m.who, entry, fields) }

func pass(who access.Caller, entry string, fields map[string]bool) error {
	return public(who.Entry(entry, func(field string) bool { return fields[field] }))
}

// CreateTeam creates a team and makes it the manager's. It is refused with NotReady while the
// manager has another one, with Taken where there is a team of that name, with Invalid for a config
// that makes no sense, and with Denied for a teammate. It does not wait for the sessions of the
// config's lead and members. A team that was created although the error says otherwise, because ctx
// ended, can be opened.
func (m *Manager) CreateTeam(ctx context.Context, c TeamConfig) (*Team, error) {
	m.turn.Lock()
	defer m.turn.Unlock()
	if err := m.pass("Manager.CreateTeam", nil); err != nil {
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
	return m.enter(ctx, c.Name)
}

// OpenTeam makes a team that exists the manager's and goes on with it: members whose host has died
// are started again, and their tasks are back on the list. It is refused with NotFound where there
// is no such team, or no such member for Options.As, with NotReady while the manager has a team, and,
// before any session of a team that has not ended is started, with Invalid where its directory is
// not there any more, with Denied where this machine let go of it, and with Forked where the
// repository has another history of it, or a later state.
func (m *Manager) OpenTeam(ctx context.Context, name string) (*Team, error) {
	m.turn.Lock()
	defer m.turn.Unlock()
	if err := m.pass("Manager.OpenTeam", nil); err != nil {
		return nil, err
	}
	if err := m.vacant(); err != nil {
		return nil, err
	}
	return m.enter(ctx, name)
}

func (m *Manager) vacant() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case m.closed:
		return refuse(Finished, "the manager is closed")
	case m.team != nil:
		return refuse(NotReady, fmt.Sprintf("team %s is active; clean it up before another one: a manager has one "+
			"team at a time", m.team.name))
	}
	return nil
}

func (m *Manager) enter(ctx context.Context, name string) (*Team, error) {
	t, err := m.open(ctx, name)
	if err != nil {
		return nil, public(err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.team = t
	return t, nil
}

// Team returns the manager's team, nil while it has none.
func (m *Manager) Team() *Team {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.team
}

func (m *Manager) current() (*Team, error) {
	if t := m.Team(); t != nil {
		return t, nil
	}
	return nil, refuse(NotFound, "the manager has no team; create one, or open one that exists")
}

// SpawnTeammate adds a teammate and waits until its session runs, which takes a coding agent some
// seconds. A teammate whose session could not be started is a member that has failed, and the error
// has the code Broken and the agent's own words; what may pass, such as a crash, is tried a few
// times first. When ctx ends first, the teammate is there and goes on starting.
func (m *Manager) SpawnTeammate(ctx context.Context, s Spawn) (Member, error) {
	t, err := m.current()
	if err != nil {
		return Member{}, err
	}
	if err := m.mayChoose(t, s); err != nil {
		return Member{}, err
	}
	if m.opts.As == "" {
		if err := m.check(ctx, s, t.dir); err != nil {
			return Member{}, err
		}
	}
	if _, err = t.me.do(ctx, s.core()); err != nil {
		return Member{}, err
	}
	spawned, err := t.await(ctx, s.Name, func(m team.Member) bool { return m.Status != team.Spawning })
	if err == nil && spawned.Status == Failed {
		err = refuse(Broken, fmt.Sprintf("%s could not be started: %s", s.Name, spawned.Summary))
	}
	t.of.Project(ctx)
	return spawned, err
}

// mayChoose refuses to a program in a member's session what the lead's tools do not let it choose
// for a teammate.
func (m *Manager) mayChoose(t *Team, s Spawn) error {
	if m.who.IsUser() {
		return nil
	}
	fields := map[string]bool{"Program": s.Program != "", "Args": len(s.Args) > 0, "Env": len(s.Env) > 0,
		"PermissionMode": s.PermissionMode != ""}
	if err := m.pass("Manager.SpawnTeammate", fields); err != nil {
		return err
	}
	return public(m.who.Spawns(s.Agent, drivers.Offers(t.of.Lead().Agent)))
}

// ShutdownTeammate asks a teammate to end and waits until it has, which is at
// Options.ShutdownWithin from now at the latest, whatever it answers, unless the request is
// withdrawn. One that was asked already is waited for. Its tasks are back on the list then, and the
// lead has a message. For other deadlines see [Team.RequestShutdown].
func (m *Manager) ShutdownTeammate(ctx context.Context, name string) error {
	t, err := m.current()
	if err != nil {
		return err
	}
	_, err = t.RequestShutdown(ctx, ShutdownRequest{Member: name, Within: m.opts.ShutdownWithin})
	if err != nil && !t.leaving(name) {
		return err
	}
	ended, err := t.await(ctx, name, func(m team.Member) bool {
		return !m.Status.Running() ||
			m.Shutdown.Request == ""
	})
	if err == nil && ended.Status.Running() {
		return refuse(Conflict, name+" runs on: the request to shut down was withdrawn")
	}
	t.of.Project(ctx)
	return err
}

// SendMessage sends a message as the member from; "" is the manager's own actor, and a lead's
// manager may also give [User]. To a coding agent it is a colleague's note, or the user's word. A
// recipient that is unknown or has ended is refused with NotFound and the valid names.
func (m *Manager) SendMessage(ctx context.Context, from, to, content string) error {
	box, err := m.mailbox(from)
	if err != nil {
		return err
	}
	_, err = box.Send(ctx, Message{To: to, Body: content})
	return err
}

// Broadcast sends one message to everybody but its sender, which is given as in SendMessage.
func (m *Manager) Broadcast(ctx context.Context, from, content string) error {
	box, err := m.mailbox(from)
	if err != nil {
		return err
	}
	_, err = box.Broadcast(ctx, Message{Body: content})
	return err
}

func (m *Manager) mailbox(from string) (*Mailbox, error) {
	t, err := m.current()
	if err != nil {
		return nil, err
	}
	switch {
	case from == "" || from == t.me.name:
		return t.Mail(), nil
	case from == User && m.opts.As == "":
		return &Mailbox{t.user()}, nil
	}
	as, err := t.As(from)
	if err != nil {
		return nil, err
	}
	return as.Mail(), nil
}

// Cleanup removes the team and everything that belongs to it, and the manager is free for another
// one. It is refused with NotReady while a teammate runs, with its name; [Team.Abort] ends them
// all. Without a team it does nothing, and after an error it can be called again.
func (m *Manager) Cleanup(ctx context.Context) error {
	m.turn.Lock()
	defer m.turn.Unlock()
	if err := m.pass("Manager.Cleanup", nil); err != nil {
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
		t.cleaned = true // its handles are closed from here on
	}
	if err := t.leave(ctx); err != nil {
		return err
	}
	if t.closed != nil {
		m.opts.Log(t.closed.Error())
	}
	if err := t.of.Remove(ctx); err != nil {
		return &Error{Code: NotReady, Text: "the team is ended, but something of it is still there: " + err.Error() +
			"; clean it up again", Hints: hintsOf(err)}
	}
	m.forget()
	return nil
}

// Close ends the sessions that this manager runs and lets go of the team, which goes on when it is
// opened again. The team's handles fail from then on. It may be called more than once.
func (m *Manager) Close() error {
	m.turn.Lock()
	defer m.turn.Unlock()
	m.mu.Lock()
	m.closed = true
	t := m.team
	m.mu.Unlock()
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
