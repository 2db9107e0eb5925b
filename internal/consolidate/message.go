package consolidate

import (
	"fmt"
	"strings"

	"cadre/internal/render"
	"cadre/internal/render/excerpt"
	"cadre/internal/render/sanitize"
	"cadre/internal/team"
)

// What a message lists at most, and the width of its first line.
const (
	mostListed = 200
	subjectLen = 72
)

// message is that of the commit: what was asked for, the tasks and who did them, who took part,
// what was checked, and last by what it is known again.
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
		goal, _, _ := strings.Cut(strings.TrimSpace(t.Goal), "\n")
		subject := "Work of team " + t.Name
		if goal != "" {
			subject += ": " + render.Clean(goal)
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
		fmt.Fprintf(&b, "- %s %s (%s)\n", task.ID, render.Clean(task.Subject), render.Clean(task.CompletedBy))
	}
	if more > 0 {
		fmt.Fprintf(&b, "- and %d more\n", more)
	}
	var members, checks []string
	for _, m := range s.Members() {
		members = append(members, fmt.Sprintf("%s (%s)", m.Name, render.Clean(m.Agent)))
	}
	fmt.Fprintf(&b, "\nMembers: %s\n", strings.Join(members, ", "))
	for _, check := range t.Checks {
		checks = append(checks, render.Clean(check.Name))
	}
	if len(checks) > 0 {
		fmt.Fprintf(&b, "Checks: %s\n", strings.Join(checks, ", "))
	}
	fmt.Fprintf(&b, "\nCadre-Team: %s\nCadre-Consolidation: %d\n", t.ID, c.Attempt)
	return b.String()
}
