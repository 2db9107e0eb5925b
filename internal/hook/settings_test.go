package hook

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

func write(t *testing.T, path, content string) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestLoadOrder(t *testing.T) {
	root, dir := t.TempDir(), t.TempDir()
	user := write(t, filepath.Join(root, "settings.json"), `{"model":"x","permissions":{"allow":[]},"hooks":{
		"PreToolUse":"not looked at",
		"TaskCompleted":[{"hooks":[{"type":"command","command":"u1"},{"type":"command","command":"u2","timeout":1.5}]},{"hooks":[{"type":"command","command":"u3"}]}],
		"TeammateIdle":[]}}`)
	project := write(t, filepath.Join(dir, ".claude", "settings.json"),
		`{"hooks":{"TaskCompleted":[{"matcher":"Bash","hooks":[{"type":"prompt","prompt":"?"},{"type":"command","command":"p"}]}]}}`)
	local := write(t, filepath.Join(dir, ".claude", "settings.local.json"),
		"\ufeff"+
			`{"hooks":{"TeammateIdle":[{"matcher":"","hooks":[{"type":"command","command":"l","timeout":10,"async":true}]}]}}`)
	config, err := Load(root, dir, []Hook{{Event: TaskCreated, Command: "t", Timeout: time.Second}})
	if err != nil {
		t.Fatal(err)
	}
	real, err := realDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	project, local = strings.Replace(project, dir, real, 1), strings.Replace(local, dir, real, 1)
	want := []Hook{
		{Event: TaskCompleted, Command: "u1", Timeout: time.Minute, Source: User, File: user, Line: 3},
		{Event: TaskCompleted, Command: "u2", Timeout: 1500 * time.Millisecond, Source: User, File: user, Line: 3},
		{Event: TaskCompleted, Command: "u3", Timeout: time.Minute, Source: User, File: user, Line: 3},
		{Event: TaskCompleted, Command: "p", Timeout: time.Minute, Source: Project, File: project, Line: 1,
			Matcher: "Bash"},
		{Event: TeammateIdle, Command: "l", Timeout: 10 * time.Second, Source: Local, File: local, Line: 1},
		{Event: TaskCreated, Command: "t", Timeout: time.Second, Source: Team},
	}
	if !reflect.DeepEqual(config.Hooks, want) {
		t.Errorf("got  %+v\nwant %+v", config.Hooks, want)
	}
	wantNotes := []string{
		project + `:1:39: a matcher has no effect on TaskCompleted: the hook runs every time`,
		project + `:1:63: a hook of TaskCompleted is skipped: its type is "prompt", and only commands run here`,
	}
	if !reflect.DeepEqual(config.Notes, wantNotes) {
		t.Errorf("got  %q\nwant %q", config.Notes, wantNotes)
	}
}

func TestLoadNothing(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, ".claude", "settings.json"), " \n")
	write(t, filepath.Join(dir, ".claude", "settings.local.json"), "{}")
	if config, err := Load(filepath.Join(dir, "none"), dir, nil); err != nil || len(config.Hooks) > 0 {
		t.Errorf("got %+v, %v", config, err)
	}
	if _, err := Load(dir, filepath.Join(dir, "none"), nil); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a project that is not there: %v", err)
	}
}

// TestHomeIsTheProject covers a project in the home folder: one file is both the user's and the
// project's, and users need no trust in themselves.
func TestHomeIsTheProject(t *testing.T) {
	home := t.TempDir()
	write(t, filepath.Join(home, ".claude", "settings.json"),
		`{"hooks":{"TaskCreated":[{"hooks":[{"type":"command","command":"x"}]}]}}`)
	config, err := Load(filepath.Join(home, ".claude"), home, nil)
	if err != nil || len(config.Hooks) != 1 || config.Hooks[0].Source != User {
		t.Errorf("got %+v, %v", config, err)
	}
}

