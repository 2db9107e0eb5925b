package project_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"cadre/internal/git/project"
)

// TestOf checks that the work trees of one repository are one project, clones are two, and a
// directory outside any repository is its own.
func TestOf(t *testing.T) {
	root := t.TempDir()
	at := func(path ...string) string { return filepath.Join(append([]string{root}, path...)...) }
	run := func(args ...string) {
		t.Helper()
		cmd := exec.Command("git", append([]string{"-c", "user.name=a", "-c", "user.email=a@b.example"}, args...)...)
		cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_NOSYSTEM=1")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %q: %v\n%s", args, err, out)
		}
	}
	run("init", "-q", at("one"))
	run("-C", at("one"), "commit", "-q", "--allow-empty", "-m", "first")
	run("-C", at("one"), "worktree", "add", "-q", at("tree"))
	run("clone", "-q", at("one"), at("two"))
	run("-C", at("one"), "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", at("two"), "sub")
	for _, dir := range []string{
		at("one", "deep"), at("plain", "deep"), at("hollow", ".git"), at("one", "deep", "hollow", ".git"),
	} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(at("one"), at("link")); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		a, b       string
		same       bool
		repository bool // of a
	}{
		{at("one"), at("one"), true, true},
		{at("one", "deep"), at("one"), true, true},
		{at("tree"), at("one", "deep"), true, true},
		{at("link"), at("one"), true, true},
		{at("one"), at("two"), false, true},
		{at("one", "sub"), at("one"), false, true},
		{at("one", "sub"), at("two"), false, true},
		{at("plain"), at("plain"), true, false},
		{at("plain", "deep"), at("plain"), false, false},
		{at("plain"), at("one"), false, false},
		{at("one", "gone"), at("one"), false, false},
		{at("hollow"), at("plain"), false, false},
		{at("one", "deep", "hollow"), at("one"), true, true},
	} {
		if same := project.Same(c.a, c.b); same != c.same {
			t.Errorf("%s and %s: same %v", c.a, c.b, same)
		}
		if _, repository := project.Of(c.a); repository != c.repository {
			t.Errorf("%s: in a repository %v", c.a, repository)
		}
	}
}
