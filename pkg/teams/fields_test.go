package teams

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"cadre/internal/team"
)

// TestTasksKeepEveryField checks that a task of a team file keeps all its fields in the library,
// and that the library shows every field that a task was created with.
func TestTasksKeepEveryField(t *testing.T) {
	c := team.CreateTask{Name: "lint", Subject: "Lint", Description: "all of it", Owner: "ann", Role: "tester",
		BlockedBy: []string{"1"}, Priority: "high", Run: "make lint", In: team.InMerged, Dir: "sub",
		Env:  []string{"A=1"},
		When: team.Always, Timeout: time.Minute, Retries: 2, Metadata: map[string]json.RawMessage{"k": []byte("1")},
		ActiveForm: "Linting", Paths: []string{"src"}, Schema: []byte(`{"type":"object"}`),
		Check: &team.TaskCheck{Run: "make", Rounds: 3, Name: "build"},
		ForEach: &team.ForEach{Matrix: []team.Axis{{Name: "os", Values: []json.RawMessage{[]byte(`"linux"`)}}},
			Exclude: []json.RawMessage{[]byte(`{"os":"linux"}`)}},
		Verify: &team.Verify{By: "reviewer", Count: 2, Rule: team.RuleMajority,
			Rounds: 4}, FileDigests: []string{"v=1"}}
	for _, f := range reflect.VisibleFields(reflect.TypeFor[team.CreateTask]()) {
		// a run of a team file sets the digests, and a task of the library is of no file
		if f.Name != "FileDigests" && reflect.ValueOf(c).FieldByIndex(f.Index).IsZero() {
			t.Errorf("the test sets no %s", f.Name)
		}
	}
	config := taskConfigOf(&c)
	config.ActiveForm = c.ActiveForm // a team file has none
	if back := config.core(); !reflect.DeepEqual(*back, c) {
		t.Errorf("got %+v, want %+v", *back, c)
	}
	shown := taskOf(team.Task{Name: c.Name, Subject: c.Subject, Description: c.Description, ActiveForm: c.ActiveForm,
		Owner: c.Owner, Role: c.Role, Priority: c.Priority, Run: c.Run, In: c.In, Dir: c.Dir, Env: c.Env, When: c.When,
		Timeout: c.Timeout, Retries: c.Retries, Metadata: c.Metadata, BlockedBy: c.BlockedBy, Paths: c.Paths,
		Schema: c.Schema, Check: c.Check, ForEach: c.ForEach, Verify: c.Verify})
	for _, f := range reflect.VisibleFields(reflect.TypeFor[TaskConfig]()) {
		if f.IsExported() && reflect.ValueOf(shown).FieldByName(f.Name).IsZero() {
			t.Errorf("a task does not show its %s", f.Name)
		}
	}
}
