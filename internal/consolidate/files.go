package consolidate

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"cadre/internal/git"
	"cadre/internal/git/worktree"
	"cadre/internal/render/excerpt"
	"cadre/internal/sys/paths"
	"cadre/internal/sys/proc"
	"cadre/internal/sys/regularfile"
	"cadre/internal/team"
)

// entry is a file that differs from HEAD, with its path from the top.
type entry struct {
	path      string
	unmerged  bool
	submodule bool
	moved     bool // a submodule that is new, or at another commit
	tracked   bool // HEAD has it
}

// differing returns the files that differ from HEAD, in the work tree or in the index, in git's
// order. It leaves out ignored files, nested repositories, and the files in but.
func (r *repository) differing(ctx context.Context, but aside) ([]entry, error) {
	out, err := r.status(ctx)
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

// status returns the output of git status: all files that differ from HEAD.
func (r *repository) status(ctx context.Context) ([]byte, error) {
	if r.said != nil && r.said.status != nil {
		return r.said.status, nil
	}
	out, err := r.Run(ctx, nil, "status", "--porcelain=v2", "-z", "--untracked-files=all", "--no-renames",
		"--ignore-submodules=none")
	if r.said != nil && err == nil {
		r.said.status = append([]byte{}, out...)
	}
	return out, err
}

// after returns the rest of the line after n spaces.
func after(line []byte, n int) string {
	parts := bytes.SplitN(line, []byte(" "), n+1)
	if len(parts) <= n {
		return ""
	}
	return string(parts[n])
}

// digest returns a checksum of the file at the path, with its kind, or "".
func (r *repository) digest(ctx context.Context, e entry, most *int64) (string, error) {
	return worktree.Digest(ctx, r.Procs, filepath.Join(r.top, filepath.FromSlash(e.path)), most)
}

// committed returns the digest of HEAD's file at the path, as it would be in the work tree.
func (r *repository) committed(ctx context.Context, path string) (string, error) {
	head, err := r.head(ctx)
	if head == "" || err != nil {
		return "", err
	}
	return worktree.Committed(ctx, r.Procs, r.top, head, path)
}

// aside names the parts of the work tree that are not the team's work.
type aside struct {
	folders []string // with all files below them
	report  string   // path from the top; only while HEAD does not have it
	origin  string   // path of the team file; the user's uncommitted changes of it stay the user's
}

func (a aside) holds(r *repository, e entry) bool {
	return e.path == a.report && !e.tracked || paths.Within(filepath.Join(r.top, filepath.FromSlash(e.path)),
		a.folders...)
}

// aside returns the files that are left out. cadre writes the report on the team. The report is
// committed only if it is named, or if the last commit already has one. In that case the checks see
// it: otherwise a clone would have an older report than the checks saw.
func (w *work) aside(c team.Consolidation) aside {
	t := w.Replica.Team()
	a := aside{folders: paths.NotAround(w.repo.top, w.Except...), report: worktree.From(w.repo.top, t.Report),
		origin: worktree.From(w.repo.top, t.Origin)}
	for _, named := range slices.Concat(c.Include, c.Only) {
		if named == a.report || strings.HasPrefix(a.report, named+"/") {
			a.report = ""
		}
	}
	return a
}

// finish says when the team's work ended, and whose some files are.
type finish struct {
	at      time.Time              // zero if it has not ended
	files   map[string]bool        // files that the team's tasks changed
	foreign func() map[string]bool // files that belong to other teams; it may read all teams of the home
}

func (w *work) finish() (f finish) {
	f.files = map[string]bool{}
	f.foreign = sync.OnceValue(func() map[string]bool {
		all := map[string]bool{}
		if w.Foreign != nil {
			for _, file := range w.Foreign() {
				all[worktree.From(w.repo.top, file)] = true
			}
		}
		return all
	})
	w.Replica.View(func(s *team.State) {
		at := s.FinishedAt()
		if at == 0 {
			return
		}
		f.at = time.UnixMilli(int64(at) + 1) // files have finer times
		for t := range s.Tasks() {
			if t.Work != nil && t.Work.Branch == "" { // not what a member did in a worktree of its own
				for _, path := range t.Work.Files {
					f.files[path] = true
				}
			}
		}
	})
	return f
}

// Why a file is not committed.
const (
	isForeign  = "it belongs to another team"
	isLate     = "it changed after the team finished"
	isTeamFile = "it is the team file"
	isUnnamed  = "it is not among the named paths"
)

// stranger returns why the file is not the team's: it belongs to another team, or was changed after
// the team finished and by none of its tasks. It returns "" for other files. For a file that was
// removed the time is unknown.
func (r *repository) stranger(e entry, f finish) string {
	if !e.tracked && f.foreign()[e.path] {
		return isForeign
	}
	if f.at.IsZero() || f.files[e.path] {
		return ""
	}
	info, err := os.Lstat(r.path(e.path))
	if err != nil || info.IsDir() || !regularfile.ChangedAt(info).After(f.at) {
		return ""
	}
	return isLate
}

// maxBytes bounds how much of the uncommitted files is read for checksums.
const maxBytes = 2 << 30

// facts returns the files with their checksums.
func (r *repository) facts(ctx context.Context, files []entry) ([]team.Fact, error) {
	if len(files) > team.MaxBase {
		return nil, fmt.Errorf("%d files are not committed, and the limit is %d; let git ignore what is not part of "+
			"the project's (.gitignore)", len(files), team.MaxBase)
	}
	var all []team.Fact
	most := int64(maxBytes)
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

// Look records the state of the project in dir before a team starts to work in it. If the state
// cannot be determined, the result says why. Files below the folders in except do not count,
// because cadre keeps its own files there.
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
		if files, err = r.differing(ctx, aside{folders: paths.NotAround(r.top, realPaths(except)...)}); err == nil {
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

// realPaths returns the folders as git names them.
func realPaths(dirs []string) []string {
	var all []string
	for _, dir := range dirs {
		if real, err := filepath.EvalSymlinks(dir); err == nil {
			all = append(all, real)
		}
	}
	return all
}

// selection sorts the changes in the work tree by owner.
type selection struct {
	ours      []string          // the team's
	both      []string          // uncommitted when the team was created, and changed since
	strangers []string          // changed after the team finished, or another team's, or the user's team file
	why       map[string]string // by path, why a stranger is one
	yours     []string          // uncommitted when the team was created, and unchanged since
	unnamed   []string          // not among the paths of Only
}

// strange adds a file that is not the team's, and why.
func (s *selection) strange(path, why string, but aside) {
	if path == but.origin {
		why = isTeamFile
	}
	s.strangers, s.why[path] = append(s.strangers, path), why
}

// sort sorts the files that differ from HEAD.
func (r *repository) sort(ctx context.Context, base team.Base, c team.Consolidation, but aside, end finish) (
	selection, error) {
	s := sorter{repository: r, attempt: c, but: but, end: end, before: map[string]string{}, found: map[string]bool{},
		unread: maxBytes, selection: selection{why: map[string]string{}}}
	files, err := r.differing(ctx, but)
	if err != nil {
		return s.selection, err
	}
	for _, f := range base.Dirty {
		s.before[f.Path] = f.SHA256
	}
	var unmerged []string
	for _, e := range files {
		if e.unmerged {
			unmerged = append(unmerged, e.path)
		} else if err := s.add(ctx, e); err != nil {
			return s.selection, err
		}
	}
	if len(unmerged) > 0 {
		return s.selection, notReady("unresolved conflicts in %s", names(unmerged))
	}
	for _, p := range slices.Concat(c.Include, c.Only) {
		if !s.found[p] {
			return s.selection, &team.Error{Code: team.Invalid, Text: fmt.Sprintf("%s does not differ from "+
				"the last commit, so there is nothing of it to commit; %s is the top of the work tree", p, r.top)}
		}
	}
	return s.selection, nil
}

// sorter sorts the files of one attempt into its selection.
type sorter struct {
	*repository
	selection
	attempt team.Consolidation
	but     aside
	end     finish
	before  map[string]string // digests of the files that differed when the team was created, by path
	found   map[string]bool   // paths of Include and Only that cover a file
	unread  int64             // how many bytes of files may still be read
}

// covered reports whether one of the paths covers the file, and records that in found.
func (s *sorter) covered(path string, by []string) (covered bool) {
	for _, p := range by {
		if p == path || strings.HasPrefix(path, p+"/") {
			s.found[p], covered = true, true
		}
	}
	return covered
}

// add sorts one file.
func (s *sorter) add(ctx context.Context, e entry) error {
	included, meant := s.covered(e.path, s.attempt.Include), s.covered(e.path, s.attempt.Only)
	_, known := s.before[e.path]
	why := ""
	if !included && !meant && !known {
		why = s.stranger(e, s.end)
	}
	switch {
	case e.submodule && !e.moved: // uncommitted changes inside a submodule cannot be committed here
	case len(s.attempt.Only) > 0 && !meant:
		s.unnamed = append(s.unnamed, e.path)
	case why != "":
		s.strange(e.path, why, s.but)
	case included || !known:
		s.ours = append(s.ours, e.path)
	default:
		return s.addKnown(ctx, e, meant)
	}
	return nil
}

// addKnown sorts a file that differed from HEAD when the team was created. meant says that Only
// names it.
func (s *sorter) addKnown(ctx context.Context, e entry, meant bool) error {
	was := s.before[e.path]
	now, err := s.digest(ctx, e, &s.unread)
	if err != nil {
		return err
	}
	if now == was {
		s.yours = append(s.yours, e.path)
		return nil
	}
	committed, err := s.committed(ctx, e.path)
	if err != nil {
		return err
	}
	switch {
	case committed == was, // the user has committed the former changes since, so the rest is the team's
		e.path == s.but.report: // a report is always written as a whole
		s.ours = append(s.ours, e.path)
	case e.path == s.but.origin && !meant:
		s.strange(e.path, isTeamFile, s.but)
	case !e.tracked && !meant && s.end.foreign()[e.path]: // its team has run again
		s.strange(e.path, isForeign, s.but)
	default:
		s.both = append(s.both, e.path)
	}
	return nil
}

// left returns the files that checks made or changed: they differ from HEAD, are not part of the
// tree, and are not as they were when the team was created.
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

// operations are the git operations that may be in progress, with the file that shows it.
var operations = []struct{ file, what string }{
	{"MERGE_HEAD", "a merge"}, {"CHERRY_PICK_HEAD", "a cherry-pick"}, {"REVERT_HEAD", "a revert"},
	{"rebase-merge", "a rebase"}, {"rebase-apply", "a rebase"},
}

// quiet returns an error during an operation that ends with a commit.
func (r *repository) quiet() error {
	for _, o := range operations {
		if _, err := os.Lstat(filepath.Join(r.dir, o.file)); err == nil {
			return notReady("%s is in progress in %s; finish it first", o.what, r.top)
		}
	}
	return nil
}

func notReady(format string, args ...any) *team.Error {
	return team.Refuse(team.NotReady, format, args...)
}

// hint returns a hint for the team that is being consolidated.
func (w *work) hint(a team.Action) team.Hint {
	return team.Hint{Action: a, Team: w.Replica.Team().Name}
}

// names lists paths, up to a readable number.
func names(paths []string) string {
	const shown = 12
	if len(paths) > shown {
		return strings.Join(paths[:shown], ", ") + fmt.Sprintf(" and %d more", len(paths)-shown)
	}
	return strings.Join(paths, ", ")
}

// adviseLeft says once which changed files are not committed, and why.
func (w *work) adviseLeft(ctx context.Context, c team.Consolidation, s selection) error {
	if w.advised {
		return nil
	}
	w.advised = true
	var left []string
	for _, why := range []string{isLate, isForeign, isTeamFile} {
		paths := slices.DeleteFunc(slices.Clone(s.strangers), func(path string) bool { return s.why[path] != why })
		if len(paths) > 0 {
			left = append(left, fmt.Sprintf("because %s: %s", why, names(paths)))
		}
	}
	var hints []team.Hint
	if len(left) > 0 {
		include := w.hint(team.ActIncludeFiles)
		if len(s.strangers) == 1 { // among several may be files of the user and of other teams
			include.Paths = s.strangers
		}
		hints = []team.Hint{include}
	}
	if len(s.unnamed) > 0 {
		c.Include, c.Only = nil, nil
		all, err := w.selected(ctx, c) // without the user's own files
		if err != nil {
			return err
		}
		paths := slices.DeleteFunc(append(all.ours, all.both...), func(path string) bool {
			return !slices.Contains(s.unnamed, path)
		})
		if len(paths) > 0 {
			left = append(left, fmt.Sprintf("because %s: %s", isUnnamed, names(paths)))
		}
	}
	if len(left) > 0 {
		w.Advise(team.Advice{Text: "not committed, " + strings.Join(left, "; "), Hints: hints})
	}
	return nil
}

// late refuses files that the finished consolidation did not commit: it commits nothing more.
func (w *work) late(ctx context.Context, c team.Consolidation) error {
	if len(w.Include)+len(w.Only) == 0 || w.repo.top == "" {
		return nil
	}
	changes, err := w.repo.changes(ctx, c.Parent, c.Tree)
	if err != nil {
		return err
	}
	var left []string
	for _, path := range slices.Concat(w.Include, w.Only) {
		if !slices.ContainsFunc(pathsOf(changes), func(has string) bool {
			return has == path || strings.HasPrefix(has, path+"/")
		}) {
			left = append(left, path)
		}
	}
	if len(left) == 0 {
		return nil
	}
	return team.Refuse(team.Finished, "team %s is consolidated already, without %s. Commit that with git",
		w.Replica.Team().Name, names(left)).With(w.hint(team.ActShowReview))
}
