package settings

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestLoad reads files that are right, and names the place of each mistake in others.
func TestLoad(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{``, "settings.json:1:1: the file ends before its JSON value does"},
		{"{\n  \"notify\": {\"bell\": true,\n", "settings.json:3:1: the file ends before its JSON value does"},
		{"{\n  \"notify\": {\"be", "settings.json:2:17: the file ends before its JSON value does"},
		{`{}`, ""},
		{`{"notify": {"bell": true, "desktop": "auto", "command": "true", "webhook": {"url": "https://example.com/x",
			"headers": {"Authorization": "x"}}, "ntfy": {"url": "https://ntfy.example/topic", "token": "t"}}}`, ""},
		{"{\n  \"notify\": {\"bel\": true}\n}", `settings.json:2:14: "bel" is not a setting`},
		{"{\n  \"notify\": {\"bell\": 1}\n}", `settings.json:2:22: notify.bell must be true or false, not number`},
		{"{\n  \"notify\": {\"bell\": tru}\n}", "settings.json:2:25: invalid character '}' in literal true"},
		{`{} {}`, "settings.json:1:3: text follows the end"},
		{`{"notify": {"desktop": "growl"}}`, `notify.desktop is "growl"; use auto`},
		{`{"screen": "never"}`, ""},
		{`{"screen": "auto", "notify": {}}`, ""},
		{`{"screen": "always"}`, `screen is "always"; use auto or never`},
		{`{"mouse": "off"}`, ""},
		{`{"mouse": "never"}`, `mouse is "never"; use on or off`},
		{`{"maxParallel": 3}`, ""},
		{`{"maxParallel": -1}`, "maxParallel is -1; use a number from 1 to 1000, or 0 for no limit"},
		{`{"maxParallel": 1001}`, "maxParallel is 1001; use a number"},
		{`{"maxParallel": 1.5}`, "settings.json:1:19: maxParallel must be a whole number, not number 1.5"},
		{`{"maxParallel": "two"}`, "maxParallel must be a whole number, not string"},
		{`{"screen": true}`, `screen must be a text, not bool`},
		{`{"notify": {"webhook": {"url": "ftp://x"}}}`, `notify.webhook.url is "ftp://x"; it must begin`},
		{`{"notify": {"webhook": {}}}`, `notify.webhook.url is ""; it must begin`},
		{`{"notify": {"ntfy": {"url": "https://ntfy.sh/"}}}`, "write it as https://ntfy.sh/TOPIC"},
	} {
		path := filepath.Join(t.TempDir(), "settings.json")
		if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := Load(path)
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%s: %v", c.text, err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s:\ngot  %v\nwant %s", c.text, err, c.want)
		case err != nil && s != Settings{}:
			t.Errorf("%s: a file with a mistake is used: %+v", c.text, s)
		}
	}
	if s, err := Load(filepath.Join(t.TempDir(), "settings.json")); err != nil || s != (Settings{}) {
		t.Errorf("without a file: %+v, %v", s, err)
	}
	if _, err := Load(t.TempDir()); err == nil {
		t.Error("a folder is read as settings")
	}
}
