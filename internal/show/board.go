package show

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"cadre/internal/sanitize"
	"cadre/internal/team"
)

// Tone is how a line stands out.
type Tone int

// The tones of lines.
const (
	Plain  Tone = iota
	Strong      // a heading
	Live        // somebody is at work on it
	Faint       // it is over
	Alarm       // it went wrong
)

// Line is a line of a board.
type Line struct {
	Text string
	Tone Tone
}

// Saying is something that was said or asked in a team.
type Saying struct {
	At   team.Time
	Text string
	Tone Tone
}

// Sayings are what the record brings of that.
func Sayings(r *team.Record) []Saying {
	var all []Saying
	for _, e := range r.Events {
		tone := Plain
		switch e.(type) {
		case *team.MessageSent:
		case *team.ShutdownRequested, *team.ShutdownAnswered, *team.PlanSubmitted, *team.PlanAnswered:
			tone = Faint
		case *team.MemberFailed, *team.GapNoticed:
			tone = Alarm
		default:
			continue
		}
		line := event(e, r)
		if m, ok := e.(*team.MessageSent); ok {
			line = fmt.Sprintf("%s → %s: %s", m.Message.From, m.Message.To, m.Message.Body)
		}
		all = append(all, Saying{r.At, Clean(line), tone})
	}
	return all
}

// Board shows a team on a screen of that size: who is in it, its tasks, and what was said last. What does not fit is left out, the oldest and the finished first.
func Board(s *team.State, said []Saying, width, height int) []Line {
	t := s.Team()
	said = slices.Clone(said)
	slices.SortStableFunc(said, func(a, b Saying) int { return cmp.Compare(a.At, b.At) }) // they come from several streams, one read after the other
	lines := []Line{{headline(s), Strong}, {}}
	roster := roster(s)
	tasks := tasks(s)
	// Of the rest of the screen each part gets what it needs, and where that is too much the messages keep a quarter.
	room := height - len(lines) - 3
	forSaid := min(len(said), max(room/4, room-len(roster)-len(tasks)))
	forRoster := min(len(roster), max(3, (room-forSaid)/3, room-forSaid-len(tasks)))
	forTasks := room - forSaid - forRoster
	lines = append(lines, fit(roster, forRoster, "teammates")...)
	lines = append(lines, Line{})
	if len(tasks) > 1 {
		lines = append(lines, fit(tasks, forTasks, "tasks")...)
		lines = append(lines, Line{})
	}
	if forSaid > 0 {
		lines = append(lines, Line{"MESSAGES", Strong})
		for _, one := range said[len(said)-forSaid:] {
			lines = append(lines, Line{Clock(one.At) + "  " + one.Text, one.Tone})
		}
	}
	if t.CleanedUp {
		lines[0].Tone = Faint
	}
	for i := range lines {
		lines[i].Text = Cut(lines[i].Text, width)
	}
	return lines[:min(len(lines), max(0, height))]
}

func headline(s *team.State) string {
	t := s.Team()
	name := Clean(t.Name)
	switch {
	case t.Session && t.Observed == t.Name:
		name = "a session of " + name
	case t.Session:
		name += " (a session of " + Clean(t.Observed) + ")"
	case t.Observed != "" && t.Observed != t.Name:
		name += " (" + Clean(t.Observed) + ")"
	}
	parts := []string{name}
	if !t.Session { // one has no tasks
		open, completed := s.Count(team.Pending)+s.Count(team.InProgress), s.Count(team.Completed)
		parts = append(parts, fmt.Sprintf("%d of %d tasks done", completed, open+completed))
	}
	if n := t.Usage.Tokens(); n > 0 {
		parts = append(parts, fmt.Sprintf("%d tokens", n))
	}
	if t.Usage.CostMicroUSD > 0 {
		parts = append(parts, fmt.Sprintf("$%.4f", float64(t.Usage.CostMicroUSD)/1e6))
	}
	switch {
	case t.CleanedUp:
		parts = append(parts, "the team is gone")
	case t.Status != team.TeamActive && t.Status != team.TeamPending:
		parts = append(parts, string(t.Status))
	}
	return strings.Join(parts, " · ")
}

