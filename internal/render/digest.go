package render

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"cadre/internal/team"
)

const (
	// soon is how long a task may take so that only its end is shown.
	soon = 2 * time.Second
	// mostStartup is how many members and tasks are shown one by one when a team begins.
	mostStartup = 8
)

// Digest makes the lines that a person reads while a team runs, about one per task. A large team
// begins with one line. The start of a short task has no line. A shell member's message to the lead
// at the end of a task is left out, because the end has a line.
type Digest struct {
	startup []News // the start of the team, until its first work
	members []team.Member
	tasks   int
	working bool
	started []start // tasks whose start was not shown yet, the oldest first
	ending  bool
}

// News is one line, and when its event happened.
type News struct {
	At   team.Time
	Text string
}

type start struct {
	task string
	news News
}

// Add returns the lines to show after the record. s is the state after it.
func (d *Digest) Add(r *team.Record, s *team.State, leaveOut func(team.Event) bool) (lines []News) {
	for _, e := range r.Events {
		text := Headline(e, r, s)
		if text == "" || leaveOut(e) {
			continue
		}
		news := News{r.At, Clean(text)}
		if !d.working && d.begins(e, news) {
			continue
		}
		lines = append(lines, d.beginning()...)
		switch e := e.(type) {
		case *team.TaskClaimed:
			if !d.ending {
				d.started = append(d.started, start{e.Task, news})
			}
			continue
		case *team.TaskCompleted:
			d.forget(e.Task)
		case *team.TaskFailed:
			d.forget(e.Task)
		case *team.TaskReleased:
			d.forget(e.Task)
		case *team.TaskSubmitted:
			d.forget(e.Task)
		case *team.MessageSent:
			if from, _ := s.Member(e.Message.From); from.Agent == team.Shell && e.Message.To == s.Team().Lead &&
				e.Message.Intent == "info" && strings.HasPrefix(e.Message.Body, "Task ") {
				continue
			}
		}
		if strings.HasPrefix(text, "!") { // a person who looks now wants to see the work in progress
			lines = append(lines, d.Held()...)
		}
		lines = append(lines, news)
	}
	return lines
}

// End returns all lines that were not shown. From then on a task that starts has no line, because
// the team is being stopped.
func (d *Digest) End() []News {
	d.ending = true
	return d.Held()
}

// Held returns the lines that are held back, those of the team's start too, and releases them.
func (d *Digest) Held() (lines []News) {
	lines = d.beginning()
	for _, s := range d.started {
		lines = append(lines, s.news)
	}
	d.started = nil
	return lines
}

// Due returns the held lines that are due at that time, and when to ask again; 0 for not before the
// next record.
func (d *Digest) Due(now team.Time) (lines []News, next team.Time) {
	for len(d.started) > 0 {
		first := d.started[0].news
		if next = first.At.Add(soon); next > now {
			return lines, next
		}
		lines = append(lines, first)
		d.started = d.started[1:]
	}
	return lines, 0
}

// begins keeps the events with which a team begins.
func (d *Digest) begins(e team.Event, news News) bool {
	switch e := e.(type) {
	case *team.MemberSpawned:
		d.members = append(d.members, e.Member)
	case *team.TaskCreated:
		d.tasks++
	default:
		return false
	}
	d.startup = append(d.startup, news)
	return true
}

// beginning returns the lines for the start of the team, or one line for a large team.
func (d *Digest) beginning() []News {
	startup := d.startup
	d.startup, d.working = nil, true
	if len(startup) <= mostStartup {
		return startup
	}
	var parts []string
	if d.tasks > 0 {
		parts = append(parts, fmt.Sprintf("%d tasks", d.tasks))
	}
	switch {
	case len(d.members) > mostStartup:
		parts = append(parts, fmt.Sprintf("%d members (%s)", len(d.members), d.agents()))
	case len(d.members) > 0:
		names := make([]string, len(d.members))
		for i, m := range d.members {
			names[i] = fmt.Sprintf("%s (%s)", m.Name, m.Agent)
		}
		parts = append(parts, strings.Join(names, ", "))
	}
	return []News{{startup[len(startup)-1].At, Clean("+ " + strings.Join(parts, " for "))}}
}

// agents says how many members have each agent: 8 claude, 2 shell.
func (d *Digest) agents() string {
	count := map[string]int{}
	for _, m := range d.members {
		count[m.Agent]++
	}
	var parts []string
	for _, agent := range slices.Sorted(maps.Keys(count)) {
		parts = append(parts, fmt.Sprintf("%d %s", count[agent], agent))
	}
	return strings.Join(parts, ", ")
}

func (d *Digest) forget(task string) {
	for i, s := range d.started {
		if s.task == task {
			d.started = append(d.started[:i], d.started[i+1:]...)
			return
		}
	}
}
