package readonly

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"cadre/internal/sys/paths"
)

// inside reports whether a resolved path is one of the folders or below one.
func (l *looker) inside(path string) bool { return paths.Within(path, l.roots...) }

// path checks a word that a program may open as a path. From each folder in which the program may
// run, it must be inside.
func (l *looker) path(word string) bool {
	if word == "" || word == "/dev/null" {
		return true
	}
	for _, dir := range l.dirs {
		path := word
		if !filepath.IsAbs(path) {
			path = dir + "/" + word // not cleaned: after a link, .. is another folder
		}
		real, ok := resolve(path)
		if !ok || !l.inside(real) || !ordinary(real) {
			return false
		}
		l.found.Files = append(l.found.Files, real, filepath.Clean(path)) // a rule may name either
	}
	return true
}

// holds reports whether a program that follows the links below a path stays inside. BSD's grep -r
// follows them.
func (l *looker) holds(word string) bool {
	if !l.bsd {
		return true
	}
	for _, dir := range l.dirs {
		top := word
		if !filepath.IsAbs(top) {
			top = dir + "/" + top
		}
		entries := 0
		err := filepath.WalkDir(top, func(path string, e fs.DirEntry, err error) error {
			if entries++; err != nil && !missing(err) || entries > maxEntries {
				return fs.ErrInvalid
			}
			if real, ok := resolve(path); !ok || !l.inside(real) || !ordinary(real) {
				return fs.ErrInvalid
			}
			return nil
		})
		if err != nil {
			return false
		}
	}
	return true
}

// ordinary reports whether reading the path has no effect and ends: it is a file, a folder, or
// missing.
func ordinary(path string) bool {
	info, err := os.Lstat(path)
	if err != nil {
		return missing(err)
	}
	return info.Mode().IsRegular() || info.IsDir()
}

// missing reports whether the error means that the path does not exist.
func missing(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) || errors.Is(err, syscall.ENAMETOOLONG)
}

// maxLinks bounds the links of one path, as the kernel does.
const maxLinks = 40

// resolve returns the path that the kernel would open, component by component. A missing component
// stands for itself. A .. after it is refused, because its meaning depends on what will be there.
func resolve(path string) (string, bool) {
	if strings.ContainsRune(path, 0) {
		return "", false
	}
	done, links, gone := "/", 0, false
	rest := strings.Split(path, "/")
	for len(rest) > 0 {
		part := rest[0]
		rest = rest[1:]
		switch part {
		case "", ".":
			continue
		case "..":
			if gone {
				return "", false
			}
			done = filepath.Dir(done)
			continue
		}
		next := filepath.Join(done, part)
		if gone {
			done = next
			continue
		}
		info, err := os.Lstat(next)
		switch {
		case err != nil && !missing(err):
			return "", false
		case err != nil:
			gone = true
		case info.Mode()&fs.ModeSymlink != 0:
			if links++; links > maxLinks {
				return "", false
			}
			to, err := os.Readlink(next)
			if err != nil {
				return "", false
			}
			if filepath.IsAbs(to) {
				done = "/"
			}
			rest = append(strings.Split(to, "/"), rest...)
			continue
		}
		done = next
	}
	return done, true
}

// program reports whether the program of that name is outside the project: a member could have
// written a program in the project. A program that is not found is the agent's own, or does not
// run.
func (l *looker) program(name string) bool {
	for _, dir := range filepath.SplitList(l.env["PATH"]) {
		if !filepath.IsAbs(dir) {
			return false
		}
		file := filepath.Join(dir, name)
		info, err := os.Stat(file)
		if err != nil || !info.Mode().IsRegular() || info.Mode()&0o111 == 0 {
			continue
		}
		real, ok := resolve(file)
		named, _ := filepath.EvalSymlinks(dir)
		return ok && !l.inside(real) && !l.inside(filepath.Join(named, name))
	}
	return true
}
