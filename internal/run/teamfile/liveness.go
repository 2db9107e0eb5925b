package teamfile

import (
	"cmp"
	"path/filepath"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"

	"cadre/internal/team"
)

// Liveness says how long silence lasts before a team acts on it. Zero is for the core's default.
type Liveness struct {
	Beat        time.Duration // between two heartbeats
	Offline     time.Duration // silence after which a member is offline
	LeadLost    time.Duration // silence after which the lead is lost
	Zombie      time.Duration // how long a teammate works without a lead
	Blocked     time.Duration // how long a blocked teammate keeps its task without a lead
	Undelivered time.Duration // wait of a message before the lead is notified
	Stale       time.Duration // silence after which another session may take the lead
	Checkpoint  time.Duration // between two checkpoints of a team that changes
}

// The core's defaults for periods that are left out, where other periods must be longer than these.
const (
	usualBeat     = 30 * time.Second
	usualOffline  = 10 * time.Minute
	usualLeadLost = 5 * time.Minute
)

// MinPeriod is the shortest period. With a shorter one a host would do nothing but send heartbeats.
const MinPeriod = 100 * time.Millisecond

// Fact is a file that all members rely on.
type Fact struct {
	Name string // its path if the file gives no name
	Path string // clean; absolute, or relative to the team's directory
}

func (p *parser) liveness(root *mapping) (l Liveness) {
	n := root.values["liveness"]
	if n == nil {
		return l
	}
	m := p.mapping(n, "liveness", "beat", "offline", "leadLost", "zombie", "blocked", "undelivered",
		"stale", "checkpoint")
	if m == nil {
		return l
	}
	period := func(key string) time.Duration {
		d := m.duration(key, 0)
		if d != 0 && d < MinPeriod {
			p.fail(m.at(key), "%s is %s; a period is at least %s", key, team.Span(d), team.Span(MinPeriod))
			return 0
		}
		return d
	}
	l = Liveness{Beat: period("beat"), Offline: period("offline"), LeadLost: period("leadLost"),
		Zombie: period("zombie"), Blocked: period("blocked"),
		Undelivered: period("undelivered"), Stale: period("stale"), Checkpoint: period("checkpoint")}
	beat := cmp.Or(l.Beat, usualBeat)
	for _, silence := range []struct {
		key  string
		long time.Duration
	}{{"offline", cmp.Or(l.Offline, usualOffline)}, {"leadLost", cmp.Or(l.LeadLost, usualLeadLost)}} {
		if silence.long > beat {
			continue
		}
		at := m.at(silence.key)
		if m.values[silence.key] == nil {
			at = m.at("beat")
		}
		p.fail(at, "%s is %s, but a heartbeat comes only every %s, so a running member would count as silent; make "+
			"%s longer, or beat shorter", silence.key, team.Span(silence.long), team.Span(beat), silence.key)
	}
	return l
}

// facts reads the key facts: paths, or names with their paths.
func (p *parser) facts(root *mapping) (facts []Fact) {
	seen := map[string]int{}
	for _, n := range root.list("facts", "paths, or of mappings with name: and path:") {
		f, at := Fact{}, n
		if n.Kind == yaml.MappingNode {
			m := p.mapping(n, "a fact", "name", "path")
			f.Name, f.Path, at = m.line("name"), m.line("path"), m.at("path")
		} else if text, ok := p.scalar(n, "an entry of facts"); ok {
			f.Path = text
		} else {
			continue
		}
		if strings.TrimSpace(f.Path) == "" || strings.ContainsAny(f.Path, "\n\r") {
			p.fail(at, "a fact is a file that all members rely on; write its path, in one line")
			continue
		}
		f.Path = filepath.Clean(f.Path)
		if !filepath.IsAbs(f.Path) && !filepath.IsLocal(f.Path) {
			p.fail(at, "%s is outside of the team's directory; write its absolute path", shorten(f.Path))
			continue
		}
		f.Name = cmp.Or(strings.TrimSpace(f.Name), f.Path)
		if line, twice := seen[f.Name]; twice {
			p.fail(n, "a fact %q is already on line %d; give this one another name, or remove it",
				shorten(f.Name), line)
			continue
		}
		seen[f.Name] = n.Line
		facts = append(facts, f)
	}
	return facts
}
