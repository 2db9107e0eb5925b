package acp

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"cadre/internal/sys/regularfile"
)

// geminiFiles and geminiFolders are what the program creates in its folder on demand. Each is
// linked before it exists, so that it is created in the user's folder. The settings name further
// files, in which the model keeps its memory.
var (
	geminiFiles = []string{"GEMINI.md", "a2a-oauth-tokens.json", "gemini-credentials.json", "google_accounts.json",
		"installation_id", "mcp-oauth-tokens.json", "mcp-server-enablement.json", "oauth_creds.json", "state.json",
		"trusted_hooks.json"}
	geminiFolders = []string{"acknowledgments", "history", "policies", "tmp"} // chats are in tmp
)

// ownGeminiHome makes a home for one session of the program, below dir. There is no other place for
// settings of cadre alone. The program reads system settings only from files of root (its
// isFileAndDirectorySecureSync, 0.61.0), project settings are in the project, and its command line
// accepts none. Everything else in the user's home is linked. The user's settings take precedence
// over ours.
func ownGeminiHome(dir, user string, ours map[string]any) (home string, err error) {
	if !filepath.IsAbs(user) {
		return "", fmt.Errorf("the home that Gemini CLI would use, %q, is not an absolute path: set HOME, or "+
			"GEMINI_CLI_HOME, to one", user)
	}
	home = filepath.Join(dir, "home")
	folder, real := filepath.Join(home, ".gemini"), filepath.Join(user, ".gemini")
	if err := os.RemoveAll(home); err != nil { // left by a session that was not removed completely
		return "", err
	}
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return "", err
	}
	for _, name := range geminiFolders {
		if err := os.MkdirAll(filepath.Join(real, name), 0o700); err != nil {
			return "", err
		}
	}
	settings, err := geminiSettings(filepath.Join(real, "settings.json"), ours)
	if err != nil {
		return "", err
	}
	if err := os.WriteFile(filepath.Join(folder, "settings.json"), settings, 0o600); err != nil {
		return "", err
	}
	entries, err := os.ReadDir(real)
	if err != nil {
		return "", err
	}
	names := slices.Concat(geminiFiles, memoryFiles(settings))
	for _, e := range entries {
		names = append(names, e.Name())
	}
	for _, name := range names {
		if err := link(filepath.Join(real, name), filepath.Join(folder, name)); err != nil {
			return "", err
		}
	}
	for _, name := range []string{".agents", ".env"} {
		if !exists(filepath.Join(user, name)) {
			continue
		}
		if err := link(filepath.Join(user, name), filepath.Join(home, name)); err != nil {
			return "", err
		}
	}
	return home, nil
}

// link makes a link to a path, unless something exists there.
func link(to, at string) error {
	if err := os.Symlink(to, at); !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}

// memoryFiles returns the names in the settings for the file of the model's memory.
func memoryFiles(settings []byte) (names []string) {
	var set struct {
		Context struct{ FileName any }
		Old     any `json:"contextFileName"`
	}
	if json.Unmarshal(settings, &set) != nil {
		return nil
	}
	for _, value := range []any{set.Context.FileName, set.Old} {
		all, ok := value.([]any)
		if !ok {
			all = []any{value}
		}
		for _, one := range all {
			if name, ok := one.(string); ok && filepath.Base(name) == name && name != "." && name != ".." {
				names = append(names, name)
			}
		}
	}
	return names
}

// geminiSettings merges the user's file over our settings. Text that is not JSON is returned
// unchanged, because the program reports what is wrong with it.
func geminiSettings(file string, ours map[string]any) ([]byte, error) {
	data, err := regularfile.Read(file, maxSettings)
	if errors.Is(err, fs.ErrNotExist) {
		return json.Marshal(ours)
	}
	if err != nil {
		return nil, err
	}
	var users map[string]any
	if json.Unmarshal(withoutComments(data), &users) != nil {
		return data, nil
	}
	merged := above(ours, users)
	ourHooks, _ := ours["hooks"].(map[string]any)
	userHooks, _ := users["hooks"].(map[string]any)
	if hooks, ok := merged["hooks"].(map[string]any); ok {
		for event, first := range ourHooks { // hooks of both run
			second, ok := userHooks[event].([]any)
			if list, is := first.([]any); is && ok {
				hooks[event] = append(list[:len(list):len(list)], second...)
			}
		}
	}
	return json.Marshal(merged)
}

// above merges upper over lower. Objects are merged; for everything else, upper applies.
func above(lower, upper map[string]any) map[string]any {
	merged := make(map[string]any, len(lower)+len(upper))
	for name, value := range lower {
		merged[name] = value
	}
	for name, value := range upper {
		inner, ok := value.(map[string]any)
		if under, is := merged[name].(map[string]any); ok && is {
			value = above(under, inner)
		}
		merged[name] = value
	}
	return merged
}

// withoutComments replaces comments, which the program allows in its settings, by spaces.
func withoutComments(data []byte) []byte {
	out := append([]byte(nil), data...)
	blank := func(i int) {
		if out[i] != '\n' {
			out[i] = ' '
		}
	}
	for i := 0; i < len(out); i++ {
		switch {
		case out[i] == '"':
			for i++; i < len(out) && out[i] != '"'; i++ {
				if out[i] == '\\' {
					i++
				}
			}
		case out[i] == '/' && i+1 < len(out) && out[i+1] == '/':
			for ; i < len(out) && out[i] != '\n'; i++ {
				blank(i)
			}
		case out[i] == '/' && i+1 < len(out) && out[i+1] == '*':
			begin := i
			for ; i < len(out) && !(i > begin+2 && out[i-1] == '*' && out[i] == '/'); i++ {
			}
			for k := begin; k <= min(i, len(out)-1); k++ {
				blank(k)
			}
		}
	}
	return out
}
