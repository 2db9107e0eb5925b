package hook

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"cadre/internal/pattern"
)

// scripts returns the files inside dir that the command runs by name, as paths relative to dir: what stands where a command
// stands, and what an interpreter is given first. It knows words, not the shell's grammar; a name that the shell puts
// together from pieces is not found.
func scripts(dir, command string) []string {
	var found []string
	runs := true // whether the next word is a command
	for _, token := range words().FindAllString(command, -1) {
		if separators().MatchString(token) {
			runs = true
			continue
		}
		word := strings.NewReplacer(`"`, "", "'", "", `\`, "").Replace(token)
		switch {
		case !runs:
			continue
		case strings.HasPrefix(word, "-"), number().MatchString(word), assignment().MatchString(word), slices.Contains(prefixes, word):
			continue
		case interpreter().MatchString(filepath.Base(word)):
			// its first operand is run as well, so the next word is looked at
		default:
			runs = false
		}
		if path, ok := inside(dir, word); ok && !slices.Contains(found, path) {
			found = append(found, path)
		}
	}
	return found
}

var (
	words       = pattern.Lazy(`(?:\$\{\w+\}|"[^"]*"|'[^']*'|\\.|[^\s"'\\;&|(){}])+|[;&|(){}\n]`)
	separators  = pattern.Lazy(`^[;&|(){}\n]$`)
	number      = pattern.Lazy(`^[\d.]+[smhd]?$`) // of timeout and nice
	assignment  = pattern.Lazy(`^\w+=`)
	interpreter = pattern.Lazy(`^(\.|source|(ba|da|z|k)?sh|(python|node|ruby|perl|php|lua)[\d.]*|deno|bun)$`)
	prefixes    = []string{"env", "exec", "command", "time", "nice", "nohup", "timeout", "if", "then", "else", "elif", "while", "until", "do", "!"}
)

// inside resolves a word of a command to a file in dir, given that the command runs there.
func inside(dir, word string) (string, bool) {
	for _, variable := range []string{"$CLAUDE_PROJECT_DIR", "${CLAUDE_PROJECT_DIR}", "$CADRE_PROJECT_DIR", "${CADRE_PROJECT_DIR}", "$PWD", "${PWD}"} {
		if rest, ok := strings.CutPrefix(word, variable+"/"); ok {
			word = filepath.Join(dir, rest)
		}
	}
	if !strings.Contains(word, "/") && !strings.Contains(word, ".") {
		return "", false // a name for PATH, or for the shell
	}
	if !filepath.IsAbs(word) {
		word = filepath.Join(dir, word)
	}
	path, err := filepath.Rel(dir, word)
	if err != nil || !filepath.IsLocal(path) {
		return "", false
	}
	info, err := os.Stat(word)
	return path, err == nil && info.Mode().IsRegular()
}
