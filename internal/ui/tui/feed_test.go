package tui

import (
	"slices"
	"strings"
	"testing"

	"cadre/internal/team"
)

// TestFeedOfThePast: a line of the feed says what was true at its record, although its task has
// another title since, and is worked on again.
func TestFeedOfThePast(t *testing.T) {
	s := newStory(t)
	said := func(from int) (lines []string) {
		for _, one := range feedOf(s.records[from:], s.state) {
			lines = append(lines, one.text)
		}
		return lines
	}
	before := said(0)
	const done = "✓ lukas  lint  Run the linter ("
	if !slices.ContainsFunc(before, func(line string) bool { return strings.HasPrefix(line, done) }) {
		t.Fatalf("the story has no line %q: %q", done, before)
	}
	linter := "Run another linter"
	s.do(team.User, &team.RedoTask{Task: "3", Reason: "the user asked for it again"})
	s.do(team.User, &team.UpdateTask{Task: "3", Subject: &linter})
	if after := said(0); !slices.Equal(after[:len(before)], before) {
		t.Errorf("after the redo, the lines are\n%q, and they were\n%q", after[:len(before)], before)
	}
	s.do("lukas", &team.ClaimTask{Task: "lint"})
	after := said(0)
	if !slices.Equal(after[:len(before)], before) {
		t.Errorf("with the task in work again, the lines are\n%q, and they were\n%q", after[:len(before)], before)
	}
	if got, want := after[len(after)-1], "▸ lukas  lint  Run another linter"; got != want {
		t.Errorf("the last line is %q, want %q", got, want)
	}
	begin := slices.IndexFunc(s.records, func(r *team.Record) bool {
		_, is := r.Events[0].(*team.TaskCompleted)
		return is
	})
	if got, want := said(begin)[0], "✓ lukas  lint  Run the linter"; got != want {
		t.Errorf("without the record of its claim, the line is %q, want %q", got, want)
	}
}
