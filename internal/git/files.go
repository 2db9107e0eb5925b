package git

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"cadre/internal/git/project"
)

// mostFiles bounds how many files [Runner.Files] lists outside a repository.
const mostFiles = 1_000_000

// Files returns the paths of the files below the runner's directory, from there and with slashes.
// In a repository, it leaves out those that git ignores.
func (r Runner) Files(ctx context.Context) (files []string, err error) {
	if _, repository := project.Top(r.Dir); repository {
		out, err := r.Run(ctx, nil, "ls-files", "-z", "--cached", "--others", "--exclude-standard")
		if err != nil {
			return nil, err
		}
		for file := range strings.SplitSeq(string(out), "\x00") {
			// a deleted file is in the index until its deletion is committed
			if info, err := os.Lstat(filepath.Join(r.Dir, filepath.FromSlash(file))); err == nil && !info.IsDir() {
				files = append(files, file)
			}
		}
		return files, nil
	}
	err = filepath.WalkDir(r.Dir, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && len(files) > mostFiles {
			err = fmt.Errorf("there are more than %d files", mostFiles)
		}
		if err != nil || ctx.Err() != nil || entry.IsDir() {
			return errors.Join(err, ctx.Err())
		}
		below, err := filepath.Rel(r.Dir, path)
		files = append(files, filepath.ToSlash(below))
		return err
	})
	return files, err
}
