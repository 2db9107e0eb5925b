package codex

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestRuled checks that a user's rule which requires a question for a command prevents every
// unasked answer, and that other rules do not.
func TestRuled(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		file, text string
		want       bool
	}{
		{"home/.codex/rules/default.rules", `prefix_rule(pattern=["git","log"], decision="allow")`, false},
		{"home/.codex/rules/default.rules", `prefix_rule(pattern=["git","log"], decision="prompt")`, true},
		{"project/.codex/rules/own.rules", `prefix_rule(pattern=["ls"], decision="prompt")`, true},
		{"project/.codex/config.toml", "[shell_environment_policy]\nset = { GIT_EXTERNAL_DIFF = \"/tmp/evil\" }\n",
			true},
		{"project/.codex/config.toml", "\"shell\\u005fenvironment_policy\" = { set = { GIT_EXTERNAL_DIFF = " +
			"\"/tmp/evil\" } }\n", true},
		{"project/.codex/config.toml", "model = \"x\"\n", false},
		{".codex/rules/own.rules", `prefix_rule(pattern=["ls"], decision="prompt")`, true},
		{"home/.codex/config.toml", "[shell_environment_policy]\ninherit = \"all\"\n", false},
		{"codex/rules/own.rules", `prefix_rule(pattern=["ls"], decision="prompt")`, false},
	} {
		base := t.TempDir()
		file := filepath.Join(base, c.file)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		home, dir := "HOME="+filepath.Join(base, "home"), filepath.Join(base, "project")
		if got := rulesMayAsk([]string{home}, dir); got != c.want {
			t.Errorf("%s, %s: %t", c.file, c.text, got)
		}
		if strings.HasPrefix(c.file, "codex/") && !rulesMayAsk([]string{"CODEX_HOME=" + filepath.Join(base, "codex"),
			home}, dir) {
			t.Error("another home of the program's is not looked at")
		}
	}
}

// TestRuledByAPipe checks that a file of rules that is a pipe counts as one with a rule, and is not
// waited for.
func TestRuledByAPipe(t *testing.T) {
	t.Parallel()
	for _, file := range []string{"rules/x.rules", "config.toml"} {
		dir := t.TempDir()
		path := filepath.Join(dir, ".codex", file)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := syscall.Mkfifo(path, 0o600); err != nil {
			t.Fatal(err)
		}
		if !rulesMayAsk([]string{"HOME=/nowhere"}, dir) {
			t.Errorf("a pipe in the place of %s is passed over", file)
		}
	}
}

// TestRequestForACommand checks that a request for more than a command in the session's sandbox is
// recognized.
func TestRequestForACommand(t *testing.T) {
	t.Parallel()
	for params, want := range map[string]string{
		`{"kind":"command","environmentId":"local","command":"/bin/bash -lc 'ls -l'","cwd":"/p"}`:                `{"command":"ls -l","cwd":"/p","description":""}`,
		`{"command":"/bin/bash -lc 'ls -l'","additionalPermissions":null}`:                                       `{"command":"ls -l","description":""}`,
		`{"command":"/bin/bash -lc ls","additionalPermissions":{"network":{"enabled":true}},"reason":"the net"}`: `{"additionalPermissions":{"network":{"enabled":true}},"command":"ls","description":"the net"}`,
		`{"command":"/bin/bash -lc ls","environmentId":"remote-1"}`:                                              `{"command":"ls","description":"","environmentId":"remote-1"}`,
		`{"kind":"writeStdin","command":"ls"}`:                                                                   `{"command":"ls","description":"","kind":"writeStdin"}`,
	} {
		p, ok := (&decoder{}).request("item/commandExecution/requestApproval", json.RawMessage(params)).(permission)
		if !ok || p.tool != "Bash" || p.input != want {
			t.Errorf("%s is %+v", params, p)
		}
	}
}
