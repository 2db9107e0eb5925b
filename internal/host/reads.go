package host

import (
	"os"
	"path/filepath"
	"slices"

	"cadre/internal/agent"
	"cadre/internal/agent/readonly"
	"cadre/internal/team"
)

// reads reports whether a call only reads, in the project, the member's worktree or, for the lead,
// the merged work.
func (s *slot) reads(tool, input string) bool {
	var t team.Team
	s.host.Replica.View(func(st *team.State) { t = st.Team() })
	roots := []string{t.Dir, s.dir}
	if s.member == s.lead {
		roots = append(roots, MergedDir(filepath.Dir(s.host.Hosts)))
	}
	return readonly.Scope{Dir: s.dir, Roots: slices.Compact(roots), Env: s.env}.Unasked(tool, input)
}

// surroundings returns the environment of the session's programs, as far as the host decides it.
func surroundings(spec agent.Spec) []string { return append(os.Environ(), spec.Env...) }
