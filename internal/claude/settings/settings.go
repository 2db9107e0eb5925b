// Package settings reads what Claude Code's settings files say of the environment.
//
// # Authority
//
// It knows which files there are, in which order they count, and which values switch something on.
// Hooks in these files are the affair of package hook, and what wakes a session that of agent/wake.
//
//	user      <claude>/settings.json
//	project   <dir>/.claude/settings.json            replaces the user's
//	local     <dir>/.claude/settings.local.json      replaces the project's
//	managed   managed-settings.json, then managed-settings.d/*.json of the machine: replaces all
//
// # Guarantees
//
//   - A file that does not exist, is no regular file or cannot be decoded says nothing, as it does
//     to Claude Code.
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

// maxSize is the most that is read of a file, in bytes.
const maxSize = 4 << 20

// Managed returns the files of settings of whoever administers the machine, those that there are.
// What an organization sets by other means than files is not known.
func Managed() (files []string) {
	for _, dir := range []string{"/etc/claude-code", "/Library/Application Support/ClaudeCode"} {
		for _, pattern := range []string{"managed-settings.json", "managed-settings.d/*.json"} {
			found, _ := filepath.Glob(filepath.Join(dir, pattern)) // the patterns are well-formed
			files = append(files, found...)
		}
	}
	return files
}

// Files returns the files that count for a project, each before those that replace it. claude is
// Claude Code's folder of the user, and "" for none.
func Files(claude, dir string) (files []string) {
	if claude != "" {
		files = append(files, filepath.Join(claude, "settings.json"))
	}
	files = append(files, filepath.Join(dir, ".claude", "settings.json"),
		filepath.Join(dir, ".claude", "settings.local.json"))
	return append(files, Managed()...)
}

// Env returns the value that the files give a variable of the environment, and whether one does.
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
		switch v := s.Env[name].(type) { // Claude Code takes numbers and booleans, too
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

// Truthy reports whether a value switches something on.
func Truthy(value string) bool {
	return slices.Contains([]string{"1", "true", "yes", "on"}, strings.ToLower(strings.TrimSpace(value)))
}
