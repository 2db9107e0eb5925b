package engine

import (
	"context"
	"errors"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"cadre/internal/agent"
	"cadre/internal/agent/drivers"
	"cadre/internal/agent/roles"
	"cadre/internal/claude/projection"
	"cadre/internal/consolidate"
	"cadre/internal/engine/upkeep"
	"cadre/internal/git/project"
	"cadre/internal/hook"
	"cadre/internal/host"
	"cadre/internal/inspect"
	"cadre/internal/journal"
	"cadre/internal/journal/recorded"
	"cadre/internal/journal/store"
	"cadre/internal/layout"
	"cadre/internal/replica"
	"cadre/internal/sys/proc"
	"cadre/internal/team"
)

// Engine is what a program configures for the teams that it opens. It must not change after its
// first use. Any goroutine may use it.
type Engine struct {
	// Home has the folders of the teams and of Claude Code.
	Home layout.Home
	// Memory keeps the teams instead of Home; nil for teams on disk. A team in memory has no
	// projections, no checkpoints and no hooks of settings files, and only the roles of its
	// project.
	Memory *Memory
	// Agents are the drivers, with the helper program that they need.
	Agents drivers.Set
	// HostCommand returns the command line of a program that hosts the team with that name or id
	// until no member has a session any more. It is nil for an engine that starts no background
	// hosts.
	HostCommand func(team string) []string
	// Kept is called when a background host was started for the team with that id, so that a server
	// keeps the team running; nil for nothing.
	Kept func(id string)
	// Room is called before a teammate with a session joins the team with that id, so that a server
	// can reserve room for it. It refuses a teammate if no room is left. It is nil if nobody
	// counts. giveBack is called if the teammate does not join.
	Room func(ctx context.Context, id, member string) (giveBack func(), err error)
	// Hooks returns the hooks of a team's replica, given those of settings files; nil to use these
	// only.
	Hooks func(settings replica.Hooks) replica.Hooks
	// NoSettingsHooks turns the hooks of settings files off.
	NoSettingsHooks bool
	// Shared keeps the replicas of teams that are opened, so that readers and actors have one
	// state; nil to open one for each.
	Shared *Shared
	// Stamp completes each command to a team that is opened for an actor; nil for nothing. See
	// [replica.Options].
	Stamp func(*team.Command)
	// Appended is called with how long each record of a team that is opened for an actor took to
	// become durable, from any goroutine; nil for nothing.
	Appended func(time.Duration)
	// Nested returns the agent of members that are teams, for a host of the team with those
	// options; nil for an engine whose teams have no teams in them.
	Nested func(of *Team, o HostOptions) agent.Agent
	// MachineTurns returns how many teammates of all teams on this machine may have a turn at a
	// time by the person's settings, 0 for no limit; nil for no settings.
	MachineTurns func() (int, error)
	// Log gets notes that are not errors, from any goroutine; nil to drop them.
	Log func(string)
	// Advise gets notes with hints on what would change their cause; nil to send them to Log.
	Advise func(team.Advice)
	// Elsewhere is called with each team that is opened for an actor, checkpointed or pushed, and
	// that belongs to another project than the directory of Home; nil for nothing.
	Elsewhere func(team.Team)
	// Warn gets errors that do not end a call; nil to send them to Log.
	Warn func(error)

	local team.Here // where the project is on this machine, for the host of a machine
}

// Shared keeps one replica of each team for a process.
type Shared = replica.Shared

// In returns the engine for a caller who works in the directory; see [layout.Home].
func (e *Engine) In(dir string) *Engine {
	in := *e
	in.Home = e.Home.In(dir)
	return &in
}

// At returns the engine for the host of a machine on which the project is in that directory, in the
// work tree top, wherever its teams say that it is.
func (e *Engine) At(dir, top string) *Engine {
	at := e.In(dir)
	at.local = team.Here{Dir: dir, Top: top}
	return at
}

// Team is an open team. Close it with [Team.Close], after its host has ended.
type Team struct {
	*replica.Replica
	// Name is the reference that the team was opened by: its name or its id.
	Name string
	// Dir is the team's folder. For a team in memory it is a temporary folder that has only hosts
	// and worktrees.
	Dir string

	engine   *Engine
	shared   store.Team
	kept     *kept // nil for a team on the disk
	procs    atomic.Pointer[proc.Register]
	runnable bool // the last Runnable accepted the team
	past     *recorded.Past
	marks    marks
}

