package wake

import (
	"context"
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"

	"cadre/internal/sys/proc"
	"cadre/internal/sys/regularfile"
)

// Hook is what the settings of a user of Claude Code have for its sessions to be woken.
const Hook = `{"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "cadre wake", "asyncRewake": true, "timeout": 86400}]}]}}`

// maxSettings is the most that is read of a file of settings, in bytes.
const maxSettings = 4 << 20

// Session is a session of Claude Code that started this process, as a member of a team.
type Session struct {
	Claude       string // the folder of the user's settings
	Dir          string // where it runs
	Team, Member string
	Children     *proc.Register
}

// managed are the files of settings of whoever administers the machine.
var managed = []string{"/etc/claude-code/managed-settings.json",
	"/Library/Application Support/ClaudeCode/managed-settings.json"}

// Stays reports whether the session is woken by its hook when its turn has ended: one of its files
// of settings has a hook that wakes this member of this team, none turns all hooks off, and the
// session does not print an answer and end.
func (s Session) Stays(ctx context.Context) bool {
	hooked := false
	for _, file := range append([]string{filepath.Join(s.Claude, "settings.json"), filepath.Join(s.Dir, ".claude",
		"settings.json"),
		filepath.Join(s.Dir, ".claude", "settings.local.json")}, managed...) {
		has, off := s.hooks(file)
		if off {
			return false
		}
		hooked = hooked || has
	}
	return hooked && !slices.ContainsFunc(parent(ctx, s.Children), func(arg string) bool {
		return arg == "-p" ||
			arg == "--print"
	})
}

// hooks reports whether the settings have a hook that wakes the session when its turn has ended,
// and whether they turn all hooks off.
func (s Session) hooks(file string) (has, off bool) {
	data, err := regularfile.Read(file, maxSettings)
	if err != nil {
		return false, false
	}
	var settings struct {
		DisableAllHooks bool
		Hooks           json.RawMessage
	}
	var hooks struct {
		Stop []struct {
			Hooks []struct {
				Command     string
				AsyncRewake bool
			}
		}
	}
	if json.Unmarshal(data, &settings) != nil || settings.DisableAllHooks || json.Unmarshal(settings.Hooks,
		&hooks) != nil {
		return false, settings.DisableAllHooks
	}
	for _, group := range hooks.Stop {
		for _, h := range group.Hooks {
			has = has || h.AsyncRewake && s.wakenBy(h.Command)
		}
	}
	return has, false
}

// wakenBy reports whether the command is cadre wake, for the session. In one that says more than
// that, and the flags of cadre wake, there is no telling.
func (s Session) wakenBy(command string) bool {
	words := strings.Fields(command)
	for i := range words {
		words[i] = strings.Trim(words[i], `"'`)
	}
	if len(words) < 2 || filepath.Base(words[0]) != "cadre" || words[1] != "wake" {
		return false
	}
	for words = words[2:]; len(words) > 0; words = words[1:] {
		flag, value, joined := strings.Cut(words[0], "=")
		if !joined && len(words) > 1 {
			words = words[1:]
			value = words[0]
		}
		if value = strings.Trim(value, `"'`); !(flag == "--team" && value == s.Team || flag == "--as" &&
			value == s.Member) {
			return false
		}
	}
	return true
}
