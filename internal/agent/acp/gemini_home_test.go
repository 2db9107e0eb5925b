package acp

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"syscall"
	"testing"
)

// ourSettings are settings that cadre could need.
func ourSettings() map[string]any {
	return map[string]any{"general": map[string]any{"maxAttempts": 1.0, "sessionRetention": false},
		"hooks": map[string]any{"BeforeModel": []any{"ours"}}}
}

// TestOwnGeminiHome checks that a session finds the user's files in its home, and that files which
// it creates there are in the user's home.
func TestOwnGeminiHome(t *testing.T) {
	t.Parallel()
	user := t.TempDir()
	for name, text := range map[string]string{".gemini/oauth_creds.json": "secret", ".gemini/commands/own.toml": "x",
		".gemini/settings.json": `{"context":{"fileName":["NOTES.md","../x"]}}`, ".env": "A=1\n",
		".agents/skills/own/SKILL.md": "a skill"} {
		write(t, filepath.Join(user, name), text)
	}
	home, err := ownGeminiHome(t.TempDir(), user, ourSettings())
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{".gemini/oauth_creds.json": "secret", ".gemini/commands/own.toml": "x",
		".env": "A=1\n", ".agents/skills/own/SKILL.md": "a skill"} {
		if text, err := os.ReadFile(filepath.Join(home, name)); err != nil || string(text) != want {
			t.Errorf("%s: %q, %v", name, text, err)
		}
	}
	for _, name := range []string{".gemini/oauth_creds.json", ".gemini/installation_id", ".gemini/tmp/p/chats/c",
		".gemini/commands/new.toml", ".gemini/GEMINI.md", ".gemini/NOTES.md", ".gemini/gemini-credentials.json",
		".gemini/history/p/x"} {
		write(t, filepath.Join(home, name), "made by the program")
		if text, err := os.ReadFile(filepath.Join(user, name)); err != nil || string(text) != "made by the program" {
			t.Errorf("the user has of %s: %q, %v", name, text, err)
		}
	}
	if text, err := os.ReadFile(filepath.Join(user, ".gemini/settings.json")); !strings.HasSuffix(string(text),
		`"../x"]}}`) {
		t.Errorf("the user's settings are %q, %v", text, err)
	}
	if _, err := ownGeminiHome(filepath.Dir(home), user, ourSettings()); err != nil {
		t.Errorf("where a session left its home: %v", err)
	}
	if err := os.RemoveAll(home); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(user, ".gemini/commands/own.toml")); err != nil {
		t.Errorf("it went with the session's home: %v", err)
	}
}

func TestGeminiSettings(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "settings.json")
	settings := func() (all map[string]any) {
		t.Helper()
		data, err := geminiSettings(file, ourSettings())
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(data, &all); err != nil {
			t.Fatalf("%s: %v", data, err)
		}
		return all
	}
	if got := settings(); !reflect.DeepEqual(got, ourSettings()) {
		t.Errorf("without a file: %v", got)
	}
	write(t, file, `{ // mine
		"general": {"maxAttempts": 5, "vimMode": true}, /* no
		hooks: */ "hooks": {"BeforeModel": ["theirs"], "AfterModel": ["more"]}, "url": "http://x/*y*/" }`)
	want := map[string]any{"general": map[string]any{"maxAttempts": 5.0, "sessionRetention": false, "vimMode": true},
		"hooks": map[string]any{"BeforeModel": []any{"ours", "theirs"}, "AfterModel": []any{"more"}},
		"url":   "http://x/*y*/"}
	if got := settings(); !reflect.DeepEqual(got, want) {
		t.Errorf("with comments: %v", got)
	}
	for _, broken := range []string{"{", `{"a": /*`, `{"a": "//`, "[]", "/"} {
		write(t, file, broken)
		if got, err := geminiSettings(file, ourSettings()); string(got) != broken || err != nil {
			t.Errorf("%q became %q, %v", broken, got, err)
		}
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(file, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := geminiSettings(file, ourSettings()); err == nil {
		t.Error("a pipe was read")
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
		t.Fatal(err)
	}
}
