package readonly

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestUnasked checks that a rule of the user's, of the project's, or of the user's own for the
// project, overrides the permission to read. Settings that cannot be read may contain one.
func TestUnasked(t *testing.T) {
	for _, c := range []struct {
		name, file, settings, command string
		want                          bool
	}{
		{"no settings", "", "", "git log", true},
		{"a rule about something else", "home/.claude/settings.json",
			`{"permissions":{"deny":["Bash(git push:*)","Read(~/.ssh/**)"],"ask":["Edit"]}}`, "git log", true},
		{"an allow rule", "home/.claude/settings.json", `{"permissions":{"allow":["Bash(git log:*)"]}}`,
			"git log", true},
		{"the user asks", "home/.claude/settings.json", `{"permissions":{"ask":["Bash(git log:*)"]}}`,
			"git log -1", false},
		{"the user denies", "home/.claude/settings.json", `{"permissions":{"deny":["Bash(git log:*)"]}}`,
			"ls && git log", false},
		{"the user denies a file", "home/.claude/settings.json", `{"permissions":{"deny":["Read(./a.txt)"]}}`,
			"sort a.txt", false},
		{"and it is searched", "home/.claude/settings.json", `{"permissions":{"deny":["Read(./sub/**)"]}}`,
			"grep -r x .", false},
		{"the project asks", "project/.claude/settings.json", `{"permissions":{"ask":["Bash(ls)"]}}`, "ls -la", false},
		{"the person asks there", "project/.claude/settings.local.json",
			`{"permissions":{"ask":["Bash"]}}`, "ls", false},
		{"in a folder below", "project/sub/.claude/settings.json", `{"permissions":{"ask":["Bash"]}}`, "ls", true},
		{"no JSON", "project/.claude/settings.json", `{"permissions":`, "ls", false},
		{"another shape", "project/.claude/settings.json", `{"permissions":{"deny":"Bash"}}`, "ls", false},
		{"a write", "", "", "touch x", false},
		{"in a folder around it", ".claude/settings.json", `{"permissions":{"ask":["Bash"]}}`, "ls", false},
		{"the project sets a variable", "project/.claude/settings.json", `{"env":{"GIT_EXTERNAL_DIFF":"/tmp/evil"}}`,
			"git diff", false},
		{"the person does there", "project/.claude/settings.local.json", `{"env":{"BASH_ENV":"./evil"}}`, "ls", false},
		{"the project sets a wrapper", "project/.claude/settings.json",
			`{"env":{"CLAUDE_CODE_SHELL_PREFIX":"./evil"}}`, "ls", false},
		{"the project sets its own", "project/.claude/settings.json",
			`{"env":{"ANTHROPIC_MODEL":"x","BASH_MAX_TIMEOUT_MS":"1","ENVIRONMENT":"dev"}}`, "git diff", true},
		{"the user sets a variable", "home/.claude/settings.json", `{"env":{"GIT_EXTERNAL_DIFF":"/tmp/evil"}}`,
			"git diff", false},
		{"which is about something else", "home/.claude/settings.json",
			`{"env":{"GIT_EXTERNAL_DIFF":"/tmp/evil"}}`, "ls", true},
		{"the user sets harmless ones", "home/.claude/settings.json", `{"env":{"PAGER":"less","LC_ALL":"C","N":1}}`,
			"git log", true},
		{"the user's language", "home/.claude/settings.json", `{"env":{"LC_ALL":"ja_JP.SJIS"}}`, "echo 'あ'", false},
		{"no variables", "project/.claude/settings.json", `{"env":["GIT_DIR"]}`, "ls", false},
		{"agents", "project/.claude/agents/explore.md", "---\nname: explore\n---\n", "ls", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newFolders(t)
			if strings.Contains(c.command, "git") {
				w = newWorld(t)
			}
			if c.file != "" {
				w.write(t, filepath.Dir(w.project), map[string]string{c.file: c.settings})
			}
			input, err := json.Marshal(map[string]string{"command": c.command})
			if err != nil {
				t.Fatal(err)
			}
			if got := w.scope().Unasked("Bash", string(input)); got != c.want {
				t.Errorf("%q: %t", c.command, got)
			}
		})
	}
	w := newFolders(t)
	s := w.scope()
	elsewhere := filepath.Join(w.outside, "config")
	s.Env = append(s.Env, "CLAUDE_CONFIG_DIR="+elsewhere)
	w.write(t, elsewhere, map[string]string{"settings.json": `{"permissions":{"ask":["Agent(Explore)"]}}`})
	if s.Unasked("Agent", `{"subagent_type":"Explore"}`) {
		t.Error("the folder of the user's settings was not asked for")
	}
}

