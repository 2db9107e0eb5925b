package team

import (
	"fmt"
	"slices"
	"strings"
)

// News is a line that tells one recipient of a message which tasks were added, and who joined or
// ended. It comes with a message that starts a turn, and never starts one by itself.
type News struct {
	Member string // name of the recipient
	Text   string // the line that the recipient gets
	Told   Told   // what the recipient was told with this line
}

// Told says how much of what happened to the team a teammate was told.
type Told struct {
	Tasks   int64 // number of the last task that it was told of
	Changes int64 // number of the last join or end of a member that it was told of
}

func (n *News) fields(c *coder) {
	c.str("member", &n.Member)
	c.str("text", &n.Text)
	c.sub("told", n.Told == Told{}, &n.Told)
}

func (t *Told) fields(c *coder) {
	c.int("tasks", &t.Tasks)
	c.int("changes", &t.Changes)
}

// NewsFor returns the line of news for that recipient; "" for none.
func (m *Message) NewsFor(member string) string {
	for _, n := range m.News {
		if n.Member == member {
			return n.Text
		}
	}
	return ""
}

// mostNews limits how many tasks or members one line of news names.
const mostNews = 20

// latest returns the [Told] of a member that was told everything.
func (s *State) latest() Told {
	n := Told{Tasks: int64(len(s.tasks))}
	for i := range s.members {
		n.Changes = max(n.Changes, s.members[i].Change)
	}
	return n
}

// news returns the line with what a teammate was not told yet; "" for nothing. It leaves out what
// the teammate did itself, its own tasks, tasks that are done or deleted, and the task that the
// message is about.
func (s *State) news(m *Member, about string) string {
	var tasks, joined, ended, lines []string
	for i := int(m.Told.Tasks); i < len(s.tasks); i++ {
		if t := &s.tasks[i]; t.Status.open() && t.CreatedBy != m.Name && t.Owner != m.Name && t.ID != about {
			tasks = append(tasks, t.Called())
		}
	}
	for i := range s.members {
		other := &s.members[i]
		switch {
		case other.Name == m.Name || other.Change <= m.Told.Changes:
		case other.Status.Running():
			joined = append(joined, other.Name)
		default:
			ended = append(ended, other.Name)
		}
	}
	say := func(names []string, one, many string) {
		if n := len(names); n == 1 {
			lines = append(lines, fmt.Sprintf(one, names[0]))
		} else if n > 1 {
			lines = append(lines, fmt.Sprintf(many, n, enumerated(names)))
		}
	}
	say(tasks, "Task %s was added.", "%d tasks were added: %s.")
	say(joined, "%s joined the team.", "%d members joined the team: %s.")
	say(ended, "%s has ended.", "%d members have ended: %s.")
	return strings.Join(lines, " ")
}

// enumerated lists the names, or the first of them.
func enumerated(names []string) string {
	more := len(names) - mostNews
	if more <= 1 { // one more name takes no more space than "and 1 more"
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:mostNews], ", "), more)
}

// newsless are the types of messages that come without news: a session answers them, or waits for
// them.
var newsless = []string{TypeShutdownRequest, TypePlanResponse, TypePermissionRequest, TypePermissionResponse}

// inform adds the news to a message, for each recipient that has some. Other messages tell a lead
// what its team does, and a shell reads nothing.
func (d *decision) inform(m *Message) {
	if m.Quiet || slices.Contains(newsless, m.Type) {
		return
	}
	to := m.Recipients
	if len(to) == 0 {
		to = []string{m.To}
	}
	for _, name := range to {
		r := d.member(name)
		if r == nil || name == d.team.Lead || r.Agent == Shell || !r.Status.Running() || d.ending[name] ||
			d.informed[name] {
			continue
		}
		if words := d.news(r, m.Ref); words != "" {
			if d.informed == nil {
				d.informed = map[string]bool{}
			}
			d.informed[name] = true
			m.News = append(m.News, News{name, words, d.latest()})
		}
	}
}
