package readonly

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os/user"
	"path/filepath"
	"slices"
	"syscall"

	"cadre/internal/sys/regularfile"
)

// Unasked reports whether a call only reads, and no deny or ask rule in the user's or the project's
// settings for Claude Code may apply to it. Such a call needs no permission. Settings that cannot
// be read may contain such a rule. Variables in the user's settings count like those of [Scope]. A
// project's settings may set no variable that [Steers].
func (s Scope) Unasked(tool, input string) bool {
	if !slices.Contains(lookers, tool) { // checked first: the settings are in a dozen files
		return false
	}
	home := s.home()
	rules, env, err := s.settings()
	if err != nil {
		return false
	}
	s.Env = append(slices.Clip(s.Env), env...)
	found, ok := s.Call(tool, input)
	if !ok {
		return false
	}
	bases := append([]string{s.Dir}, s.Roots...)
	return !slices.ContainsFunc(rules, func(rule string) bool {
		return slices.ContainsFunc(bases, func(base string) bool { return found.Concerns(rule, home, base) })
	})
}

// home returns the user's home folder.
func (s Scope) home() string {
	if home := Environment(s.Env)["HOME"]; home != "" {
		return home
	}
	u, err := user.Current()
	if err != nil {
		return ""
	}
	return u.HomeDir
}

// maxSettings bounds a settings file.
const maxSettings = 1 << 20

// managed are the folders of the machine's settings.
var managed = []string{"/etc/claude-code", "/Library/Application Support/ClaudeCode"}

// claudeFolders returns the folders in which Claude Code may look for the settings and agents of a
// session here. The user's come first, then the machine's, then those of the project and the
// folders above it.
func (s Scope) claudeFolders() []string {
	config := Environment(s.Env)["CLAUDE_CONFIG_DIR"]
	if config == "" {
		config = filepath.Join(s.home(), ".claude")
	}
	folders := []string{config}
	for _, folder := range managed {
		folders = append(folders, filepath.Join(folder, ".claude"))
	}
	own, _ := filepath.EvalSymlinks(config)
	for _, dir := range append([]string{s.Dir}, s.Roots...) {
		for {
			folder := filepath.Join(dir, ".claude")
			if real, err := filepath.EvalSymlinks(folder); !slices.Contains(folders, folder) &&
				(err != nil || real != own) {
				folders = append(folders, folder)
			}
			if dir == filepath.Dir(dir) {
				break
			}
			dir = filepath.Dir(dir)
		}
	}
	return folders
}

// settings returns the deny and ask rules that apply where the command runs, and the variables in
// the settings of the user and the machine.
func (s Scope) settings() (rules, env []string, err error) {
	folders := s.claudeFolders()
	trusted := []string{filepath.Join(folders[0], "settings.json"), filepath.Join(folders[0], "settings.local.json")}
	for _, folder := range managed {
		more, err := filepath.Glob(filepath.Join(folder, "managed-settings.d", "*.json"))
		if err != nil {
			return nil, nil, err
		}
		trusted = append(append(trusted, filepath.Join(folder, "managed-settings.json")), more...)
	}
	files := slices.Clip(trusted)
	for _, folder := range folders[1:] {
		files = append(files, filepath.Join(folder, "settings.json"), filepath.Join(folder, "settings.local.json"))
	}
	for i, file := range files {
		data, err := regularfile.Read(file, maxSettings)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
			continue
		}
		var settings struct {
			Permissions struct{ Deny, Ask []string }
			Env         map[string]any
		}
		if err == nil {
			err = json.Unmarshal(data, &settings)
		}
		if err != nil {
			return nil, nil, err
		}
		rules = slices.Concat(rules, settings.Permissions.Deny, settings.Permissions.Ask)
		for name, value := range settings.Env {
			if i < len(trusted) {
				env = append(env, fmt.Sprintf("%s=%v", name, value))
			} else if Steers(name) {
				return nil, nil, fmt.Errorf("%s sets %s", file, name)
			}
		}
	}
	return rules, env, nil
}
