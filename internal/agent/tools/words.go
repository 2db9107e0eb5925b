package tools

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"

	"cadre/internal/agent"
	"cadre/internal/agent/envelope"
	"cadre/internal/render/excerpt"
	"cadre/internal/team"
)

// How many characters of what others wrote stand in a line of ours.
const (
	mostOfASubject  = 160
	mostOfAnExcerpt = 300
	mostOfAResult   = 120
	mostOfAnError   = 1500
)

// line makes one line of at most that many characters of a text that may hold anything.
func line(s string, most int) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case unicode.IsControl(r) || unicode.In(r, unicode.Cf, unicode.Co):
			return '\uFFFD'
		}
		return r
	}, strings.TrimSpace(s))
	return envelope.Harmless(excerpt.Characters(s, most))
}

// subject is a short text of another member between words of ours: in quotation marks where it has
// marks that we use, and could pass for more than it is.
func subject(s string) string {
	s = line(s, mostOfASubject)
	if strings.ContainsAny(s, "#:;") {
		return team.Quoted(s)
	}
	return team.Inline(s)
}

// quoted is a text of another member, or of the caller, between words of ours.
func quoted(s string) string { return team.Quoted(line(s, mostOfAnExcerpt)) }

// block is a long text of another member, set off at the left so that no line of it passes for one
// of ours.
func block(s string) string {
	s = strings.NewReplacer("\r\n", "\n", "\r", "\n", "\v", "\n", "\f", "\n", "\u0085", "\n", "\u2028", "\n", "\u2029",
		"\n").Replace(s)
	return "  " + strings.ReplaceAll(strings.Trim(envelope.Harmless(s), "\n"), "\n", "\n  ")
}

// numbered is ids as our tools show them: #1, #2.
func numbered(ids []string) string {
	if len(ids) == 0 {
		return ""
	}
	return "#" + strings.Join(ids, ", #")
}

// state is the status of a task, and what one has to know with it.
func state(t team.Task) string {
	if t.GivenUp() {
		return string(t.Status) + ", given up"
	}
	return string(t.Status)
}

// brief is a task in one line: #2 [pending] Build B (ann) [blocked by #1].
func brief(t team.Task) string {
	return fmt.Sprintf("#%s [%s] %s%s", t.ID, state(t), subject(t.Subject), marks(t))
}

// outcome is how the result of a task begins; TaskGet has all of it.
func outcome(t team.Task) string {
	if t.Status != team.Completed || strings.TrimSpace(t.Result) == "" {
		return ""
	}
	return ": " + team.Quoted(line(t.Result, mostOfAResult))
}

func marks(t team.Task) string {
	var b strings.Builder
	switch {
	case t.Status == team.Completed && t.CompletedBy != "":
		fmt.Fprintf(&b, " (%s)", t.CompletedBy)
	case t.Owner != "":
		fmt.Fprintf(&b, " (%s)", t.Owner)
	case t.Role != "":
		fmt.Fprintf(&b, " (role %s)", subject(t.Role))
	}
	if ids := t.Blocked(); len(ids) > 0 {
		fmt.Fprintf(&b, " [blocked by %s]", numbered(ids))
	}
	if (t.Priority == "high" || t.Priority == "critical") && t.Status != team.Completed {
		fmt.Fprintf(&b, " [%s]", t.Priority)
	}
	return b.String()
}

// whole is everything that a member has to know about a task.
func whole(s *team.State, t team.Task) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Task #%s [%s] %s\n", t.ID, state(t), subject(t.Subject))
	row := func(name, value string) {
		if value != "" {
			fmt.Fprintf(&b, "%s: %s\n", name, value)
		}
	}
	part := func(name, text string) {
		if strings.TrimSpace(text) != "" {
			fmt.Fprintf(&b, "%s:\n%s\n", name, block(text))
		}
	}
	row("owner", t.Owner)
	if t.Role != "" {
		row("role", subject(t.Role))
	}
	row("priority", t.Priority)
	row("blocked by", others(s, t.BlockedBy))
	row("blocks", others(s, t.Blocks))
	row("created by", t.CreatedBy)
	row("completed by", t.CompletedBy)
	if t.Failures > 0 {
		row("failed attempts", strconv.FormatInt(t.Failures, 10))
	}
	if t.Failure != "" {
		row("last failure", quoted(t.Failure))
	}
	for _, key := range sorted(t.Metadata) {
		row("metadata "+quoted(key), line(agent.ReadableJSON(t.Metadata[key]), mostOfAnExcerpt))
	}
	part("description", t.Description)
	part("command, run by a shell", t.Run)
	part("result", t.Result)
	return strings.TrimSuffix(b.String(), "\n")
}

// others is other tasks by id, each with what became of it.
func others(s *team.State, ids []string) string {
	var all []string
	for _, id := range ids {
		if t, ok := s.Task(id); ok {
			all = append(all, "#"+id+" ("+string(t.Status)+")")
		}
	}
	return strings.Join(all, ", ")
}

func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.Itoa(n) + " " + many
}
