package acp

import (
	"bytes"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// TestRuled checks that the user's own rules for an agent are looked for in every place where the
// agent looks.
func TestRuled(t *testing.T) {
	t.Parallel()
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
		{geminiRuled, "project/.env", "DATABASE_URL=x\nGEMINI_API_KEY=x\nENVIRONMENT: dev\n", false},
		{geminiRuled, "project/.env", "A=1\nexport GIT_EXTERNAL_DIFF = /tmp/evil\n", true},
		{geminiRuled, "project/.gemini/.env", "BASH_ENV: ./evil", true},
		{geminiRuled, ".env", "LD_PRELOAD='./x.so'", true},
	} {
		base := t.TempDir()
		file := filepath.Join(base, c.file)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := c.agent([]string{"HOME=" + filepath.Join(base, "home")},
			filepath.Join(base, "project")); got != c.want {
			t.Errorf("%s, %s: %t", c.file, c.text, got)
		}
	}
	for variable, want := range map[string]bool{`{"bash":{"cat *":"deny"}}`: true, `{"bash":"ask"}`: true,
		`{"bash":"allow"}`: false, ``: false} {
		if openCodeRuled([]string{"OPENCODE_PERMISSION=" + variable, "HOME=/nowhere"}, "/nowhere") != want {
			t.Errorf("OPENCODE_PERMISSION=%s: %t", variable, !want)
		}
	}
	if !openCodeRuled([]string{`OPENCODE_CONFIG_CONTENT={"permission":{"bash":"ask"}}`, "HOME=/nowhere"}, "/nowhere") {
		t.Error("the configuration in the environment is not looked at")
	}
}

// TestRuledBySpecialFiles checks that a settings file that is a pipe, or has no end, counts as one
// with a rule, and is not waited for.
func TestRuledBySpecialFiles(t *testing.T) {
	t.Parallel()
	for name, make := range map[string]func(file string) error{
		"a pipe":   func(file string) error { return syscall.Mkfifo(file, 0o600) },
		"a folder": func(file string) error { return os.Mkdir(file, 0o700) },
		"a device": func(file string) error { return os.Symlink("/dev/zero", file) },
		"a large file": func(file string) error {
			return os.WriteFile(file, bytes.Repeat([]byte(" "), maxSettings+1), 0o600)
		},
		"an empty file": func(file string) error { return os.WriteFile(file, nil, 0o600) },
	} {
		for file, ruled := range map[string]func(env []string, dir string) bool{
			"opencode.json": openCodeRuled, ".gemini/policies/x.toml": geminiRuled, ".gemini/.env": geminiRuled,
		} {
			dir := t.TempDir()
			path := filepath.Join(dir, file)
			if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := make(path); err != nil {
				t.Fatal(err)
			}
			if got, want := ruled([]string{"HOME=/nowhere"}, dir), name != "an empty file"; got != want {
				t.Errorf("%s in the place of %s: %t", name, file, got)
			}
		}
	}
}
