package worktree

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"cadre/internal/git"
	"cadre/internal/sys/proc"
	"cadre/internal/sys/regularfile"
)

// These bound a patch, in bytes of the files before and after. Larger files are not in the patch,
// and are named.
const (
	maxFile  = 1 << 20
	maxPatch = 16 << 20
)

// Changed returns the files below dir that differ from the last commit, in git's order.
func Changed(ctx context.Context, procs *proc.Register, dir string) ([]string, error) {
	out, err := in(procs, dir).Run(ctx, nil, "status", "--porcelain", "-z", "--no-renames", "--", ".")
	var files []string
	for entry := range strings.SplitSeq(string(out), "\x00") { // "XY path"
		if len(entry) > 3 {
			files = append(files, entry[3:])
		}
	}
	return files, err
}

// Edits describes the changes in a directory since the last commit.
type Edits struct {
	Commit string   // the last commit; "" before the first
	Files  []string // changed by the patch, by their paths from the directory
	Patch  []byte   // complete changes, of new and binary files too, in the format of git apply
	// files that are too large for the patch, and nested repositories: paths, each with the reason
	Left []string
}

// Diff returns the differences from the last commit below dir, without files for which except
// returns true. except gets absolute paths, in git's form of the top of the work tree. Diff touches
// neither the work tree nor the index. Outside a repository the result is empty.
func Diff(ctx context.Context, procs *proc.Register, dir string, except func(path string) bool) (Edits, error) {
	g := in(procs, dir)
	if !g.inside(ctx) {
		return Edits{}, ctx.Err()
	}
	return g.edits(ctx, "HEAD", except)
}

// DiffSince is [Diff] with the differences from that commit, for somebody who looks at them. "HEAD"
// stands for the last commit, or for nothing before the first one.
//
// git runs no program that the repository's settings name; see [git.Runner.Shown]. A file with a
// filter, such as Git LFS, is therefore shown as it is in the work tree.
func DiffSince(ctx context.Context, procs *proc.Register, dir, since string) (Edits, error) {
	g := in(procs, dir)
	if !g.inside(ctx) {
		return Edits{}, ctx.Err()
	}
	shown, done, err := g.Shown(ctx)
	if err != nil {
		return Edits{}, err
	}
	defer done()
	return folder{shown}.edits(ctx, since, func(string) bool { return false })
}

// inside reports whether the folder is in a work tree.
func (f folder) inside(ctx context.Context) bool {
	inside, err := f.Text(ctx, "rev-parse", "--is-inside-work-tree")
	return err == nil && inside == "true"
}

// edits returns the differences from a commit, without files for which except returns true.
func (f folder) edits(ctx context.Context, since string, except func(path string) bool) (Edits, error) {
	commit, base, err := f.base(ctx, since)
	e := Edits{Commit: commit}
	if err != nil {
		return e, err
	}
	g, done, err := f.withOwnIndex(ctx)
	if err != nil {
		return e, err
	}
	defer done()
	files, err := g.differing(ctx, base)
	if err != nil {
		return e, err
	}
	var fresh bytes.Buffer
	room := int64(maxPatch)
	for _, f := range files {
		size := f.old + f.size
		switch {
		case except(f.absolute):
			continue
		case f.repository:
			e.Left = append(e.Left, f.path+" (a repository of its own)")
			continue
		case f.old > maxFile || f.size > maxFile || size > room:
			e.Left = append(e.Left, fmt.Sprintf("%s (%s)", f.path, regularfile.Size(max(f.old, f.size))))
			continue
		}
		room -= size
		e.Files = append(e.Files, f.path)
		if f.untracked {
			fresh.WriteString(f.path + "\x00")
		}
	}
	if fresh.Len() > 0 { // without storing their content
		if _, err := g.Run(ctx, fresh.Bytes(), "add", "--intent-to-add", "--pathspec-from-file=-",
			"--pathspec-file-nul"); err != nil {
			return e, err
		}
	}
	for some := range slices.Chunk(e.Files, 200) { // more might be too long for a command
		part, err := g.Run(ctx, nil, append([]string{"diff", "--binary", "--no-renames", "--no-ext-diff",
			"--no-textconv", "--no-color", "--ignore-submodules=dirty", "--src-prefix=a/", "--dst-prefix=b/",
			"--relative",
			base, "--"}, some...)...)
		if err != nil {
			return e, err
		}
		e.Patch = append(e.Patch, part...)
	}
	return e, nil
}

