// Package settings reads environment variables and other values from Claude Code's settings files.
//
// # Authority
//
// It knows the files, their precedence, and which values switch something on. Hooks in these files
// are handled by package hook, and settings for waking a session by package agent/wake.
//
//	user      <claude>/settings.json
//	project   <dir>/.claude/settings.json            overrides the user's
//	local     <dir>/.claude/settings.local.json      overrides the project's
//	managed   managed-settings.json, then managed-settings.d/*.json of the machine: overrides all
//
// # Guarantees
//
//   - A file that does not exist, is not a regular file or cannot be decoded is ignored, as it is
//     by Claude Code.
//   - Nothing is written.
package settings

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"

	"cadre/internal/sys/regularfile"
)

// maxSize is the size limit of a file, in bytes.
const maxSize = 4 << 20

// Managed returns the existing settings files of the machine's administrator. Settings that an
// organization distributes by other means than files are unknown.
func Managed() (files []string) {
	for _, dir := range []string{"/etc/claude-code", "/Library/Application Support/ClaudeCode"} {
		for _, pattern := range []string{"managed-settings.json", "managed-settings.d/*.json"} {
			found, _ := filepath.Glob(filepath.Join(dir, pattern)) // the patterns are well-formed
			files = append(files, found...)
		}
	}
	return files
}

// Files returns the settings files of a project in increasing precedence. claude is the user's
// Claude Code folder, or "" for none.
func Files(claude, dir string) (files []string) {
	if claude != "" {
		files = append(files, filepath.Join(claude, "settings.json"))
	}
	files = append(files, filepath.Join(dir, ".claude", "settings.json"),
		filepath.Join(dir, ".claude", "settings.local.json"))
	return append(files, Managed()...)
}

// Env returns the value of an environment variable in the files, and whether any file sets it.
func Env(name string, files ...string) (value string, set bool) {
	for _, file := range files {
		data, err := regularfile.Read(file, maxSize)
		if err != nil {
			continue
		}
		var s struct{ Env map[string]any }
		decoder := json.NewDecoder(bytes.NewReader(data))
		decoder.UseNumber()
		if decoder.Decode(&s) != nil {
			continue
		}
		switch v := s.Env[name].(type) { // Claude Code also accepts numbers and booleans
		case string:
			value, set = v, true
		case json.Number:
			value, set = v.String(), true
		case bool:
			value, set = "false", true
			if v {
				value = "true"
			}
		}
	}
	return value, set
}

// Text returns the value of a key of the files whose value is a text; "" if no file sets it.
func Text(key string, files ...string) (value string) {
	for _, file := range files {
		data, err := regularfile.Read(file, maxSize)
		if err != nil {
			continue
		}
		var all map[string]json.RawMessage
		var text string
		if json.Unmarshal(data, &all) == nil && json.Unmarshal(all[key], &text) == nil {
			value = text
		}
	}
	return value
}

// Truthy reports whether a value switches something on.
func Truthy(value string) bool {
	return slices.Contains([]string{"1", "true", "yes", "on"}, strings.ToLower(strings.TrimSpace(value)))
}
