package team

import "testing"

func TestPermissionRules(t *testing.T) {
	for _, c := range []struct {
		rule, tool, input string
		want              bool
	}{
		{"Edit", "Edit", "{}", true},
		{"Edit", "Write", "{}", true},
		{"Write", "Edit", "{}", false},
		{"Bash", "Bash", `{"command":"rm -rf /"}`, true},
		{"Bash(*)", "Bash", `{"command":"rm -rf /"}`, true},
		{"Bash(go test:*)", "Bash", `{"command":"go test ./..."}`, true},
		{"Bash(go test:*)", "Bash", `{"command":"go test"}`, true},
		{"Bash(go test:*)", "Bash", `{"command":"go testing"}`, false},
		{"Bash(go test:*)", "Bash", `{"command":"go test; rm -rf /"}`, false},
		{"Bash(go test:*)", "Bash", `{"command":"go test && rm -rf /"}`, false},
		{"Bash(go test:*)", "Bash", "{\"command\":\"go test\\nrm -rf /\"}", false},
		{"Bash(go test:*)", "Bash", `{"command":"go test $(rm -rf /)"}`, false},
		{"Bash(go test:*)", "Bash", `{"command":"go test > /etc/passwd"}`, false},
		{"Bash(make)", "Bash", `{"command":"make"}`, true},
		{"Bash(make)", "Bash", `{"command":"make install"}`, false},
		{"Bash(make)", "Bash", `{"command":"make","dangerouslyDisableSandbox":true}`, false},
		{"Bash(make)", "Bash", `{"command":"make","dangerouslyDisableSandbox":false}`, true},
		{"Bash(a; b)", "Bash", `{"command":"a; b"}`, true}, // the rule has the whole command
		{"Bash(git * main)", "Bash", `{"command":"git checkout main"}`, true},
		{"Bash(git * main)", "Bash", `{"command":"git checkout other"}`, false},
		{"Bash(go test:*)", "Bash", "not JSON", false},
		{"Read(docs/**)", "Read", `{"file_path":"/w/docs/a/b.md"}`, true},
		{"Read(docs/**)", "Read", `{"file_path":"docs/b.md"}`, true},
		{"Read(docs/**)", "Read", `{"file_path":"/w/docs/../secret"}`, false},
		{"Read(docs/*.md)", "Read", `{"file_path":"/w/docs/a/b.md"}`, false},
		{"Edit(//etc/**)", "Edit", `{"file_path":"/etc/hosts"}`, true},
		{"Edit(src/**)", "Write", `{"file_path":"/w/src/a.go"}`, true},
		{"WebFetch(domain:example.org)", "WebFetch", `{"url":"https://example.org/x"}`, true},
		{"WebFetch(domain:example.org)", "WebFetch", `{"url":"https://example.org@evil.example/x"}`, false},
		{"WebFetch(domain:example.org)", "WebFetch", `{"url":"https://example.org.evil.example/x"}`, false},
		{"mcp__docs", "mcp__docs__find", "{}", true},
		{"mcp__docs__*", "mcp__docs__find", "{}", true},
		{"mcp__docs__find", "mcp__docs__find", "{}", true},
		{"mcp__docs__find", "mcp__docs__delete", "{}", false},
		{"mcp__docs", "mcp__docs2__find", "{}", false},
	} {
		if got := ruleAllows(c.rule, c.tool, c.input, "/w"); got != c.want {
			t.Errorf("%s on %s %s: got %t, want %t", c.rule, c.tool, c.input, got, c.want)
		}
	}
}

func TestWrongPermissionRules(t *testing.T) {
	for rule, want := range map[string]bool{"Edit": true, "Bash(go test:*)": true, "mcp__a__*": true, "": false,
		"Bash(go test": false, "all of it": false, "*": false} {
		if err := (&Permissions{Allow: []string{rule}}).check(); (err == nil) != want {
			t.Errorf("%q: got %v, want valid: %t", rule, err, want)
		}
	}
}
