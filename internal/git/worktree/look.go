package worktree

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"cadre/internal/sys/paths"
	"cadre/internal/sys/proc"
)

// State describes the place of a worktree.
type State int

// These are the states of a place. Any other state is a [BrokenError].
const (
	Absent State = iota // no worktree: none was made, or it was removed properly
	Whole               // the worktree, on its branch
	// the worktree or its repository was moved since: [Repair] reconnects them
	Moved
	Partial // git was killed while it made the worktree, and no member has worked there
)

// BrokenError reports that a worktree is not in its place any more, or that something else is
// there. Only a person can correct that.
type BrokenError struct {
	Dir string
	Why string // continues a sentence that starts with Dir
	Try string // what to do, as a sentence
	Fix Fix    // the command of git that does it, if one does
}

func (e *BrokenError) Error() string { return e.Dir + " " + e.Why + ". " + e.Try }

// Fix is a command of git that helps with a [BrokenError]. Callers word it for a person.
type Fix struct {
	Does Remedy
	Dir  string // where git runs: the repository, or for [CheckOut] the worktree
	ID   string // for [KeepCommit] and [ListFiles]: the commit or tree
}

// Remedy says what a [Fix] does.
type Remedy int

// These are the remedies. All but NoRemedy name a command of git.
const (
	NoRemedy     Remedy = iota
	RemoveRecord        // remove the repository's record of the worktree
	CheckOut            // check the worktree's branch out
	Reconnect           // join the worktree and its repository again
	Unlock              // unlock the record of the worktree
	KeepCommit          // put the commit on a branch
	ListFiles           // list the files of the tree
)

// Look determines the state of the place, and changes nothing. It follows git's two links. The file
// .git in the worktree names the worktree's entry in the repository, and the file gitdir in that
// entry names the worktree. The error is a [*BrokenError], or says why the state is unknown.
func Look(ctx context.Context, procs *proc.Register, p Place) (State, error) {
	common, err := in(procs, p.Repo).common(ctx)
	if err != nil {
		return Absent, err
	}
	return look(ctx, procs, p, common)
}

// look returns the state of the worktree. common is the git directory of its repository.
func look(ctx context.Context, procs *proc.Register, p Place, common string) (State, error) {
	own := entryOf(common, p.Dir)
	info, err := os.Lstat(p.Dir)
	switch {
	case errors.Is(err, fs.ErrNotExist) && own.dir == "":
		return Absent, nil
	case errors.Is(err, fs.ErrNotExist) && own.partial():
		return Partial, nil
	case errors.Is(err, fs.ErrNotExist):
		if _, err := os.Lstat(removed(p.Dir)); err == nil { // it was being removed, with all its work committed
			return Absent, nil
		}
		return Absent, &BrokenError{p.Dir, "does not exist any more, and its uncommitted work is lost with it",
			"Restore it, or remove its record in the repository: a new one starts with the commits on the branch " +
				p.Branch + ".", Fix{Does: RemoveRecord, Dir: p.Repo}}
	case err != nil:
		return Absent, err
	case info.Mode()&fs.ModeSymlink != 0:
		return p.broken(p.aside(), "is a symbolic link, not a worktree")
	case !info.IsDir():
		return p.broken(p.aside(), "is a file, not a worktree")
	}
	link, err := readLink(filepath.Join(p.Dir, ".git"), "gitdir: ")
	switch {
	case errors.Is(err, fs.ErrNotExist) && own.partial():
		return Partial, nil
	case errors.Is(err, fs.ErrNotExist) && isEmpty(p.Dir) && own.dir == "":
		return Absent, nil
	case errors.Is(err, fs.ErrNotExist):
		return p.broken(p.aside(), "is a folder without the file .git, so it is not a worktree any more")
	case errors.Is(err, errNoPath) && own.dir != "": // a repair was killed while git wrote it
		return Moved, nil
	case errors.Is(err, errNoPath), errors.Is(err, errNoFile):
		return p.broken(p.aside(), "has a .git that is not the one of a worktree")
	case err != nil:
		return Absent, err
	}
	if !filepath.IsAbs(link) {
		link = filepath.Join(p.Dir, link)
	}
	if state, err := p.linked(link, common); state != Whole {
		return state, err
	}
	if err := checkBranch(ctx, procs, p); err != nil {
		return Absent, err
	}
	return Whole, nil
}

// linked returns the state of a worktree whose .git leads to the folder link.
func (p Place) linked(link, common string) (State, error) {
	switch e := (entry{dir: filepath.Join(common, "worktrees", filepath.Base(link))}); {
	case exists(link) && !paths.Same(filepath.Dir(link), filepath.Join(common, "worktrees")):
		return p.broken(p.aside(), "is a worktree of another repository, whose folder is %s",
			filepath.Dir(filepath.Dir(link)))
	case !e.there():
		return p.broken("Bring that repository back, or name the directory in which it is now.",
			"is a worktree of the repository %s, which is not there, and %s has no such worktree",
			filepath.Dir(filepath.Dir(link)), p.Repo)
	case !exists(link), !exists(e.tree()):
		return Moved, nil
	case !e.names(p.Dir):
		return p.broken(p.aside(), "is a copy of a worktree, which is %s", filepath.Dir(e.tree()))
	case e.partial():
		return Partial, nil
	}
	return Whole, nil
}

// broken returns the state of a worktree that cannot be used. try says what would help.
func (p Place) broken(try, format string, args ...any) (State, error) {
	return Absent, &BrokenError{Dir: p.Dir, Why: fmt.Sprintf(format, args...), Try: try}
}

