package acp

import (
	"os"
	"path/filepath"
	"testing"
)

// The user's own rules of an agent's are looked for wherever it looks for them.
func TestRuled(t *testing.T) {
	for _, c := range []struct {
		agent      func(env []string, dir string) bool
		file, text string
		want       bool
	}{
		{openCodeRuled, "home/.config/opencode/opencode.json", `{"permission":{"bash":{"git log*":"deny"}}}`, true},
		{openCodeRuled, "home/.config/opencode/opencode.json", `{"permission":{"bash":"allow"}}`, false},
		{openCodeRuled, "home/.config/opencode/opencode.json", `{"model":"x"}`, false},
		{openCodeRuled, "project/opencode.jsonc", `{"permission":{"bash":"ask"}}`, true},
		{openCodeRuled, "project/.opencode/opencode.json", `{"tools":{"bash":false}}`, true},
		{openCodeRuled, "opencode.json", `{"permission":{"bash":"ask"}}`, true},
		{geminiRuled, "home/.gemini/policies/own.toml", `decision = "ask_user"`, true},
		{geminiRuled, "home/.gemini/policies/own.toml", `decision = "allow"`, false},
		{geminiRuled, "project/.gemini/policies/own.toml", `decision = "ask_user"`, true},
	} {
		base := t.TempDir()
		file := filepath.Join(base, c.file)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := c.agent([]string{"HOME=" + filepath.Join(base, "home")}, filepath.Join(base, "project")); got != c.want {
			t.Errorf("%s, %s: %t", c.file, c.text, got)
		}
	}
	if !openCodeRuled([]string{`OPENCODE_CONFIG_CONTENT={"permission":{"bash":"ask"}}`, "HOME=/nowhere"}, "/nowhere") {
		t.Error("the configuration in the environment is not looked at")
	}
}
