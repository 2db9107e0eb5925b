package codex

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
)

// ruled reports whether the user's own rules for commands want any of them asked about: the program does not say which one made it ask. What they forbid it refuses by itself.
func ruled(env []string, dir string) bool {
	home := ""
	for _, v := range env {
		if value, ok := strings.CutPrefix(v, "CODEX_HOME="); ok && value != "" {
			home = value
		} else if value, ok := strings.CutPrefix(v, "HOME="); ok && home == "" {
			home = filepath.Join(value, ".codex")
		}
	}
	for _, folder := range []string{home, filepath.Join(dir, ".codex"), "/etc/codex"} {
		files, err := filepath.Glob(filepath.Join(folder, "rules", "*.rules"))
		if err != nil {
			return true
		}
		for _, file := range files {
			if text, err := os.ReadFile(file); err != nil || bytes.Contains(text, []byte("prompt")) {
				return true
			}
		}
	}
	return false
}
