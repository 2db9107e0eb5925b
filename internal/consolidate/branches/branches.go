// Package branches finds the git branches that a team leaves in its repository, and removes them.
//
// # Authority
//
// A branch belongs to a team by its name and by what the team knows. These are the branch
// cadre/TEAM, if its checkpoints are of this very team; the branches of members that worked in
// worktrees; and the branches that were made for work that does not follow them. No other branch is
// ever touched, whatever its name.
//
// # Guarantees
//
//   - A branch that is checked out anywhere stays. A removed worktree of the team does not count:
//     [Forget] removes git's record of it.
//   - A branch is removed only as it was listed: one that has moved since stays. Its commit is
//     reported, so that it can be created again.
//   - Unless forced, a branch stays if its commits are on no branch, tag or checkpoint that stays.
//     Those commits are named. The branches to remove are judged as one set, so work keeps the name
//     of its member's branch rather than only that of the checkpoints.
//   - Uncommitted work that a checkpoint carries is lost only if neither HEAD nor the work tree has
//     it. The report does not count, because cadre wrote it.
//   - The branch of checkpoints is removed last, and stays while another branch of the team stays, or
//     one of a team in it. The next call finds there which other branches are the team's, also after
//     a kill in between.
package branches

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"cadre/internal/consolidate"
	"cadre/internal/git"
	"cadre/internal/git/checkout"
	"cadre/internal/git/checkpoint"
	"cadre/internal/git/worktree"
	"cadre/internal/sys/lazyregexp"
	"cadre/internal/sys/proc"
	"cadre/internal/team"
)

// Branch is a branch that a team leaves.
type Branch struct {
	Name        string `json:"name"`                  // name of the branch
	Commit      string `json:"commit,omitempty"`      // commit that it points at
	Checkpoints bool   `json:"checkpoints,omitempty"` // it has the team's checkpoints, and no work of a member
	Merged      bool   `json:"merged"`                // HEAD contains all of its commits
	CheckedOut  string `json:"checkedOut,omitempty"`  // work tree in which it is checked out, so that it stays
	Removed     bool   `json:"removed"`               // it was removed
	// it stays because its checkpoints name branches that stay
	Needed bool `json:"needed,omitempty"`
	// commits that only this branch reaches, so that it stays; the newest first
	Lost    []Lost `json:"lost,omitempty"`
	Unknown string `json:"unknown,omitempty"` // why its state is unknown
}

// Lost is a commit that would be lost with its branch.
type Lost struct {
	Commit  string `json:"commit"`  // id of the commit
	Subject string `json:"subject"` // first line of its message
}

// String describes the branch's state for people.
func (b Branch) String() string {
	switch {
	case b.Unknown != "":
		return "unknown: " + b.Unknown
	case b.Removed:
		return fmt.Sprintf("removed; it was %.12s", b.Commit)
	case b.CheckedOut != "":
		return "checked out in " + b.CheckedOut
	case len(b.Lost) == 1:
		return "stays: it has 1 commit that nothing else has"
	case len(b.Lost) > 0:
		return fmt.Sprintf("stays: it has %d commits that nothing else has", len(b.Lost))
	case b.Needed:
		return "stays: it names the team's other branches"
	case b.Checkpoints:
		return "checkpoints"
	case b.Merged:
		return "merged into HEAD"
	}
	return "not merged into HEAD"
}

// Stays reports whether the branch was not removed.
func (b Branch) Stays() bool { return !b.Removed }

