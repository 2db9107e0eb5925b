// Package branches finds the git branches that a team leaves in its repository, and removes them.
//
// # Authority
//
// A branch is a team's by its name and by what the team knows: the branch cadre/TEAM, where the checkpoints on it are of this very team, and the branches of its members
// that worked in worktrees, with those that were made for work which does not follow them. Any other branch, whatever its name, is never touched.
//
// # Guarantees
//
//   - A branch that is checked out anywhere stays.
//   - A branch is removed only as it was listed: one that has moved since stays. What it was is told, so that it can be made again.
//   - The branch of checkpoints goes last. Killed in between, whoever comes next still finds there what else is the team's.
package branches

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"cadre/internal/checkpoint"
	"cadre/internal/git"
	"cadre/internal/proc"
	"cadre/internal/team"
)

// Branch is one that a team leaves.
type Branch struct {
	Name        string `json:"name"`
	Commit      string `json:"commit,omitempty"`      // that it names
	Checkpoints bool   `json:"checkpoints,omitempty"` // it has no work of a member, but the checkpoints of the team
	Merged      bool   `json:"merged"`                // all of it is in HEAD
	CheckedOut  string `json:"checkedOut,omitempty"`  // the work tree that it is checked out in; it stays
	Removed     bool   `json:"removed"`
	Unknown     string `json:"unknown,omitempty"` // why nobody knows whether it is there
}

// String says what the branch is, for people.
func (b Branch) String() string {
	switch {
	case b.Unknown != "":
		return "unknown: " + b.Unknown
	case b.Removed:
		return fmt.Sprintf("removed; it was %.12s", b.Commit)
	case b.CheckedOut != "":
		return "checked out in " + b.CheckedOut
	case b.Checkpoints:
		return "checkpoints"
	case b.Merged:
		return "merged into HEAD"
	}
	return "not merged into HEAD"
}

// Of lists the branches of the team. Where its repository cannot be reached they are those that it may have there.
func Of(ctx context.Context, procs *proc.Register, t team.Team, members []team.Member) ([]Branch, error) {
	g := git.Runner{Procs: procs, Dir: t.Dir}
	out, err := g.Text(ctx, "for-each-ref", "--format=%(refname:lstrip=2)%09%(objectname)%09%(worktreepath)", "refs/heads/cadre/"+t.Name, "refs/heads/cadre/"+t.Name+"@*")
	if refused := (*git.Refusal)(nil); errors.As(err, &refused) {
		return unknown(t, members, refused.Words), nil
	}
	if err != nil {
		return nil, err
	}
	its, err := checkpointsOf(ctx, procs, t)
	if err != nil {
		return nil, err
	}
	var all []Branch
	for line := range strings.Lines(out) {
		fields := strings.SplitN(strings.TrimRight(line, "\n"), "\t", 3)
		if len(fields) != 3 {
			return nil, fmt.Errorf("git for-each-ref says %.80q", line)
		}
		b := Branch{Name: fields[0], Commit: fields[1], CheckedOut: fields[2], Checkpoints: fields[0] == "cadre/"+t.Name}
		if b.Checkpoints && !its || !b.Checkpoints && !isOf(b.Name, t, members) {
			continue
		}
		if b.Merged, err = g.Holds(ctx, "merge-base", "--is-ancestor", b.Commit, "HEAD"); err != nil {
			if refused := (*git.Refusal)(nil); !errors.As(err, &refused) { // there is no HEAD that anything could be merged into
				return nil, err
			}
		}
		all = append(all, b)
	}
	slices.SortStableFunc(all, func(a, b Branch) int { // the checkpoints last
		switch {
		case a.Checkpoints == b.Checkpoints:
			return strings.Compare(a.Name, b.Name)
		case a.Checkpoints:
			return 1
		}
		return -1
	})
	return all, nil
}

func checkpointsOf(ctx context.Context, procs *proc.Register, t team.Team) (bool, error) {
	all, err := checkpoint.List(ctx, procs, t.Dir)
	return slices.ContainsFunc(all, func(c checkpoint.Listed) bool { return c.Remote == "" && c.Name == t.Name && c.Team == t.ID }), err
}

// strayed is what the name of a branch ends with that was made for work which does not follow the member's own: a commit.
var strayed = regexp.MustCompile(`^-[0-9a-f]{4,64}$`)

// isOf reports whether the branch is that of a member, or was made for work of it.
func isOf(name string, t team.Team, members []team.Member) bool {
	return slices.ContainsFunc(members, func(m team.Member) bool {
		rest, ok := strings.CutPrefix(name, team.BranchOf(t.Name, m.Name))
		return m.Isolation == team.Worktree && ok && (rest == "" || strayed.MatchString(rest))
	})
}

// unknown are the branches that the team may have in a repository that cannot be reached.
func unknown(t team.Team, members []team.Member, why string) (all []Branch) {
	for _, m := range members {
		if m.Isolation == team.Worktree {
			all = append(all, Branch{Name: team.BranchOf(t.Name, m.Name), Unknown: why})
		}
	}
	if t.Base.Top != "" {
		all = append(all, Branch{Name: "cadre/" + t.Name, Checkpoints: true, Unknown: why})
	}
	return all
}

// Remove removes the branches that were listed, and says of each whether it is gone.
func Remove(ctx context.Context, procs *proc.Register, t team.Team, all []Branch) ([]Branch, error) {
	g := git.Runner{Procs: procs, Dir: t.Dir}
	all = slices.Clone(all)
	for i := range all {
		b := &all[i]
		if b.Unknown != "" || b.CheckedOut != "" {
			continue
		}
		now, err := g.Text(ctx, "rev-parse", "--verify", "--quiet", "refs/heads/"+b.Name)
		refused := (*git.Refusal)(nil)
		switch {
		case errors.As(err, &refused): // somebody else was faster
			b.Removed = true
			continue
		case err != nil:
			return all, err
		case now != b.Commit:
			b.Unknown = "it has moved meanwhile"
			continue
		}
		if _, err := g.Text(ctx, "branch", "--quiet", "-D", b.Name); errors.As(err, &refused) { // checked out just now, say
			b.Unknown = refused.Words
			continue
		} else if err != nil {
			return all, err
		}
		b.Removed = true
	}
	return all, nil
}
