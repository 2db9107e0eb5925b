package engine

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"cadre/internal/journal"
	"cadre/internal/journal/store"
	"cadre/internal/journal/store/memstore"
	"cadre/internal/team"
)

// Memory keeps teams in memory. The zero Memory is empty and ready for use. Engines that share a
// Memory see the same teams, as processes do that share a folder. A name is unique in it, and the
// id of its team there. Files that sessions need are in a temporary folder while the team is open,
// and longer if a member left work in a worktree there.
type Memory struct {
	teams memstore.Teams

	mu   sync.Mutex
	kept map[string]*kept // the teams that were opened, by their names
}

// kept is an open team in memory, guarded by Memory.mu.
type kept struct {
	shared store.Team
	dir    string // the team's temporary folder, while it exists
	users  int
}

// Names returns the names of the teams, sorted.
func (m *Memory) Names() (names []string) {
	teams, _ := m.teams.List(context.Background()) // a memory can be read
	for _, t := range teams {
		names = append(names, t.Name)
	}
	return names
}

func (m *Memory) create(name string, commands []team.Command) error {
	_, records, err := team.Begin(commands)
	if err != nil {
		return err
	}
	err = m.teams.Create(context.Background(), store.Entry{ID: name, Name: name}, records)
	if errors.Is(err, journal.ErrExists) {
		return team.Refuse(team.Taken, "a team named %s exists already; choose another name, or clean that one up",
			name)
	}
	return err
}

// open returns the team, its folder, and a journal on it.
func (m *Memory) open(name string) (t *kept, dir string, j journal.Journal, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	opened, err := m.teams.Open(context.Background(), name)
	if err != nil {
		return nil, "", nil, team.Refuse(team.NotFound, "team %s does not exist in this memory", name)
	}
	if t = m.kept[name]; t == nil {
		t = &kept{shared: opened.Shared}
	}
	if t.dir == "" {
		temp, err := os.MkdirTemp("", "cadre-")
		if err != nil {
			return nil, "", nil, err
		}
		t.dir = filepath.Join(temp, name)
	}
	if m.kept == nil {
		m.kept = map[string]*kept{}
	}
	m.kept[name] = t
	t.users++
	return t, t.dir, opened.Journal, nil
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
	os.RemoveAll(filepath.Join(t.dir, "hosts"))
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
	if m.kept[name] == t {
		delete(m.kept, name)
		_ = m.teams.Remove(context.Background(), name) // another process has removed it
	}
	if t.users == 0 && t.dir != "" { // the members' work is on their branches now
		t.tidy()
	}
}
