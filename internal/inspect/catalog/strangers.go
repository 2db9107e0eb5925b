package catalog

import (
	"cmp"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"cadre/internal/claude/teamfiles"
	"cadre/internal/layout"
	"cadre/internal/sys/proc"
	"cadre/internal/team"
)

// Stranger is a team that Claude Code runs by itself, as its files show it. cadre did not create
// it.
type Stranger struct {
	Name      string
	Goal      string
	Teammates int            // teammates in its roster
	Members   []string       // names in its roster
	Tasks     map[string]int // number of tasks by status
	UpdatedAt team.Time      // when a file of it last changed
	Active    bool           // the process of its lead is running, or a file of it changed lately
	Err       error          // why its files cannot be read
}

// mostStrangers bounds how many of these teams are listed: those that changed last.
const mostStrangers = 50

// Strangers lists the teams of Claude Code repeatedly, and reads only those that changed. The zero
// value is ready for use. One goroutine owns it.
type Strangers struct {
	known map[string]stranger
}

// lately is how long a team counts as active after a file of it changed. Claude Code says which
// process leads only in some versions, and a process in a container cannot be seen.
const lately = 10 * time.Minute

// stranger is a team that was read, and the times of its files then.
type stranger struct {
	team  Stranger
	lead  process
	times [3]time.Time
}

// List returns the teams in Claude Code's folder that are not projections of cadre's own teams, the
// one that changed last first. It changes nothing there.
func (s *Strangers) List(ctx context.Context, home layout.Home) []Stranger {
	entries, err := os.ReadDir(filepath.Join(home.Claude, "teams"))
	if err != nil { // most people have no such folder
		return nil
	}
	type candidate struct {
		name  string
		times [3]time.Time // of its roster, inboxes and tasks
	}
	var all []candidate
	for _, e := range entries {
		one := candidate{name: e.Name()}
		for i, path := range []string{filepath.Join("teams", e.Name(), "config.json"),
			filepath.Join("teams", e.Name(), "inboxes"), filepath.Join("tasks", e.Name())} {
			if info, err := os.Stat(filepath.Join(home.Claude, path)); err == nil {
				one.times[i] = info.ModTime()
			}
		}
		if !one.times[0].IsZero() {
			all = append(all, one)
		}
	}
	latest := func(c candidate) time.Time { return slices.MaxFunc(c.times[:], time.Time.Compare) }
	slices.SortFunc(all, func(a, b candidate) int {
		return cmp.Or(latest(b).Compare(latest(a)), cmp.Compare(a.name, b.name))
	})
	now := map[string]stranger{}
	var list []Stranger
	for _, one := range all {
		if len(list) == mostStrangers {
			break
		}
		was, is := s.known[one.name]
		if !is || was.times != one.times {
			ours := false
			if was.team, was.lead, ours = read(ctx, home, one.name); ours {
				was.team.Name = ""
			}
			was.team.UpdatedAt = team.Time(latest(one).UnixMilli())
			was.times = one.times
		}
		was.team.Active = was.team.Err == nil && (was.lead.runs() || time.Since(latest(one)) < lately)
		now[one.name] = was
		if was.team.Name != "" {
			list = append(list, was.team)
		}
	}
	s.known = now
	return list
}

// process is the process that leads a team of Claude Code, as its files name it.
type process struct {
	pid   int
	start string // its start time, as the kernel counts it
}

// runs reports whether the process is running.
func (p process) runs() bool {
	if p.pid <= 0 || p.start == "" {
		return false
	}
	start, err := proc.StartTime(p.pid)
	return err == nil && strings.HasSuffix(start, ":"+p.start) && proc.Alive(p.pid, start)
}

// read reads the files of a team. ours reports that it is a projection of a team of cadre's.
func read(ctx context.Context, home layout.Home, name string) (s Stranger, lead process, ours bool) {
	s = Stranger{Name: name, Tasks: map[string]int{}}
	t, err := teamfiles.Open(home.Claude, name)
	if err != nil {
		s.Err = err
		return s, lead, team.CodeOf(err) == team.Invalid // it is not the folder of a team
	}
	c, err := t.Config(ctx)
	if err != nil || c.Cadre != nil {
		s.Err = err
		return s, lead, c.Cadre != nil
	}
	if c.LeadProcess != nil {
		lead = process{c.LeadProcess.PID, c.LeadProcess.ProcStart}
	}
	s.Goal = c.Description
	for _, m := range c.Members {
		s.Members = append(s.Members, m.Name)
		if m.Name != teamfiles.Lead {
			s.Teammates++
		}
	}
	tasks, _ := t.Tasks(ctx) // one that cannot be read does not count
	for _, one := range tasks {
		s.Tasks[one.Status]++
	}
	return s, lead, false
}
