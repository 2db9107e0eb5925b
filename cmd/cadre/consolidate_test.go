package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"cadre/internal/testkit/soak"
)

// TestDryRun shows what a consolidation would commit, path by path, and changes nothing. If a file
// is in the way, the refusal says what helps.
func TestDryRun(t *testing.T) {
	soak.Long(t)
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("needs git")
	}
	root := t.TempDir()
	project := filepath.Join(root, "project")
	env := []string{"PATH=" + os.Getenv("PATH"), "HOME=" + root, "CADRE_HOME=" + filepath.Join(root, "home"),
		"CLAUDE_CONFIG_DIR=" + filepath.Join(root, "claude"), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1",
		"GIT_AUTHOR_NAME=Ada", "GIT_AUTHOR_EMAIL=ada@example.org", "GIT_COMMITTER_NAME=Ada",
		"GIT_COMMITTER_EMAIL=ada@example.org"}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	write := func(name, text string) { must(os.WriteFile(filepath.Join(project, name), []byte(text), 0o600)) }
	git := func(args ...string) string {
		c := exec.Command("git", append([]string{"-C", project}, args...)...)
		c.Env = env
		out, err := c.CombinedOutput()
		if err != nil {
			t.Fatalf("git %v: %s", args, out)
		}
		return string(out)
	}
	process := call{env: env}.lines(t)
	do := func(want int, args ...string) string {
		t.Helper()
		r := process(project, args...)
		if r.code != want {
			t.Errorf("%q: status %d, and not %d:\n%s%s", args, r.code, want, r.out, r.err)
		}
		return string(r.out) + string(r.err)
	}
	must(os.Mkdir(project, 0o700))
	git("init", "-q")
	write("a.txt", "one\n")
	git("add", "-A")
	git("commit", "-qm", "one")
	write("mine.txt", "the person's\n")
	do(done, "create", "demo", "--check", "true")
	do(done, "spawn", "demo", "ann", "--agent", "external")
	write("new.txt", "the team's\n")
	before := git("status", "--porcelain") + git("for-each-ref")
	out := do(done, "consolidate", "demo", "--dry-run")
	for _, want := range []string{"commit", "added", "new.txt", "left out", "mine.txt",
		"it is as it was before the team was created",
		"team demo: 1 path to commit, 1 path left out, 1 check (true); nothing was changed"} {
		if !strings.Contains(strings.Join(strings.Fields(out), " "), want) {
			t.Errorf("the plan lacks %q:\n%s", want, out)
		}
	}
	if after := git("status", "--porcelain") + git("for-each-ref"); after != before {
		t.Errorf("it was\n%s\nand is\n%s", before, after)
	}
	write("mine.txt", "the person's, and more\n")
	out = do(tryAgain, "consolidate", "demo", "--dry-run")
	if !strings.Contains(out, "cadre consolidate demo --include mine.txt") || !strings.Contains(out, "unclear") {
		t.Errorf("the refusal says\n%s", out)
	}
	do(hopeless, "consolidate", "demo", "--dry-run", "--rollback")
}