// Note sends the text to Log, if there is one.
func (e *Engine) Note(text string) {
	if e.Log != nil {
		e.Log(text)
	}
}

// Tell sends the note, with its hints if the front end shows hints.
func (e *Engine) Tell(n team.Advice) {
	if e.Advise != nil {
		e.Advise(n)
		return
	}
	e.Note(n.Text)
}

func (e *Engine) warn(err error) {
	if e.Warn != nil {
		e.Warn(err)
		return
	}
	e.Note(err.Error())
}

// Look opens the team for reading. It runs no hooks and leaves the projections as they are. It
// accepts teams that are only observed.
func (e *Engine) Look(ctx context.Context, name string) (*Team, error) {
	if e.Shared != nil && e.Memory == nil {
		return e.lookShared(ctx, name)
	}
	t, j, err := e.place(name)
	if err != nil {
		return nil, err
	}
	return t.with(ctx, j, replica.Options{Log: e.Note})
}

// lookShared is Look on the replica that the readers of the team share.
func (e *Engine) lookShared(ctx context.Context, name string) (*Team, error) {
	dir, err := e.Home.Folder(name)
	if err != nil {
		return nil, err
	}
	rep, err := e.Shared.Open(ctx, dir, e.Note, func(report func(string)) (journal.Journal, error) {
		return e.openFolder(dir, report)
	})
	if err != nil {
		return nil, err
	}
	t := &Team{Replica: rep, Name: name, Dir: dir, engine: e, past: rep.NewPast()}
	return t, t.share()
}

// share finds out what the processes of the team share. After an error the team is closed.
func (t *Team) share() (err error) {
	if t.kept != nil {
		t.shared = t.kept.shared
		return nil
	}
	if t.shared, err = t.engine.Home.Shared(t.Dir); err != nil {
		err = errors.Join(err, t.Close())
	}
	return err
}

// LookIn is Look for the team in that folder of the home.
func (e *Engine) LookIn(ctx context.Context, dir string) (*Team, error) {
	return e.lookIn(ctx, filepath.Base(dir), dir)
}

// lookIn is Look for the team in that folder of the home.
func (e *Engine) lookIn(ctx context.Context, name, dir string) (*Team, error) {
	j, err := e.Home.OpenFolder(dir, e.Note)
	if err != nil {
		return nil, err
	}
	t := &Team{Name: name, Dir: dir, engine: e}
	return t.with(ctx, j, replica.Options{Log: e.Note})
}

// Open opens the team for an actor. Commands pass the hooks, and the projections are updated at the
// latest when the team is closed. It refuses a team that is only observed, and an archived one,
// whose project may have a later team of its name.
func (e *Engine) Open(ctx context.Context, name string) (*Team, error) {
	t, err := e.openAny(ctx, name)
	if err != nil {
		return nil, err
	}
	if err := t.current(); err != nil {
		return nil, errors.Join(err, t.Close())
	}
	return t, nil
}

// current refuses an archived team.
func (t *Team) current() error {
	if !t.OnDisk() || !t.engine.Home.Archived(t.Dir) {
		return nil
	}
	return team.Refuse(team.Finished, "%s is an archived run, which can only be read and removed", t.Name).
		With(team.Hint{Action: team.ActShowReview, Team: t.Name}, team.Hint{Action: team.ActCleanUp, Team: t.Name})
}

// openAny is Open, also for an archived team.
func (e *Engine) openAny(ctx context.Context, name string) (*Team, error) {
	if e.Shared != nil && e.Memory == nil {
		dir, err := e.Home.Folder(name)
		if err != nil {
			return nil, err
		}
		return e.OpenIn(ctx, name, dir)
	}
	t, j, err := e.place(name)
	if err != nil {
		return nil, err
	}
	return t.act(ctx, j)
}

// OpenIn is Open for the team in that folder of the home.
func (e *Engine) OpenIn(ctx context.Context, name, dir string) (*Team, error) {
	t := &Team{Name: name, Dir: dir, engine: e}
	if e.Shared != nil {
		return t.act(ctx, nil)
	}
	j, err := e.Home.OpenFolder(dir, e.Note)
	if err != nil {
		return nil, err
	}
	return t.act(ctx, j)
}

