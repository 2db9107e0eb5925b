package consolidate

import (
	"slices"
	"strings"

	"cadre/internal/git/worktree"
	"cadre/internal/host"
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

// Untouched reports whether the team is known to have changed no file: it is complete, its members
// are shells that a run led, no task was deleted, and the record of each task names at most the
// team's report. An agent may write while it has no task, so of a team with agents this is never
// known.
func Untouched(s *team.State) bool {
	t := s.Team()
	if t.Status != team.TeamComplete || t.Origin == "" || s.Count(team.Deleted) > 0 {
		return false
	}
	for _, m := range s.Members() {
		if m.Agent != team.Shell && !(m.Name == t.Lead && m.Agent == team.External) {
			return false
		}
	}
	report := worktree.From(t.Base.Top, t.Report)
	for task := range s.Tasks() {
		w := task.Work
		if w == nil && task.Attempts == 0 && task.Status != team.Completed {
			continue // nobody has worked on it
		}
		if w == nil || !w.Done ||
			slices.ContainsFunc(w.Files, func(path string) bool { return path != report }) ||
			slices.ContainsFunc(w.Left, func(why string) bool { return !strings.HasSuffix(why, "("+host.AsItWas+")") }) {
			return false
		}
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
