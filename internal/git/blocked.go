package git

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"cadre/internal/git/project"
	"cadre/internal/sys/proc"
	"cadre/internal/sys/regularfile"
	"cadre/internal/sys/sleep"
)

const (
	// suspicion is how long a command runs before the guard checks whether git waits for a pipe.
	// Most commands have ended by then, so the check costs them nothing.
	suspicion = time.Second
	// certainty is how long git has to wait for the same pipe: a pipe with an active writer does
	// not block git.
	certainty = 200 * time.Millisecond
	// asking bounds how long git may take to say whether a folder is ignored. It may wait for the
	// same pipe.
	asking = 2 * time.Second
)

// BlockedError reports a named pipe in the place of a regular file. Git would wait for it for ever.
type BlockedError struct{ File *regularfile.Error }

func (e *BlockedError) Error() string {
	return fmt.Sprintf("%v, and git would wait for it for ever; remove it or move it elsewhere, then try again", e.File)
}

func (e *BlockedError) Unwrap() error { return e.File }

// guarded runs a command, and ends it with end if git waits for a pipe.
func (r Runner) guarded(ctx context.Context, cmd proc.Cmd, end context.CancelCauseFunc) (proc.Exit, error) {
	if err := ctx.Err(); err != nil {
		return proc.Exit{}, err
	}
	child, err := r.Procs.Start(cmd)
	if err != nil {
		return proc.Exit{}, err
	}
	defer r.guard(ctx, child, end)()
	return child.Finish(ctx, proc.Ladder{})
}

// guard ends a command with end if git waits for a pipe. The returned function stops the guard.
func (r Runner) guard(ctx context.Context, child *proc.Child, end context.CancelCauseFunc) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for wait := suspicion; sleep.For(ctx, wait) == nil; wait *= 4 {
			if path := r.blocked(ctx, child); path != "" && ctx.Err() == nil {
				end(&BlockedError{&regularfile.Error{Path: path, Mode: fs.ModeNamedPipe}})
				return
			}
		}
	}()
	return func() { cancel(); <-done }
}

// blocked returns the pipe that git waits for; "" for none. If the system does not report it,
// blocked returns a pipe that git would wait for.
func (r Runner) blocked(ctx context.Context, child *proc.Child) string {
	const program = "git" // and git-remote-https; a hook's program may wait for any pipe
	before, told := child.Pipes(program)
	if !told {
		return r.suspect(ctx)
	}
	if len(before) == 0 || sleep.For(ctx, certainty) != nil {
		return ""
	}
	now, _ := child.Pipes(program)
	for _, path := range before {
		if slices.Contains(now, path) {
			return path
		}
	}
	return ""
}

// suspect finds a pipe under a name that git opens without checking its type.
func (r Runner) suspect(ctx context.Context) string {
	top, gitDirs := r.places()
	for _, dir := range gitDirs {
		for _, name := range inRepository {
			if path := filepath.Join(dir, name); isPipe(path) {
				return path
			}
		}
		for _, folder := range []string{"refs", "objects/info"} {
			for _, path := range pipes(ctx, filepath.Join(dir, folder)) {
				return path
			}
		}
	}
	if top == "" {
		return ""
	}
	for _, path := range pipes(ctx, top) {
		if slices.Contains(inWorkTree, filepath.Base(path)) && !r.ignored(ctx, top, filepath.Dir(path)) {
			return path
		}
	}
	return ""
}

var (
	// inRepository are the files that git opens in a repository, or in its folder for a linked
	// worktree.
	inRepository = []string{"config", "config.worktree", "HEAD", "index", "packed-refs", "commondir", "shallow",
		"info/exclude", "info/attributes", "info/grafts", "info/sparse-checkout"}
	// inWorkTree are the files that git opens in any folder of a work tree that is not ignored. In
	// the place of any other file, git refuses a pipe.
	inWorkTree = []string{".gitignore", ".gitattributes", ".gitmodules"}
)

// ignored reports whether git skips a folder of the work tree. For that, git reads only the ignore
// files of the folders above. If git does not answer in time, ignored returns true: the machine is
// busy, and the guard looks again later. Otherwise a command would be ended for a pipe that git
// never opens.
func (r Runner) ignored(ctx context.Context, top, dir string) bool {
	if dir == top {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, asking)
	defer cancel()
	var out bytes.Buffer
	r.Dir = top
	// The folder is one literal path, whatever its name; this command does not accept the setting
	// for that.
	cmd := proc.Cmd{Args: r.command([]string{"check-ignore", "-q", "--", dir}), Env: append(r.environment(os.Environ()),
		append(slices.Clone(r.Env), "GIT_LITERAL_PATHSPECS=0")...), Stdout: &out, Stderr: &out}
	exit, err := r.Procs.Run(ctx, cmd, proc.Ladder{})
	return ctx.Err() != nil || err == nil && exit.Code == 0
}

// places returns the top of the work tree in which git runs ("" for none), and the folders of its
// repository. It does not run git, which could wait for the same file.
func (r Runner) places() (top string, gitDirs []string) {
	for _, v := range r.Env {
		if dir, ok := strings.CutPrefix(v, "GIT_DIR="); ok {
			return "", []string{dir}
		}
	}
	dir, err := filepath.Abs(r.Dir)
	if err != nil {
		return "", nil
	}
	top, ok := project.Top(dir)
	if !ok {
		return "", nil
	}
	at := filepath.Join(top, ".git")
	if info, err := os.Lstat(at); err == nil && info.IsDir() {
		return top, []string{at}
	}
	return top, linked(at)
}

// linked returns the folders to which the file .git of a linked worktree points: its own, and the
// repository's.
func linked(file string) []string {
	own := project.Pointer(file, "gitdir: ")
	if own == "" {
		return nil
	}
	dirs := []string{own}
	if common := project.Pointer(filepath.Join(own, "commondir"), ""); common != "" {
		dirs = append(dirs, common)
	}
	return dirs
}

// pipes returns the named pipes below a folder, except in a repository's folder. Sockets and
// devices do not block: opening a socket fails, and opening a device does not wait.
func pipes(ctx context.Context, dir string) (found []string) {
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil: // git reports what cannot be read
		case d.IsDir() && d.Name() == ".git":
			return fs.SkipDir
		case d.Type() == fs.ModeNamedPipe:
			found = append(found, path)
		}
		return ctx.Err()
	})
	return found
}

// isPipe reports whether the path is a named pipe. Like git, it follows links.
func isPipe(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode()&fs.ModeNamedPipe != 0
}
