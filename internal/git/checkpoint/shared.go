package checkpoint

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"unicode/utf8"

	"cadre/internal/git/worktree"
	"cadre/internal/render/redact"
	"cadre/internal/sys/paths"
	"cadre/internal/sys/regularfile"
	"cadre/internal/team"
)

// These bound the files of the shared directory that a checkpoint carries without [Beside].Include.
const (
	mostFile  = 5 << 20  // bytes
	mostFiles = 10_000   // that differ from the last commit
	mostRead  = 32 << 20 // bytes that are searched for secrets at once
	mostDirty = 2 << 30  // bytes of the person's files that are read to recognize them
)

// differing is a path at which the shared directory differs from its last commit.
type differing struct {
	path               string
	unmerged, ignored  bool
	submodule, changed bool // a submodule, and whether it is at another commit
	repository         bool // another repository that is not a submodule
}

// item is the cached state of a file. It counts while the file stays unchanged.
type item struct {
	stamp string // changes when the file changes
	mode  string // git's file mode; "" for a deleted file
	id    string // of the blob, or the text of a link
	why   string // why it is not carried
	kept  bool   // it is the person's, and unchanged since before the team
}

// carried reports whether a checkpoint holds the path as it is now.
func (i item) carried() bool { return i.why == "" && !i.kept }

// look asks git how the shared directory differs from its last commit, and what is checked out.
func (b *branch) look(ctx context.Context, w *Work) ([]differing, error) {
	out, err := b.files.Run(ctx, nil, "status", "--porcelain=v2", "-z", "--branch", "--no-ahead-behind",
		"--untracked-files=all", "--no-renames", "--ignore-submodules=none", "--ignored=matching")
	if err != nil {
		return nil, err
	}
	var all []differing
	seen := map[string]bool{}
	for raw := range bytes.SplitSeq(out, []byte{0}) {
		line := string(raw)
		if len(line) < 3 {
			continue
		}
		var d differing
		switch line[0] {
		case '#':
			switch name, value, _ := strings.Cut(line[2:], " "); {
			case name == "branch.oid" && value != "(initial)":
				w.Head = value
			case name == "branch.head" && value != "(detached)":
				w.Branch = value
			}
			continue
		case '1': // 1 XY sub mH mI mW hH hI path
			parts := strings.SplitN(line, " ", 9)
			if len(parts) != 9 {
				return nil, fmt.Errorf("git status says %.80q", line)
			}
			d = differing{path: parts[8], submodule: parts[2][0] == 'S', changed: parts[2][1] == 'C' ||
				parts[1] != ".M"}
		case 'u': // u XY sub m1 m2 m3 mW h1 h2 h3 path
			parts := strings.SplitN(line, " ", 11)
			d = differing{path: parts[len(parts)-1], unmerged: true}
		case '?', '!':
			d = differing{path: strings.TrimSuffix(line[2:], "/"), ignored: line[0] == '!',
				repository: line[0] == '?' && strings.HasSuffix(line, "/")}
		default:
			return nil, fmt.Errorf("git status says %.80q", line)
		}
		if !seen[d.path] { // git reports a path twice if it was removed from the index but exists
			seen[d.path] = true
			all = append(all, d)
		}
	}
	return all, nil
}

// share adds the work in the shared directory. As in the consolidation, a file is the team's if it
// differs from the last commit now and did not when the team was created.
func (b *branch) share(ctx context.Context, t team.Team, before *Work, except []string, w *Work) error {
	except = paths.NotAround(b.top, except...)
	found, err := b.look(ctx, w)
	if err != nil {
		return err
	}
	if why := b.unknownBase(t.Base); why != "" {
		return errors.New("the team's work there cannot be told from earlier changes: " + why)
	}
	if found, err = b.ignoredIn(ctx, found, w.Include); err != nil {
		return err
	}
	found = slices.DeleteFunc(found, func(d differing) bool {
		return paths.Within(filepath.Join(b.top, filepath.FromSlash(d.path)), except...) ||
			d.submodule && !d.changed
	})
	if n := len(found); n > mostFiles {
		return fmt.Errorf("%d files there differ from the last commit, of at most %d; have git ignore what is not "+
			"the project's (.gitignore)", n, mostFiles)
	}
	items, err := b.items(ctx, t.Base, found, w.Include)
	if err != nil {
		return err
	}
	var left []Left
	sum := sha256.New()
	fmt.Fprintf(sum, "%s\n", w.Head)
	carried := 0
	for i, d := range found {
		switch one := items[i]; {
		case one.why != "":
			left = append(left, Left{strings.ToValidUTF8(d.path, "\uFFFD"), one.why, d.ignored})
		case one.carried():
			carried++
			fmt.Fprintf(sum, "%s %s %q\n", one.mode, one.id, d.path)
		}
	}
	slices.SortStableFunc(left, byPath)
	w.More = max(0, len(left)-mostLeft)
	w.Left = left[:len(left)-w.More]
	if carried == 0 {
		return nil
	}
	w.Sum = hex.EncodeToString(sum.Sum(nil))
	if before != nil && before.Sum == w.Sum && before.Shared != "" {
		w.Shared = before.Shared
		return nil
	}
	if w.Sum == b.shared.sum {
		w.Shared = b.shared.commit
		return nil
	}
	if w.Shared, err = b.commitShared(ctx, t, w.Head, found, items); err != nil {
		return err
	}
	b.shared.sum, b.shared.commit = w.Sum, w.Shared
	return nil
}