// act opens the team's replica for an actor. j is nil where the replica is shared.
func (t *Team) act(ctx context.Context, j journal.Journal) (*Team, error) {
	e := t.engine
	if j != nil {
		j = e.timed(j)
	}
	o := replica.Options{Log: e.Note, Advise: e.Tell, Hooks: t.hooks(), Check: t.checkTask,
		Stamp: e.Stamp, Here: e.local}
	if t.OnDisk() {
		// A session that stays, such as a lead without a host, must survive a failed sync. A host
		// ends at a failed sync, and other hosts take its members.
		o.Reopen = func(context.Context) (journal.Journal, error) {
			if t.procs.Load() != nil {
				return nil, journal.ErrReopen
			}
			return e.Home.OpenFolder(t.Dir, e.Note)
		}
		o.Project = e.Projector(t.Dir).Project
	}
	var err error
	if j != nil {
		t, err = t.with(ctx, j, o)
	} else if t.Replica, err = e.Shared.Act(ctx, t.Dir, o, func(report func(string)) (journal.Journal, error) {
		return e.openFolder(t.Dir, report)
	}); err == nil {
		t.past = t.Replica.NewPast()
		err = t.share()
	}
	if err != nil {
		return nil, err
	}
	of := t.Team()
	if err := of.CheckOurs(); err != nil {
		return nil, errors.Join(err, t.Close())
	}
	e.tellElsewhere(of)
	return t, nil
}

// openFolder opens the journal of a team's folder for the replica that all its users share.
func (e *Engine) openFolder(dir string, report func(string)) (journal.Journal, error) {
	j, err := e.Home.OpenFolder(dir, report)
	if err != nil {
		return nil, err
	}
	return e.timed(j), nil
}

// timed returns the journal, which reports how long its appends take where Appended is set.
func (e *Engine) timed(j journal.Journal) journal.Journal {
	if e.Appended == nil {
		return j
	}
	return timed{j, e.Appended}
}

// timed is a journal that reports how long its appends take.
type timed struct {
	journal.Journal
	took func(time.Duration)
}

func (j timed) Append(ctx context.Context, after int64, catchUp func(journal.Record) error,
	decide func() ([]byte, error)) (int64, error) {
	began, wrote := time.Now(), false
	seq, err := j.Journal.Append(ctx, after, catchUp, func() ([]byte, error) {
		data, err := decide()
		wrote = data != nil && err == nil
		return data, err
	})
	if wrote && err == nil {
		j.took(time.Since(began))
	}
	return seq, err
}

// tellElsewhere calls Elsewhere if the team belongs to another project than the directory of the
// caller.
func (e *Engine) tellElsewhere(of team.Team) {
	if dir := e.Home.Dir; e.Elsewhere != nil && dir != "" && of.Dir != dir && !project.Same(of.Dir, dir) {
		e.Elsewhere(of)
	}
}

// place finds the team and opens its journal.
func (e *Engine) place(name string) (*Team, journal.Journal, error) {
	t := &Team{Name: name, engine: e}
	if e.Memory != nil {
		var j journal.Journal
		var err error
		t.kept, t.Dir, j, err = e.Memory.open(name)
		return t, j, err
	}
	j, dir, err := e.Home.Open(name, e.Note)
	if err != nil {
		return nil, nil, err
	}
	t.Dir = dir
	return t, j, nil
}

// with opens the team's replica on its journal.
func (t *Team) with(ctx context.Context, j journal.Journal, o replica.Options) (*Team, error) {
	var err error
	if t.Replica, err = replica.Open(ctx, j, o); err != nil {
		t.leave()
		return nil, err
	}
	t.past = t.Replica.NewPast()
	return t, t.share()
}

// Close updates the projections and closes the journal. The host must have ended before.
func (t *Team) Close() error {
	err := t.Replica.Close()
	t.leave()
	return err
}

func (t *Team) leave() {
	if t.kept != nil {
		t.engine.Memory.leave(t.kept)
	}
}

