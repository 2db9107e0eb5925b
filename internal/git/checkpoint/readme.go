package checkpoint

import (
	"fmt"
	"strings"
	"time"
	"unicode"

	"cadre/internal/render/excerpt"
	"cadre/internal/render/redact"
	"cadre/internal/team"
)

// readme writes the text of README.md, which tells a reader on a forge what the branch is.
type readme struct {
	goal    string
	members []string
}

// Bounds of what README.md shows.
const (
	mostShown = 20  // members, tasks, branches
	goalSize  = 500 // bytes
)

func (r *readme) see(s *team.State, doc document) {
	r.goal = s.Team().Goal
	for _, m := range doc.Teammates {
		r.members = append(r.members, fmt.Sprintf("| %s | %s | %s | %s |", plain(m.ID), plain(m.Agent),
			plain(string(m.Status)), plain(m.Task)))
	}
}

func (r *readme) text(doc document) []byte {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	q, name := doc.Queue, plain(doc.TeamName)
	line("# Team %s\n", name)
	line("This branch holds checkpoints of a team of coding agents: what the team is, and the work that it has not " +
		"merged yet. It is written by cadre, is not meant to be merged,")
	line("and CI should not build it.\n")
	if goal := strings.TrimSpace(r.goal); goal != "" {
		line("> %s\n", plain(excerpt.Line(redact.Text(goal), goalSize)))
	}
	line("%s, %s, %d in progress, %d pending. %s, the last of %s.\n",
		plain(string(doc.Status)), team.TasksDone(q.Count, q.Count+len(q.Pending)+len(q.InProgress)),
		len(q.InProgress), len(q.Pending), team.Count(doc.Sequence, "record"),
		time.UnixMilli(int64(doc.Updated)).UTC().Format(
			"2006-01-02 15:04 UTC"))
	if len(r.members) > 0 {
		line("| member | agent | status | task |\n| --- | --- | --- | --- |")
		for i, m := range r.members {
			if i == mostShown {
				line("| and %d more | | | |", len(r.members)-i)
				break
			}
			line("%s", m)
		}
		line("")
	}
	for i, c := range q.InProgress {
		if i == mostShown {
			line("* and %d more", len(q.InProgress)-i)
			break
		}
		line("* task %s (%s): %s", plain(c.ID), plain(c.Assignee), plain(redact.Text(c.Subject)))
	}
	if len(q.InProgress) > 0 {
		line("")
	}
	for _, n := range doc.Nested {
		if n.Commit != "" {
			line("* team %s in it: `%.12s`", plain(n.Name), n.Commit)
		}
	}
	r.work(doc.Work, line)
	line("To continue the team in a clone of this repository:\n\n    cadre pull %s\n    cadre resume %s\n",
		doc.TeamName, doc.TeamName)
	line("`git log --first-parent` lists the checkpoints. What a team is restored from is in `.claude/teams/%s`.",
		doc.TeamName)
	return []byte(b.String())
}

// work lists the work that is carried.
func (r *readme) work(w Work, line func(string, ...any)) {
	for i, t := range w.Branches {
		if i == mostShown {
			line("* and %d more branches", len(w.Branches)-i)
			break
		}
		line("* branch %s: `%.12s`", plain(t.Name), t.Commit)
	}
	if w.Shared != "" {
		line("* changes in the team's directory that are not committed: `%.12s`", w.Shared)
	}
	left := 0
	for _, l := range w.Left {
		if !l.Ignored {
			line("* not carried: %s", plain(l.String()))
			left++
		}
	}
	if len(w.Branches)+left > 0 || w.Shared != "" {
		line("")
	}
}

// plain returns a text that a page shows literally: without markup, links, mentions, and characters
// that reorder others.
func plain(text string) string {
	var b strings.Builder
	for _, r := range text {
		switch {
		case r == ' ' || r == ',' || r == '-' || r >= '0' && r <= '9' || unicode.IsLetter(r):
			b.WriteRune(r)
		case unicode.IsPrint(r):
			fmt.Fprintf(&b, "&#%d;", r)
		default:
			b.WriteByte(' ')
		}
	}
	return b.String()
}
