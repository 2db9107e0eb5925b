package tools_test

import (
	"strings"
	"testing"

	"cadre/internal/team"
)

// TestAppendTwice appends a text that a note ends with already: it is added, and the answer names
// the change.
func TestAppendTwice(t *testing.T) {
	b := newBench(t, &team.SpawnMember{Name: "ann", Agent: "claude"})
	for _, want := range []string{"Added. Note tried is at change 1 now.", "Added. Note tried is at change 2 now."} {
		if text, failed := b.call("ann", "NoteWrite", `{"key":"tried","text":"It failed.","append":true}`); failed ||
			!strings.HasPrefix(text, want) {
			t.Errorf("the answer is %q", text)
		}
	}
	b.View(func(s *team.State) {
		if n, _ := s.Note("tried"); n.Text != "It failed.\nIt failed." {
			t.Errorf("the note is %q", n.Text)
		}
	})
}