// Of lists the branches of the team. If its repository cannot be reached, it lists those that the
// team may have there.
func Of(ctx context.Context, procs *proc.Register, t team.Team, members []team.Member) ([]Branch, error) {
	g := git.Runner{Procs: procs, Dir: t.Dir}
	out, err := g.Text(ctx, "for-each-ref", "--format=%(refname:lstrip=2)%09%(objectname)%09%(worktreepath)",
		"refs/heads/cadre/"+t.Name, "refs/heads/cadre/"+t.Name+"@*")
	if refused := (*git.Refusal)(nil); errors.As(err, &refused) {
		return unknown(t, members, unreachable(t, refused)), nil
	}
	if err != nil {
		return nil, err
	}
	its, err := lastCheckpoint(ctx, procs, t)
	if err != nil {
		return nil, err
	}
	var all []Branch
	for line := range strings.Lines(out) {
		fields := strings.SplitN(strings.TrimRight(line, "\n"), "\t", 3)
		if len(fields) != 3 {
			return nil, fmt.Errorf("git for-each-ref says %.80q", line)
		}
		b := Branch{Name: fields[0], Commit: fields[1], CheckedOut: fields[2],
			Checkpoints: fields[0] == "cadre/"+t.Name}
		if b.Checkpoints && its == nil || !b.Checkpoints && !isOf(b.Name, t, members) {
			continue
		}
		if b.Merged, err = g.Holds(ctx, "merge-base", "--is-ancestor", b.Commit, "HEAD"); err != nil {
			// without a HEAD, nothing can be merged into it
			if refused := (*git.Refusal)(nil); !errors.As(err, &refused) {
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

// Teams returns the names of the teams whose members have branches in the repository of the
// directory; none if the directory is in no repository.
func Teams(ctx context.Context, dir string) (names []string, err error) {
	if git.Installed() != nil {
		return nil, nil
	}
	procs, err := proc.Open("")
	if err != nil {
		return nil, err
	}
	defer procs.Close(context.WithoutCancel(ctx))
	out, err := git.Runner{Procs: procs, Dir: dir}.Text(ctx, "for-each-ref", "--format=%(refname:lstrip=3)",
		"refs/heads/cadre/*@*")
	if _, refused := errors.AsType[*git.Refusal](err); refused {
		return nil, nil
	}
	for line := range strings.Lines(out) {
		name, _, _ := strings.Cut(strings.TrimSpace(line), "@")
		if len(names) == 0 || names[len(names)-1] != name {
			names = append(names, name)
		}
	}
	return names, err
}

// lastCheckpoint returns the last checkpoint of this very team on the repository's own branch; nil
// if there is none.
func lastCheckpoint(ctx context.Context, procs *proc.Register, t team.Team) (*checkpoint.Listed, error) {
	all, err := checkpoint.List(ctx, procs, t.Dir)
	i := slices.IndexFunc(all, func(c checkpoint.Listed) bool { return isLast(c, t) })
	if i < 0 || err != nil {
		return nil, err
	}
	return &all[i], nil
}

// isLast reports whether the checkpoint is on the team's own branch, and of this very team.
func isLast(c checkpoint.Listed, t team.Team) bool {
	return c.Remote == "" && c.Name == t.Name && c.Team == t.ID
}

// strayed matches the end of a branch's name that was made for work that does not follow the
// member's own branch: a commit.
var strayed = lazyregexp.New(`^-[0-9a-f]{4,64}$`)

// isOf reports whether the branch is a member's, or was made for a member's work.
func isOf(name string, t team.Team, members []team.Member) bool {
	return slices.ContainsFunc(members, func(m team.Member) bool {
		rest, ok := strings.CutPrefix(name, team.BranchOf(t.Name, m.Name))
		return m.Isolation == team.Worktree && ok && (rest == "" || strayed().MatchString(rest))
	})
}

// unknown returns the branches that the team may have in a repository that cannot be reached.
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

// unreachable says why git cannot list the branches. If the directory is missing, it says that.
func unreachable(t team.Team, refused *git.Refusal) string {
	if missing, ok := errors.AsType[*checkout.MissingError](checkout.Glance(t)); ok {
		return missing.Path + " " + missing.Why
	}
	return strings.TrimPrefix(refused.Words, "fatal: ")
}

// Forget removes git's records of the team's worktrees that no longer exist. its reports whether a
// directory is one of the team's. git keeps a branch that it believes to be checked out there, and
// a killed cleanup leaves such a record. If the repository cannot be reached, Forget does nothing,
// and [Of] reports that.
func Forget(ctx context.Context, procs *proc.Register, t team.Team, its func(dir string) bool) error {
	err := worktree.Forget(ctx, procs, t.Dir, its)
	if _, refused := errors.AsType[*git.Refusal](err); refused {
		return nil
	}
	return err
}

// Removal says how branches are removed.
type Removal struct {
	Force  bool // also those whose commits would be lost
	Needed bool // a team in the team has branches that stay
}

// Remove removes the listed branches, and records for each whether it is gone. Unless forced, a
// branch whose commits would be lost stays, and names them. The branch of checkpoints must be
// listed last; it stays if another one stays, or if it is needed.
func Remove(ctx context.Context, procs *proc.Register, t team.Team, all []Branch, how Removal) ([]Branch, error) {
	g := git.Runner{Procs: procs, Dir: t.Dir}
	all = slices.Clone(all)
	going := map[string]bool{}
	for _, b := range all {
		going[b.Name] = b.Unknown == "" && b.CheckedOut == ""
	}
	for i := range all {
		b := &all[i]
		if b.Unknown != "" || b.CheckedOut != "" {
			continue
		}
		now, err := g.Text(ctx, "rev-parse", "--verify", "--quiet", "refs/heads/"+b.Name)
		refused := (*git.Refusal)(nil)
		switch {
		case errors.As(err, &refused): // another process was faster
			b.Removed = true
			continue
		case err != nil:
			return all, err
		case now != b.Commit:
			b.Unknown, going[b.Name] = "it has moved in the meantime", false
			continue
		}
		if !how.Force {
			if b.Lost, err = lost(ctx, procs, t, *b, going); err != nil {
				return all, err
			}
			if len(b.Lost) > 0 {
				going[b.Name] = false
				continue
			}
		}
		another := func(o Branch) bool { return !o.Checkpoints && !o.Removed }
		if b.Checkpoints && (how.Needed || slices.ContainsFunc(all, another)) {
			b.Needed, going[b.Name] = true, false
			continue
		}
		// for example, it was checked out just now
		if _, err := g.Text(ctx, "branch", "--quiet", "-D", b.Name); errors.As(err, &refused) {
			b.Unknown, going[b.Name] = refused.Words, false
			continue
		} else if err != nil {
			return all, err
		}
		b.Removed = true
	}
	return all, nil
}

// lost returns the commits that only the branch and other branches to remove can reach. For the
// branch of checkpoints, these are the commits of members and of uncommitted files that the last
// checkpoint carries. Checkpoints themselves are not work. Later checkpoints replace the content of
// earlier ones.
func lost(ctx context.Context, procs *proc.Register, t team.Team, b Branch, going map[string]bool) ([]Lost, error) {
	g := git.Runner{Procs: procs, Dir: t.Dir}
	tips := []string{b.Commit}
	all, err := checkpoint.List(ctx, procs, t.Dir)
	if err != nil {
		return nil, err
	}
	if b.Checkpoints {
		i := slices.IndexFunc(all, func(c checkpoint.Listed) bool { return isLast(c, t) })
		if i < 0 {
			return nil, nil
		}
		if tips, err = carriedIn(ctx, g, all[i]); len(tips) == 0 || err != nil {
			return nil, err
		}
	}
	args := slices.Concat([]string{"log", "--no-show-signature", "--format=%H%x09%s"}, tips, []string{"--not"})
	for _, name := range around(all, t.ID) { // what they carry of the team is kept for the team alone
		args = append(args, "--exclude=refs/heads/cadre/"+name)
	}
	for name, goes := range going {
		if goes {
			args = append(args, "--exclude=refs/heads/"+name)
		}
	}
	// The references with which cadre keeps commits are removed with the team.
	out, err := g.Text(ctx, append(args, "--exclude=refs/cadre/"+t.Name+"/*", "--all")...)
	if err != nil {
		return nil, err
	}
	var found []Lost
	for line := range strings.Lines(out) {
		commit, subject, _ := strings.Cut(strings.TrimRight(line, "\n"), "\t")
		found = append(found, Lost{commit, subject})
	}
	return found, nil
}

// around returns the names of the teams whose checkpoints in the repository carry those of the
// team with that id, because it is in them.
func around(all []checkpoint.Listed, id string) (names []string) {
	ids := []string{id}
	for range team.MostDepth {
		for _, one := range all {
			if one.Remote == "" && !slices.Contains(ids, one.Team) && slices.ContainsFunc(ids, one.Carries) {
				ids, names = append(ids, one.Team), append(names, one.Name)
			}
		}
	}
	return names
}

// carriedIn is carried for the checkpoint, and for those of the teams in it that have no branch of
// their own.
func carriedIn(ctx context.Context, g git.Runner, l checkpoint.Listed) (tips []string, err error) {
	tips, err = carried(ctx, g, l.Work)
	for _, n := range l.Nested {
		if err != nil {
			break
		}
		var below []string
		below, err = carriedIn(ctx, g, n)
		tips = append(tips, below...)
	}
	return tips, err
}

// carried returns the commits of members' branches that a checkpoint carries. It adds the commit of
// the uncommitted files if any of them would be lost. That commit itself is never merged, so its
// files decide.
func carried(ctx context.Context, g git.Runner, w checkpoint.Work) (tips []string, err error) {
	for _, tip := range w.Branches {
		tips = append(tips, tip.Commit)
	}
	if w.Shared == "" {
		return tips, nil
	}
	nowhere, err := uncommitted(ctx, g, w)
	if nowhere {
		tips = append(tips, w.Shared)
	}
	return tips, err
}

// uncommitted reports whether the commit of the uncommitted files has a file that differs both in
// HEAD and in the work tree. The report does not count, because cadre wrote it.
func uncommitted(ctx context.Context, g git.Runner, w checkpoint.Work) (bool, error) {
	from := w.Head
	if from == "" {
		var err error
		if from, err = g.Text(ctx, "hash-object", "-t", "tree", "--stdin"); err != nil { // the empty tree
			return false, err
		}
	}
	changed, err := g.Changes(ctx, "diff-tree", "-r", from, w.Shared)
	if err != nil {
		return false, err
	}
	_, top, err := consolidate.Head(ctx, g.Procs, g.Dir)
	if err != nil {
		return false, err
	}
	changed = slices.DeleteFunc(changed, func(c git.Change) bool { return c.Path == w.Report })
	if changed, err = both(changed, func() ([]git.Change, error) {
		return g.Changes(ctx, "diff-tree", "-r", w.Shared, "HEAD")
	}); len(changed) == 0 || err != nil {
		return false, err
	}
	if top == "" { // a bare repository
		return true, nil
	}
	scratch, err := os.MkdirTemp("", "cadre-branches-")
	if err != nil {
		return false, err
	}
	defer os.RemoveAll(scratch)
	changed, err = both(changed, func() ([]git.Change, error) {
		return consolidate.Return{Procs: g.Procs, Dir: g.Dir, Scratch: scratch, From: w.Head, To: w.Shared}.Lacks(ctx)
	})
	return len(changed) > 0, err
}

// both returns the changes whose paths are also in differ. If git cannot determine these, all
// changes stay: for example without a HEAD, or if a link replaced a folder.
func both(changed []git.Change, differ func() ([]git.Change, error)) ([]git.Change, error) {
	found, err := differ()
	if _, refused := errors.AsType[*git.Refusal](err); refused {
		return changed, nil
	}
	differs := map[string]bool{}
	for _, c := range found {
		differs[c.Path] = true
	}
	return slices.DeleteFunc(changed, func(c git.Change) bool { return !differs[c.Path] }), err
}
