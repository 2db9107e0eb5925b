package consolidate

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"cadre/internal/git"
	"cadre/internal/git/worktree"
	"cadre/internal/render/excerpt"
	"cadre/internal/sys/proc"
	"cadre/internal/team"
)

// entry is a file that differs from HEAD, by its path from the top.
type entry struct {
	path      string
	unmerged  bool
	submodule bool
	moved     bool // a submodule that is at another commit, or new
	tracked   bool // HEAD has it
}

// differing returns what differs from HEAD, in the work tree or in the index, in git's order. What
// git ignores, and repositories within this one, are left out, and so is what is aside.
func (r *repository) differing(ctx context.Context, but aside) ([]entry, error) {
	out, err := r.Run(ctx, nil, "status", "--porcelain=v2", "-z", "--untracked-files=all", "--no-renames",
		"--ignore-submodules=none")
	if err != nil {
		return nil, err
	}
	var all []entry
	for line := range bytes.SplitSeq(out, []byte{0}) {
		if len(line) < 2 {
			continue
		}
		var e entry
		switch fields := strings.Fields(string(line[:min(len(line), 200)])); line[0] {
		case '1':
			e.path = after(line, 8)
			e.submodule = fields[2][0] == 'S'
			e.moved = fields[2][1] == 'C' || fields[1] != ".M"
			e.tracked = fields[3] != git.Nothing
		case 'u':
			e.path, e.unmerged, e.tracked = after(line, 10), true, true
		case '?':
			e.path = string(line[2:])
		default:
			return nil, fmt.Errorf("git status says %.80q", line)
		}
		if e.path == "" || strings.HasSuffix(e.path, "/") || but.holds(r, e) {
			continue
		}
		all = append(all, e)
	}
	return all, nil
}

// after is the rest of the line behind n spaces.
func after(line []byte, n int) string {
	parts := bytes.SplitN(line, []byte(" "), n+1)
	if len(parts) <= n {
		return ""
	}
	return string(parts[n])
}

func (r *repository) within(path string, folders []string) bool {
	path = filepath.Join(r.top, filepath.FromSlash(path))
	return slices.ContainsFunc(folders, func(dir string) bool {
		rel, err := filepath.Rel(dir, path)
		return err == nil && filepath.IsLocal(rel)
	})
}

// digest is a checksum of what is there at the path, its kind with it; "" where there is nothing.
func (r *repository) digest(ctx context.Context, e entry, most *int64) (string, error) {
	return worktree.Digest(ctx, r.Procs, filepath.Join(r.top, filepath.FromSlash(e.path)), most)
}

// committed is the digest of what HEAD has at the path, as it would be in the work tree.
func (r *repository) committed(ctx context.Context, path string) (string, error) {
	head, err := r.head(ctx)
	if head == "" || err != nil {
		return "", err
	}
	return worktree.Committed(ctx, r.Procs, r.top, head, path)
}

// aside is what of the work tree is none of the team's work.
type aside struct {
	folders []string // with all that is below them
	report  string   // by its path from the top; only while HEAD does not have it
}

func (a aside) holds(r *repository, e entry) bool {
	return e.path == a.report && !e.tracked || r.within(e.path, a.folders)
}

// aside says what is left out. cadre wrote the report on the team, so it is committed only where
// somebody names it, or where it is in the last commit already: the checks see it, and a clone of a
// commit that had an older one would not be what they passed with.
func (w *work) aside(c team.Consolidation) aside {
	a := aside{folders: w.Except, report: worktree.From(w.repo.top, w.Replica.Team().Report)}
	for _, named := range slices.Concat(c.Include, c.Only) {
		if named == a.report || strings.HasPrefix(a.report, named+"/") {
			a.report = ""
		}
	}
	return a
}

// mostBytes is how much of what was not committed is read to know it again.
const mostBytes = 2 << 30

// facts are the files with their checksums.
func (r *repository) facts(ctx context.Context, files []entry) ([]team.Fact, error) {
	if len(files) > team.MaxBase {
		return nil, fmt.Errorf("%d files are not committed, of at most %d; let git ignore what is none of the "+
			"project's (.gitignore)", len(files), team.MaxBase)
	}
	var all []team.Fact
	most := int64(mostBytes)
	for _, e := range files {
		if !utf8.ValidString(e.path) {
			return nil, fmt.Errorf("the name of the file %q is not UTF-8", e.path)
		}
		sum, err := r.digest(ctx, e, &most)
		if err != nil {
			return nil, err
		}
		all = append(all, team.Fact{Path: e.path, SHA256: sum})
	}
	return all, nil
}

// Look takes note of what the project in the directory is before a team begins to work in it. Where
// that cannot be told it says why. What is below one of the folders except does not count: cadre
// keeps its own things there.
func Look(ctx context.Context, dir string, except ...string) team.Base {
	procs, err := proc.Open("")
	if err != nil {
		return team.Base{Unknown: brief(err)}
	}
	defer procs.Close(context.WithoutCancel(ctx))
	r, err := open(ctx, procs, dir)
	if err != nil {
		return team.Base{Unknown: brief(err)}
	}
	if r.top == "" || r.dir == "" {
		return team.Base{}
	}
	b := team.Base{Top: r.top}
	if b.Commit, err = r.head(ctx); err == nil {
		var files []entry
		if files, err = r.differing(ctx, aside{folders: realPaths(except)}); err == nil {
			b.Dirty, err = r.facts(ctx, files)
		}
	}
	if err != nil {
		b.Unknown = brief(err)
	}
	return b
}

