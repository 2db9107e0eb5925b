package recorded

import (
	"context"
	"fmt"
	"testing"

	"cadre/internal/journal"
	"cadre/internal/journal/memjournal"
	"cadre/internal/team"
	"cadre/internal/testkit/historytest"

	"pgregory.net/rapid"
)

// TestTaskNames: tasks are called as in the state, whatever snapshot the journal has.
func TestTaskNames(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := historytest.New()
		for _, name := range rapid.SliceOfN(rapid.SampledFrom([]string{"", "lint", "2", "5", "note", "drop"}), 1,
			20).Draw(t, "names") {
			switch name {
			case "note":
				h.Do("lead", &team.SetNote{Key: "k", Text: fmt.Sprint(h.Now)})
			case "drop":
				h.Do("lead", &team.DeleteTask{Task: "1"})
			default:
				h.Do("lead", &team.CreateTask{Subject: "x", Name: name})
			}
		}
		states := replay(h)
		last := len(h.Records)
		s, err := team.DecodeSnapshot(int64(last), states[last])
		if err != nil {
			t.Fatal(err)
		}
		j := memjournal.New("t1", h.Encoded()...).Open()
		damaged := false
		if at := rapid.IntRange(0, last).Draw(t, "snapshot"); at > 0 {
			snapshot := journal.Snapshot{Seq: int64(at), Data: states[at]}
			if damaged = rapid.Bool().Draw(t, "damaged"); damaged {
				snapshot.Data = `{"team":7}`
			}
			if err := j.SaveSnapshot(context.Background(), snapshot.Taken); err != nil {
				t.Fatal(err)
			}
		}
		said := 0
		names, err := TaskNames(context.Background(), j, func(string) { said++ })
		if err != nil || (said > 0) != damaged {
			t.Fatalf("the names say %d things: %v", said, err)
		}
		for i := range 30 {
			if id := fmt.Sprint(i); names.Called(id) != s.Called(id) {
				t.Fatalf("task %s is called %q, and by the state %q", id, names.Called(id), s.Called(id))
			}
		}
	})
}
