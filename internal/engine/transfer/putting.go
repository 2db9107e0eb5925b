package transfer

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"cadre/internal/consolidate"
	"cadre/internal/git"
	"cadre/internal/git/checkpoint"
	"cadre/internal/sys/proc"
	"cadre/internal/team"
)

// putting restores the work that a checkpoint contains.
type putting struct {
	*Options
	procs *proc.Register
	store *checkpoint.Store
	r     *checkpoint.Restored
	work  checkpoint.Work // in the directory: of the outermost team there

	dir, head, top string           // where the team will work, and what is checked out there
	same           bool             // the team worked in this very place, so all its work is there
	branches       []checkpoint.Tip // branches of members that differ here from the carried ones
	lacks          []git.Change     // paths of the shared directory that differ here from the carried ones
	branch         string           // of the member in whose worktree the team works; "" for none
}

// put writes the team's uncommitted work into the work tree, except where a file is in the way. It
// returns the state of the project without that work; nil if it did not change.
func (p *putting) put(ctx context.Context) (*team.Base, error) {
	if p.same || p.top == "" {
		return nil, nil
	}
	base := consolidate.Look(ctx, p.dir, p.Home.Root, p.Home.Claude)
	w := p.work
	to := w.Shared
	if to == "" {
		to = w.Head
	}
	if to == "" {
		return &base, nil
	}
	scratch, err := os.MkdirTemp("", "cadre-return-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(scratch)
	back := consolidate.Return{Procs: p.procs, Dir: p.dir, Scratch: scratch, Mark: p.r.Team, From: w.Head,
		To: to, Step: p.step}
	if w.Shared != "" {
		there, blocked, err := back.Put(ctx)
		if err != nil {
			return nil, err
		}
		base = consolidate.Without(base, there)
		p.lacks = blocked
	}
	if w.Head != "" && w.Head != p.head { // the commits made there may not be checked out here
		common, err := p.common(ctx, w.Head)
		if err != nil {
			return nil, err
		}
		if common != w.Head {
			back.From = common
			if p.lacks, err = back.Lacks(ctx); err != nil {
				return nil, err
			}
		}
	}
	return &base, nil
}

// common returns the newest common ancestor of commit and what is checked out; "" for none.
func (p *putting) common(ctx context.Context, commit string) (string, error) {
	if p.head == "" {
		return "", nil
	}
	id, err := p.git().Text(ctx, "merge-base", p.head, commit)
	if refused, ok := errors.AsType[*git.Refusal](err); ok && refused.Status == 1 {
		return "", nil
	}
	return id, err
}

func (p *putting) git() git.Runner { return git.Runner{Procs: p.procs, Dir: p.dir} }

// missing lists the work of completed tasks that is not in its place.
func (p *putting) missing(ctx context.Context) (all []team.Missing, err error) {
	var commits []string
	isolated := map[string]bool{}
	for _, m := range p.r.State.Members() {
		isolated[m.Name] = m.Isolation == team.Worktree
	}
	for t := range p.r.State.Tasks() {
		if w := t.Work; t.Status == team.Completed && w != nil && w.Branch != "" && w.Commit != "" {
			commits = append(commits, w.Commit)
		}
	}
	also := []string{}
	if p.branch != "" {
		also = append(also, p.branch)
	}
	lost, err := unreachable(ctx, p.git(), p.Team, commits, also...)
	if err != nil {
		return nil, err
	}
	for t := range p.r.State.Tasks() {
		if t.Status != team.Completed {
			continue
		}
		switch w := t.Work; {
		case w != nil && w.Branch != "" && w.Commit != "":
			if lost[w.Commit] {
				all = append(all, team.Missing{Task: t.ID, Commit: w.Commit, Branch: w.Branch,
					What: p.onBranch(w.Branch, w.Commit)})
			}
		case p.same:
		case w != nil && w.Commit != "":
			all = append(all, p.inFiles(t.ID, w.Files, w.Left)...)
		case isolated[t.CompletedBy]:
			if what := p.unrecorded(team.BranchOf(p.Team, t.CompletedBy)); what != "" {
				all = append(all, team.Missing{Task: t.ID, Branch: team.BranchOf(p.Team, t.CompletedBy), What: what})
			}
		case p.work.Machine == "":
			all = append(all, team.Missing{Task: t.ID,
				What: fmt.Sprintf("its work was in %s, and this checkpoint has format 1.0, which does not carry files",
					p.r.State.Team().Dir)})
		case p.work.Unknown != "":
			all = append(all, team.Missing{Task: t.ID, What: fmt.Sprintf("its work was in %s on %s and is not "+
				"carried: %s", p.work.Top, p.work.Machine, p.work.Unknown)})
		default:
			all = append(all, p.inFiles(t.ID, nil, nil)...)
		}
	}
	if len(all) > team.MaxMissing {
		all = all[:team.MaxMissing]
	}
	return all, nil
}

func (p *putting) onBranch(branch, commit string) string {
	for _, b := range p.branches {
		if b.Name == branch {
			return fmt.Sprintf("the commit %.12s, because %s here has commits of its own; merge that commit into it",
				commit, branch)
		}
	}
	return fmt.Sprintf("the commit %.12s of the branch %s; it is on %s", commit, branch, p.machine())
}

func (p *putting) machine() string {
	if p.work.Machine == "" {
		return "the machine where the team worked"
	}
	return p.work.Machine
}

// unrecorded describes the missing work of a member with a branch, for a task that has no record of
// its work; "" if nothing is missing.
func (p *putting) unrecorded(branch string) string {
	carried := slices.ContainsFunc(p.r.Work.Branches, func(t checkpoint.Tip) bool { return t.Name == branch })
	stays := slices.ContainsFunc(p.branches, func(t checkpoint.Tip) bool { return t.Name == branch })
	there, _ := p.git().Holds(context.Background(), "rev-parse", "--verify", "--quiet", "refs/heads/"+branch)
	switch {
	case stays:
		return fmt.Sprintf("the work on the branch %s, which has other commits here, not those of the "+
			"checkpoint", branch)
	case carried || there:
		return ""
	case p.work.Machine != "" && len(p.lacks) == 0: // merged on the other machine, and that is checked out here
		return ""
	}
	return fmt.Sprintf("the branch %s; it is on %s", branch, p.machine())
}

// inFiles lists the files of a task that were not carried, or that differ here from the carried
// ones. If files is nil, the task's files were not recorded, and each file may be one of them. left
// lists the files in its record that no commit has, each with the reason.
func (p *putting) inFiles(task string, files, left []string) (all []team.Missing) {
	its := func(path string) bool {
		return files == nil || slices.Contains(files, path) ||
			slices.ContainsFunc(left, func(one string) bool { return strings.HasPrefix(one, path+" (") })
	}
	for _, c := range p.lacks {
		if !its(c.Path) || len(all) >= mostPaths {
			continue
		}
		m := team.Missing{Task: task, Path: c.Path, Object: c.IsID, Commit: p.carrier()}
		if c.Is == git.Nothing {
			m.Object = ""
		}
		m.What = fmt.Sprintf("%s differs here; the commit %.12s has the team's version", c.Path, m.Commit)
		if c.Is == git.Nothing {
			m.What = c.Path + " was removed by the team, and exists here"
		}
		if head := p.work.Head; p.head != head && !p.has(head) {
			m.What += fmt.Sprintf("; the commit %.12s, on which the team worked, is not checked out; merge it", head)
		}
		all = append(all, m)
	}
	for _, l := range p.work.Left {
		if !l.Ignored && its(l.Path) && len(all) < mostPaths {
			info, err := os.Lstat(filepath.Join(p.top, filepath.FromSlash(l.Path)))
			if err == nil && !info.IsDir() && files == nil {
				continue
			}
			all = append(all, team.Missing{Task: task, Path: l.Path, Object: team.AnyFile,
				What: fmt.Sprintf("%s was not carried (%s); it is in %s on %s", l.Path, l.Why, p.work.Top,
					p.machine())})
		}
	}
	return all
}

// unclaimed lists the files that were not carried, are not here, and belong to no task with missing
// work. more is the number of paths that the checkpoint only counts.
func (p *putting) unclaimed(missing []team.Missing) (left []checkpoint.Left, more int) {
	if p.same {
		return nil, 0
	}
	for _, l := range p.work.Left {
		claimed := slices.ContainsFunc(missing, func(m team.Missing) bool { return m.Path == l.Path })
		if _, err := os.Lstat(filepath.Join(p.top, filepath.FromSlash(l.Path))); err != nil && !claimed {
			left = append(left, l)
		}
	}
	return left, p.work.More
}

// mostPaths bounds the files that are named per task.
const mostPaths = 20

func (p *putting) carrier() string {
	if p.work.Shared != "" {
		return p.work.Shared
	}
	return p.work.Head
}

func (p *putting) has(commit string) bool {
	in, err := p.git().Holds(context.Background(), "merge-base", "--is-ancestor", commit, "HEAD")
	return in && err == nil
}

// unreachable returns the commits that are reachable neither from HEAD nor from a branch of a
// member, nor from those other branches.
func unreachable(ctx context.Context, g git.Runner, name string, commits []string,
	also ...string) (map[string]bool, error) {
	lost := map[string]bool{}
	if len(commits) == 0 {
		return lost, nil
	}
	out, err := g.Run(ctx, []byte(strings.Join(commits, "\n")+"\n"), "cat-file", "--batch-check=%(objecttype)")
	if err != nil {
		return nil, err
	}
	var ask strings.Builder
	for i, kind := range strings.Split(strings.TrimSpace(string(out)), "\n") {
		if kind == "commit" {
			ask.WriteString(commits[i] + "\n")
		} else {
			lost[commits[i]] = true
		}
	}
	patterns := []string{"refs/heads/" + team.BranchOf(name, "*")}
	for _, branch := range also {
		patterns = append(patterns, "refs/heads/"+branch)
	}
	heads, err := g.Text(ctx, append([]string{"for-each-ref", "--format=%(objectname)"}, patterns...)...)
	if err != nil {
		return nil, err
	}
	for _, id := range strings.Fields(heads) {
		ask.WriteString("^" + id + "\n")
	}
	if head, err := g.Text(ctx, "rev-parse", "--verify", "--quiet", "HEAD^{commit}"); err == nil {
		ask.WriteString("^" + head + "\n")
	}
	left, err := g.Run(ctx, []byte(ask.String()), "rev-list", "--stdin")
	if err != nil {
		return nil, err
	}
	for _, id := range strings.Fields(string(left)) {
		if slices.Contains(commits, id) {
			lost[id] = true
		}
	}
	return lost, nil
}

// Recheck returns the tasks whose missing work is here by now, because it was merged or copied.
func Recheck(ctx context.Context, procs *proc.Register, t team.Team,
	missing []team.Missing) (found []string, err error) {
	if len(missing) == 0 {
		return nil, nil
	}
	g := git.Runner{Procs: procs, Dir: t.Dir}
	_, top, err := consolidate.Head(ctx, procs, t.Dir)
	if err != nil || top == "" {
		return nil, err
	}
	var commits []string
	for _, m := range missing {
		if m.Path == "" && m.Commit != "" {
			commits = append(commits, m.Commit)
		}
	}
	lost, err := unreachable(ctx, g, t.Name, commits)
	if err != nil {
		return nil, err
	}
	still := map[string]bool{}
	for _, m := range missing {
		switch {
		case m.Path != "":
			there, err := isThere(ctx, g, top, m)
			if err != nil {
				return nil, err
			}
			still[m.Task] = still[m.Task] || !there
		case m.Commit != "":
			still[m.Task] = still[m.Task] || lost[m.Commit]
		case m.Branch != "":
			there, err := g.Holds(ctx, "rev-parse", "--verify", "--quiet", "refs/heads/"+m.Branch)
			if err != nil {
				return nil, err
			}
			still[m.Task] = still[m.Task] || !there
		default: // this cannot be checked
			still[m.Task] = true
		}
	}
	for _, m := range missing {
		if !still[m.Task] && !slices.Contains(found, m.Task) {
			found = append(found, m.Task)
		}
	}
	return found, nil
}

// isThere reports whether a file is as it should be.
func isThere(ctx context.Context, g git.Runner, top string, m team.Missing) (bool, error) {
	info, err := os.Lstat(filepath.Join(top, filepath.FromSlash(m.Path)))
	switch {
	case m.Object == "":
		return err != nil, nil
	case err != nil || m.Object == team.AnyFile:
		return err == nil, nil
	case info.Mode()&os.ModeSymlink != 0:
		to, err := os.Readlink(filepath.Join(top, filepath.FromSlash(m.Path)))
		if err != nil {
			return false, nil
		}
		id, err := g.Run(ctx, []byte(to), "hash-object", "--stdin")
		return strings.TrimSpace(string(id)) == m.Object, err
	case !info.Mode().IsRegular():
		return false, nil
	}
	g.Dir = top
	id, err := g.Text(ctx, "hash-object", "--", m.Path)
	return id == m.Object, err
}
