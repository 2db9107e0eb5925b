package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"cadre/internal/render/sanitize"
)

// TestWatchedStatusStays checks that the last status stays on the terminal when cadre status
// --watch ends, as cadre status prints it: with colors, and without what drew the page before.
func TestWatchedStatusStays(t *testing.T) {
	if !terminals {
		t.Skip("needs a terminal of its own")
	}
	root := t.TempDir()
	env := []string{"PATH=" + os.Getenv("PATH"), "HOME=" + root, "CADRE_HOME=" + filepath.Join(root, "home"),
		"CLAUDE_CONFIG_DIR=" + filepath.Join(root, "claude"), "TERM=xterm-256color"}
	for _, line := range []string{"create demo", "task add demo look", "abort demo --yes"} {
		if r := (call{args: strings.Fields(line), dir: root, env: env}).run(t); r.code != done {
			t.Fatalf("%s: %s", line, r.err)
		}
	}
	r := call{args: []string{"status", "demo", "--watch"}, dir: root, env: env, onTerm: true}.run(t)
	drawn, left, closed := strings.Cut(string(r.out), string(sanitize.ClosePage))
	if r.code != done || !closed || !strings.Contains(drawn, "aborted") || !strings.Contains(left, "aborted") {
		t.Errorf("status %d, and it printed %q", r.code, r.out)
	}
	colored := regexp.MustCompile("\x1b\\[[0-9;]*m").ReplaceAllString(left, "")
	if strings.Contains(colored, "\x1b") {
		t.Errorf("what stays moves the cursor or clears something: %q", left)
	}
}
