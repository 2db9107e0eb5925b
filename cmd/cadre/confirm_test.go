package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestAsksBeforeTheEnd checks that a command that ends a team asks at a terminal, even where a
// script would not be asked. Only a yes runs it.
func TestAsksBeforeTheEnd(t *testing.T) {
	if !terminals {
		t.Skip("needs a terminal of its own")
	}
	root := t.TempDir()
	env := []string{"PATH=" + os.Getenv("PATH"), "HOME=" + root, "CADRE_HOME=" + filepath.Join(root, "home"),
		"CLAUDE_CONFIG_DIR=" + filepath.Join(root, "claude")}
	do := func(args ...string) printed { return call{args: args, dir: root, env: env}.run(t) }
	alive := func() bool {
		r := do("ls", "--json")
		return strings.Contains(string(r.out), `"status":"pending"`)
	}
	for _, one := range []struct {
		line, types string
		asks, ends  bool
	}{
		{"cleanup demo", "n\n", true, false},
		{"cleanup demo", "\n", true, false},
		{"cleanup demo --force", "no\n", true, false},
		{"cleanup demo", "y\n", true, true},
		{"cleanup demo --force", "yes\n", true, true},
		{"cleanup demo --yes", "", false, true},
		{"abort demo", "n\n", true, false},
		{"abort demo --reason enough", "n\n", true, false},
		{"abort demo --reason enough", "y\n", true, true},
		{"abort demo --yes", "", false, true},
	} {
		if !alive() {
			do("cleanup", "demo", "--force")
			if r := do("create", "demo"); r.code != done {
				t.Fatalf("create: %s", r.err)
			}
		}
		r := call{args: strings.Fields(one.line), dir: root, env: env, onTerm: true, types: one.types}.run(t)
		if asked := strings.Contains(string(r.out), "[y/N]"); asked != one.asks {
			t.Errorf("%s: asked: %v\n%s", one.line, asked, r.out)
		}
		if want := map[bool]int{true: done, false: tryAgain}[one.ends]; r.code != want || alive() == one.ends {
			t.Errorf("%s, %q: status %d, and the team exists: %v\n%s", one.line, one.types, r.code, alive(), r.out)
		}
	}
}