// aside says what would help if something else stands in the place of the worktree.
func (p Place) aside() string {
	return "Move it away, and the worktree is made again from the branch " + p.Branch + "."
}

// checkBranch returns an error if the worktree has something else checked out than its branch.
func checkBranch(ctx context.Context, procs *proc.Register, p Place) error {
	branch, err := in(procs, p.Dir).Text(ctx, "symbolic-ref", "--short", "--quiet", "HEAD")
	const try = "Check that branch out again."
	back := Fix{Does: CheckOut, Dir: p.Dir}
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		return &BrokenError{p.Dir, fmt.Sprintf("is on no branch, and not on %s", p.Branch), try, back}
	case branch != p.Branch:
		return &BrokenError{p.Dir, fmt.Sprintf("is on the branch %s, and not on %s", branch, p.Branch), try, back}
	}
	return nil
}

// Repair reconnects a worktree and its repository after either was moved, and does not touch the
// worktree's files. If there is nothing to repair, it does nothing.
func Repair(ctx context.Context, procs *proc.Register, p Place) error {
	g := in(procs, p.Repo)
	common, unlock, err := g.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	return g.repair(ctx, p, common)
}

// repair is Repair for a caller that holds the repository's lock. git corrects one link by means of
// the other, so it has to be asked twice if both are wrong.
func (f folder) repair(ctx context.Context, p Place, common string) error {
	var said error
	for range 2 {
		if state, err := look(ctx, f.Procs, p, common); err != nil || state != Moved {
			return err
		}
		// it returns an error even if it has corrected something
		if _, said = f.Text(ctx, "worktree", "repair", p.Dir); ctx.Err() != nil {
			return ctx.Err()
		}
	}
	state, err := look(ctx, f.Procs, p, common)
	if err == nil && state == Moved {
		err = &BrokenError{p.Dir, fmt.Sprintf("and its repository have moved, and git cannot join them again: %v",
			said), "Join them by hand.", Fix{Does: Reconnect, Dir: p.Repo}}
	}
	return err
}

// entry is a repository's record of one of its worktrees: a folder.
type entry struct{ dir string }

func entries(common string) (all []entry) {
	names, _ := os.ReadDir(filepath.Join(common, "worktrees"))
	for _, n := range names {
		all = append(all, entry{filepath.Join(common, "worktrees", n.Name())})
	}
	return all
}

func (e entry) there() bool { return e.dir != "" && exists(filepath.Join(e.dir, "HEAD")) }

// tree returns the worktree's file .git, according to the entry.
func (e entry) tree() string {
	path, err := readLink(filepath.Join(e.dir, "gitdir"), "")
	if err == nil && !filepath.IsAbs(path) {
		path = filepath.Join(e.dir, path)
	}
	return path
}

// names reports whether the entry names dir as its worktree. The folder need not exist.
func (e entry) names(dir string) bool {
	tree := e.tree()
	if filepath.Base(tree) != ".git" {
		return false
	}
	tree = filepath.Dir(tree)
	return tree == dir || paths.Same(tree, dir) || filepath.Base(tree) == filepath.Base(dir) &&
		paths.Same(filepath.Dir(tree), filepath.Dir(dir))
}

// partial reports whether git has not finished making it: git says so in the lock that it holds
// meanwhile, and writes the index last.
func (e entry) partial() bool {
	if e.dir == "" {
		return false
	}
	lock, err := readLink(filepath.Join(e.dir, "locked"), "")
	return err == nil && lock == "initializing" && !exists(filepath.Join(e.dir, "index"))
}

// These say why a file is not one of git's files with a path.
var (
	errNoPath = errors.New("it has no path")
	errNoFile = errors.New("it is not a regular file")
)

// readLink reads the path after a prefix in one of git's files. An agent may have put anything in
// its place.
func readLink(file, prefix string) (string, error) {
	const most = 16 << 10
	info, err := os.Lstat(file)
	if err != nil {
		return "", err
	}
	if !info.Mode().IsRegular() {
		return "", errNoFile
	}
	f, err := os.OpenFile(file, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return "", err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, most))
	if err != nil {
		return "", err
	}
	path, ok := bytes.CutPrefix(text, []byte(prefix))
	path = bytes.TrimRight(path, "\r\n")
	if !ok || len(path) == 0 || len(text) == most || bytes.ContainsAny(path, "\n\x00") {
		return "", errNoPath
	}
	return filepath.FromSlash(string(path)), nil
}

func exists(path string) bool {
	if path == "" {
		return false
	}
	_, err := os.Stat(path)
	return err == nil
}

func isEmpty(dir string) bool {
	names, err := os.ReadDir(dir)
	return err == nil && len(names) == 0
}

// missing returns the missing worktrees that have the branch checked out, according to the
// repository: those of a team whose folder was lost. elsewhere is the directory of one that exists;
// "" for none.
func (f folder) missing(ctx context.Context, branch string) (dirs []string, elsewhere string, err error) {
	out, err := f.Text(ctx, "worktree", "list", "--porcelain")
	if err != nil {
		return nil, "", err
	}
	dir := ""
	for line := range strings.Lines(out) {
		line = strings.TrimRight(line, "\n")
		if path, ok := strings.CutPrefix(line, "worktree "); ok {
			dir = path
		}
		switch {
		case line != "branch refs/heads/"+branch:
		case exists(dir):
			elsewhere = dir
		default:
			dirs = append(dirs, dir)
		}
	}
	return dirs, elsewhere, nil
}
