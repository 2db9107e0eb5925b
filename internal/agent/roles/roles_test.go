package roles_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"cadre/internal/agent/roles"
)

func write(t *testing.T, dir, name, text string) {
	t.Helper()
	path := filepath.Join(dir, "agents", name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestFind(t *testing.T) {
	home, project := t.TempDir(), t.TempDir()
	own := filepath.Join(project, ".claude")
	write(t, own, "review.md", "---\nname: reviewer\ndescription: looks\ntools: Read, Grep\nmodel: sonnet\ncolor: "+
		"blue\n---\n\nYou review.\n")
	write(t, own, "lister.md", "---\r\ntools:\r\n  - Bash(git:*)\r\n  - mcp__docs__*\r\ndisallowedTools: "+
		"[Write]\r\nmodel: inherit\r\n---\r\nYou list.")
	write(t, own, "plain.md", "You are plain.")
	write(t, own, "broken.md", "---\ntools: {a: b}\n---\n")
	write(t, home, "reviewer.md", "the user's own, which the project's stands before")
	write(t, home, "tester.md", "You test.")

	for role, want := range map[string]string{"reviewer": "You review.", "lister": "You list.",
		"plain": "You are plain.", "tester": "You test.", "nobody": ""} {
		d, ok, err := roles.Find(home, project, role)
		if err != nil || ok != (want != "") || d.Prompt != want {
			t.Errorf("%s: %+v, %t, %v", role, d, ok, err)
		}
	}
	if _, _, err := roles.Find(home, project, "broken"); err == nil || !strings.Contains(err.Error(), "tools") {
		t.Errorf("broken: %v", err)
	}

	d, _, _ := roles.Find(home, project, "reviewer")
	if d.Model != "sonnet" || !slices.Equal(d.Tools, []string{"Read", "Grep"}) {
		t.Errorf("%+v", d)
	}
	if l, _, _ := roles.Find(home, project, "lister"); l.Model != "" {
		t.Errorf("inherit is the model %q", l.Model)
	}
}

func TestAllows(t *testing.T) {
	d := roles.Definition{Name: "reviewer", Tools: []string{"Read", "Bash(git:*)", "mcp__docs__*"},
		Disallowed: []string{"mcp__docs__delete"}}
	for tool, want := range map[string]bool{"Read": true, "Bash": true, "Edit": false, "mcp__docs__find": true,
		"mcp__docs__delete": false, "SendMessage": true} {
		if err := d.Allows(tool); (err == nil) != want {
			t.Errorf("%s: %v", tool, err)
		}
	}
	if err := (roles.Definition{Disallowed: []string{"Write"}}).Allows("Edit"); err != nil {
		t.Error(err)
	}
}

// TestFindInTheProjectAlone checks that without a user folder only the project's definitions are
// read, wherever the program runs.
func TestFindInTheProjectAlone(t *testing.T) {
	here, project := t.TempDir(), t.TempDir()
	write(t, here, "tester.md", "You test.")
	write(t, filepath.Join(project, ".claude"), "reader.md", "You read.")
	t.Chdir(here)
	for role, there := range map[string]bool{"reader": true, "tester": false} {
		if _, ok, err := roles.Find("", project, role); ok != there || err != nil {
			t.Errorf("%s: %t, %v", role, ok, err)
		}
	}
}
