package history

import (
	"iter"
	"reflect"
	"strings"
	"testing"

	"cadre/internal/team"
)

// TestNoteChanges checks that every older version of a note can be read from the history.
func TestNoteChanges(t *testing.T) {
	records := []*team.Record{
		{Seq: 1, Actor: team.User, At: 10, Events: []team.Event{&team.TeamRestored{Notes: []team.Note{
			{Key: "plan", Text: "zero", SetBy: "ann", SetAt: 3, UpdatedBy: "bob", UpdatedAt: 4, Seq: 7}}}}},
		{Seq: 2, Actor: "ann", At: 20, Events: []team.Event{&team.NoteAppended{Key: "plan", Text: "one", Seq: 1008},
			&team.NoteSet{Key: "other", Text: "x", Seq: 1009}}},
		{Seq: 3, Actor: "bob", At: 30, Events: []team.Event{&team.NoteDeleted{Key: "plan", Seq: 1010}}},
		{Seq: 4, Actor: team.User, At: 40, Events: []team.Event{&team.NoteSet{Key: "plan", Text: "two\n", Seq: 1011}}},
		{Seq: 5, Actor: "ann", At: 50, Events: []team.Event{&team.NoteAppended{Key: "plan", Text: "three", Seq: 1012}}},
	}
	source := iter.Seq2[*team.Record, error](func(yield func(*team.Record, error) bool) {
		for _, r := range records {
			if !yield(r, nil) {
				return
			}
		}
	})
	got, err := NoteChanges(source, "plan")
	want := []NoteChange{
		{Seq: 7, Record: 1, By: "bob", At: 4, How: NoteRestored, Text: "zero", Bytes: 4, setBy: "ann", setAt: 3},
		{Seq: 1008, Record: 2, By: "ann", At: 20, How: NoteAppended, Text: "one", Bytes: 8},
		{Seq: 1010, Record: 3, By: "bob", At: 30, How: NoteDeleted},
		{Seq: 1011, Record: 4, By: team.User, At: 40, How: NoteSet, Text: "two\n", Bytes: 4},
		{Seq: 1012, Record: 5, By: "ann", At: 50, How: NoteAppended, Text: "three", Bytes: 9},
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%v\n%+v\nwant\n%+v", err, got, want)
	}
	if all, err := AllNoteChanges(source); err != nil || !reflect.DeepEqual(all["plan"], want) || len(all) != 2 ||
		len(all["other"]) != 1 || all["other"][0].Seq != 1009 {
		t.Errorf("all: %v\n%+v", err, all)
	}
	if n, _ := NoteAt(source, "plan", 1008); n.SetBy != "ann" || n.SetAt != 3 || n.UpdatedBy != "ann" {
		t.Errorf("a note that was restored and changed is %+v", n)
	}
	for seq, text := range map[int64]string{7: "zero", 1008: "zero\none", 1011: "two\n", 1012: "two\nthree"} {
		if n, err := NoteAt(source, "plan", seq); err != nil || n.Text != text || n.Seq != seq {
			t.Errorf("at %d: %+v, %v; want %q", seq, n, err, text)
		}
	}
	if n, _ := NoteAt(source, "plan", 1012); n.SetBy != team.User || n.SetAt != 40 || n.UpdatedBy != "ann" {
		t.Errorf("a note that was set again is %+v", n)
	}
	for _, seq := range []int64{0, 1009, 1010, 2000} {
		if n, err := NoteAt(source, "plan", seq); team.CodeOf(err) != team.NotFound {
			t.Errorf("at %d: %+v, %v", seq, n, err)
		}
	}
	if _, err := NoteAt(source, "nothing", 1); err == nil || !strings.Contains(err.Error(), "never had a note") {
		t.Errorf("a note that never was: %v", err)
	}
}
