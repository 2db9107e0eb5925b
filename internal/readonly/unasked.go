package readonly

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os/user"
	"path/filepath"
	"slices"

	"cadre/internal/regularfile"
)

// Unasked reports whether a call only reads, and no deny or ask rule in the user's or the project's settings for Claude Code may be about it. Such a
// call needs nobody's leave. Settings that cannot be read may hold such a rule.
func (s Scope) Unasked(tool, input string) bool {
	found, ok := s.Call(tool, input)
	if !ok {
		return false
	}
	env := environment(s.Env)
	home := env["HOME"]
	if home == "" {
		if u, err := user.Current(); err == nil {
			home = u.HomeDir
		}
	}
	rules, err := s.rules(env["CLAUDE_CONFIG_DIR"], home)
	if err != nil {
		return false
	}
	bases := append([]string{s.Dir}, s.Roots...)
	return !slices.ContainsFunc(rules, func(rule string) bool {
		return slices.ContainsFunc(bases, func(base string) bool { return found.Concerns(rule, home, base) })
	})
}

// maxSettings bounds a settings file.
const maxSettings = 1 << 20

// managed are the settings of the machine.
var managed = []string{"/etc/claude-code/managed-settings.json", "/Library/Application Support/ClaudeCode/managed-settings.json"}

// rules are the deny and ask rules that hold where the command runs.
func (s Scope) rules(config, home string) (rules []string, err error) {
	if config == "" {
		config = filepath.Join(home, ".claude")
	}
	files := append([]string{filepath.Join(config, "settings.json")}, managed...)
	for _, dir := range append([]string{s.Dir}, s.Roots...) {
		files = append(files, filepath.Join(dir, ".claude", "settings.json"), filepath.Join(dir, ".claude", "settings.local.json"))
	}
	for _, file := range files {
		data, err := regularfile.Read(file, maxSettings)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		var settings struct {
			Permissions struct{ Deny, Ask []string }
		}
		if err == nil {
			err = json.Unmarshal(data, &settings)
		}
		if err != nil {
			return nil, err
		}
		rules = slices.Concat(rules, settings.Permissions.Deny, settings.Permissions.Ask)
	}
	return rules, nil
}
