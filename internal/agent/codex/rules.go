package codex

import (
	"bytes"
	"errors"
	"io/fs"
	"path/filepath"
	"strings"

	"cadre/internal/agent"
	"cadre/internal/sys/lazyregexp"
	"cadre/internal/sys/regularfile"
)

// variables matches the setting for variables of commands. A name may be written with escapes.
var variables = lazyregexp.New(`(?i)shell_environment_policy|\\[ux]`)

// rulesMayAsk reports whether the user's own rules may be the reason for a question. The program
// does not say which rule made it ask, so any rule that prompts counts. What the rules forbid, the
// program refuses itself. A project's configuration that sets variables for commands counts too,
// because they can make a command that only reads do more.
func rulesMayAsk(env []string, dir string) bool {
	home := ""
	for _, v := range env {
		if value, ok := strings.CutPrefix(v, "CODEX_HOME="); ok && value != "" {
			home = value
		} else if value, ok := strings.CutPrefix(v, "HOME="); ok && home == "" {
			home = filepath.Join(value, ".codex")
		}
	}
	folders := []string{home, "/etc/codex"}
	for _, at := range agent.Upward(dir) {
		folder := filepath.Join(at, ".codex")
		if folder == home {
			continue
		}
		folders = append(folders, folder)
		text, err := regularfile.Read(filepath.Join(folder, "config.toml"), maxConfig)
		if err != nil && !errors.Is(err, fs.ErrNotExist) || variables().Match(text) {
			return true
		}
	}
	for _, folder := range folders {
		files, err := filepath.Glob(filepath.Join(folder, "rules", "*.rules"))
		if err != nil {
			return true
		}
		for _, file := range files {
			if text, err := regularfile.Read(file, maxConfig); err != nil || bytes.Contains(text, []byte("prompt")) {
				return true
			}
		}
	}
	return false
}