// Remove removes a team that was cleaned up from its home or memory. It waits until no host of the
// team is running, ends the processes that they left, and leaves the members' work on their
// branches. It keeps and names work that it could not put there. After an error it can be called
// again. If the team was removed meanwhile and another team has its name, it touches nothing.
func (t *Team) Remove(ctx context.Context) error {
	of := t.Team()
	if t.replaced(ctx) {
		return nil
	}
	if err := host.Settle(ctx, t.Shared(), t.Hosts(), of.Dir, t.engine.Note); err != nil {
		return err
	}
	if t.replaced(ctx) { // meanwhile
		return nil
	}
	if err := host.DropWork(ctx, of); err != nil {
		t.engine.Note(err.Error())
	}
	if t.kept != nil {
		t.engine.Memory.remove(t.Name, t.kept)
		return nil
	}
	return upkeep.RemoveFolder(ctx, t.engine.Home, of, t.Dir, t.engine.Note)
}

// replaced reports whether the team's folder belongs to another team by now. A team in memory has a
// folder of its own.
func (t *Team) replaced(ctx context.Context) bool {
	return t.OnDisk() && upkeep.Replaced(ctx, t.engine.Home, t.Dir, t.Team().ID, t.engine.Note)
}

// Engine returns the engine that opened the team.
func (t *Team) Engine() *Engine { return t.engine }

// OnDisk reports whether the team outlives this process.
func (t *Team) OnDisk() bool { return t.kept == nil }

// Hosts returns the folder of the team's hosts.
func (t *Team) Hosts() string { return filepath.Join(t.Dir, "hosts") }

// Shared returns what the processes of the team share besides its journal.
func (t *Team) Shared() store.Team { return t.shared }

// Lead returns the member that leads. Its agent is external if a person or a program leads.
func (t *Team) Lead() (m team.Member) {
	t.View(func(s *team.State) { m, _ = s.Member(s.Team().Lead) })
	return m
}

// Consolidation returns the options that a consolidation, its merged worktree and a rollback need.
func (t *Team) Consolidation() consolidate.Options {
	o := consolidate.Options{Replica: t.Replica, Dir: t.Dir, Shared: t.Shared(), Log: t.engine.Note,
		Unsaved: t.engine.Home.Place != nil,
		Advise:  t.engine.Tell}
	if t.OnDisk() {
		o.Except = []string{t.engine.Home.Root, t.engine.Home.Claude}
		of := t.Team()
		o.Foreign = sync.OnceValue(func() []string {
			return inspect.Foreign(context.Background(), t.engine.Home, of)
		})
	}
	return o
}

// Projector returns the projector that shows the team of that folder to Claude Code.
func (e *Engine) Projector(dir string) *projection.Projector {
	return &projection.Projector{Claude: e.Home.Claude, Mark: filepath.Join(dir, projection.MarkFile),
		Beside: layout.Beside(dir), Log: e.Note}
}

// role finds the definition of a role in a directory.
func (e *Engine) role(dir, role string) (roles.Definition, bool, error) {
	claude := e.Home.Claude
	if e.Memory != nil {
		claude = ""
	}
	return roles.Find(claude, dir, role)
}

// hooks returns the hooks of the team's replica. A host's register starts them while there is one,
// and marks them as the user's processes. Otherwise a register is made for each event.
func (t *Team) hooks() replica.Hooks {
	settings := t.settingsHooks
	if t.engine.NoSettingsHooks || !t.OnDisk() {
		settings = func(context.Context, team.Team, hook.Event) (v hook.Verdict, err error) { return v, nil }
	}
	if t.engine.Hooks != nil {
		return t.engine.Hooks(settings)
	}
	return settings
}

func (t *Team) settingsHooks(ctx context.Context, of team.Team, e hook.Event) (hook.Verdict, error) {
	children := t.procs.Load()
	if children == nil {
		var err error
		if children, err = proc.Open(""); err != nil {
			return hook.Verdict{}, err
		}
		defer children.Close(context.WithoutCancel(ctx))
	}
	home := t.engine.Home
	ask := replica.SettingsHooks(home.Claude, hook.Trust{File: home.Trust()}, hook.Runner{Children: children})
	return ask(ctx, of, e)
}

// ref returns what a program that starts in this directory calls the team: its name, or its id if
// the name stands for another team or for several.
func (t *Team) ref() string {
	of := t.Team()
	if dir, err := t.engine.Home.Folder(of.Name); t.OnDisk() && (err != nil || dir != t.Dir) {
		return of.ID
	}
	return of.Name
}
