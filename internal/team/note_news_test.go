package team

import (
	"slices"
	"testing"
)

// TestNewsOfDeletion deletes the note of a member, who then sets it again without having looked: it
// is told of the deletion.
func TestNewsOfDeletion(t *testing.T) {
	t.Parallel()
	n := newNoter(t)
	as := func(actor string, b Body) {
		t.Helper()
		n.n++
		d, err := Decide(n.s, Command{ID: actor + string(rune('a'+n.n)), Actor: actor, At: Time(n.n), Body: b})
		if err != nil {
			t.Fatal(err)
		}
		n.s.Apply(d.Record)
	}
	as("bob", &SetNote{Key: "plan", Text: "first"})
	as("ann", &DeleteNote{Key: "plan"})
	as("bob", &SetNote{Key: "plan", Text: "second"})
	if got := n.s.NoteNews("bob"); !slices.Equal(got, []string{"ann deleted the note plan."}) {
		t.Errorf("bob is told %q", got)
	}
	as("ann", &AppendNote{Key: "plan", Text: "third"})
	if got := n.s.NoteNews("bob"); !slices.Equal(got, []string{"ann wrote the note plan."}) {
		t.Errorf("after another change bob is told %q", got)
	}
}
