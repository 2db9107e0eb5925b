package wake

import (
	"encoding/json"
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"cadre/internal/sys/regularfile"
)

// Hook is the setting with which a user of Claude Code lets cadre wake their sessions.
const Hook = `{"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "cadre wake", "asyncRewake": true, "timeout": 86400}]}]}}`

// maxSettings bounds how much of a settings file is read, in bytes.
const maxSettings = 4 << 20

// Session is a session of Claude Code that started this process, as a member of a team.
type Session struct {
	Claude       string   // the folder of the user's settings
	Dir          string   // where it runs
	Managed      []string // settings files of the machine's administrator
	Team, Member string
}

// Stays reports whether a hook wakes the session when its turn has ended. One of its settings files
// must have a hook that wakes this member of this team and may run, and the session must not be one
// that prints an answer and ends.
func (s Session) Stays() bool { return s.hooked() && !prints(starter()) }

// prints reports whether a Claude Code with that command line prints an answer and ends.
func prints(args []string) bool {
	return slices.ContainsFunc(args, func(arg string) bool { return arg == "-p" || arg == "--print" })
}

// hooked reports whether one of the files has a hook that wakes the session, and no file prevents
// it. The administrator can turn off all hooks, or all but their own. A user's own files can turn
// off all hooks except the administrator's.
func (s Session) hooked() bool {
	has, off := false, false
	for _, file := range []string{filepath.Join(s.Claude, "settings.json"),
		filepath.Join(s.Dir, ".claude", "settings.json"), filepath.Join(s.Dir, ".claude", "settings.local.json")} {
		settings, _ := readSettings(file) // Claude Code ignores a file that it cannot read
		has = has || s.wokenBy(settings)
		off = off || settings.DisableAllHooks
	}
	managed := false
	for _, file := range s.Managed {
		settings, err := readSettings(file)
		if err != nil || settings.DisableAllHooks { // it may turn off all hooks
			return false
		}
		managed = managed || s.wokenBy(settings)
		off = off || settings.AllowManagedHooksOnly || settings.pluginsOnly()
	}
	return managed || has && !off
}

// settings are the parts of a settings file that matter here.
type settings struct {
	DisableAllHooks bool
	// In the administrator's files only.
	AllowManagedHooksOnly         bool
	StrictPluginOnlyCustomization json.RawMessage

	Hooks json.RawMessage
}

// readSettings reads a settings file. A missing file is empty.
func readSettings(file string) (s settings, err error) {
	data, err := regularfile.Read(file, maxSettings)
	if errors.Is(err, fs.ErrNotExist) {
		return settings{}, nil
	}
	if err == nil {
		err = json.Unmarshal(data, &s)
	}
	if err != nil {
		return settings{}, err
	}
	return s, nil
}

// pluginsOnly reports whether the settings allow only hooks of plugins and of the administrator:
// the value is true, or a list.
func (s settings) pluginsOnly() bool {
	var all bool
	var some []string
	return json.Unmarshal(s.StrictPluginOnlyCustomization, &all) == nil && all ||
		json.Unmarshal(s.StrictPluginOnlyCustomization, &some) == nil && slices.Contains(some, "hooks")
}

// wokenBy reports whether the settings have a hook that wakes the session at the end of its turn.
func (s Session) wokenBy(in settings) bool {
	var hooks struct {
		Stop []struct {
			Hooks []struct {
				Command     string
				AsyncRewake bool
			}
		}
	}
	if json.Unmarshal(in.Hooks, &hooks) != nil {
		return false
	}
	for _, group := range hooks.Stop {
		for _, h := range group.Hooks {
			if h.AsyncRewake && s.wakes(h.Command) {
				return true
			}
		}
	}
	return false
}

// wakes reports whether the command is cadre wake, for this session. A command with anything more
// than its flags does not count, because its effect is unknown.
func (s Session) wakes(command string) bool {
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
