package render

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"cadre/internal/render/sanitize"
	"cadre/internal/team"

	"github.com/clipperhouse/displaywidth"
)

// Line is a line of a board.
type Line struct {
	Text string
	Tone Tone
}

// Saying is a text that a member or the user said or asked in a team.
type Saying struct {
	At   team.Time
	Text string
	Tone Tone
}

// Sayings returns the sayings of the record.
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
		line := event(e, r, nil)
		if m, ok := e.(*team.MessageSent); ok {
			line = fmt.Sprintf("%s → %s: %s", m.Message.From, m.Message.To, m.Message.Body)
		}
		all = append(all, Saying{r.At, Clean(line), tone})
	}
	return all
}

// Board shows a team on a screen of that size: its members, its tasks, and the last messages. Rows
// that do not fit are left out, the oldest and the finished first. The members come first: a task
// that one of them works on is named beside it.
func Board(s *team.State, said []Saying, width, height int) []Line {
	said = slices.Clone(said)
	// they come from several streams that are read one after the other
	slices.SortStableFunc(said, func(a, b Saying) int { return cmp.Compare(a.At, b.At) })
	members := roster(s, width)
	tasks := tasksOf(s)
	words := saidLines(said)
	needs := 1 + len(members) + tasks.needs() + len(words)
	room, blank := max(0, height-1), []Line(nil)
	if needs+3 <= height || height >= 40 { // there is room for optional lines
		room, blank = max(0, room-3), []Line{{}}
	}
	// Running members come first, but tasks and messages keep a few lines each. The rest is for the
	// members that have ended, and then for more messages.
	running := len(members)
	for running > 0 && members[running-1].Tone != Live && members[running-1].Tone != Plain {
		running--
	}
	forTasks, forSaid := min(tasks.needs(), 4), min(len(words), 3)
	forMembers := min(running, max(room-forTasks-forSaid, min(3, room)))
	rest := room - forMembers
	forSaid = min(len(words), max(forSaid, rest/3), max(0, rest-forTasks))
	forTasks = min(tasks.needs(), rest-forSaid)
	forMembers = min(len(members), room-forSaid-forTasks)
	forSaid = min(len(words), room-forMembers-forTasks)

	lines := append([]Line{headline(s)}, blank...)
	lines = append(lines, fit(members, forMembers, "teammates")...)
	lines = append(lines, blank...)
	if shown := tasks.fit(forTasks, members[:min(len(members), forMembers)]); len(shown) > 0 {
		lines = append(lines, shown...)
		lines = append(lines, blank...)
	}
	if forSaid > 1 {
		lines = append(lines, words[0])
		lines = append(lines, words[len(words)-forSaid+1:]...)
	}
	for i := range lines {
		lines[i].Text = Cut(lines[i].Text, width)
	}
	return lines[:min(len(lines), max(0, height))]
}

// saidLines returns the messages under a heading; none without a message.
func saidLines(said []Saying) []Line {
	if len(said) == 0 {
		return nil
	}
	lines := []Line{{"MESSAGES", Strong}}
	for _, one := range said {
		lines = append(lines, Line{Clock(one.At) + "  " + one.Text, one.Tone})
	}
	return lines
}

func headline(s *team.State) Line {
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
	if !t.Session { // a single session has no tasks
		open, completed := s.Count(team.Pending)+s.Count(team.InProgress), s.Count(team.Completed)
		parts = append(parts, team.TasksDone(completed, open+completed))
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
	case s.ReadyToConsolidate():
		parts = append(parts, "ready to be consolidated")
	case t.Status == team.TeamConsolidating && !t.Consolidation.Open():
		parts = append(parts, "winding down")
	case t.Status != team.TeamActive && t.Status != team.TeamPending:
		parts = append(parts, string(t.Status))
	}
	tone := Strong
	if t.CleanedUp {
		tone = Faint
	}
	return Line{strings.Join(parts, " · "), tone}
}

// longestName bounds how many characters of a member's name are shown.
const longestName = 20

// roster is a table with a heading: the lead, then running members, then those that have ended.
// Their tasks get two fifths of the width before the other columns.
func roster(s *team.State, width int) []Line {
	works, members := WorksOn(s), s.Roster()
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
	t.Row("MEMBER", "STATUS", "ROLE", "MODEL", "TOKENS", "NOTE")
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
		t.Row(Cut(m.Name, longestName), string(m.Status), role, m.Model, used, works[m.Name])
		tones = append(tones, tone)
	}
	t.Compact()
	t.Texts, t.Spare = []string{"NOTE"}, []string{"MODEL", "TOKENS", "ROLE"}
	t.Fit(width)
	return toned(&t, tones)
}

// You is what is said of a lead that is the user.
const You = "you"

// WorksOn says what each member works on, by name: what it waits for, its tasks in progress, or
// else what it says about itself. A lead that does nothing of that is [You] where the user leads.
func WorksOn(s *team.State) map[string]string {
	held := map[string][]string{}
	for task := range s.Underway() {
		held[task.Owner] = append(held[task.Owner], titled(task.Called(), task, " "))
	}
	works := map[string]string{}
	for _, m := range s.Roster() {
		you := ""
		if m.Name == s.Team().Lead && s.LedByUser() {
			you = You
		}
		works[m.Name] = cmp.Or(WaitsFor(s, m.Name), strings.Join(held[m.Name], ", "), summary(s, m.Summary), you)
	}
	return works
}