// unknownBase returns why the team's changes in the directory are unknown; "" if they are known.
func (b *branch) unknownBase(base team.Base) string {
	switch {
	case base.Unknown != "":
		return base.Unknown
	case base.Top == "":
		return "the directory was not examined when the team was created"
	case base.Top != b.top:
		return "it was created in " + base.Top
	}
	return ""
}

// byPath sorts the paths that are left out, with ignored paths last.
func byPath(a, b Left) int {
	switch {
	case a.Ignored == b.Ignored:
		return strings.Compare(a.Path, b.Path)
	case a.Ignored:
		return 1
	}
	return -1
}

// ignoredIn replaces ignored folders that must be included by their content.
func (b *branch) ignoredIn(ctx context.Context, found []differing, include []string) ([]differing, error) {
	var all []differing
	for _, d := range found {
		part := !d.ignored || slices.ContainsFunc(include, func(p string) bool {
			return covers([]string{d.path}, p) ||
				covers([]string{p}, d.path)
		})
		if info, err := os.Lstat(b.at(d.path)); !d.ignored || !part || err != nil || !info.IsDir() {
			all = append(all, d)
			continue
		}
		out, err := b.files.Run(ctx, nil, "ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--", d.path)
		if err != nil {
			return nil, err
		}
		whole := true
		for path := range strings.SplitSeq(string(out), "\x00") {
			switch {
			case path == "":
			case covers(include, path):
				all = append(all, differing{path: path, ignored: true})
			default:
				whole = false
			}
		}
		if !whole {
			all = append(all, d)
		}
	}
	return all, nil
}

func (b *branch) at(path string) string { return filepath.Join(b.top, filepath.FromSlash(path)) }

// items determines for each path what a checkpoint carries of it.
func (b *branch) items(ctx context.Context, base team.Base, found []differing, include []string) ([]item, error) {
	was := map[string]string{}
	for _, f := range base.Dirty {
		was[f.Path] = f.SHA256
	}
	items := make([]item, len(found))
	known := make(map[string]item, len(found))
	var fresh []int
	most := int64(mostDirty)
	for i, d := range found {
		included := covers(include, d.path)
		stamp, info, err := b.stamp(d.path)
		if err != nil {
			return nil, err
		}
		stamp = fmt.Sprint(stamp, included)
		if old, ok := b.known[d.path]; ok && old.stamp == stamp {
			items[i], known[d.path] = old, old
			continue
		}
		one := item{stamp: stamp, why: d.excluded(info, included)}
		if sum, dirty := was[d.path]; one.why == "" && dirty && !included {
			if one, err = b.person(ctx, d.path, sum, one, &most); err != nil {
				return nil, err
			}
		}
		if one.carried() && info != nil {
			store, err := b.describe(&one, d.path, info, included)
			if err != nil {
				return nil, err
			}
			if store {
				fresh = append(fresh, i)
			}
		}
		items[i] = one
	}
	if err := b.store(ctx, found, items, fresh, include); err != nil {
		return nil, err
	}
	for i, d := range found {
		known[d.path] = items[i]
	}
	b.known = known
	return items, nil
}

// excluded says why a checkpoint carries nothing of the path; "" if it may.
func (d differing) excluded(info fs.FileInfo, included bool) string {
	switch {
	case !utf8.ValidString(d.path):
		return "its name is not UTF-8"
	case d.unmerged:
		return "conflicts in it are not resolved"
	case d.ignored && !included:
		return "git ignores it"
	case d.submodule || d.repository || info != nil && info.IsDir():
		return "a repository of its own, which a checkpoint of this one does not carry"
	}
	return ""
}

// describe sets the mode of a file that exists, or why it is not carried. It reports whether the
// file's content has to be stored. A symbolic link stores its target instead.
func (b *branch) describe(one *item, path string, info fs.FileInfo, included bool) (store bool, err error) {
	switch mode := info.Mode(); {
	case mode&fs.ModeSymlink != 0:
		one.mode = "120000"
		one.id, err = os.Readlink(b.at(path))
	case !mode.IsRegular():
		one.why = "not a regular file"
	case info.Size() > mostFile && !included:
		one.why = tooBig(info.Size())
	default:
		if one.mode = "100644"; mode&0o111 != 0 {
			one.mode = "100755"
		}
		return true, nil
	}
	return false, err
}

func tooBig(size int64) string {
	return fmt.Sprintf("%s; up to %s are carried", regularfile.Size(size), regularfile.Size(mostFile))
}

