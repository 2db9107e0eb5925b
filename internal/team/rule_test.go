package team

import (
	"strings"
	"testing"
)

// TestRuleFor checks that the narrowest rule for a request allows the request, and nothing beside
// it.
func TestRuleFor(t *testing.T) {
	s := &State{}
	s.Apply(&Record{Seq: 1, ID: "r", At: 1, Events: []Event{&TeamCreated{Team: Team{ID: "t", Name: "demo", Dir: "/w",
		Lead: "lead"}, Lead: Member{Name: "lead", Agent: External, Status: Active}}}})
	for _, c := range []struct{ tool, input, want string }{
		{"Bash", `{"command":"git status --short"}`, "Bash(git status --short)"},
		{"Bash", `{"command":" make && make install "}`, "Bash(make && make install)"},
		{"Bash", `{"command":"echo (a)"}`, "Bash(echo (a))"},
		{"Bash", `{"command":"a\nb"}`, ""},
		{"Bash", `{"command":"make","additionalPermissions":{"network":true}}`, ""},
		{"Bash", `{"command":"` + strings.Repeat("x", MaxSubject) + `"}`, ""},
		{"Bash", "{}", ""},
		{"Bash", "not JSON", ""},
		{"Edit", `{"file_path":"src/a.go"}`, "Edit(src/a.go)"},
		{"Write", `{"file_path":"/w/src/[a]*.go"}`, `Write(src/\[a]\*.go)`},
		{"Write", `{"file_path":"/w/../etc/hosts"}`, "Write(//etc/hosts)"},
		{"NotebookEdit", `{"notebook_path":"a.ipynb"}`, "NotebookEdit(a.ipynb)"},
		{"WebFetch", `{"url":"https://example.org/x?q"}`, "WebFetch(domain:example.org)"},
		{"mcp__docs__find", `{"q":"x"}`, "mcp__docs__find"},
		{"WebSearch", `{"query":"x"}`, "WebSearch"},
	} {
		rule, err := s.RuleFor(Permission{Tool: c.tool, Input: c.input})
		if rule != c.want || (err == nil) != (c.want != "") {
			t.Errorf("%s %s: %q, %v", c.tool, c.input, rule, err)
		}
		if err != nil {
			continue
		}
		if !ruleAllows(rule, c.tool, c.input, "/w") {
			t.Errorf("%s does not allow %s", rule, c.input)
		}
		if why := Unbounded(rule, "/w"); why != "" {
			t.Errorf("the narrowest rule %s is unbounded: %s", rule, why)
		}
		if more := strings.NewReplacer("--short", "--short x", "a.go", "b.go", "[a]*", "a", "example.org",
			"example.com",
			"docs__find", "docs__delete", "hosts", "passwd").Replace(c.input); more != c.input &&
			ruleAllows(rule, c.tool, more, "/w") {
			t.Errorf("%s allows %s too", rule, more)
		}
	}
}

// TestUnbounded checks which rules a person has to confirm.
func TestUnbounded(t *testing.T) {
	for rule, want := range map[string]string{
		"Bash": "any command", "Bash(*)": "any command", "Bash(:*)": "any command", "Bash(A=1:*)": "any command",
		"Bash(py*)": "begins with", "Bash(python3.12:*)": "any code", "Bash(/usr/bin/env:*)": "any other program",
		"Bash(bash -c *)": "any code", "Bash(sudo make:*)": "any other program", "Bash(find . -name *)": "any other program",
		"Bash(git:*)": "every command", "Bash(git push:*)": "lose work", "Bash(rm -rf build *)": "destroy",
		"Bash(curl https://example.org/*)": "anywhere", "Bash(npm:*)": "every command",
		"Edit": "any file", "Write(*)": "any file", "Edit(//**)": "outside", "Edit(../**)": "outside", "Read": "keys",
		"WebFetch": "anywhere", "mcp__docs": "every tool", "mcp__docs__*": "every tool",
		"Bash(git status:*)": "", "Bash(go test:*)": "", "Bash(rm -rf build)": "", "Bash(python3 tool.py:*)": "",
		"Bash(npm run test *)": "", "Edit(src/**)": "", "Edit(//w/**)": "", "Edit(//etc/hosts)": "", "WebSearch": "",
		"WebFetch(domain:example.org)": "", "mcp__docs__find": "", "Read(docs/**)": "",
	} {
		if got := Unbounded(rule, "/w"); (got == "") != (want == "") || !strings.Contains(got, want) {
			t.Errorf("%s: %q, not %q", rule, got, want)
		}
	}
}

// TestRuleMeaning checks what a person is told of a rule.
func TestRuleMeaning(t *testing.T) {
	for rule, want := range map[string]string{
		"Bash":                         "any command",
		"Bash(git status)":             "exactly the command git status",
		"Bash(git status:*)":           "git status with any words after it, as a single command",
		"Bash(ls *.go)":                "single commands of the form ls *.go, where * stands for anything",
		"Edit":                         "changes to any file",
		"Edit(src/**)":                 "changes to src/** in the team's directory",
		"Read(//etc/*)":                "Read of /etc/*",
		"WebSearch":                    "any use of WebSearch",
		"WebFetch(domain:example.org)": "any address at example.org",
		"mcp__docs":                    "every tool of the server docs",
		"mcp__docs__find":              "the tool find of the server docs, with any input",
	} {
		if got := RuleMeaning(rule); got != want {
			t.Errorf("%s: %q, not %q", rule, got, want)
		}
	}
}
