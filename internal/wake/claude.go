package wake

import (
	"context"
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"

	"cadre/internal/proc"
	"cadre/internal/regularfile"
)

// Hook is what the settings of a user of Claude Code have for its sessions to be woken.
const Hook = `{"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "cadre wake", "asyncRewake": true, "timeout": 86400}]}]}}`

// maxSettings is the most that is read of a file of settings, in bytes.
const maxSettings = 4 << 20

// ClaudeStays reports whether the session of Claude Code that started this process is woken by its hook when its turn has ended: one of its files of settings has the
// hook, and it does not print an answer and end. claude is the folder of the user's settings, dir the project.
func ClaudeStays(ctx context.Context, claude, dir string, children *proc.Register) bool {
	hooked := slices.ContainsFunc([]string{filepath.Join(claude, "settings.json"), filepath.Join(dir, ".claude", "settings.json"), filepath.Join(dir, ".claude", "settings.local.json")}, hooked)
	return hooked && !slices.ContainsFunc(parent(ctx, children), func(arg string) bool { return arg == "-p" || arg == "--print" })
}

// hooked reports whether the settings have a hook that wakes a session whose turn ended.
func hooked(file string) bool {
	data, err := regularfile.Read(file, maxSettings)
	if err != nil {
		return false
	}
	var settings struct {
		Hooks struct {
			Stop []struct {
				Hooks []struct {
					Command     string
					AsyncRewake bool
				}
			}
		}
		DisableAllHooks bool
	}
	if json.Unmarshal(data, &settings) != nil || settings.DisableAllHooks {
		return false
	}
	for _, group := range settings.Hooks.Stop {
		for _, h := range group.Hooks {
			if words := strings.Fields(h.Command); h.AsyncRewake && len(words) > 1 && strings.Trim(filepath.Base(words[0]), `"'`) == "cadre" && words[1] == "wake" {
				return true
			}
		}
	}
	return false
}