// person determines the owner of a file that was changed before the team was created.
func (b *branch) person(ctx context.Context, path, was string, one item, most *int64) (item, error) {
	now, err := worktree.Digest(ctx, b.git.Procs, b.at(path), most)
	if one.kept = now == was; err != nil || one.kept {
		return one, err
	}
	committed, err := worktree.Committed(ctx, b.git.Procs, b.top, "HEAD", path)
	if err != nil && ctx.Err() != nil {
		return one, err
	}
	if err != nil || committed != was { // else the person committed the old content: the rest is the team's
		one.why = "had changes of yours before the team, and was changed since"
	}
	return one, nil
}

// stamp returns a text that changes when the file changes; info is nil for a missing file.
func (b *branch) stamp(path string) (string, fs.FileInfo, error) {
	info, err := os.Lstat(b.at(path))
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return "gone ", nil, nil
	}
	if err != nil {
		return "", nil, err
	}
	inode := uint64(0)
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		inode = s.Ino
	}
	return fmt.Sprint(info.Mode(), info.Size(), info.ModTime().UnixNano(), inode, " "), info, nil
}

// store writes new content into the repository, as git would commit it, and then checks what it
// wrote. So exactly the checked bytes are carried.
func (b *branch) store(ctx context.Context, found []differing, items []item, fresh []int, include []string) error {
	if len(fresh) == 0 {
		return nil
	}
	var paths bytes.Buffer
	for _, i := range fresh {
		paths.WriteString(quotedPath(found[i].path) + "\n")
	}
	out, err := b.files.Run(ctx, paths.Bytes(), "hash-object", "-w", "--stdin-paths")
	if err != nil {
		return err
	}
	ids := strings.Fields(string(out))
	if len(ids) != len(fresh) {
		return fmt.Errorf("git hash-object gave %d ids of %d files", len(ids), len(fresh))
	}
	for n, i := range fresh {
		items[i].id = ids[n]
	}
	why, err := b.suspects(ctx, ids)
	if err != nil {
		return err
	}
	for _, i := range fresh {
		if !covers(include, found[i].path) {
			items[i].why = why[items[i].id]
		}
	}
	return nil
}

// suspects returns why blobs are not carried, unless the user includes them.
func (b *branch) suspects(ctx context.Context, ids []string) (map[string]string, error) {
	ids = slices.Compact(slices.Sorted(slices.Values(ids)))
	out, err := b.git.Run(ctx, []byte(strings.Join(ids, "\n")+"\n"), "cat-file", "--batch-check=%(objecttype) "+
		"%(objectsize)")
	if err != nil {
		return nil, err
	}
	why := map[string]string{}
	var some []string
	var bytes int64
	look := func() error {
		found, err := b.objects(ctx, some...)
		for i, o := range found {
			if o != nil && holdsSecret(o.data) {
				why[some[i]] = "it likely holds a secret"
			}
		}
		some, bytes = nil, 0
		return err
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	if len(lines) != len(ids) {
		return nil, fmt.Errorf("git cat-file says %d lines of %d objects", len(lines), len(ids))
	}
	for i, line := range lines {
		var kind string
		var size int64
		fmt.Sscan(line, &kind, &size)
		switch {
		case kind != "blob":
		case size > mostFile:
			why[ids[i]] = tooBig(size)
		default:
			if some, bytes = append(some, ids[i]), bytes+size; bytes > mostRead {
				if err := look(); err != nil {
					return nil, err
				}
			}
		}
	}
	return why, look()
}

// holdsSecret reports whether a file likely contains a secret. In a binary file only unmistakable
// secrets count.
func holdsSecret(data []byte) bool {
	text := string(data)
	if bytes.IndexByte(data[:min(len(data), 8000)], 0) >= 0 {
		return redact.Certain(text)
	}
	return redact.Text(text) != text
}

// commitShared commits the carried files on top of the commit that is checked out. No reference
// points at the new commit.
func (b *branch) commitShared(ctx context.Context, t team.Team, head string, found []differing,
	items []item) (string, error) {
	s := b.stream(ctx, t.UpdatedAt, b.sharedSubject()+"\n\n[skip ci]\n")
	if head != "" {
		s.line("from %s", head)
	}
	for i, d := range found { // deleted paths make room for existing ones
		if one := items[i]; one.carried() && one.mode == "" {
			s.line("D %s", quotedPath(d.path))
		}
	}
	for i, d := range found {
		switch one := items[i]; {
		case !one.carried() || one.mode == "":
		case one.mode == "120000":
			s.line("M %s inline %s", one.mode, quotedPath(d.path))
			s.data([]byte(one.id))
		default:
			s.line("M %s %s %s", one.mode, one.id, quotedPath(d.path))
		}
	}
	return s.commit(ctx)
}

// sharedSubject is the subject of commits with the team's uncommitted work.
func (b *branch) sharedSubject() string {
	return "Uncommitted work of team " + strings.TrimPrefix(b.name, "cadre/")
}

// quotedPath quotes a path for git's input.
func quotedPath(path string) string {
	if !strings.Contains(path, "\n") && !strings.HasPrefix(path, `"`) {
		return path
	}
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(path) + `"`
}
