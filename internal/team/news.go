package team

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// News tells one recipient of a message which tasks were added, who joined or ended, and which
// notes others changed. It comes with a message that starts a turn, and never starts one by itself.
type News struct {
	Member string // name of the recipient
	Text   string // what the recipient gets: one line, and below it one for each note that changed
	Told   Told   // what the recipient was told with this line
}

// Told says how much of what happened to the team a teammate was told.
type Told struct {
	Tasks   int64 // number of the last task that it was told of
	Changes int64 // number of the last join or end of a member that it was told of
	Notes   int64 // number of the last change of a note that it was told of
}

func (n *News) fields(c *coder) {
	c.str("member", &n.Member)
	c.str("text", &n.Text)
	c.sub("told", n.Told == Told{}, &n.Told)
}

func (t *Told) fields(c *coder) {
	c.int("tasks", &t.Tasks)
	c.int("changes", &t.Changes)
	c.int("notes", &t.Notes)
}

// NewsFor returns the news for that recipient; "" for none.
func (m *Message) NewsFor(member string) string {
	for _, n := range m.News {
		if n.Member == member {
			return n.Text
		}
	}
	return ""
}

// mostNews limits how many tasks, members or notes the news name.
const mostNews = 20

// latest returns the [Told] of a member that was told everything.
func (s *State) latest() Told {
	n := Told{Tasks: int64(len(s.tasks)), Notes: s.noteSeq}
	for i := range s.members {
		n.Changes = max(n.Changes, s.members[i].Change)
	}
	return n
}

// news returns what a member was not told yet; "" for nothing. A lead is told of notes alone: other
// messages tell it what its team does.
func (s *State) news(m *Member, about string) string {
	var lines []string
	if m.Name != s.team.Lead {
		if line := s.teamNews(m, about); line != "" {
			lines = append(lines, line)
		}
	}
	return strings.Join(append(lines, s.noteNews(m)...), "\n")
}

// teamNews returns the line about tasks and members. It leaves out what the teammate did itself,
// its own tasks, tasks that are done or deleted, and the task that the message is about.
func (s *State) teamNews(m *Member, about string) string {
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

// NoteNews returns a line for each note that others changed or deleted since the member was told of
// notes with a message; see [News].
func (s *State) NoteNews(member string) []string {
	if m := s.member(member); m != nil {
		return s.noteNews(m)
	}
	return nil
}

// noteNews returns a line for each note that others changed or deleted since the member was told of
// notes, in the order of the changes. Several changes of one note make one line.
func (s *State) noteNews(m *Member) (lines []string) {
	if s.noteSeq <= m.Told.Notes {
		return nil
	}
	type change struct {
		seq  int64
		line string
	}
	var all []change
	add := func(by, did, key string, seq int64) {
		who := by
		if by == User {
			who = "The user"
		}
		all = append(all, change{seq, fmt.Sprintf("%s %s the note %s.", who, did, Inline(clipTo(key, MaxNoteKey)))})
	}
	for i := range s.notes {
		if by, seq := s.notes[i].ChangedBy(m.Name); seq > m.Told.Notes {
			add(by, "wrote", s.notes[i].Key, seq)
		}
	}
	for _, end := range s.noteEnds {
		later := int64(0) // a change by another after it, which says more
		if n, again := s.Note(end.Key); again {
			_, later = n.ChangedBy(m.Name)
		}
		if later < end.Seq && end.By != m.Name && end.Seq > m.Told.Notes {
			add(end.By, "deleted", end.Key, end.Seq)
		}
	}
	slices.SortFunc(all, func(a, b change) int { return cmp.Compare(a.seq, b.seq) })
	older := 0
	if len(all) > mostNews+1 { // one more line takes no more space than the number of the others
		older = len(all) - mostNews
		lines = append(lines, fmt.Sprintf("%d other notes were changed before these:", older))
	}
	for _, c := range all[older:] {
		lines = append(lines, c.line)
	}
	return lines
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

// inform adds the news to a message, for each recipient that has some. A shell reads nothing, and a
// person who leads looks at the notes.
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
		if r == nil || name == d.team.Lead && !d.ledByAgent() || r.runs() || !r.Status.Running() ||
			d.ending[name] ||
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
