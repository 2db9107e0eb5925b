package readonly

import (
	"bytes"
	"encoding/binary"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"cadre/internal/sys/regularfile"
)

// repository is the git repository in which a command runs.
type repository struct {
	env    map[string]string
	top    string // of its worktree
	dir    string // its folder: .git, or that of a linked worktree
	common string // the folder that its worktrees share
	local  []setting
	global []setting
}

// repository finds the repository of a folder as git does. Everything that git opens in it must be
// inside, or belong to a worktree that is inside.
func (l *looker) repository(from string) (*repository, bool) {
	for top := from; ; top = filepath.Dir(top) {
		if !l.inside(top) {
			return nil, false
		}
		link := filepath.Join(top, ".git")
		info, err := os.Lstat(link)
		switch {
		case err == nil && info.IsDir():
			r := &repository{env: l.env, top: top, dir: link, common: link}
			return r, r.whole() && r.configured()
		case err == nil && info.Mode().IsRegular():
			r, ok := l.linked(top, link)
			return r, ok && r.whole() && r.configured()
		case err == nil || !missing(err):
			return nil, false
		case exists(filepath.Join(top, "HEAD")) && (exists(filepath.Join(top, "objects")) ||
			exists(filepath.Join(top, "commondir"))): // a bare repository, or the folder of another one
			return nil, false
		}
	}
}

// linked returns the repository of a linked worktree. A member could have written the file that
// names its folder, so that folder must name the worktree in turn.
func (l *looker) linked(top, link string) (*repository, bool) {
	dir, ok := namedBy(link, "gitdir: ", top)
	if !ok {
		return nil, false
	}
	common, ok := namedBy(filepath.Join(dir, "commondir"), "", dir)
	if !ok || filepath.Dir(dir) != filepath.Join(common, "worktrees") {
		return nil, false
	}
	back, ok := namedBy(filepath.Join(dir, "gitdir"), "", dir)
	if !ok || back != link {
		return nil, false
	}
	return &repository{env: l.env, top: top, dir: dir, common: common}, true
}

