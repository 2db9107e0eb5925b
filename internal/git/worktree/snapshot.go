package worktree

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"cadre/internal/git"
	"cadre/internal/git/project"
	"cadre/internal/sys/proc"
	"cadre/internal/sys/regularfile"
)

// maxSnapshotFile bounds the size of a file in a snapshot, in bytes.
const maxSnapshotFile = 5 << 20

// ErrNoRepository reports a directory outside any git work tree.
var ErrNoRepository = errors.New("it is in no git repository")

// Exception reports whether a file is left out of a snapshot, and why. Without a reason, no message
// names the file. It gets absolute paths, in git's form of the top of the work tree.
type Exception func(path string) (out bool, why string)

// Snapshots takes snapshots of one work tree: commits of its content, committed or not, that no
// branch names. It uses an index of its own, and touches neither the work tree nor the user's
// index. One goroutine at a time may use it.
type Snapshots struct {
	folder        // the top of the work tree, with our index
	theirs string // the user's index
	ours   string

	seeded  bool
	head    string          // commit that our index was made from; "" for none
	tree    string          // of that commit
	added   map[string]bool // paths at which our index differs from it
	last    string          // the last snapshot
	lastHas string          // the tree of the last snapshot
}

// Snapshot is the content of a work tree.
type Snapshot struct {
	Commit string
	Head   string   // the commit that was checked out; "" if there was none
	Left   []string // paths that are not in the commit, each with the reason
	// Ignored lists what git ignores: files, and folders that are ignored completely. Only
	// [Snapshots.TakeAll] fills it.
	Ignored []string
}

// OpenSnapshots prepares snapshots of the work tree of dir. It puts its own index into the folder
// scratch.
func OpenSnapshots(ctx context.Context, procs *proc.Register, dir, scratch string) (*Snapshots, error) {
	if _, ok := project.Top(dir); !ok {
		return nil, ErrNoRepository
	}
	out, err := in(procs, dir).Text(ctx, "rev-parse", "--path-format=absolute", "--show-toplevel",
		"--git-path", "index")
	if err != nil {
		return nil, err
	}
	top, index, found := strings.Cut(out, "\n")
	if !found {
		return nil, ErrNoRepository
	}
	ours := filepath.Join(scratch, "snapshot-index")
	return &Snapshots{folder: folder{in(procs, top).With("GIT_INDEX_FILE=" + ours)}, theirs: index, ours: ours}, nil
}

// Take takes a snapshot on top of the parent, or of the checked-out commit if parent is "". If
// nothing differs, the snapshot is the parent itself.
func (s *Snapshots) Take(ctx context.Context, parent, message string, except Exception) (Snapshot, error) {
	return s.take(ctx, parent, message, except, false)
}

// TakeAll is Take with the list of what git ignores.
func (s *Snapshots) TakeAll(ctx context.Context, parent, message string, except Exception) (Snapshot, error) {
	return s.take(ctx, parent, message, except, true)
}

func (s *Snapshots) take(ctx context.Context, parent, message string, except Exception,
	ignored bool) (Snapshot, error) {
	var d difference
	s.holdNone(except)
	var err error
	for again := true; again && err == nil; {
		if again = !s.seeded; again {
			if err = s.seed(ctx); err != nil {
				break
			}
		}
		// HEAD has changed, or the index has a file that is left out now
		if d, err = s.look(ctx, except, ignored); d.head != s.head || d.stale {
			s.seeded = false
		}
		again = !s.seeded
	}
	snap := Snapshot{Head: d.head, Left: d.left, Ignored: d.ignored}
	if err == nil {
		snap.Commit, err = s.store(ctx, parent, message, d)
	}
	if err != nil {
		s.seeded = false // the content of the index is unknown now
	}
	return snap, err
}

// store updates our index with the differences, and commits it.
func (s *Snapshots) store(ctx context.Context, parent, message string, d difference) (commit string, err error) {
	has := s.lastHas
	for _, one := range []struct {
		paths []string
		how   []string
	}{{d.gone, []string{"--force-remove"}}, {d.files, []string{"--add", "--remove", "--replace"}}} {
		if len(one.paths) == 0 {
			continue
		}
		has = ""
		if _, err := s.Run(ctx, []byte(strings.Join(one.paths, "\x00")), slices.Concat([]string{"update-index", "-z"},
			one.how, []string{"--stdin"})...); err != nil {
			return "", err
		}
	}
	if has == "" {
		if has, err = s.Text(ctx, "write-tree"); err != nil {
			return "", err
		}
	}
	if commit, err = s.commit(ctx, cmp.Or(parent, s.head), has, message); err == nil {
		s.last, s.lastHas = commit, has
	}
	return commit, err
}

