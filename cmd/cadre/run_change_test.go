package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cadre/internal/testkit/soak"
)

// TestAsksAboutAChangedFile checks that a run at a terminal shows the changes of a team file and
// asks. Only a yes applies them.
func TestAsksAboutAChangedFile(t *testing.T) {
	soak.Long(t)
	t.Parallel()
	if !terminals {
		t.Skip("needs a terminal of its own")
	}
	root := t.TempDir()
	env := []string{"PATH=" + os.Getenv("PATH"), "HOME=" + root, "CADRE_HOME=" + filepath.Join(root, "home"),
		"CLAUDE_CONFIG_DIR=" + filepath.Join(root, "claude")}
	file := filepath.Join(root, "team.yaml")
	write := func(tasks string) {
		t.Helper()
		text := "name: demo\nmembers: [{name: ann}]\ntasks: [" + tasks + "]\n"
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	run := func(types string, more ...string) printed {
		return call{args: append([]string{"run", file}, more...), dir: root, env: env, onTerm: true,
			types: types}.run(t)
	}
	write("{id: a, run: 'false'}")
	if r := run(""); r.code != tryAgain || strings.Contains(string(r.out), "[y/N]") {
		t.Fatalf("status %d\n%s", r.code, r.out)
	}
	write("{id: a, run: 'true'}, {id: b, run: 'true'}")
	for _, no := range []string{"n\n", "\n"} {
		r := run(no)
		if out := string(r.out); r.code != tryAgain || !strings.Contains(out, "Apply these changes and run? [y/N]") ||
			!strings.Contains(out, "+ task b") || !strings.Contains(out, "run: false → true") ||
			!strings.Contains(out, "not confirmed; nothing was changed") {
			t.Fatalf("after %q: status %d\n%s", no, r.code, r.out)
		}
	}
	r := call{args: []string{"run", file}, dir: root, env: env, onTerm: true, until: "[y/N]"}.run(t)
	if out := string(r.out); r.code != tryAgain || !strings.Contains(out, "not confirmed; nothing was changed") ||
		strings.Contains(out, "stopping") || strings.Contains(out, "signal") {
		t.Fatalf("after Ctrl-C: status %d\n%s", r.code, r.out)
	}
	if r := run("y\n"); r.code != done || !strings.Contains(string(r.out), "2 of 2 tasks done") {
		t.Fatalf("status %d\n%s", r.code, r.out)
	}
}
