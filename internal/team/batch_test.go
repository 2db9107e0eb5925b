package team

import (
	"reflect"
	"strings"
	"testing"
)

// TestBatch checks that a batch has the effect of its commands one after the other, in one record.
// If one of them is refused, nothing happens.
func TestBatch(t *testing.T) {
	bodies := []Body{&SpawnMember{Name: "ann", Agent: External},
		&CreateTask{Name: "a", Subject: "first", Owner: "ann"},
		&CreateTask{Name: "b", Subject: "second", BlockedBy: []string{"a"}},
		&CompleteTask{Task: "a"}, &UpdateTask{Task: "b", Owner: new("ann")},
		&SendMessage{To: "ann", Body: "go"}}
	each, all := named(t, "old"), named(t, "old")
	for i, body := range bodies {
		d, err := Decide(each, Command{ID: string(rune('a' + i)), Actor: User, At: 5, Body: body})
		if err != nil {
			t.Fatalf("command %d: %v", i, err)
		}
		each.Apply(d.Record)
	}
	before := string(AppendSnapshot(nil, all))
	d, err := Decide(all, Command{ID: "batch", Actor: User, At: 5, Body: &Batch{bodies}})
	if err != nil {
		t.Fatal(err)
	}
	if string(AppendSnapshot(nil, all)) != before {
		t.Error("deciding has changed the state")
	}
	if all.Apply(d.Record); all.Seq() != 3 {
		t.Errorf("it is at %d", all.Seq())
	}
	if !reflect.DeepEqual(each.tasks, all.tasks) || !reflect.DeepEqual(each.members, all.members) ||
		!reflect.DeepEqual(each.messages, all.messages) {
		t.Errorf("one after the other:\n%+v\n%+v\nat once:\n%+v\n%+v", each.tasks, each.messages, all.tasks,
			all.messages)
	}
	for _, refused := range []Body{&CreateTask{Name: "a", Subject: "again"}, &CreateTask{Subject: ""}, &Batch{},
		&CompleteTask{Task: "nothing"}} {
		_, err := Decide(all, Command{ID: "more", Actor: User, At: 5,
			Body: &Batch{[]Body{&CreateTask{Subject: "x"}, refused}}})
		if CodeOf(err) == "" {
			t.Errorf("%T is not refused: %v", refused, err)
		}
	}
	if d, err := Decide(all, Command{ID: "none", Actor: User, At: 5, Body: &Batch{}}); err != nil || d.Record != nil {
		t.Errorf("nothing is %v, %v", d.Record, err)
	}
	_, err = Decide(all, Command{ID: "z", Actor: "eve", At: 5, Body: &Batch{[]Body{&CreateTask{Subject: "x"}}}})
	if err == nil || !strings.Contains(err.Error(), "eve") {
		t.Errorf("a batch by eve, who is not a member: got %v, want a refusal that names her", err)
	}
}
