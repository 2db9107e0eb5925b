package checkpoint

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"

	"cadre/internal/git/worktree"
	"cadre/internal/render/excerpt"
	"cadre/internal/render/redact"
	"cadre/internal/team"
)

// Work is what the team has done in its repository. Every commit that it names is reachable from
// the checkpoint's commit, so a clone that has the branch has the work.
type Work struct {
	Machine string `json:"machine,omitempty"` // name of the computer
	Top     string `json:"top,omitempty"`     // of the work tree that the team shares; "" in a bare repository
	Place   string `json:"place,omitempty"`   // distinguishes the repository from another one at the same path

	Branch string `json:"branch,omitempty"` // checked out in Top; "" for none
	Head   string `json:"head,omitempty"`   // "" before the first commit
	// Shared is a commit on Head with the team's uncommitted changes in the work tree; "" for none.
	Shared string `json:"shared,omitempty"`
	Sum    string `json:"shared_sum,omitempty"` // of what Shared was made from

	// Report is the path, from Top, of the report on the team; "" for none there. cadre wrote it,
	// so its copy in Shared is no member's work.
	Report string `json:"report,omitempty"`

	Branches []Tip    `json:"branches,omitempty"` // of members
	Include  []string `json:"include,omitempty"`  // paths from Top that the user wants included, whatever they contain
	Left     []Left   `json:"left,omitempty"`     // paths that are not carried
	More     int      `json:"left_more,omitempty"`
	Unknown  string   `json:"unknown,omitempty"` // why it is unknown what in the work tree is the team's
}

// Tip is the commit at the tip of a branch.
type Tip struct {
	Name   string `json:"name"`
	Commit string `json:"commit"`
}

// Left is a path in the shared work tree that a checkpoint does not carry.
type Left struct {
	Path    string `json:"path"`              // path of the file or folder
	Why     string `json:"why"`               // why it is left out
	Ignored bool   `json:"ignored,omitempty"` // git ignores it, so a consolidation would not commit it either
}

func (l Left) String() string { return l.Path + " (" + l.Why + ")" }

// mostLeft bounds the list of paths that are not carried. Ignored paths come last.
const mostLeft = 40

// commits returns all commits that the work names.
func (w *Work) commits() []string {
	var all []string
	if tip := w.tip(); tip != "" {
		all = append(all, tip)
	}
	for _, b := range w.Branches {
		all = append(all, b.Commit)
	}
	return all
}

// tip returns the commit that has all of the shared directory.
func (w *Work) tip() string {
	if w.Shared != "" {
		return w.Shared
	}
	return w.Head
}

func (w *Work) same(o *Work) bool {
	return w.Machine == o.Machine && w.Top == o.Top && w.Place == o.Place && w.Branch == o.Branch && w.Head == o.Head &&
		w.Shared == o.Shared && w.Report == o.Report && w.More == o.More && w.Unknown == o.Unknown &&
		slices.Equal(w.Branches, o.Branches) && slices.Equal(w.Include, o.Include) && slices.Equal(w.Left, o.Left)
}

// covers reports whether the path is one of the paths, or below one.
func covers(paths []string, path string) bool {
	return slices.ContainsFunc(paths, func(p string) bool { return p == path || strings.HasPrefix(path, p+"/") })
}

// memberBranches returns the branches of the team's members: cadre/TEAM@MEMBER, and branches for
// work that does not follow one.
func (b *branch) memberBranches(ctx context.Context) ([]Tip, error) {
	return b.tips(ctx, "refs/heads/"+b.name+"@*")
}

// tips returns the branches that match a pattern, without refs/heads/ or refs/remotes/.
func (b *branch) tips(ctx context.Context, patterns ...string) ([]Tip, error) {
	out, err := b.git.Run(ctx, nil, append([]string{"for-each-ref", "--format=%(objectname) %(objecttype) %(refname)"},
		patterns...)...)
	if err != nil {
		return nil, err
	}
	var all []Tip
	for line := range strings.Lines(string(out)) {
		fields := strings.Fields(line)
		if len(fields) != 3 || fields[1] != "commit" {
			continue
		}
		name := strings.TrimPrefix(strings.TrimPrefix(fields[2], "refs/heads/"), "refs/remotes/")
		all = append(all, Tip{name, fields[0]})
	}
	return all, nil
}

// machine returns the name of this computer.
func machine() string {
	name, _ := os.Hostname()
	return name
}

