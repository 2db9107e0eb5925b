package run

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"cadre/internal/run/teamfile"
	"cadre/internal/team"
)

// ParseChecks reads checks as a person types them: a command, or "NAME: COMMAND" with a name of
// letters, digits, _ and -.
func ParseChecks(typed []string) ([]team.Check, error) {
	var all []team.Check
	for _, text := range typed {
		c := team.Check{Name: strings.Join(strings.Fields(text), " "), Command: text}
		if name, command, named := strings.Cut(text, ": "); named && team.ValidName(name) {
			c = team.Check{Name: name, Command: command}
		}
		if strings.TrimSpace(c.Command) == "" {
			return nil, team.Refuse(team.Invalid, "%q is not a check; write COMMAND or \"NAME: COMMAND\"", text)
		}
		all = append(all, c)
	}
	return all, nil
}

// ParseFacts reads facts as a person types them: NAME=PATH, or a path alone, which is then also the
// name.
func ParseFacts(typed []string) ([]team.Fact, error) {
	var all []team.Fact
	for _, text := range typed {
		name, path, named := strings.Cut(text, "=")
		if !named {
			name, path = text, text
		}
		if strings.TrimSpace(name) == "" || strings.TrimSpace(path) == "" {
			return nil, team.Refuse(team.Invalid, "%q is not a fact; write NAME=PATH", text)
		}
		if path = filepath.Clean(path); strings.HasPrefix(path, ".."+string(os.PathSeparator)) || path == ".." {
			return nil, team.Refuse(team.Invalid, "%s is outside of the team's directory; write its absolute path",
				path)
		}
		all = append(all, team.Fact{Name: name, Path: path})
	}
	return all, nil
}

// ParseTiming reads periods as a person types them, by their names in a team file.
func ParseTiming(typed map[string]string) (t team.Timing, err error) {
	known := map[string]*time.Duration{"beat": &t.Beat, "offline": &t.Offline, "leadLost": &t.LeadLost,
		"zombie": &t.Zombie, "blocked": &t.Blocked, "undelivered": &t.Undelivered, "stale": &t.Stale,
		"checkpoint": &t.Checkpoint}
	for _, name := range slices.Sorted(maps.Keys(typed)) {
		to := known[name]
		if to == nil {
			return t, team.Refuse(team.Invalid, "no period is named %q; their names are %s", name,
				strings.Join(slices.Sorted(maps.Keys(known)), ", "))
		}
		if *to, err = time.ParseDuration(typed[name]); err != nil || *to < teamfile.MinPeriod {
			return t,
				team.Refuse(team.Invalid, "%s=%s is not a period; pass one such as 90s or 10m, of at least %s", name,
					typed[name], team.Span(teamfile.MinPeriod))
		}
	}
	return t, nil
}