// namedBy returns the resolved path in a small file of git's.
func namedBy(file, prefix, base string) (string, bool) {
	data, ok := small(file)
	text, found := strings.CutPrefix(strings.TrimRight(string(data), "\r\n"), prefix)
	if !ok || !found || text == "" || strings.ContainsAny(text, "\n\x00") {
		return "", false
	}
	if !filepath.IsAbs(text) {
		text = base + "/" + text
	}
	return resolve(text)
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// maxFile bounds what is read of one file of git's. The index has its own bound.
const maxFile = 1 << 20

// small reads a file that is not a link and not large.
func small(path string) ([]byte, bool) { return bounded(path, maxFile) }

func bounded(path string, most int64) ([]byte, bool) {
	info, err := os.Lstat(path)
	if err != nil || !info.Mode().IsRegular() || info.Size() > most {
		return nil, false
	}
	data, err := regularfile.Read(path, most)
	return data, err == nil
}

// whole reports whether git accepts the folder as a repository, and nothing in it leads elsewhere.
func (r *repository) whole() bool {
	if head, err := os.Lstat(filepath.Join(r.dir, "HEAD")); err != nil || !head.Mode().IsRegular() {
		return false
	}
	for _, name := range []string{"objects", "refs"} {
		if info, err := os.Lstat(filepath.Join(r.common, name)); err != nil || !info.IsDir() {
			return false
		}
	}
	for _, name := range []string{"objects/pack", "objects/info", "refs/heads"} {
		if info, err := os.Lstat(filepath.Join(r.common, name)); err == nil && info.Mode()&fs.ModeSymlink != 0 {
			return false
		}
	}
	if r.dir == r.common && exists(filepath.Join(r.dir, "commondir")) {
		return false
	}
	data, ok := small(filepath.Join(r.common, "objects", "info", "alternates"))
	return ok && len(bytes.TrimSpace(data)) == 0 || !exists(filepath.Join(r.common, "objects", "info", "alternates"))
}

// configured reads the configuration. It fails for one that cannot be read with certainty.
func (r *repository) configured() bool {
	for _, file := range []string{filepath.Join(r.common, "config"), filepath.Join(r.dir, "config.worktree")} {
		if !exists(file) {
			continue
		}
		data, ok := small(file)
		if !ok {
			return false
		}
		settings, ok := parseConfig(string(data))
		if !ok {
			return false
		}
		r.local = append(r.local, settings...)
	}
	for _, file := range r.globalFiles() {
		if !r.include(file, 0) {
			return false
		}
	}
	return true
}

// globalFiles returns the configuration files of the machine and of the user.
func (r *repository) globalFiles() (files []string) {
	home := r.env["HOME"]
	switch system, set := r.env["GIT_CONFIG_SYSTEM"]; {
	case set:
		files = append(files, system)
	default:
		files = append(files, "/etc/gitconfig", "/usr/local/etc/gitconfig", "/opt/homebrew/etc/gitconfig")
	}
	if global, set := r.env["GIT_CONFIG_GLOBAL"]; set {
		return append(files, global)
	}
	xdg := r.env["XDG_CONFIG_HOME"]
	if xdg == "" && home != "" {
		xdg = filepath.Join(home, ".config")
	}
	if xdg != "" {
		files = append(files, filepath.Join(xdg, "git", "config"))
	}
	if home != "" {
		files = append(files, filepath.Join(home, ".gitconfig"))
	}
	return files
}

// maxIncludes bounds the depth of included configurations.
const maxIncludes = 8

// include reads a configuration of the user's with all includes, whether or not their conditions
// hold.
func (r *repository) include(file string, depth int) bool {
	if file == "" || file == os.DevNull {
		return true
	}
	real, err := filepath.EvalSymlinks(file)
	if err != nil {
		return missing(err)
	}
	data, ok := small(real)
	if !ok || depth > maxIncludes {
		return false
	}
	settings, ok := parseConfig(string(data))
	if !ok {
		return false
	}
	r.global = append(r.global, settings...)
	for _, s := range settings {
		if (s.section == "include" || s.section == "includeif") && s.key == "path" {
			path, ok := r.expand(s.value, filepath.Dir(file))
			if !ok || !r.include(path, depth+1) {
				return false
			}
		}
	}
	return true
}

// expand returns the path that a setting names.
func (r *repository) expand(path, base string) (string, bool) {
	if rest, ok := strings.CutPrefix(path, "~/"); ok && r.env["HOME"] != "" {
		return filepath.Join(r.env["HOME"], rest), true
	}
	if path == "" || strings.HasPrefix(path, "~") || strings.HasPrefix(path, "%") || strings.HasPrefix(path, ":") {
		return "", false
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(base, path)
	}
	return path, true
}

// harmless reports whether no setting makes the command run a program.
func (r *repository) harmless(command string, paged bool) bool {
	for _, s := range r.local {
		if !s.local(command, paged) {
			return false
		}
	}
	for _, s := range r.global {
		if s.runs(command, paged) {
			return false
		}
	}
	return true
}

// treeHarmless reports whether git reads the worktree without running a program. That could be a
// hook of the index, a filter of a file's content, or git itself in a submodule, whose
// configuration was not checked.
func (r *repository) treeHarmless() bool {
	hooks := []string{filepath.Join(r.common, "hooks")}
	filters, attributes := false, []string{filepath.Join(r.common, "info", "attributes")}
	for _, s := range slices.Concat(r.global, r.local) {
		switch {
		case s.section == "core" && s.key == "hookspath":
			path, ok := r.expand(s.value, r.top)
			if !ok {
				return false
			}
			hooks = append(hooks, path)
		case s.section == "core" && s.key == "attributesfile":
			path, ok := r.expand(s.value, r.top)
			if !ok {
				return false
			}
			attributes = append(attributes, path)
		case s.section == "filter":
			filters = true
		}
	}
	for _, dir := range hooks {
		if exists(filepath.Join(dir, "post-index-change")) {
			return false
		}
	}
	tracked, ok := r.indexHarmless()
	if !ok {
		return false
	}
	if !filters {
		return true
	}
	if tracked { // some attributes are only in the index
		return false
	}
	for _, home := range []string{r.env["XDG_CONFIG_HOME"], filepath.Join(r.env["HOME"], ".config")} {
		if filepath.IsAbs(home) {
			attributes = append(attributes, filepath.Join(home, "git", "attributes"))
		}
	}
	return r.filtersNothing(append(attributes, "/etc/gitattributes"))
}

// maxEntries bounds the walk through a worktree.
const maxEntries = 20_000

// filtersNothing reports whether no attributes name a filter.
func (r *repository) filtersNothing(files []string) bool {
	named := func(path string) bool {
		if !exists(path) {
			return false
		}
		data, ok := small(path)
		return !ok || bytes.Contains(data, []byte("filter"))
	}
	if slices.ContainsFunc(files, named) {
		return false
	}
	entries := 0
	err := filepath.WalkDir(r.top, func(path string, d fs.DirEntry, err error) error {
		entries++
		switch {
		case err != nil:
			return err
		case entries > maxEntries, strings.EqualFold(d.Name(), ".gitattributes") && named(path):
			return fs.ErrInvalid
		case d.IsDir() && d.Name() == ".git":
			return fs.SkipDir
		}
		return nil
	})
	return err == nil
}

// maxIndex bounds the size of an index that is checked.
const maxIndex = 64 << 20

// indexHarmless reports whether the index has no submodule that is checked out, and whether it has
// attributes that the worktree lacks.
func (r *repository) indexHarmless() (attributes, ok bool) {
	file := filepath.Join(r.dir, "index")
	if !exists(file) {
		return false, true
	}
	data, ok := bounded(file, maxIndex)
	hash := 20
	for _, s := range r.local {
		if s.section == "extensions" && s.key == "objectformat" && strings.EqualFold(s.value, "sha256") {
			hash = 32
		}
	}
	if !ok || len(data) < 12+hash || string(data[:4]) != "DIRC" {
		return false, false
	}
	version, count := binary.BigEndian.Uint32(data[4:]), binary.BigEndian.Uint32(data[8:])
	if version < 2 || version > 4 {
		return false, false
	}
	rest, path := data[12:len(data)-hash], []byte{}
	for range count {
		var mode uint32
		if mode, path, rest, ok = nextEntry(rest, path, version, hash); !ok {
			return false, false
		}
		name := filepath.Join(r.top, string(path))
		if mode&0o170000 == 0o160000 && exists(filepath.Join(name, ".git")) {
			return false, false
		}
		attributes = attributes || strings.EqualFold(filepath.Base(name), ".gitattributes") && !exists(name)
	}
	if !wholeIndex(rest) {
		return false, false
	}
	return attributes, true
}

// nextEntry reads the first entry of the rest of an index, which follows the entry with path
// before. It returns the entry's mode and path, and what follows it; false if it is damaged.
func nextEntry(rest, before []byte, version uint32, hash int) (mode uint32, path, left []byte, ok bool) {
	head := 40 + hash + 2
	if len(rest) < head+1 {
		return 0, nil, nil, false
	}
	mode = binary.BigEndian.Uint32(rest[24:])
	if flags := binary.BigEndian.Uint16(rest[head-2:]); version >= 3 && flags&0x4000 != 0 {
		head += 2
	}
	cut, at := len(before), head
	if version == 4 {
		if cut, at = dropped(rest, head); at < 0 || cut > len(before) {
			return 0, nil, nil, false
		}
	}
	if at > len(rest) {
		return 0, nil, nil, false
	}
	end := bytes.IndexByte(rest[at:], 0)
	if end < 0 {
		return 0, nil, nil, false
	}
	path = append(before[:len(before)-cut], rest[at:at+end]...)
	next := at + end + 1
	if version < 4 {
		next = (head + end + 8) &^ 7
	}
	if next > len(rest) {
		return 0, nil, nil, false
	}
	return mode, path, rest[next:], true
}

// wholeIndex reports whether the extensions at the end of an index are intact, and none says that a
// part of the index is in another file.
func wholeIndex(extensions []byte) bool {
	for rest := extensions; len(rest) >= 8; {
		size := uint64(binary.BigEndian.Uint32(rest[4:])) + 8
		if string(rest[:4]) == "link" || size > uint64(len(rest)) {
			return false
		}
		rest = rest[size:]
	}
	return true
}

// dropped reads how many bytes of the last path an entry of version 4 drops.
func dropped(data []byte, at int) (n, next int) {
	for i := at; i < len(data) && i < at+5; i++ {
		if i > at {
			n = (n + 1) << 7
		}
		n |= int(data[i] & 0x7f)
		if data[i]&0x80 == 0 {
			return n, i + 1
		}
	}
	return 0, -1
}
