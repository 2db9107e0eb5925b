package readonly

import (
	"encoding/json"
	"path/filepath"
	"testing"
)

// A rule of the user's, of the project's, or of the person's own for the project, wins over what only reads; settings that cannot be read may hold one.
func TestUnasked(t *testing.T) {
	for _, c := range []struct {
		name, file, settings, command string
		want                          bool
	}{
		{"no settings", "", "", "git log", true},
		{"a rule about something else", "home/.claude/settings.json", `{"permissions":{"deny":["Bash(git push:*)","Read(~/.ssh/**)"],"ask":["Edit"]}}`, "git log", true},
		{"an allow rule", "home/.claude/settings.json", `{"permissions":{"allow":["Bash(git log:*)"]}}`, "git log", true},
		{"the user asks", "home/.claude/settings.json", `{"permissions":{"ask":["Bash(git log:*)"]}}`, "git log -1", false},
		{"the user denies", "home/.claude/settings.json", `{"permissions":{"deny":["Bash(git log:*)"]}}`, "ls && git log", false},
		{"the user denies a file", "home/.claude/settings.json", `{"permissions":{"deny":["Read(./a.txt)"]}}`, "sort a.txt", false},
		{"and it is searched", "home/.claude/settings.json", `{"permissions":{"deny":["Read(./sub/**)"]}}`, "grep -r x .", false},
		{"the project asks", "project/.claude/settings.json", `{"permissions":{"ask":["Bash(ls)"]}}`, "ls -la", false},
		{"the person asks there", "project/.claude/settings.local.json", `{"permissions":{"ask":["Bash"]}}`, "ls", false},
		{"in a folder below", "project/sub/.claude/settings.json", `{"permissions":{"ask":["Bash"]}}`, "ls", true},
		{"no JSON", "project/.claude/settings.json", `{"permissions":`, "ls", false},
		{"another shape", "project/.claude/settings.json", `{"permissions":{"deny":"Bash"}}`, "ls", false},
		{"a write", "", "", "touch x", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
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
	w := newWorld(t)
	s := w.scope()
	elsewhere := filepath.Join(w.outside, "config")
	s.Env = append(s.Env, "CLAUDE_CONFIG_DIR="+elsewhere)
	w.write(t, elsewhere, map[string]string{"settings.json": `{"permissions":{"ask":["Agent(Explore)"]}}`})
	if s.Unasked("Agent", `{"subagent_type":"Explore"}`) {
		t.Error("the folder of the user's settings was not asked for")
	}
}

// A shell with a script is what the script is; anything else stays what it is.
func TestUnwrap(t *testing.T) {
	for command, want := range map[string]string{
		"/bin/bash -lc ls":                     "ls",
		"/bin/bash -lc 'ls -l | wc'":           "ls -l | wc",
		`/usr/bin/zsh -lc "git log --oneline"`: "git log --oneline",
		"bash -c 'ls'":                         "bash -c 'ls'", // whose is it?
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
