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

// Hook is what the settings of a user of Claude Code have for its sessions to be woken.
const Hook = `{"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "cadre wake", "asyncRewake": true, "timeout": 86400}]}]}}`

// maxSettings is the most that is read of a file of settings, in bytes.
const maxSettings = 4 << 20

// Session is a session of Claude Code that started this process, as a member of a team.
type Session struct {
	Claude       string   // the folder of the user's settings
	Dir          string   // where it runs
	Managed      []string // files of settings of whoever administers the machine
	Team, Member string
}

// Stays reports whether the session is woken by its hook when its turn has ended: a hook that wakes
// this member of this team is in one of its files of settings and may run, and the session does not
// print an answer and end.
func (s Session) Stays() bool { return s.hooked() && !prints(starter()) }

// prints reports whether a Claude Code with that command line prints an answer and ends.
func prints(args []string) bool {
	return slices.ContainsFunc(args, func(arg string) bool { return arg == "-p" || arg == "--print" })
}

// hooked reports whether one of the files has a hook that wakes the session, and none keeps it from
// running. Whoever administers the machine turns all hooks off, or all but their own. A user's own
// files turn off all hooks but those.
func (s Session) hooked() bool {
	has, off := false, false
	for _, file := range []string{filepath.Join(s.Claude, "settings.json"),
		filepath.Join(s.Dir, ".claude", "settings.json"), filepath.Join(s.Dir, ".claude", "settings.local.json")} {
		settings, _ := readSettings(file) // one that Claude Code cannot read does not count there either
		has = has || s.wokenBy(settings)
		off = off || settings.DisableAllHooks
	}
	managed := false
	for _, file := range s.Managed {
		settings, err := readSettings(file)
		if err != nil || settings.DisableAllHooks { // what it says may be that there are no hooks
			return false
		}
		managed = managed || s.wokenBy(settings)
		off = off || settings.AllowManagedHooksOnly || settings.pluginsOnly()
	}
	return managed || has && !off
}

// settings is what counts here in a file of settings.
type settings struct {
	DisableAllHooks bool
	// Of the files of whoever administers the machine alone.
	AllowManagedHooksOnly         bool
	StrictPluginOnlyCustomization json.RawMessage

	Hooks json.RawMessage
}

// readSettings reads a file of settings. One that does not exist says nothing.
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

// pluginsOnly reports whether the settings allow no hooks but those of plugins and their own: the
// value is true, or lists what is meant.
func (s settings) pluginsOnly() bool {
	var all bool
	var some []string
	return json.Unmarshal(s.StrictPluginOnlyCustomization, &all) == nil && all ||
		json.Unmarshal(s.StrictPluginOnlyCustomization, &some) == nil && slices.Contains(some, "hooks")
}

// wokenBy reports whether the settings have a hook that wakes the session when its turn has ended.
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

// wakes reports whether the command is cadre wake, for the session. In one that says more than that,
// and the flags of cadre wake, there is no telling.
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
