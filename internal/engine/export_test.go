package engine

import "cadre/internal/journal/store"

// Share makes that what the processes of a team in memory share.
func (t *Team) Share(shared store.Team) {
	t.engine.Memory.mu.Lock()
	defer t.engine.Memory.mu.Unlock()
	t.kept.shared, t.shared = shared, shared
}
