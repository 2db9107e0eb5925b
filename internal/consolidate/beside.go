package consolidate

import (
	"cadre/internal/sys/paths"
	"cadre/internal/team"
)

// Beside reports whether work of the other team, in the same work tree, could be taken for this
// team's: the other team has worked there since this one was created, and has not committed its
// work.
func Beside(t, other team.Team) bool {
	if t.Base.Top == "" || t.ID == other.ID || !at(t.Base.Top, other) {
		return false
	}
	c := other.Consolidation
	switch {
	case other.CleanedUp || other.Status == team.TeamPending: // it has done no work
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
	return paths.Within(t.Dir, top)
}
