package consolidate

import (
	"path/filepath"

	"cadre/internal/team"
)

// Beside reports whether what the other team did, in the same work tree, may be taken for the work
// of the team: it was there since the team was created, and has not committed what it did.
func Beside(t, other team.Team) bool {
	if t.Base.Top == "" || t.ID == other.ID || !at(t.Base.Top, other) {
		return false
	}
	c := other.Consolidation
	switch {
	case other.CleanedUp || other.Status == team.TeamPending: // nobody has done anything
		return false
	case other.Status == team.TeamComplete && c.Step == team.Done && !c.NoCommit:
		return false
	case other.Status == team.TeamComplete || other.Status == team.TeamAborted:
		return other.UpdatedAt > t.CreatedAt
	}
	return true
}

// at reports whether the team works in the work tree with that top.
func at(top string, t team.Team) bool {
	if t.Base.Top != "" {
		return t.Base.Top == top
	}
	rel, err := filepath.Rel(top, t.Dir) // nobody could tell then
	return err == nil && filepath.IsLocal(rel)
}