// place identifies a repository among all others that are, or were, at its path.
func place(dir string) string {
	info, err := os.Stat(dir)
	if err != nil {
		return ""
	}
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		return fmt.Sprintf("%d:%d", s.Dev, s.Ino)
	}
	return ""
}

// gather collects the team's work so far. before is the work in the last checkpoint; nil for none.
func (b *branch) gather(ctx context.Context, t team.Team, before *Work, beside Beside) (Work, error) {
	w := Work{Machine: machine(), Top: b.top, Place: place(b.repo), Report: worktree.From(b.top, t.Report)}
	// an included path there may be another file here
	if before != nil && before.Place == w.Place && before.Machine == w.Machine {
		w.Include = slices.Clone(before.Include)
	}
	for _, path := range beside.Include {
		if !covers(w.Include, path) {
			w.Include = append(w.Include, path)
		}
	}
	slices.Sort(w.Include)
	var err error
	if w.Branches, err = b.memberBranches(ctx); err != nil {
		return w, err
	}
	if b.top == "" {
		return w, nil
	}
	if err := b.share(ctx, t, before, beside.Except, &w); err != nil {
		if ctx.Err() != nil {
			return w, err
		}
		// A checkpoint without the shared directory is better than none.
		if w.Unknown = briefly(err); before != nil && before.Head == w.Head {
			w.Shared, w.Sum = before.Shared, before.Sum
		}
	}
	return w, nil
}

// briefly returns an error as one line for a checkpoint.
func briefly(err error) string {
	return redact.Text(excerpt.Line(err.Error(), 300))
}

// works returns the commits of tasks that no branch leads to. It leaves out a snapshot of the
// shared directory that has something which must not be carried. The rest of such a snapshot is in
// the commit of the directory.
func (b *branch) works(ctx context.Context, base team.Base, w *Work, done []team.Work) ([]string, error) {
	var candidates []string
	snapshot := map[string]bool{}
	for _, one := range done {
		for _, commit := range []string{one.Base, one.Commit} {
			if commit != "" && !slices.Contains(candidates, commit) {
				candidates = append(candidates, commit)
				snapshot[commit] = one.Branch == ""
			}
		}
	}
	if len(candidates) == 0 {
		return nil, nil
	}
	out, err := b.git.Run(ctx, []byte(strings.Join(candidates, "\n")+"\n"), "cat-file", "--batch-check=%(objecttype)")
	if err != nil {
		return nil, err
	}
	var there []string
	for i, kind := range strings.Split(strings.TrimSpace(string(out)), "\n") {
		if i >= len(candidates) || kind != "commit" {
			continue
		}
		if snapshot[candidates[i]] {
			safe, err := b.safe(ctx, base, w, candidates[i])
			if err != nil {
				return nil, err
			}
			if !safe {
				continue
			}
		}
		there = append(there, candidates[i])
	}
	if len(there) == 0 || len(there) > mostCompared {
		return there, nil
	}
	tops, err := b.git.Text(ctx, slices.Concat([]string{"merge-base", "--independent"}, there, w.commits())...)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(there, func(id string) bool {
		return !slices.Contains(strings.Fields(tops), id) || slices.Contains(w.commits(), id)
	}), nil
}

// mostCompared bounds how many commits are compared with each other, to find those that no other
// one reaches.
const mostCompared = 200

// safe reports whether all files of the snapshot may be carried. It checks what was not committed
// by the same rules as for the directory.
func (b *branch) safe(ctx context.Context, base team.Base, w *Work, commit string) (bool, error) {
	args := []string{"rev-list", "--objects", commit}
	if w.Head != "" {
		args = append(args, "^"+w.Head)
	}
	out, err := b.git.Run(ctx, nil, args...)
	if err != nil {
		return false, err
	}
	var ids []string
	for line := range strings.Lines(string(out)) {
		id, path, named := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		if !named || path == "" || covers(w.Include, path) {
			continue
		}
		if slices.ContainsFunc(base.Dirty, func(f team.Fact) bool { return f.Path == path }) {
			return false, nil
		}
		ids = append(ids, id)
	}
	if len(ids) == 0 {
		return true, nil
	}
	why, err := b.suspects(ctx, ids)
	return len(why) == 0, err
}

// SamePlace reports whether the work was done in the repository of this store, and not in another
// clone.
func (s *Store) SamePlace(w Work) bool {
	b, ok := s.shelf.(*branch)
	return ok && w.Machine == machine() && w.Place != "" && w.Place == place(b.repo)
}