// WaitsFor says for what the member waits before its next turn, if that is not up to the team: a
// rate limit of its model, or a free turn.
func WaitsFor(s *team.State, member string) string {
	if l := s.WaitsForLimit(member); l != nil {
		return limitedUntil(l)
	}
	if s.WaitsForTurn(member, s.Team().UpdatedAt) {
		return "waits for a free turn"
	}
	return ""
}

// limitedUntil says until when a rate limit lasts, in local time.
func limitedUntil(l *team.RateLimit) string {
	form := "15:04"
	switch wait := l.Until.Sub(l.At); {
	case wait > 12*time.Hour:
		form = "Jan 2 15:04"
	case wait < 2*time.Minute:
		form = "15:04:05"
	}
	return "rate limit until " + time.UnixMilli(int64(l.Until)).Format(form)
}

// summary returns what a member says about itself. A host names a task in words of its own; it gets
// the form that a task in progress has.
func summary(s *team.State, text string) string {
	if rest, is := strings.CutPrefix(text, "task "); is {
		called, _, named := strings.Cut(rest, ": ")
		if t, err := s.Find(called); named && err == nil {
			return titled(t.Called(), t, " ")
		}
	}
	return text
}

// taskList has the tasks of a board: those in progress, those open, and those done, the newest of
// these first.
type taskList [3][]team.Task

var taskTones = [...]Tone{Live, Plain, Faint}

func tasksOf(s *team.State) *taskList {
	var all taskList
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
	return &all
}

// needs returns how many lines all tasks and a heading take; 0 without tasks.
func (l *taskList) needs() int {
	if n := len(l[0]) + len(l[1]) + len(l[2]); n > 0 {
		return 1 + n
	}
	return 0
}

// table returns a heading and the first tasks, in that many lines.
func (l *taskList) table(room int) []Line {
	var t Table
	t.Row("TASK", "STATUS", "OWNER", "SUBJECT")
	tones := []Tone{Strong}
	for i, some := range l {
		for _, task := range some[:min(len(some), max(0, room-len(tones)))] {
			subject := task.Subject
			if subject == task.Name {
				subject = ""
			}
			t.Row(task.Called(), shortState(task), Cut(task.Owner, longestName), subject)
			tones = append(tones, taskTones[i])
		}
	}
	t.Compact()
	return toned(&t, tones)
}

// fit returns as many task lines as there is room for. Tasks that are shown beside their members
// are left out first.
func (l *taskList) fit(room int, members []Line) []Line {
	switch needs := l.needs(); {
	case needs == 0 || room <= 0:
		return nil
	case needs <= room || room < 3:
		return l.table(room)
	}
	less := *l
	less[0] = slices.DeleteFunc(slices.Clone(l[0]), func(task team.Task) bool {
		return slices.ContainsFunc(members, func(m Line) bool {
			return strings.HasPrefix(m.Text,
				Clean(Cut(task.Owner, longestName))+" ")
		})
	})
	if less.needs() == 0 {
		less = *l
	}
	table := less.table(room - 1)
	var more []string
	sum := 0
	for i, what := range []string{"in progress", "open", "done"} {
		n := len(l[i])
		for _, line := range table {
			if line.Tone == taskTones[i] {
				n--
			}
		}
		if sum += n; n > 0 {
			more = append(more, fmt.Sprintf("%d %s", n, what))
		}
	}
	return append(table, Line{fmt.Sprintf("… and %d more tasks: %s", sum, strings.Join(more, ", ")), Faint})
}

// mostBlockers is how many blockers of a task are named.
const mostBlockers = 3

// shortState is a task's status, with the first of its blockers.
func shortState(t team.Task) string {
	if blockers := t.WaitsFor(""); t.State() == "blocked" && len(blockers) > mostBlockers {
		return fmt.Sprintf("blocked by %s +%d", strings.Join(blockers[:mostBlockers], ","), len(blockers)-mostBlockers)
	}
	return TaskState(t)
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

// fit cuts off the end of a table that has no room, and says so.
func fit(table []Line, room int, what string) []Line {
	if len(table) <= room || room < 2 {
		return table[:min(len(table), max(room, 0))]
	}
	return append(slices.Clone(table[:room-1]), Line{fmt.Sprintf("… and %d more %s", len(table)-room+1, what), Faint})
}

// Cut shortens a line to that many columns of any terminal: it counts the most columns that a
// character may take. It leaves out whole characters, with what is joined to them.
func Cut(s string, columns int) string {
	if len(s) <= columns || Widest(s) <= columns {
		return s
	}
	used, keep := Widest("…"), 0
	for clusters := displaywidth.StringGraphemes(s); clusters.Next(); {
		if used += Widest(clusters.Value()); used > columns {
			break
		}
		keep += len(clusters.Value())
	}
	return s[:keep] + "…"
}

// Widest returns the most columns that a terminal may give to the text.
func Widest(s string) (columns int) {
	for _, r := range s {
		columns += sanitize.Columns(r)
	}
	return columns
}
