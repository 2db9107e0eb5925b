package acp

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"cadre/internal/sys/regularfile"
)

// geminiFiles are what the program makes in its folder when it first needs it. Each is linked before
// it is there, so that the user's folder gets it.
var geminiFiles = []string{"google_accounts.json", "installation_id", "oauth_creds.json", "state.json"}

// ownGeminiHome makes a home for one session of the program, below dir. Settings that come from
// cadre alone can stand nowhere else: the program reads those of the system from files of root only
// (its isFileAndDirectorySecureSync, 0.61.0), those of a project are in the project, and it takes
// none from its command line. Everything else of the user's home is there by links. The user's
// settings stand above ours.
func ownGeminiHome(dir, user string, ours map[string]any) (home string, err error) {
	home = filepath.Join(dir, "home")
	folder, real := filepath.Join(home, ".gemini"), filepath.Join(user, ".gemini")
	// Chats are kept in tmp. A session that is resumed looks for its own there.
	if err := errors.Join(os.MkdirAll(folder, 0o700), os.MkdirAll(filepath.Join(real, "tmp"), 0o700)); err != nil {
		return "", err
	}
	entries, err := os.ReadDir(real)
	if err != nil {
		return "", err
	}
	names := geminiFiles
	for _, e := range entries {
		names = append(names[:len(names):len(names)], e.Name())
	}
	for _, name := range names {
		if name == "settings.json" {
			continue
		}
		err := os.Symlink(filepath.Join(real, name), filepath.Join(folder, name))
		if err != nil && !errors.Is(err, fs.ErrExist) {
			return "", err
		}
	}
	if variables := filepath.Join(user, ".env"); exists(variables) {
		if err := os.Symlink(variables, filepath.Join(home, ".env")); err != nil {
			return "", err
		}
	}
	settings, err := geminiSettings(filepath.Join(real, "settings.json"), ours)
	if err != nil {
		return "", err
	}
	return home, os.WriteFile(filepath.Join(folder, "settings.json"), settings, 0o600)
}

// geminiSettings are those of the user's file above ours. What is no JSON stays as it is: the
// program says what is wrong with it.
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

// above lays settings over others. Objects are merged, and of everything else the upper one holds.
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

// withoutComments puts spaces in the place of comments, which the program allows in its settings.
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
