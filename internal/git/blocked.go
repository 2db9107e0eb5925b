package git

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"cadre/internal/regularfile"
)

// suspicion is how long a command runs before it is looked whether git waits for a special file. Most commands have ended by
// then, so the look costs them nothing.
const suspicion = time.Second

// BlockedError says that git waits for a special file that lies where git reads a regular one. It would do so for ever.
type BlockedError struct{ File *regularfile.Error }

func (e *BlockedError) Error() string {
	return fmt.Sprintf("%v, and git would wait for it for ever; remove it or move it elsewhere, then try again", e.File)
}

func (e *BlockedError) Unwrap() error { return e.File }

// guard ends a command by end when git waits for a special file. It returns a function that stops it.
func (r Runner) guard(ctx context.Context, end context.CancelCauseFunc) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for pause := suspicion; ; pause *= 4 {
			select {
			case <-ctx.Done():
				return
			case <-time.After(pause):
			}
			if blocked := r.blocked(ctx); blocked != nil {
				end(blocked)
				return
			}
		}
	}()
	return func() { cancel(); <-done }
}

// blocked finds a special file that git reads, nil where there is none.
func (r Runner) blocked(ctx context.Context) *BlockedError {
	top, gitDirs := r.places()
	for _, dir := range gitDirs {
		for _, f := range special(ctx, dir, true) {
			return &BlockedError{f}
		}
	}
	if top == "" {
		return nil
	}
	for _, f := range special(ctx, top, false) {
		if slices.Contains(readByName, filepath.Base(f.Path)) {
			return &BlockedError{f}
		}
	}
	return nil
}

// readByName are the files that git opens in any folder of a work tree without looking what they are. In the place of any
// other file it refuses a pipe.
var readByName = []string{".gitignore", ".gitattributes", ".gitmodules"}

// places returns the top of the work tree that git runs in, "" for none, and the folders of its repository. It runs no git, which
// could wait for the same file.
func (r Runner) places() (top string, gitDirs []string) {
	for _, v := range r.Env {
		if dir, ok := strings.CutPrefix(v, "GIT_DIR="); ok {
			return "", []string{dir}
		}
	}
	for dir, err := filepath.Abs(r.Dir); err == nil; {
		at := filepath.Join(dir, ".git")
		if info, err := os.Lstat(at); err == nil {
			if info.IsDir() {
				return dir, []string{at}
			}
			return dir, linked(at)
		}
		up := filepath.Dir(dir)
		if up == dir {
			break
		}
		dir = up
	}
	return "", nil
}

// linked returns the folders that the file .git of a linked worktree leads to: its own, and the one of the repository.
func linked(file string) []string {
	own := pointer(file, "gitdir: ")
	if own == "" {
		return nil
	}
	dirs := []string{own}
	if common := pointer(filepath.Join(own, "commondir"), ""); common != "" {
		dirs = append(dirs, common)
	}
	return dirs
}

// pointer returns the path that a file of git's names after the prefix, "" where it names none.
func pointer(file, prefix string) string {
	const longest = 64 << 10
	data, err := regularfile.Read(file, longest)
	path, ok := strings.CutPrefix(strings.TrimRight(string(data), "\r\n"), prefix)
	if err != nil || !ok || path == "" {
		return ""
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(filepath.Dir(file), path)
	}
	return path
}

// special returns the pipes and devices below a folder. Opening a socket fails at once, so sockets hold nobody up. Where git
// follows links, so does this.
func special(ctx context.Context, dir string, links bool) (found []*regularfile.Error) {
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil // what cannot be looked at is git's to say
		}
		mode := d.Type()
		if links && mode == fs.ModeSymlink {
			if info, err := os.Stat(path); err == nil {
				mode = info.Mode()
			}
		}
		if mode&(fs.ModeNamedPipe|fs.ModeDevice) != 0 {
			found = append(found, &regularfile.Error{Path: path, Mode: mode})
		}
		return ctx.Err()
	})
	return found
}