// roster is a table with a heading: the lead, then those who run, then those who have ended.
func roster(s *team.State) []Line {
	works, members := WorksOn(s), s.Members()
	lead := s.Team().Lead
	rank := func(m team.Member) int {
		switch {
		case m.Name == lead:
			return 0
		case m.Status.Running():
			return 1
		}
		return 2
	}
	slices.SortStableFunc(members, func(a, b team.Member) int { return rank(a) - rank(b) })
	var t Table
	t.Row("MEMBER", "STATUS", "ROLE", "MODEL", "TOKENS", "WORKS ON")
	tones := []Tone{Strong}
	for _, m := range members {
		role, tone := m.Role, Plain
		if m.Name == lead {
			role = "lead"
		}
		switch {
		case m.Status == team.Failed:
			tone = Alarm
		case !m.Status.Running():
			tone = Faint
		case m.Status == team.Active && m.Name != lead:
			tone = Live
		}
		used := ""
		if n := m.Usage.Tokens(); n > 0 {
			used = fmt.Sprint(n)
		}
		t.Row(m.Name, string(m.Status), role, m.Model, used, works[m.Name])
		tones = append(tones, tone)
	}
	return toned(&t, tones)
}

// WorksOn is what each member works on, by their names: the tasks that it has in progress; where there are none, what it says of itself.
func WorksOn(s *team.State) map[string]string {
	held := map[string][]string{}
	for task := range s.Underway() {
		held[task.Owner] = append(held[task.Owner], task.ID+" "+task.Subject)
	}
	works := map[string]string{}
	for _, m := range s.Members() {
		works[m.Name] = cmp.Or(strings.Join(held[m.Name], ", "), m.Summary)
	}
	return works
}

// tasks is a table with a heading: what is in progress, what is open, what is done, the newest of that first.
func tasks(s *team.State) []Line {
	var all [3][]team.Task
	for task := range s.Tasks() {
		switch task.Status {
		case team.InProgress:
			all[0] = append(all[0], task)
		case team.Pending:
			all[1] = append(all[1], task)
		case team.Completed:
			all[2] = append(all[2], task)
		}
	}
	slices.Reverse(all[2])
	var t Table
	t.Row("TASK", "STATUS", "OWNER", "SUBJECT")
	tones := []Tone{Strong}
	for i, some := range all {
		for _, task := range some {
			t.Row(task.ID, TaskState(task), task.Owner, task.Subject)
			tones = append(tones, [...]Tone{Live, Plain, Faint}[i])
		}
	}
	return toned(&t, tones)
}

func toned(t *Table, tones []Tone) []Line {
	var text strings.Builder
	_ = t.Write(&text)
	var lines []Line
	for line := range strings.Lines(text.String()) {
		lines = append(lines, Line{strings.TrimRight(line, " \n"), tones[len(lines)]})
	}
	return lines
}

// fit leaves out the end of a table that has no room, and says so.
func fit(table []Line, room int, what string) []Line {
	if len(table) <= room || room < 2 {
		return table[:min(len(table), max(room, 0))]
	}
	return append(slices.Clone(table[:room-1]), Line{fmt.Sprintf("… and %d more %s", len(table)-room+1, what), Faint})
}

// Cut shortens a line to so many columns of a terminal.
func Cut(s string, columns int) string {
	if len(s) <= columns {
		return s
	}
	used, keep := 0, 0
	for i, r := range s {
		used += sanitize.Columns(r)
		if used > columns {
			return s[:keep] + "…"
		}
		if used < columns {
			keep = i + utf8.RuneLen(r)
		}
	}
	return s
}
