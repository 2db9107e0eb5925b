package teams

import (
	"errors"
	"os"
	"path/filepath"

	"cadre/internal/claude/settings"
	"cadre/internal/layout"
)

// EnvVar is the environment variable of the feature gate.
const EnvVar = "CLAUDE_CODE_EXPERIMENTAL_AGENT_TEAMS"

// ErrDisabled is the error of [New] if Options.Gate is set and the feature is not enabled.
var ErrDisabled = errors.New("agent teams are not enabled; set " + EnvVar + "=1 in the environment, or in \"env\" of " +
	"Claude Code's settings.json")

// Enabled reports whether agent teams are enabled for a program with these options, by the rules of
// Claude Code. [EnvVar] must be 1, true, yes or on, ignoring case. "env" in a settings.json
// replaces the value of the environment. Project settings replace the user's, settings.local.json
// replaces the project's, and managed settings replace all. An unreadable file is ignored. Of the
// options, only ClaudeHome and Dir matter.
func Enabled(o Options) bool {
	claude := o.ClaudeHome
	if claude == "" {
		if h, err := layout.Find(); err == nil {
			claude = h.Claude
		}
	}
	dir, err := filepath.Abs(o.Dir)
	if err != nil {
		dir = o.Dir
	}
	value, set := settings.Env(EnvVar, settings.Files(claude, dir)...)
	if !set {
		value = os.Getenv(EnvVar)
	}
	return settings.Truthy(value)
}
