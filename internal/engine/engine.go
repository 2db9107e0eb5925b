package engine

import (
	"context"
	"errors"
	"path/filepath"
	"sync/atomic"

	"cadre/internal/agent/drivers"
	"cadre/internal/agent/roles"
	"cadre/internal/claude/projection"
	"cadre/internal/consolidate"
	"cadre/internal/engine/upkeep"
	"cadre/internal/hook"
	"cadre/internal/host"
	"cadre/internal/journal"
	"cadre/internal/layout"
	"cadre/internal/replica"
	"cadre/internal/sys/proc"
	"cadre/internal/team"
)

// Engine is what a program brings to the teams that it opens. It is not changed after its first
// use, and may be used from any goroutine.
type Engine struct {
	// Home is where teams are kept, and Claude Code's folder.
	Home layout.Home
	// Memory keeps the teams instead of Home; nil for teams on the disk. Such a team has no
	// projections, no checkpoints, no hooks of settings files, and roles of its project alone.
	Memory *Memory
	// Agents are the drivers, with the helper that they need.
	Agents drivers.Set
	// HostCommand is the command line of a program that hosts the team of that name until no member
	// has a session any more; nil for an engine that starts no hosts in the background.
	HostCommand func(team string) []string
	// Hooks makes what a team's replica asks from the hooks of settings files; nil for those alone.
	Hooks func(settings replica.Hooks) replica.Hooks
	// NoSettingsHooks turns the hooks of settings files off.
	NoSettingsHooks bool
	// Log is told what is worth knowing and no error, from any goroutine; nil for nobody.
	Log func(string)
}

// Team is a team that is open. It is closed with [Team.Close], after its host has ended.
type Team struct {
	*replica.Replica
	// Name is what the team was opened by: of an archived one its id.
	Name string
	// Dir is the team's folder. For a team in memory it is a temporary one that holds hosts and
	// worktrees alone.
	Dir string

	engine   *Engine
	kept     *kept // nil for a team on the disk
	procs    atomic.Pointer[proc.Register]
	runnable bool // the last Runnable agreed
}

// Note tells Log, where there is one.
func (e *Engine) Note(text string) {
	if e.Log != nil {
		e.Log(text)
	}
}

// Create makes the team with these commands as its beginning. It refuses a name that is taken.
func (e *Engine) Create(name string, commands []team.Command) error {
	if e.Memory != nil {
		return e.Memory.create(name, commands)
	}
	return e.Home.Create(name, commands)
}

// Look opens the team for reading: it asks no hooks and leaves the projections as they are. Teams
// that are only observed can be looked at.
func (e *Engine) Look(ctx context.Context, name string) (*Team, error) {
	t, j, err := e.place(name)
	if err != nil {
		return nil, err
	}
	return t.with(ctx, j, replica.Options{Log: e.Note})
}

// Open opens the team for an actor: commands pass the hooks, and the projections follow at the
// latest when it is closed. It is refused for a team that is only observed.
func (e *Engine) Open(ctx context.Context, name string) (*Team, error) {
	t, j, err := e.place(name)
	if err != nil {
		return nil, err
	}
	o := replica.Options{Log: e.Note, Hooks: t.hooks()}
	if t.OnDisk() {
		// A session that stays, such as a lead without a host, is not to end with a sync that
		// failed. A host ends with it: its members go to another one.
		o.Reopen = func(context.Context) (journal.Journal, error) {
			if t.procs.Load() != nil {
				return nil, journal.ErrReopen
			}
			j, _, err := e.Home.Open(name, e.Note)
			return j, err
		}
		o.Project = e.Projector(t.Dir).Project
	}
	if t, err = t.with(ctx, j, o); err != nil {
		return nil, err
	}
	of := t.Team()
	if err := of.CheckOurs(); err != nil {
		return nil, errors.Join(err, t.Close())
	}
	return t, nil
}

// place finds the team where it is kept, and opens its journal.
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

// with has the team's replica opened on its journal.
func (t *Team) with(ctx context.Context, j journal.Journal, o replica.Options) (*Team, error) {
	var err error
	if t.Replica, err = replica.Open(ctx, j, o); err != nil {
		t.leave()
		return nil, err
	}
	return t, nil
}

// Close brings the projections up to date and closes the journal. The host has ended before.
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

// Remove removes a team that was cleaned up, from where it is kept. It waits until no host of it
// lives, ends what they left running, and leaves the work of members on their branches; what could
// not be put there is kept and named. After an error it can be called again. Where somebody else
// has removed the team meanwhile, and another one has its name, it touches nothing.
func (t *Team) Remove(ctx context.Context) error {
	of := t.Team()
	if t.replaced(ctx) {
		return nil
	}
	if err := host.Settle(ctx, t.Hosts(), of.Dir, t.engine.Note); err != nil {
		return err
	}
	if t.replaced(ctx) { // while that took its time
		return nil
	}
	if err := host.DropWork(ctx, of); err != nil {
		t.engine.Note(err.Error())
	}
	if t.kept != nil {
		t.engine.Memory.remove(t.Name, t.kept)
		return nil
	}
	return upkeep.RemoveFolder(t.engine.Home, t.Dir, t.engine.Note)
}

// replaced reports whether the team's folder is another team's by now. A team in memory has a
// folder of its own.
func (t *Team) replaced(ctx context.Context) bool {
	return t.OnDisk() && upkeep.Replaced(ctx, t.engine.Home, t.Name, t.Team().ID, t.engine.Note)
}

// OnDisk reports whether the team outlives this process.
func (t *Team) OnDisk() bool { return t.kept == nil }

// Hosts is the folder of the team's hosts.
func (t *Team) Hosts() string { return filepath.Join(t.Dir, "hosts") }

// Lead is the member that leads; its agent is external where a person or a program does.
func (t *Team) Lead() (m team.Member) {
	t.View(func(s *team.State) { m, _ = s.Member(s.Team().Lead) })
	return m
}

// Consolidation is what a consolidation of the team, its merged worktree and a rollback need to
// know of the place.
func (t *Team) Consolidation() consolidate.Options {
	o := consolidate.Options{Replica: t.Replica, Dir: t.Dir, Log: t.engine.Note}
	if t.OnDisk() {
		o.Except = []string{t.engine.Home.Root, t.engine.Home.Claude}
	}
	return o
}

// Projector shows the team of that folder to Claude Code.
func (e *Engine) Projector(dir string) *projection.Projector {
	return &projection.Projector{Claude: e.Home.Claude, Mark: filepath.Join(dir, projection.MarkFile), Log: e.Note}
}

// role finds what a role means in a directory.
func (e *Engine) role(dir, role string) (roles.Definition, bool, error) {
	claude := e.Home.Claude
	if e.Memory != nil {
		claude = ""
	}
	return roles.Find(claude, dir, role)
}

// hooks are what the team's replica asks. A host's register starts them while there is one: in it
// they are marked as the user's. Else one is made for each event.
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
