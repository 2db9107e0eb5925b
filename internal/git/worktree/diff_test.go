package worktree_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"cadre/internal/git/worktree"
	"cadre/internal/testkit/soak"
)

// nobodys is an exception that leaves no file out.
func nobodys(string) bool { return false }

func TestDiff(t *testing.T) {
	soak.Long(t)
	t.Parallel()
	r := newRepository(t)
	diff := func(dir string) (string, string) {
		t.Helper()
		e, err := worktree.Diff(r.ctx, r.procs, dir, nobodys)
		if err != nil {
			t.Fatal(err)
		}
		return e.Commit, string(e.Patch)
	}
	if commit, patch := diff(t.TempDir()); commit != "" || patch != "" {
		t.Errorf("outside a repository: %q, %q", commit, patch)
	}
	r.write(r.place.Repo, "first", "one\n")
	if commit, patch := diff(r.place.Repo); commit != "" || !strings.Contains(patch, "+one") {
		t.Errorf("before the first commit: %q, %q", commit, patch)
	}
	r.commit("a/old", "one\n\n")
	head := r.git("rev-parse", "HEAD")
	if commit, patch := diff(r.place.Repo); commit != head || patch != "" {
		t.Errorf("nothing was changed: %q, %q", commit, patch)
	}
	r.write(r.place.Repo, "a/old", "zero\none\n\n")
	r.write(r.place.Repo, "a/new", "two \n")
	r.write(r.place.Repo, "staged", "three\n")
	r.git("add", "staged")
	before := r.git("status", "--porcelain")
	index, err := os.ReadFile(filepath.Join(r.place.Repo, ".git", "index"))
	if err != nil {
		t.Fatal(err)
	}
	_, patch := diff(r.place.Repo)
	if after := r.git("status", "--porcelain"); after != before {
		t.Errorf("the state of the work tree was\n%s\nand is\n%s", before, after)
	}
	r.git("clone", "-q", ".", "../copy")
	r.write(filepath.Dir(r.place.Repo), "patch", patch)
	r.git("-C", "../copy", "apply", "../patch")
	for name, want := range map[string]string{"a/old": "zero\none\n\n", "a/new": "two \n", "staged": "three\n"} {
		if got, err := os.ReadFile(filepath.Join(r.place.Repo, "..", "copy", name)); string(got) != want {
			t.Errorf("%s is %q after the patch, %v:\n%s", name, got, err, patch)
		}
	}
	if now, err := os.ReadFile(filepath.Join(r.place.Repo, ".git", "index")); err != nil || len(now) != len(index) {
		t.Errorf("the index has %d bytes, and had %d; %v", len(now), len(index), err)
	}
	if _, patch := diff(filepath.Join(r.place.Repo, "a")); strings.Contains(patch, "staged") ||
		!strings.Contains(patch, "b/new") {
		t.Errorf("below a folder:\n%s", patch)
	}
}

