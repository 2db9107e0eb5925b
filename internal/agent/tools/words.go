package tools

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"cadre/internal/agent"
	"cadre/internal/agent/envelope"
	"cadre/internal/render/excerpt"
	"cadre/internal/team"
)

// These bound how many characters of others' texts a line of ours shows.
const (
	mostOfASubject  = 160
	mostOfAnExcerpt = 300
	mostOfAResult   = 120
	mostOfAnError   = 1500
)

// line returns a shortened single line of any text.
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

// subject returns another member's short text for use within our words. It is in quotation marks if
// it has marks that we use, and could pass for more than it is.
func subject(s string) string {
	s = line(s, mostOfASubject)
	if strings.ContainsAny(s, "#:;") {
		return team.Quoted(s)
	}
	return team.Inline(s)
}

// quoted returns a text of a member for use within our words.
func quoted(s string) string { return team.Quoted(line(s, mostOfAnExcerpt)) }

// block sets a long text of another member off at the left, so that no line of it can pass for one
// of ours.
func block(s string) string {
	s = strings.NewReplacer("\r\n", "\n", "\r", "\n", "\v", "\n", "\f", "\n", "\u0085", "\n", "\u2028", "\n", "\u2029",
		"\n").Replace(s)
	return "  " + strings.ReplaceAll(strings.Trim(envelope.Harmless(s), "\n"), "\n", "\n  ")
}

// numbered returns ids as our tools show them: #1, #2.
func numbered(ids []string) string {
	if len(ids) == 0 {
		return ""
	}
	return "#" + strings.Join(ids, ", #")
}

// state returns the status of a task, with what one has to know about it.
func state(t team.Task) string {
	if t.OutOfRetries() {
		return string(t.Status) + ", out of retries"
	}
	return string(t.Status)
}

// both names a task by its number, and its name if it has one: #2 build-b.
func both(t team.Task) string { return "#" + t.ID + spaced(t.Name) }

// about returns the subject of a task that says more than its name.
func about(t team.Task) string {
	if t.Subject == t.Name {
		return ""
	}
	return subject(t.Subject)
}

// titled returns the task's name and its subject.
func titled(t team.Task) string { return t.Ref() + spaced(about(t)) }

func spaced(s string) string {
	if s == "" {
		return ""
	}
	return " " + s
}

// brief describes a task in one line: #2 build-b [pending] Build B (ann) [blocked by #1].
func brief(t team.Task) string {
	return fmt.Sprintf("%s [%s]%s%s", both(t), state(t), spaced(about(t)), marks(t))
}

// outcome returns the beginning of a task's result; TaskGet shows all of it.
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
	if waits := t.WaitsFor("#"); len(waits) > 0 {
		path := t.WaitsForPath()
		if path != "" {
			path = " for " + subject(path)
		}
		fmt.Fprintf(&b, " [blocked by %s%s]", strings.Join(waits, ", "), path)
	}
	if (t.Priority == "high" || t.Priority == "critical") && t.Status != team.Completed {
		fmt.Fprintf(&b, " [%s]", t.Priority)
	}
	return b.String()
}

// whole describes everything that a member has to know about a task.
func whole(s *team.State, t team.Task) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Task %s [%s]%s\n", both(t), state(t), spaced(about(t)))
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
	row("blocked by", others(s, s.Before(t)))
	row("for each", t.ForEach.Words())
	row("its tasks", s.Progress(t.ID))
	if t.Of != "" {
		row("made by", s.Called(t.Of))
		part("item", team.ItemText(t.Item))
	}
	row("blocks", others(s, t.Blocks))
	row("paths", patterns(t.Paths))
	if t.Status == team.InProgress && !slices.Equal(t.Holds, t.Paths) {
		row("has the paths", cmp.Or(patterns(t.Holds), "none"))
	}
	row("waits for", patterns([]string{t.WaitsForPath()}))
	row("created by", t.CreatedBy)
	row("completed by", t.CompletedBy)
	if t.Verifies != "" {
		row("verifies", others(s, []string{t.Verifies}))
		row("verdict", t.Verdict)
	}
	if t.Verify != nil {
		row("verified by", subject(t.Verify.Words()))
	}
	sum := t.Summary()
	row("files", sum.Changed(quoted))
	row("checked", strings.Join(sum.Checked, "; "))
	if t.Check != nil {
		row("check", quoted(t.Check.Run))
	}
	if why, feedback := t.SentBack(); why != "" {
		part(line(why, mostOfAnExcerpt), feedback)
	}
	part("schema of the result", string(t.Schema))
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
	part(resultOf(t, sum))
	return strings.TrimSuffix(b.String(), "\n")
}

// resultOf returns what is known of a task's result, and what that is.
func resultOf(t team.Task, sum team.Summary) (name, text string) {
	switch {
	case sum.Words:
		return "last words, without a result", sum.Did
	case t.Submission != nil:
		return "result that is being verified", sum.Did
	}
	return "result", t.Result
}

// patterns lists paths of a task.
func patterns(paths []string) string {
	var all []string
	for _, p := range paths {
		if p != "" {
			all = append(all, subject(p))
		}
	}
	return strings.Join(all, ", ")
}

// others lists other tasks by id, each with its outcome.
func others(s *team.State, ids []string) string {
	var all []string
	for _, id := range ids {
		if t, ok := s.Task(id); ok {
			all = append(all, t.Ref()+" ("+string(t.Status)+")")
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
