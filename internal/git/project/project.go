// Package project tells which project a directory belongs to. It reads git's files and runs
// nothing.
//
// The project of a directory in a git repository is that repository. All work trees of a repository
// share its branches, so they are one project. Two clones are two projects. A directory outside any
// repository is a project of its own.
package project

import (
	"os"
	"path/filepath"
	"strings"

	"cadre/internal/sys/regularfile"
)

// Of returns the path that stands for the directory's project: the folder that the work trees of
// its repository share, or else the directory itself. Symbolic links are followed. The directory
// need not exist; then nothing says which repository it was in, and repository is false.
func Of(dir string) (path string, repository bool) {
	dir = real(dir)
	if _, err := os.Stat(dir); err != nil {
		return dir, false
	}
	if _, shared := nearest(dir); shared != "" {
		return real(shared), true
	}
	return dir, false
}

// Top returns the top of the work tree or repository that the directory is in. Symbolic links are
// not followed. Outside any repository ok is false.
func Top(dir string) (top string, ok bool) {
	top, shared := nearest(dir)
	return top, shared != ""
}

// nearest returns the first directory, from dir upward, that belongs to git, and the folder that
// the work trees of its repository share. Outside any repository, both are "".
func nearest(dir string) (top, shared string) {
	for at := dir; ; at = filepath.Dir(at) {
		git := filepath.Join(at, ".git")
		if info, err := os.Stat(git); err == nil && info.IsDir() {
			if holds(git) {
				return at, git
			}
		} else if err == nil {
			if own := Pointer(git, "gitdir: "); own != "" {
				return at, common(own)
			}
		}
		if at == filepath.Dir(at) {
			return "", ""
		}
	}
}

// holds reports whether a folder holds a repository. It makes the same checks as git: git passes
// over a folder named .git that fails them, such as an empty one, and searches further up.
func holds(git string) bool {
	for _, part := range []string{"HEAD", "objects", "refs"} {
		if _, err := os.Lstat(filepath.Join(git, part)); err != nil {
			return false
		}
	}
	return true
}

// Named returns the path of the directory's project, for people. That is the work tree of its
// repository, or the repository itself if it has none, or else the directory.
func Named(dir string) string {
	path, _ := Of(dir)
	if filepath.Base(path) == ".git" {
		return filepath.Dir(path)
	}
	return path
}

// Same reports whether two directories belong to one project.
func Same(a, b string) bool {
	one, _ := Of(a)
	other, _ := Of(b)
	return one == other
}

// common returns the folder that the work tree with this own folder shares with others.
func common(own string) string {
	if shared := Pointer(filepath.Join(own, "commondir"), ""); shared != "" {
		return shared
	}
	return own
}

// Pointer returns the path after the prefix in one of git's files, or "".
func Pointer(file, prefix string) string {
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

// real follows the symbolic links of a path, as far as it exists.
func real(path string) string {
	if followed, err := filepath.EvalSymlinks(path); err == nil {
		return followed
	}
	return filepath.Clean(path)
}