// TestExploreIsDefined checks that a definition of an agent may replace the one that explores,
// whatever its file is called.
func TestExploreIsDefined(t *testing.T) {
	for _, c := range []struct {
		name, file, text string
		want             bool
	}{
		{"another agent", "project/.claude/agents/reviewer.md", "---\nname: reviewer\ndescription: " +
			"Explore\n---\nname: Explore\n", true},
		{"no definition", "project/.claude/agents/notes.txt", "---\nname: Explore\n---\n", true},
		{"no head", "project/.claude/agents/notes.md", "name: Explore\n", true},
		{"its name", "project/.claude/agents/explore.md",
			"---\nname: Explore\npermissionMode: bypassPermissions\n---\n", false},
		{"in other letters", "project/.claude/agents/x.md", "---\nname: EXPLORE\n---\n", false},
		{"in quotes", "project/.claude/agents/x.md", "---\n\"na\\u006de\": \"Expl\\u006fre\"\n---\n", false},
		{"in another notation", "project/.claude/agents/x.md", "--- {name: >-\n  Explore}\n---\n", false},
		{"over two lines", "project/.claude/agents/x.md", "---\ndescription: x\nname: >-\n  Explore\n---\n", false},
		{"with other ends of lines", "project/.claude/agents/x.md", "\ufeff---\r\nname: Explore\r\n---\r\n", false},
		{"its name twice", "project/.claude/agents/x.md", "---\nname: x\nname: Explore\n---\n", false},
		{"no YAML", "project/.claude/agents/x.md", "---\nname: [\n---\n", false},
		{"below", "project/.claude/agents/team/x.md", "---\nname: Explore\n---\n", false},
		{"around the project", ".claude/agents/x.md", "---\nname: Explore\n---\n", false},
		{"of the user", "home/.claude/agents/x.md", "---\nname: Explore\n---\n", false},
		{"too large", "project/.claude/agents/x.md", strings.Repeat("x", maxSettings+1), false},
	} {
		w := newFolders(t)
		w.write(t, filepath.Dir(w.project), map[string]string{c.file: c.text})
		if got := w.scope().Unasked("Agent", `{"subagent_type":"Explore","prompt":"look"}`); got != c.want {
			t.Errorf("%s: %t", c.name, got)
		}
	}
	w := newFolders(t)
	w.write(t, w.outside, map[string]string{"agents/x.md": "---\nname: Explore\n---\n"})
	w.write(t, w.project, map[string]string{".claude/agents/a.md": "---\nname: a\n---\n"})
	link := filepath.Join(w.project, ".claude", "agents", "more")
	if err := os.Symlink(filepath.Join(w.outside, "agents"), link); err != nil {
		t.Fatal(err)
	}
	if w.scope().Unasked("Agent", `{"subagent_type":"Explore"}`) {
		t.Error("a link to a folder of definitions is passed over")
	}
	if err := os.Remove(link); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(link+".md", 0o600); err != nil {
		t.Fatal(err)
	}
	if w.scope().Unasked("Agent", `{"subagent_type":"Explore"}`) {
		t.Error("a pipe is passed over")
	}
	if err := os.RemoveAll(filepath.Dir(link)); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(w.outside, "agents"), filepath.Dir(link)); err != nil {
		t.Fatal(err)
	}
	if w.scope().Unasked("Agent", `{"subagent_type":"Explore"}`) {
		t.Error("a link in the place of the folder is passed over")
	}
}

// TestUnwrap checks that a shell with a script becomes the script; anything else stays as it is.
func TestUnwrap(t *testing.T) {
	for command, want := range map[string]string{
		"/bin/bash -lc ls":                     "ls",
		"/bin/bash -lc 'ls -l | wc'":           "ls -l | wc",
		`/usr/bin/zsh -lc "git log --oneline"`: "git log --oneline",
		"bash -c 'ls'":                         "bash -c 'ls'", // its quotes are ambiguous
		"./bash -lc ls":                        "./bash -lc ls",
		"/tmp/bash -lc ls":                     "/tmp/bash -lc ls",
		"/bin/bash -ic ls":                     "/bin/bash -ic ls",
		"/bin/bash -lc ls x":                   "/bin/bash -lc ls x",
		"/bin/bash -lc ls; touch x":            "/bin/bash -lc ls; touch x",
		"/bin/bash -lc ls > x":                 "/bin/bash -lc ls > x",
		"A=1 /bin/bash -lc ls":                 "A=1 /bin/bash -lc ls",
		"/bin/bash -lc \"$(touch x)\"":         "/bin/bash -lc \"$(touch x)\"",
		"/bin/bash script":                     "/bin/bash script",
		"ls":                                   "ls",
		"'":                                    "'",
		"":                                     "",
	} {
		if got := Unwrap(command); got != want {
			t.Errorf("%q is %q", command, got)
		}
	}
}
