package team

import "testing"

// TestBegin checks that the records of a beginning hold its state, that a command which changes
// nothing makes none, and that one refused command refuses all.
func TestBegin(t *testing.T) {
	create := Command{ID: "c1", Actor: User, At: 1, Body: &CreateTeam{TeamID: "t-1", Name: "t", Dir: "/p"}}
	task := Command{ID: "c2", Actor: User, At: 2, Body: &CreateTask{Subject: "first"}}
	s, records, err := Begin([]Command{create, task, task})
	if err != nil || len(records) != 2 || s.Seq() != 2 {
		t.Fatalf("%d records, state %v: %v", len(records), s, err)
	}
	again := &State{}
	for i, data := range records {
		r, err := DecodeRecord(int64(i+1), string(data))
		if err != nil {
			t.Fatal(err)
		}
		again.Apply(r)
		if created, ok := EventIn[*TaskCreated](r); ok != (i == 1) || ok && created.Task.Subject != "first" {
			t.Errorf("record %d: the event found is %v", i+1, created)
		}
	}
	if got, ok := again.Task("1"); !ok || got.Subject != "first" {
		t.Errorf("the records hold %+v", got)
	}
	if _, ok := EventIn[*TaskCreated](nil); ok {
		t.Error("a nil record has an event")
	}
	refused := Command{ID: "c3", Actor: User, At: 3, Body: &CreateTask{}}
	if s, records, err := Begin([]Command{create, refused}); CodeOf(err) != Invalid || s != nil || records != nil {
		t.Errorf("with a refused command: %v, %d records: %v", s, len(records), err)
	}
}