func brief(err error) string {
	return excerpt.Line(err.Error(), 500)
}

// realPaths are the folders as git names them.
func realPaths(dirs []string) []string {
	var all []string
	for _, dir := range dirs {
		if real, err := filepath.EvalSymlinks(dir); err == nil {
			all = append(all, real)
		}
	}
	return all
}

// selection is the work tree sorted by whose it is.
type selection struct {
	ours []string // the team's
	both []string // not committed when the team was created, and changed since
}

// sort looks at what differs from HEAD.
func (r *repository) sort(ctx context.Context, base team.Base, c team.Consolidation, but aside) (selection, error) {
	var s selection
	files, err := r.differing(ctx, but)
	if err != nil {
		return s, err
	}
	before := map[string]string{}
	for _, f := range base.Dirty {
		before[f.Path] = f.SHA256
	}
	found := map[string]bool{}
	covered := func(path string, by []string) (covered bool) {
		for _, p := range by {
			if p == path || strings.HasPrefix(path, p+"/") {
				found[p], covered = true, true
			}
		}
		return covered
	}
	var unmerged []string
	most := int64(mostBytes)
	for _, e := range files {
		included, meant := covered(e.path, c.Include), covered(e.path, c.Only)
		was, known := before[e.path]
		switch {
		case e.unmerged:
			unmerged = append(unmerged, e.path)
			continue
		case e.submodule && !e.moved: // what is not committed in there cannot be committed here
			continue
		case len(c.Only) > 0 && !meant:
			continue
		case included || !known:
			s.ours = append(s.ours, e.path)
			continue
		}
		now, err := r.digest(ctx, e, &most)
		if err != nil {
			return s, err
		}
		if now == was {
			continue
		}
		committed, err := r.committed(ctx, e.path)
		if err != nil {
			return s, err
		}
		// What the person had there is committed since, so the rest is the team's. A report is
		// written as a whole.
		if committed == was || e.path == but.report {
			s.ours = append(s.ours, e.path)
		} else {
			s.both = append(s.both, e.path)
		}
	}
	if len(unmerged) > 0 {
		return s, notReady("conflicts are not resolved in %s", names(unmerged))
	}
	for _, p := range slices.Concat(c.Include, c.Only) {
		if !found[p] {
			return s, &team.Error{Code: team.Invalid, Text: fmt.Sprintf("%s is to be included and does not differ "+
				"from the last commit; paths are from the top of the work tree, %s", p, r.top)}
		}
	}
	return s, nil
}

// left is what differs from HEAD, is not part of the tree and is not as it was when the team was
// created: what checks made or changed.
func (r *repository) left(ctx context.Context, base team.Base, staged []string, but aside) ([]team.Fact, error) {
	files, err := r.differing(ctx, but)
	if err != nil {
		return nil, err
	}
	known := map[string]bool{}
	for _, path := range staged {
		known[path] = true
	}
	files = slices.DeleteFunc(files, func(e entry) bool { return known[e.path] || !utf8.ValidString(e.path) })
	now, err := r.facts(ctx, files)
	if err != nil {
		return nil, err
	}
	for i := range now {
		now[i].Name = team.ByChecks
	}
	before := map[team.Fact]bool{}
	for _, f := range base.Dirty {
		before[team.Fact{Path: f.Path, SHA256: f.SHA256}] = true
	}
	return slices.DeleteFunc(now, func(f team.Fact) bool { return before[team.Fact{Path: f.Path, SHA256: f.SHA256}] }),
		nil
}

// operations are what somebody may be in the middle of, by the file that says so.
var operations = []struct{ file, what string }{
	{"MERGE_HEAD", "a merge"}, {"CHERRY_PICK_HEAD", "a cherry-pick"}, {"REVERT_HEAD", "a revert"},
	{"rebase-merge", "a rebase"}, {"rebase-apply", "a rebase"},
}

// quiet refuses while somebody is in the middle of something that ends with a commit.
func (r *repository) quiet() error {
	for _, o := range operations {
		if _, err := os.Lstat(filepath.Join(r.dir, o.file)); err == nil {
			return notReady("somebody is in the middle of %s in %s; end that first", o.what, r.top)
		}
	}
	return nil
}

func notReady(format string, args ...any) *team.Error {
	return team.Refuse(team.NotReady, format, args...)
}

// hint is one on the team that is consolidated.
func (w *work) hint(a team.Action) team.Hint {
	return team.Hint{Action: a, Team: w.Replica.Team().Name}
}

// names lists paths, and stops before it becomes a wall.
func names(paths []string) string {
	const shown = 12
	if len(paths) > shown {
		return strings.Join(paths[:shown], ", ") + fmt.Sprintf(" and %d more", len(paths)-shown)
	}
	return strings.Join(paths, ", ")
}
