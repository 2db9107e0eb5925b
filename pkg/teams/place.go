package teams

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"cadre/internal/agent/roles"
	"cadre/internal/claude/projection"
	"cadre/internal/journal"
	"cadre/internal/journal/memjournal"
	"cadre/internal/layout"
	"cadre/internal/run"
	"cadre/internal/team"
)

// place is where teams are kept.
type place interface {
	// create makes the team with these commands as its beginning, or refuses a name that is taken.
	create(name string, commands []team.Command) error
	// open opens a team. log is told what was mended on the way.
	open(name string, log func(string)) (*room, error)
}

// room is one team in its place, opened.
type room struct {
	journal journal.Journal
	folder  string // of the team; "" for one in memory
	hosts   string // folder of the team's hosts
	role    func(dir, role string) (roles.Definition, bool, error)
	lead    func() (leave func(), err error) // takes the lead of the team, which one at a time has
	project func(context.Context, journal.Journal, *team.State) error
	leave   func()       // to be called once the journal is closed
	remove  func() error // removes the team from its place
}

// disk keeps teams in the folders of the cadre program.
type disk struct{ layout.Home }

func (d disk) create(name string, commands []team.Command) error { return d.Create(name, commands) }

func (d disk) open(name string, log func(string)) (*room, error) {
	j, dir, err := d.Open(name, log)
	if err != nil {
		return nil, err
	}
	projector := &projection.Projector{Claude: d.Claude, Mark: filepath.Join(dir, projection.MarkFile), Log: log}
	return &room{journal: j, folder: dir, hosts: filepath.Join(dir, "hosts"), role: rolesIn(d.Claude),
		project: projector.Project,
		lead: func() (func(), error) {
			lock, err := run.Take(dir, name)
			if err != nil {
				return nil, err
			}
			return func() { lock.Unlock() }, nil
		},
		leave: func() {}, remove: func() error {
			kept, err := d.KeepWorktrees(dir)
			if err != nil {
				return err
			}
			if kept != "" {
				log("worktrees that could not be put on their branches are kept in " + kept)
			}
			return d.Remove(dir)
		}}, nil
}

// roles finds what a role means, in the project and in Claude Code's folder; "" for the project
// alone.
func rolesIn(claude string) func(dir, role string) (roles.Definition, bool, error) {
	return func(dir, role string) (roles.Definition, bool, error) { return roles.Find(claude, dir, role) }
}

// Memory keeps teams in memory. The zero Memory is empty and ready for use; managers that have it
// in common see the same teams, as processes do that have a folder in common. What sessions need of
// the disk is in a temporary folder while a manager has the team open, and longer where a member
// left work in a worktree there.
type Memory struct {
	mu    sync.Mutex
	teams map[string]*memoryTeam
}

type memoryTeam struct {
	store *memjournal.Store
	dir   string // the team's folder in a temporary one, while there is one
	users int
	led   bool // somebody has the lead
}

func (m *Memory) create(name string, commands []team.Command) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.teams[name] != nil {
		return refuse(Taken, fmt.Sprintf("there is a team named %s already; take another name, or clean that one up",
			name))
	}
	state := &team.State{}
	var records [][]byte
	for _, c := range commands {
		decision, err := team.Decide(state, c)
		if err != nil {
			return err
		}
		if decision.Record != nil {
			records = append(records, team.AppendRecord(nil, decision.Record))
			state.Apply(decision.Record)
		}
	}
	if m.teams == nil {
		m.teams = map[string]*memoryTeam{}
	}
	m.teams[name] = &memoryTeam{store: memjournal.New(name, records...)}
	return nil
}

func (m *Memory) open(name string, _ func(string)) (*room, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	t := m.teams[name]
	if t == nil {
		return nil, refuse(NotFound, fmt.Sprintf("there is no team %s in this memory", name))
	}
	if t.dir == "" {
		temp, err := os.MkdirTemp("", "cadre-")
		if err != nil {
			return nil, err
		}
		t.dir = filepath.Join(temp, name)
	}
	t.users++
	return &room{journal: t.store.Open(), hosts: filepath.Join(t.dir, "hosts"), role: rolesIn(""),
		lead:  func() (func(), error) { return m.lead(name, t) },
		leave: func() { m.leave(t) }, remove: func() error { return m.remove(name, t) }}, nil
}

func (m *Memory) lead(name string, t *memoryTeam) (leave func(), err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if t.led {
		return nil, refuse(NotReady, fmt.Sprintf("team %s is being run already", name))
	}
	t.led = true
	return func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		t.led = false
	}, nil
}

func (m *Memory) leave(t *memoryTeam) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if t.users--; t.users > 0 {
		return
	}
	for _, passing := range []string{"hosts", "heartbeats"} {
		os.RemoveAll(filepath.Join(t.dir, passing))
	}
	// else there is work in it
	for _, empty := range []string{filepath.Join(t.dir, "worktrees"), t.dir, filepath.Dir(t.dir)} {
		if err := os.Remove(empty); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return
		}
	}
	t.dir = ""
}

func (m *Memory) remove(name string, t *memoryTeam) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.teams[name] == t {
		delete(m.teams, name)
	}
	t.store.Remove()
	return nil
}
