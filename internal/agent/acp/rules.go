package acp

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// openCodeRuled reports whether a configuration of opencode's may deny something or want it asked about. Our modes come after it, so opencode asks about both.
func openCodeRuled(env []string, dir string) bool {
	set := variables(env)
	folders := []string{filepath.Join(set["HOME"], ".config", "opencode"), filepath.Join(set["HOME"], ".opencode"), set["OPENCODE_CONFIG_DIR"]}
	if xdg := set["XDG_CONFIG_HOME"]; xdg != "" {
		folders = append(folders, filepath.Join(xdg, "opencode"))
	}
	for at := dir; ; at = filepath.Dir(at) {
		folders = append(folders, at, filepath.Join(at, ".opencode"))
		if at == filepath.Dir(at) {
			break
		}
	}
	files := []string{set["OPENCODE_CONFIG"]}
	for _, folder := range folders {
		if folder != "" {
			files = append(files, filepath.Join(folder, "opencode.json"), filepath.Join(folder, "opencode.jsonc"), filepath.Join(folder, "config.json"))
		}
	}
	restricts := func(text []byte) bool {
		return bytes.Contains(text, []byte("permission")) && (bytes.Contains(text, []byte("deny")) || bytes.Contains(text, []byte("ask"))) || bytes.Contains(text, []byte(`"tools"`))
	}
	return restricts([]byte(set["OPENCODE_CONFIG_CONTENT"])) || anyFile(files, restricts)
}

// geminiRuled reports whether a policy of the user's or the project's wants something asked about. What they deny the program refuses by itself.
func geminiRuled(env []string, dir string) bool {
	set := variables(env)
	home := set["GEMINI_CLI_HOME"]
	if home == "" {
		home = set["HOME"]
	}
	var files []string
	for _, folder := range []string{filepath.Join(home, ".gemini"), filepath.Join(dir, ".gemini")} {
		found, err := filepath.Glob(filepath.Join(folder, "policies", "*.toml"))
		if err != nil {
			return true
		}
		files = append(files, found...)
	}
	return anyFile(files, func(text []byte) bool { return bytes.Contains(text, []byte("ask_user")) })
}

func variables(env []string) map[string]string {
	set := map[string]string{}
	for _, v := range env {
		name, value, _ := strings.Cut(v, "=")
		set[name] = value
	}
	return set
}

// anyFile reports whether one of the files holds that, or cannot be read.
func anyFile(files []string, holds func(text []byte) bool) bool {
	for _, file := range files {
		if file == "" {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil && !errors.Is(err, fs.ErrNotExist) || err == nil && holds(text) {
			return true
		}
	}
	return false
}