func TestMalformed(t *testing.T) {
	tests := []struct{ name, content, want string }{
		{"cut off", `{"hooks":`, ":1:9: not valid JSON: unexpected end of JSON input"},
		{"comma", "{\n  \"hooks\": {},\n}", ":3:1: not valid JSON: "},
		{"a word", "{\n  \"hooks\": yes\n}", ":2:12: not valid JSON: "},
		{"comment", "{\n  // gates\n}", ":2:3: not valid JSON: "},
		{"more", "{}\n{}", ":2:1: not valid JSON: invalid character '{' after top-level value"},
		{"a list", ` []`, ":1:2: the settings must be an object, not an array"},
		{"hooks", `{"hooks": []}`, `:1:11: "hooks" must be an object with the events as its keys, not an array`},
		{"event", `{"hooks": {"TaskCreated": {}}}`, ":1:27: TaskCreated must be an array of {\"hooks\": [...]}, not " +
			"an object"},
		{"group", `{"hooks": {"TaskCreated": ["x"]}}`, ":1:28: an element of TaskCreated must be an object"},
		{"group without hooks", `{"hooks": {"TaskCreated": [{"command": "x"}]}}`,
			`:1:28: an element of TaskCreated has no "hooks" array`},
		{"hooks of the group", `{"hooks": {"TaskCreated": [{"hooks": null}]}}`,
			`:1:38: "hooks" of TaskCreated must be an array, not null`},
		{"hook", `{"hooks": {"TaskCreated": [{"hooks": ["x"]}]}}`, `:1:39: a hook of TaskCreated must be an object`},
		{"type", `{"hooks": {"TaskCreated": [{"hooks": [{"command": "x"}]}]}}`,
			`:1:39: a hook of TaskCreated has no "type"`},
		{"number as type", `{"hooks": {"TaskCreated": [{"hooks": [{"type": 1}]}]}}`,
			`:1:48: the "type" of a hook must be a string, not a number`},
		{"command", `{"hooks": {"TaskCreated": [{"hooks": [{"type": "command"}]}]}}`,
			`:1:39: a hook of TaskCreated has no "command"`},
		{"empty command", `{"hooks": {"TaskCreated": [{"hooks": [{"type": "command", "command": ""}]}]}}`,
			`:1:70: the "command" of a hook must be a non-empty string`},
		{"timeout", "{\"hooks\": {\"TaskCreated\": [{\"hooks\": [\n{\"type\": \"command\", \"command\": \"x\", " +
			"\"timeout\": 0}]}]}}", `:2:48: the "timeout" of a hook must be a number of seconds above 0`},
		{"text as timeout",
			`{"hooks": {"TaskCreated": [{"hooks": [{"timeout": "5", "type": "command", "command": "x"}]}]}}`,
			`:1:51: the "timeout"`},
		{"huge timeout",
			`{"hooks": {"TaskCreated": [{"hooks": [{"timeout": 1e300, "type": "command", "command": "x"}]}]}}`,
			`:1:51: the "timeout"`},
		{"deep", strings.Repeat("[", 200) + strings.Repeat("]", 200), ":1:102: values are nested"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			root := t.TempDir()
			file := write(t, filepath.Join(root, "settings.json"), test.content)
			_, err := Load(root, t.TempDir(), nil)
			var settings *SettingsError
			if !errors.As(err, &settings) {
				t.Fatalf("got %v", err)
			}
			if !strings.HasPrefix(err.Error(), file+test.want) || !strings.Contains(err.Error(), "correct the file") {
				t.Errorf("got  %v\nwant %s%s", err, file, test.want)
			}
		})
	}
}

func TestTeamHooksAreChecked(t *testing.T) {
	for _, h := range []Hook{{}, {Event: "Stop", Command: "x"}, {Event: TaskCreated}, {Event: TaskCreated, Command: "x",
		Timeout: -1}} {
		if _, err := Load(t.TempDir(), t.TempDir(), []Hook{h}); err == nil {
			t.Errorf("%+v: no error", h)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"hooks":{"TaskCreated":[{"hooks":[{"type":"command","command":"x","timeout":1}]}]}}`))
	f.Add([]byte("{\n\"a\": [1, null, true, {}], }"))
	f.Fuzz(func(t *testing.T, data []byte) {
		_, _, err := parse("f", data)
		var settings *SettingsError
		if err != nil && (!errors.As(err, &settings) || settings.Line < 1 || settings.Column < 1) {
			t.Errorf("got %v", err)
		}
	})
}
