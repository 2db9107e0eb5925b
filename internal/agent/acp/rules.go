package acp

import (
	"bytes"
	"errors"
	"io/fs"
	"path/filepath"
	"slices"

	"cadre/internal/agent"
	"cadre/internal/agent/readonly"
	"cadre/internal/sys/lazyregexp"
	"cadre/internal/sys/regularfile"
)

// openCodeRuled reports whether a configuration of opencode may deny something or require a
// question. Our modes come after it, so opencode asks for both reasons.
func openCodeRuled(env []string, dir string) bool {
	set := readonly.Environment(env)
	folders := []string{filepath.Join(set["HOME"], ".config", "opencode"), filepath.Join(set["HOME"], ".opencode"),
		set["OPENCODE_CONFIG_DIR"]}
	if xdg := set["XDG_CONFIG_HOME"]; xdg != "" {
		folders = append(folders, filepath.Join(xdg, "opencode"))
	}
	for _, at := range agent.Upward(dir) {
		folders = append(folders, at, filepath.Join(at, ".opencode"))
	}
	folders = append(folders, "/etc/opencode", "/Library/Application Support/opencode")
	files := []string{set["OPENCODE_CONFIG"]}
	for _, folder := range folders {
		if folder != "" {
			files = append(files, filepath.Join(folder, "opencode.json"), filepath.Join(folder, "opencode.jsonc"),
				filepath.Join(folder, "config.json"))
		}
	}
	denies := func(text []byte) bool {
		return bytes.Contains(text, []byte("deny")) || bytes.Contains(text, []byte("ask"))
	}
	restricts := func(text []byte) bool {
		return bytes.Contains(text, []byte("permission")) && denies(text) || bytes.Contains(text, []byte(`"tools"`))
	}
	return restricts([]byte(set["OPENCODE_CONFIG_CONTENT"])) || denies([]byte(set["OPENCODE_PERMISSION"])) ||
		anyFile(files, restricts)
}

// assignment matches a place where a file of variables may set one.
var assignment = lazyregexp.New(`([A-Za-z_][A-Za-z0-9_]*)\s*[=:]`)

// geminiRuled reports whether a policy of the machine, the user or the project requires a question.
// The program itself refuses what they deny. A file of variables counts too if it sets one that may
// change what a command does.
func geminiRuled(env []string, dir string) bool {
	set := readonly.Environment(env)
	home := set["GEMINI_CLI_HOME"]
	if home == "" {
		home = set["HOME"]
	}
	var files []string
	for _, folder := range []string{filepath.Join(home, ".gemini", "policies"),
		filepath.Join(dir, ".gemini", "policies"), geminiPolicies()} {
		found, err := filepath.Glob(filepath.Join(folder, "*.toml"))
		if err != nil {
			return true
		}
		files = append(files, found...)
	}
	return anyFile(files, func(text []byte) bool { return bytes.Contains(text, []byte("ask_user")) }) ||
		anyFile(geminiVariables(home, dir), func(text []byte) bool {
			return slices.ContainsFunc(assignment().FindAllSubmatch(text, -1),
				func(m [][]byte) bool { return readonly.Steers(string(m[1])) })
		})
}

// geminiVariables returns the files of variables; the program reads the first that exists.
func geminiVariables(home, dir string) (files []string) {
	for _, at := range append(agent.Upward(dir), home) {
		files = append(files, filepath.Join(at, ".gemini", ".env"), filepath.Join(at, ".env"))
	}
	return files
}

// maxSettings bounds how much of a settings file is read, in bytes.
const maxSettings = 1 << 20

// anyFile reports whether one of the files satisfies holds, or cannot be read.
func anyFile(files []string, holds func(text []byte) bool) bool {
	for _, file := range files {
		if file == "" {
			continue
		}
		text, err := regularfile.Read(file, maxSettings)
		if err != nil && !errors.Is(err, fs.ErrNotExist) || err == nil && holds(text) {
			return true
		}
	}
	return false
}
