package engine

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"cadre/internal/journal"
	"cadre/internal/journal/memjournal"
	"cadre/internal/team"
)

// Memory keeps teams in memory. The zero Memory is empty and ready for use. Engines that share a
// Memory see the same teams, as processes do that share a folder. Files that sessions need are in a
// temporary folder while the team is open, and longer if a member left work in a worktree there.
type Memory struct {
	mu    sync.Mutex
	teams map[string]*kept
}

// kept is a team in memory, guarded by Memory.mu.
type kept struct {
	store *memjournal.Store
	dir   string // the team's temporary folder, while it exists
	users int
	led   bool // a process has the lead
}

// Names returns the names of the teams, sorted.
func (m *Memory) Names() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Sorted(maps.Keys(m.teams))
}

func (m *Memory) create(name string, commands []team.Command) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.teams[name] != nil {
		return team.Refuse(team.Taken, "a team named %s exists already; choose another name, or clean that one up",
			name)
	}
	_, records, err := team.Begin(commands)
	if err != nil {
		return err
	}
	if m.teams == nil {
		m.teams = map[string]*kept{}
	}
	m.teams[name] = &kept{store: memjournal.New(name, records...)}
	return nil
}

// open returns the team, its folder, and a journal on it.
func (m *Memory) open(name string) (t *kept, dir string, j journal.Journal, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if t = m.teams[name]; t == nil {
		return nil, "", nil, team.Refuse(team.NotFound, "team %s does not exist in this memory", name)
	}
	if t.dir == "" {
		temp, err := os.MkdirTemp("", "cadre-")
		if err != nil {
			return nil, "", nil, err
		}
		t.dir = filepath.Join(temp, name)
	}
	t.users++
	return t, t.dir, t.store.Open(), nil
}

func (m *Memory) claim(t *kept) (release func(), held bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if t.led {
		return nil, false
	}
	t.led = true
	return func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		t.led = false
	}, true
}

func (m *Memory) leave(t *kept) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if t.users--; t.users == 0 {
		t.tidy()
	}
}

// tidy removes the team's folder, unless it has unsaved work.
func (t *kept) tidy() {
	for _, passing := range []string{"hosts", "heartbeats"} {
		os.RemoveAll(filepath.Join(t.dir, passing))
	}
	for _, empty := range []string{filepath.Join(t.dir, "worktrees"), t.dir, filepath.Dir(t.dir)} {
		if err := os.Remove(empty); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return
		}
	}
	t.dir = ""
}

func (m *Memory) remove(name string, t *kept) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.teams[name] == t {
		delete(m.teams, name)
	}
	t.store.Remove()
	if t.users == 0 && t.dir != "" { // the members' work is on their branches now
		t.tidy()
	}
}