// base returns the commit, and what its files are compared with: the commit itself, or the empty
// tree before the first commit.
func (f folder) base(ctx context.Context, since string) (commit, base string, err error) {
	commit, err = f.Text(ctx, "rev-parse", "--verify", "--quiet", "--end-of-options", since+"^{commit}")
	switch {
	case err == nil:
		return commit, since, nil
	case since != "HEAD":
		return "", "", fmt.Errorf("the commit %s is not in the repository of %s", since, f.Dir)
	}
	base, err = f.Text(ctx, "hash-object", "-t", "tree", "/dev/null")
	return "", base, err
}

// withOwnIndex returns the folder with a copy of the work tree's index. done removes the copy. With
// what the index knows, git need not read all files.
func (f folder) withOwnIndex(ctx context.Context) (own folder, done func(), err error) {
	index, err := f.Text(ctx, "rev-parse", "--path-format=absolute", "--git-path", "index")
	if err != nil {
		return f, nil, err
	}
	scratch, err := os.MkdirTemp("", "cadre-index-")
	if err != nil {
		return f, nil, err
	}
	copied := filepath.Join(scratch, "index")
	if err := git.CopyIndex(index, copied); err != nil {
		return f, nil, errors.Join(err, os.RemoveAll(scratch))
	}
	return folder{f.With("GIT_INDEX_FILE=" + copied)}, func() { os.RemoveAll(scratch) }, nil
}

// differs is a file that differs from the last commit.
type differs struct {
	path, absolute        string
	old, size             int64 // bytes before and now; 0 if there is no file
	untracked, repository bool
}

// differing returns the differences from base below the folder, without ignored files.
func (f folder) differing(ctx context.Context, base string) ([]differs, error) {
	place, err := f.Run(ctx, nil, "rev-parse", "--show-toplevel", "--show-prefix")
	if err != nil {
		return nil, err
	}
	top, prefix, _ := strings.Cut(strings.TrimSuffix(string(place), "\n"), "\n")
	changed, err := f.Changes(ctx, "diff", "--ignore-submodules=dirty", "--relative", base, "--", ".")
	if err != nil {
		return nil, err
	}
	others, err := f.Run(ctx, nil, "ls-files", "-z", "--others", "--exclude-standard", "--", ".")
	if err != nil {
		return nil, err
	}
	var all []differs
	var blobs bytes.Buffer // of the files in the base
	var of []int
	seen := map[string]bool{}
	add := func(path string, untracked bool) {
		d := differs{path: path, absolute: filepath.Join(top, filepath.FromSlash(prefix), filepath.FromSlash(path)),
			untracked: untracked, repository: strings.HasSuffix(path, "/")}
		if info, err := os.Lstat(d.absolute); err == nil && info.Mode().IsRegular() {
			d.size = info.Size()
		}
		all = append(all, d)
	}
	for _, c := range changed {
		if seen[c.Path] {
			continue
		}
		seen[c.Path] = true
		if c.Was == "100644" || c.Was == "100755" {
			blobs.WriteString(c.WasID + "\n")
			of = append(of, len(all))
		}
		add(c.Path, false)
	}
	for path := range strings.SplitSeq(string(others), "\x00") {
		if path != "" && !seen[path] {
			add(path, true)
		}
	}
	if len(of) == 0 {
		return all, nil
	}
	sizes, err := f.Run(ctx, blobs.Bytes(), "cat-file", "--batch-check=%(objectsize)")
	if err != nil {
		return nil, err
	}
	for i, line := range strings.Split(strings.TrimSpace(string(sizes)), "\n") {
		if i < len(of) {
			fmt.Sscan(line, &all[of[i]].old) // the diff reports a missing one
		}
	}
	return all, nil
}

// Brief returns the part of the patch with at most that many bytes. It consists of whole files,
// without binary ones, which tell a reader nothing. cut names the files that are left out.
func (e Edits) Brief(most int) (patch string, cut []string) {
	for _, one := range Patches(e.Patch) {
		text := string(one.Text)
		if len(patch)+len(text) <= most && utf8.ValidString(text) && !strings.Contains(text, "\nGIT binary patch\n") {
			patch += text
			continue
		}
		cut = append(cut, one.Path)
	}
	return patch, cut
}

// Patch is the part of a patch about one file.
type Patch struct {
	Path string
	Text []byte
}

const patchHead = "diff --git "

// Patches splits a patch by files.
func Patches(patch []byte) (all []Patch) {
	rest := string(patch)
	for rest != "" {
		one := rest
		if next := strings.Index(rest[1:], "\n"+patchHead); next >= 0 {
			one = rest[:next+2]
		}
		rest = rest[len(one):]
		line, _, _ := strings.Cut(strings.TrimPrefix(one, patchHead), "\n") // a/path b/path, or both quoted
		path := line[max(strings.LastIndex(line, " b/")+3, strings.LastIndex(line, ` "b/`)+4):]
		all = append(all, Patch{strings.TrimSuffix(path, `"`), []byte(one)})
	}
	return all
}
