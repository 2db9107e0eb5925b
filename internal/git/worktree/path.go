package worktree

import (
	"path/filepath"
)

// From returns the path of a file from the top of its work tree, as git names it; "" if the file is
// outside. The file may be missing, but its folder must exist, because links above it are followed.
func From(top, file string) string {
	if top == "" || file == "" {
		return ""
	}
	dir, err := filepath.EvalSymlinks(filepath.Dir(file))
	if err != nil {
		return ""
	}
	path, err := filepath.Rel(top, filepath.Join(dir, filepath.Base(file)))
	if err != nil || !filepath.IsLocal(path) {
		return ""
	}
	return filepath.ToSlash(path)
}
