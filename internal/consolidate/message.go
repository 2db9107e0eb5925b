package consolidate

import (
	"fmt"
	"strings"

	"cadre/internal/render/excerpt"
	"cadre/internal/render/sanitize"
	"cadre/internal/team"
)

// These bound how many tasks a message lists, the width of its first line, and how many characters
// of a name, goal or subject it shows.
const (
	mostListed = 200
	subjectLen = 72
	maxLine    = 400
)

// message returns the commit's message: the goal, the tasks and who completed them, the members,
// the checks, and the trailers that identify the commit.
func (w *work) message(c team.Consolidation) (text string) {
	w.Replica.View(func(s *team.State) { text = messageOf(s, c) })
	return text
}

func messageOf(s *team.State, c team.Consolidation) string {
	t := s.Team()
	var b strings.Builder
	if words := strings.TrimSpace(sanitize.Lines(c.Message)); words != "" {
		b.WriteString(words + "\n")
	} else {
		subject := "Work of team " + t.Name
		if goal := excerpt.FirstLine(t.Goal); goal != "" {
			subject += ": " + oneLine(goal)
		}
		b.WriteString(excerpt.Characters(subject, subjectLen) + "\n")
	}
	listed, more := 0, 0
	for task := range s.Tasks() {
		if task.Status != team.Completed {
			continue
		}
		if listed++; listed > mostListed {
			more++
			continue
		}
		if listed == 1 {
			b.WriteString("\nTasks:\n")
		}
		about := task.Called()
		if task.Subject != task.Name {
			about += " " + oneLine(task.Subject)
		}
		fmt.Fprintf(&b, "- %s (%s)\n", about, oneLine(task.CompletedBy))
	}
	if more > 0 {
		fmt.Fprintf(&b, "- and %d more\n", more)
	}
	var members, checks []string
	for _, m := range s.Members() {
		members = append(members, fmt.Sprintf("%s (%s)", m.Name, oneLine(m.Agent)))
	}
	fmt.Fprintf(&b, "\nMembers: %s\n", strings.Join(members, ", "))
	for _, check := range t.Checks {
		checks = append(checks, oneLine(check.Name))
	}
	if len(checks) > 0 {
		fmt.Fprintf(&b, "Checks: %s\n", strings.Join(checks, ", "))
	}
	fmt.Fprintf(&b, "\nCadre-Team: %s\nCadre-Consolidation: %d\n", t.ID, c.Attempt)
	return b.String()
}

// oneLine makes one shortened line of any text.
func oneLine(s string) string { return excerpt.Characters(sanitize.Line(s), maxLine) }
