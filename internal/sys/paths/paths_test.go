package paths

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestSame(t *testing.T) {
	dir := t.TempDir()
	file, link, other := filepath.Join(dir, "file"), filepath.Join(dir, "link"), filepath.Join(dir, "other")
	for _, path := range []string{file, other} {
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(file, link); err != nil {
		t.Fatal(err)
	}
	missing := filepath.Join(dir, "missing")
	for _, c := range []struct {
		a, b string
		want bool
	}{{file, file, true}, {file, link, true}, {file, dir + "/./file", true}, {file, other, false}, {file, dir, false},
		{missing, missing, false}, {file, missing, false}} {
		if got := Same(c.a, c.b); got != c.want {
			t.Errorf("Same(%s, %s) is %v", c.a, c.b, got)
		}
	}
}

func TestWithin(t *testing.T) {
	for _, c := range []struct {
		path    string
		folders []string
		want    bool
	}{{"/a/b", []string{"/a"}, true}, {"/a", []string{"/a"}, true}, {"/ab", []string{"/a"}, false},
		{"/a/../b", []string{"/a"}, false}, {"/a/..b", []string{"/a"}, true}, {"/b", []string{"/a", "/b"}, true},
		{"/a", nil, false}, {"a", []string{"/a"}, false}, {"/", []string{"/a"}, false}} {
		if got := Within(c.path, c.folders...); got != c.want {
			t.Errorf("Within(%s, %v) is %v", c.path, c.folders, got)
		}
	}
}

func TestNotAround(t *testing.T) {
	got := NotAround("/home/teams/up/worktrees/sub", "/home", "/home/teams/up/worktrees/sub", "/home/teams/up",
		"/home/teams/up-sub", "/home/teams/up/worktrees/sub/.claude", "/other")
	want := []string{"/home/teams/up/worktrees/sub", "/home/teams/up-sub", "/home/teams/up/worktrees/sub/.claude", "/other"}
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