// checkedOut returns the commit that HEAD names, and its tree.
func (s *Snapshots) checkedOut(ctx context.Context) (commit, tree string, err error) {
	out, err := s.Text(ctx, "rev-parse", "HEAD^{commit}", "HEAD^{tree}")
	if err == nil {
		commit, tree, _ = strings.Cut(out, "\n")
		return commit, tree, nil
	}
	if _, unborn := s.Text(ctx, "symbolic-ref", "--quiet", "HEAD"); unborn != nil || ctx.Err() != nil {
		return "", "", err
	}
	// it names something unreadable
	if there, other := s.Holds(ctx, "rev-parse", "--verify", "--quiet", "HEAD"); there || other != nil {
		return "", "", errors.Join(err, other)
	}
	return "", "", nil
}

// seed makes our index match HEAD, with the user's index's knowledge of the files, which saves
// reading them.
func (s *Snapshots) seed(ctx context.Context) error {
	head, tree, err := s.checkedOut(ctx)
	if err != nil {
		return err
	}
	s.seeded, s.head, s.tree, s.added, s.last, s.lastHas = false, head, tree, map[string]bool{}, "", ""
	if err := os.MkdirAll(filepath.Dir(s.ours), 0o700); err != nil {
		return err
	}
	for _, path := range []string{s.ours, s.ours + ".lock"} {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if head == "" {
		_, err = s.Run(ctx, nil, "read-tree", "--empty")
		s.seeded = err == nil
		return err
	}
	if err := git.CopyIndex(s.theirs, s.ours); err != nil && !errors.Is(err, fs.ErrPermission) {
		return err
	}
	_, err = s.Run(ctx, nil, "read-tree", "--reset", head)
	// the user's index is damaged; the user's own git reports that
	if _, refused := errors.AsType[*git.Refusal](err); refused {
		if err = os.Remove(s.ours); err == nil {
			_, err = s.Run(ctx, nil, "read-tree", head)
		}
	}
	s.seeded = err == nil
	return err
}

// holdNone makes the index again if it has a file that must be left out now. Such a file equals
// HEAD's again, so no difference shows it.
func (s *Snapshots) holdNone(except Exception) {
	for path := range s.added {
		if omit, _ := except(filepath.Join(s.Dir, filepath.FromSlash(path))); omit {
			s.seeded = false
			return
		}
	}
}

// difference describes how the work tree differs from our index.
type difference struct {
	head    string   // the checked-out commit; "" for none
	files   []string // files for the snapshot
	gone    []string
	left    []string // what is left out, each with the reason
	ignored []string
	stale   bool // the index has a file that is left out now
}

// look compares the work tree with our index.
func (s *Snapshots) look(ctx context.Context, except Exception, ignored bool) (d difference, err error) {
	args := []string{"status", "--porcelain=v2", "--branch", "-z", "--untracked-files=all", "--no-renames",
		"--ignore-submodules=dirty"}
	if ignored {
		args = append(args, "--ignored=matching")
	}
	out, err := s.Run(ctx, nil, args...)
	if err != nil {
		return d, err
	}
	for line := range strings.SplitSeq(string(out), "\x00") {
		if head, is := strings.CutPrefix(line, "# branch.oid "); is && head != "(initial)" {
			d.head = head
		}
		path, gone := "", false
		switch fields := strings.SplitN(line, " ", 9); {
		case len(line) < 3 || line[0] == '#':
			continue
		case line[0] == '?' || line[0] == '!':
			path = line[2:]
		case line[0] == '1' && len(fields) == 9:
			if path, gone = fields[8], fields[1][1] == 'D'; fields[1][1] == '.' {
				continue // our index has it
			}
		default:
			return d, fmt.Errorf("git status says %.80q", line)
		}
		absolute := filepath.Join(s.Dir, filepath.FromSlash(path))
		omit, why := except(absolute)
		if !omit {
			why = ""
		}
		switch {
		case omit && why == "":
			continue
		case line[0] == '!':
			d.ignored = append(d.ignored, path)
			continue
		case !omit && !gone:
			why = unfit(absolute)
		}
		switch {
		case why != "":
			d.stale = d.stale || s.added[path]
			d.left = append(d.left, path+" ("+why+")")
			continue
		case gone:
			d.gone = append(d.gone, path)
		default:
			d.files = append(d.files, path)
		}
		s.added[path] = true
	}
	return d, nil
}

// unfit returns why the file at the path cannot be part of a snapshot.
func unfit(absolute string) (why string) {
	info, err := os.Lstat(absolute)
	switch {
	case err != nil: // it was removed, and the snapshot shows that
		return ""
	case info.IsDir():
		return "a repository of its own"
	case info.Mode()&fs.ModeSymlink != 0:
		return ""
	case !info.Mode().IsRegular():
		return "not a regular file"
	case info.Size() > maxSnapshotFile:
		return fmt.Sprintf("%s; up to %s are kept", regularfile.Size(info.Size()), regularfile.Size(maxSnapshotFile))
	}
	f, err := regularfile.Open(absolute)
	if err != nil {
		return "cannot be read"
	}
	f.Close()
	return ""
}

// commit commits the tree on top of the parent. It returns the parent if that has this tree, and
// the last snapshot if that is the same.
func (s *Snapshots) commit(ctx context.Context, parent, tree, message string) (string, error) {
	switch {
	case parent == s.head && tree == s.tree && parent != "":
		return parent, nil
	case parent == s.last && parent != "" && tree == s.lastHas:
		return parent, nil
	case parent == s.head && s.last != "" && tree == s.lastHas:
		return s.last, nil
	case parent != "" && parent != s.head && parent != s.last:
		had, err := s.Text(ctx, "rev-parse", "--verify", "--quiet", parent+"^{tree}")
		if err != nil {
			return "", fmt.Errorf("commit %.12s is not in the repository any more: %w", parent, err)
		}
		if had == tree {
			return parent, nil
		}
	}
	return commitTree(ctx, s.folder, tree, message, parent)
}

// commitTree makes a commit that nothing refers to. A parent may be "".
func commitTree(ctx context.Context, f folder, tree, message string, parents ...string) (string, error) {
	args := []string{"commit-tree", tree, "-F", "-"}
	for _, parent := range parents {
		if parent != "" {
			args = append(args, "-p", parent)
		}
	}
	out, err := f.Ours().Run(ctx, []byte(message), args...)
	return strings.TrimSpace(string(out)), err
}

// ignored returns what git ignores: files, and folders that are ignored completely.
func (f folder) ignored(ctx context.Context) (paths []string, err error) {
	out, err := f.Run(ctx, nil, "ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--directory")
	for path := range strings.SplitSeq(string(out), "\x00") {
		if path != "" {
			paths = append(paths, path)
		}
	}
	return paths, err
}

// Differing returns the paths at which two commits of dir's repository differ, and those of them
// that are nested repositories.
func Differing(ctx context.Context, procs *proc.Register, dir, from,
	to string) (files, repositories []string, err error) {
	if from == to {
		return nil, nil, nil
	}
	changes, err := in(procs, dir).Changes(ctx, "diff-tree", "-r", from, to)
	for _, c := range changes {
		if c.Is == git.Submodule {
			repositories = append(repositories, c.Path)
		} else {
			files = append(files, c.Path)
		}
	}
	return files, repositories, err
}

// WorkRef returns the reference that protects the commits of a team's tasks from git gc. It is not
// a branch.
func WorkRef(team string) string { return "refs/cadre/" + team + "/work" }

// KeepCommits makes the commits reachable from the reference, in addition to what it has: the
// reference then names a commit with all of them as ancestors. Other processes may do the same at
// the same time. tip is the expected value of the reference; the result is its new value.
func KeepCommits(ctx context.Context, procs *proc.Register, dir, ref, tip, message string,
	commits ...string) (string, error) {
	g := in(procs, dir)
	for tries := 0; ; tries++ {
		next, err := commitTree(ctx, g, commits[len(commits)-1]+"^{tree}", message,
			append([]string{tip}, commits...)...)
		if err == nil {
			if err = g.UpdateOwn(ctx, ref, ref, next, cmp.Or(tip, strings.Repeat("0", len(next)))); err == nil {
				return next, nil
			}
		}
		now, other := g.reference(ctx, ref)
		if other != nil || now == tip || tries == 20 {
			return "", errors.Join(err, other)
		}
		tip = now
	}
}

// reference returns the commit that a reference names, or "".
func (f folder) reference(ctx context.Context, ref string) (string, error) {
	commit, err := f.Text(ctx, "rev-parse", "--verify", "--quiet", ref+"^{commit}")
	if refused, ok := errors.AsType[*git.Refusal](err); ok && refused.Status == 1 {
		return "", nil
	}
	return commit, err
}

// DropCommits removes the reference.
func DropCommits(ctx context.Context, procs *proc.Register, dir, ref string) error {
	if _, ok := project.Top(dir); !ok {
		return nil
	}
	return in(procs, dir).UpdateOwn(ctx, ref, "-d", ref)
}

// operations are git operations that a member may have in progress, with the file in the worktree's
// own folder that shows it.
var operations = []struct{ file, what string }{
	{"MERGE_HEAD", "a merge"}, {"CHERRY_PICK_HEAD", "a cherry-pick"}, {"REVERT_HEAD", "a revert"},
	{"rebase-merge", "a rebase"}, {"rebase-apply", "a rebase"},
}

// Commit commits the uncommitted work in a worktree whose member may be working there. It returns
// the checked-out commit, and why something is not on the branch. If the worktree is missing, it
// returns the tip of the branch.
func Commit(ctx context.Context, procs *proc.Register, p Place,
	message string) (commit string, left []string, err error) {
	if _, err := os.Stat(p.Dir); errors.Is(err, fs.ErrNotExist) {
		commit, err := Tip(ctx, procs, p.Repo, p.Branch)
		if err == nil && commit == "" {
			err = fmt.Errorf("neither the worktree %s nor the branch %s exists any more", p.Dir, p.Branch)
		}
		return commit, nil, err
	}
	t, err := open(ctx, procs, p.Dir)
	if err != nil {
		return "", nil, err
	}
	changed, err := t.Run(ctx, nil, "status", "--porcelain", "-z")
	if err != nil {
		return "", nil, err
	}
	if len(changed) > 0 {
		why, err := t.commitAll(ctx, message)
		if err != nil {
			return "", nil, err
		}
		if why != "" {
			left = append(left, "what is not committed in "+p.Dir+" ("+why+")")
		}
	}
	if current, err := t.Text(ctx, "symbolic-ref", "--short", "--quiet", "HEAD"); err != nil || current != p.Branch {
		left = append(left, fmt.Sprintf("the branch %s does not have it (the worktree has %s checked out)", p.Branch,
			cmp.Or(current, "no branch")))
	}
	commit, err = t.Text(ctx, "rev-parse", "--verify", "--quiet", "HEAD^{commit}")
	if err != nil {
		return "", nil, err
	}
	ignored, err := t.ignored(ctx)
	return commit, append(left, Named(ignored, "ignored by git")...), err
}

// commitAll commits the uncommitted work. why is the reason if this is not possible now.
func (t tree) commitAll(ctx context.Context, message string) (why string, err error) {
	for _, o := range operations {
		if _, err := os.Lstat(filepath.Join(t.own, o.file)); err == nil {
			return "the member is in the middle of " + o.what, nil
		}
	}
	if _, err := t.Text(ctx, "add", "--all"); err != nil {
		return "", err
	}
	// only nested repositories differ
	if same, err := t.Holds(ctx, "diff-index", "--cached", "--quiet", "HEAD"); same || err != nil {
		return "", err
	}
	_, err = t.Committing(ctx).Run(ctx, []byte(message), "commit", "--quiet", "--no-verify", "-F", "-")
	return "", err
}

// Named returns paths with the reason why they are left out. Of many, only the first are named.
func Named(paths []string, why string) (all []string) {
	const most = 20
	for i, path := range paths {
		if i == most {
			return append(all, fmt.Sprintf("%d more (%s)", len(paths)-most, why))
		}
		all = append(all, path+" ("+why+")")
	}
	return all
}

// Follows reports whether old is an ancestor of the commit, or the commit itself.
func Follows(ctx context.Context, procs *proc.Register, dir, old, commit string) (bool, error) {
	return in(procs, dir).Holds(ctx, "merge-base", "--is-ancestor", old, commit)
}