// TestDiffIsWhole checks that git apply restores every kind of change, and that files which are too
// large, or not the member's, are not in the patch.
func TestDiffIsWhole(t *testing.T) {
	soak.Long(t)
	t.Parallel()
	r := newRepository(t)
	repo := r.place.Repo
	bits := string([]byte{0, 1, 2, 255, 254, 0})
	large := strings.Repeat("1,2,3\n", 1<<20)
	r.commit("binary", bits)
	r.commit("latin", "caf\xe9\n")
	r.commit("gone", "gone\n")
	r.commit("shrunk.csv", large)
	r.commit("mode", "#!/bin/sh\n")
	r.git("config", "diff.noprefix", "true")
	r.git("clone", "-q", ".", "../copy")
	want := map[string]string{"binary": bits + "more", "latin": "caf\xe9s\n", "mode": "#!/bin/sh\n",
		"new.bin": "\x00\x01", "we rd\n\"name": "named\n", "*": "star\n", "link": ""}
	for name, text := range want {
		if name == "link" {
			if err := os.Symlink("nowhere", filepath.Join(repo, name)); err != nil {
				t.Fatal(err)
			}
			continue
		}
		r.write(repo, name, text)
	}
	delete(want, "link")
	if err := errors.Join(os.Remove(filepath.Join(repo, "gone")), os.Chmod(filepath.Join(repo, "mode"),
		0o755)); err != nil {
		t.Fatal(err)
	}
	r.write(repo, "large.csv", large)
	r.write(repo, "shrunk.csv", "1\n")
	r.write(repo, ".env", "FOO=supersecretvalue\n")
	r.git("init", "-q", "nested")
	e, err := worktree.Diff(r.ctx, r.procs, repo, func(path string) bool { return path == filepath.Join(repo, ".env") })
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(e.Patch, []byte("supersecret")) || slices.Contains(e.Files, ".env") ||
		strings.Contains(strings.Join(e.Left, " "), ".env") {
		t.Errorf("what is not the member's is told: %q, %q", e.Files, e.Left)
	}
	if left := strings.Join(e.Left, "\n"); len(e.Left) != 3 || !strings.Contains(left, "large.csv (6 MiB)") ||
		!strings.Contains(left, "shrunk.csv (6 MiB)") || !strings.Contains(left, "nested/ (a repository") {
		t.Errorf("left: %q", e.Left)
	}
	patch := filepath.Join(filepath.Dir(repo), "patch")
	if err := os.WriteFile(patch, e.Patch, 0o600); err != nil {
		t.Fatal(err)
	}
	r.git("-C", "../copy", "apply", "../patch")
	there := filepath.Join(filepath.Dir(repo), "copy")
	for name, text := range want {
		if got, err := os.ReadFile(filepath.Join(there, name)); string(got) != text {
			t.Errorf("%q is %q after the patch, %v", name, got, err)
		}
	}
	if to, err := os.Readlink(filepath.Join(there, "link")); to != "nowhere" {
		t.Errorf("the link leads to %q, %v", to, err)
	}
	if info, err := os.Stat(filepath.Join(there, "mode")); err != nil || info.Mode()&0o111 == 0 {
		t.Errorf("%v, %v", info, err)
	}
	if _, err := os.Stat(filepath.Join(there, "gone")); err == nil {
		t.Error("what was removed is there")
	}
	if got := r.git("status", "--porcelain", "--", "nested"); !strings.HasPrefix(got, "??") {
		t.Errorf("the index of the work tree changed: %q", got)
	}

	// The short form has whole files only, and names the rest.
	brief, cut := e.Brief(200)
	if brief == "" || len(brief) > 200 || len(cut) == 0 {
		t.Errorf("%d bytes, without %q:\n%s", len(brief), cut, brief)
	}
	brief, cut = e.Brief(64 << 10)
	if slices.Sort(cut); !slices.Equal(cut, []string{"binary", "latin", "new.bin"}) ||
		!strings.Contains(brief, "+star") {
		t.Errorf("without %q:\n%s", cut, brief)
	}
	r.git("-C", "../copy", "reset", "-q", "--hard")
	r.git("-C", "../copy", "clean", "-qfd")
	r.write(filepath.Dir(repo), "patch", brief)
	r.git("-C", "../copy", "apply", "../patch")
}

// TestChanged checks that every changed file is listed by its name, however many there are and
// whatever their names contain.
func TestChanged(t *testing.T) {
	t.Parallel()
	r := newRepository(t)
	r.commit("a.txt", "one\n")
	want := []string{`a "b" c.txt`, "größe.txt"}
	for i := range 2000 {
		want = append(want, fmt.Sprintf("n%04d-%s.txt", i, strings.Repeat("x", 60)))
	}
	for _, name := range want {
		r.write(r.place.Repo, name, "new\n")
	}
	files, err := worktree.Changed(r.ctx, r.procs, r.place.Repo)
	slices.Sort(want)
	slices.Sort(files)
	if err != nil || !slices.Equal(files, want) {
		t.Errorf("%d files of %d, %v; the first: %q", len(files), len(want), err, files[:min(len(files), 3)])
	}
}

// TestDiffSince: the differences from an earlier commit have what was committed since, too.
func TestDiffSince(t *testing.T) {
	t.Parallel()
	r := newRepository(t)
	r.commit("old", "one\n")
	base := r.git("rev-parse", "HEAD")
	r.commit("committed", "two\n")
	r.write(r.place.Repo, "new", "three\n")
	e, err := worktree.DiffSince(r.ctx, r.procs, r.place.Repo, base)
	if patch := string(e.Patch); err != nil || !strings.Contains(patch, "+two") || !strings.Contains(patch, "+three") ||
		strings.Contains(patch, "one") {
		t.Errorf("since %s: %s, %v", base, patch, err)
	}
	for _, since := range []string{strings.Repeat("0", 40), "--output=x"} {
		if _, err := worktree.DiffSince(r.ctx, r.procs, r.place.Repo, since); err == nil ||
			!strings.Contains(err.Error(), "is not in the repository") {
			t.Errorf("since %s: %v", since, err)
		}
	}
}
