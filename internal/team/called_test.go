package team

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestTaskNames plays a history with names of tasks, some of which are numbers. From any record on
// it follows the names that were read from the snapshot there, with only the records that may add
// tasks. They call each task as the state does.
func TestTaskNames(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s, _ := founded(t)
		from, steps := rapid.IntRange(0, 40).Draw(t, "from"), rapid.IntRange(20, 80).Draw(t, "steps")
		var names *TaskNames
		for n := 1; n <= steps; n++ {
			if n >= from && names == nil {
				names = scanned(t, s)
			}
			c := drawCommand(t, s, n)
			if n%2 == 0 {
				c.Actor, c.Body = User, &CreateTask{Subject: "x", Name: rapid.SampledFrom([]string{"", "", "4", "7", "12",
					"lint", "a.b"}).Draw(t, "name")}
			}
			d, err := Decide(s, c)
			if err != nil || d.Record == nil {
				continue
			}
			s.Apply(d.Record)
			if names != nil && Naming(AppendRecord(nil, d.Record)) {
				names.Apply(recoded(t, d.Record))
			}
		}
		if names == nil {
			names = scanned(t, s)
		}
		sameNames(t, names, s)
		restored, err := Decide(&State{}, Command{ID: "restore", Actor: User, At: 1, Body: &RestoreTeam{From: s}})
		if err != nil { // it has ended
			return
		}
		if !Naming(AppendRecord(nil, restored.Record)) {
			t.Fatal("the record of the restored team is left out")
		}
		again, _ := DecodeTaskNames(0, "")
		again.Apply(recoded(t, restored.Record))
		again.Apply(restored.Record) // a second time it changes nothing
		sameNames(t, again, s)
	})
}

// scanned returns the names as read from the snapshot of the state, without a look at the rest.
func scanned(t fataler, s *State) *TaskNames {
	data := string(AppendSnapshot(nil, s))
	n := &TaskNames{seq: s.Seq()}
	if !n.scan(data) {
		t.Fatalf("the names are not read from %s", data)
	}
	sameNames(t, n, s)
	return n
}

func sameNames(t fataler, n *TaskNames, s *State) {
	ids := []string{"", "0", "01", "lint", fmt.Sprint(len(s.tasks) + 1), "1000000000", "-1"}
	for i := range s.tasks {
		ids = append(ids, s.tasks[i].ID)
	}
	for _, id := range ids {
		if got, want := n.Called(id), s.Called(id); got != want {
			t.Fatalf("task %q is called %q, and by the state %q", id, got, want)
		}
	}
}

// TestTaskNamesOfAnotherOrder reads names from snapshots that are not as this version writes them.
func TestTaskNamesOfAnotherOrder(t *testing.T) {
	t.Parallel()
	s, _ := founded(t)
	for i, b := range []Body{&CreateTask{Subject: `a "quoted\" subject`, Name: "5"}, &CreateTask{Subject: "}]{["},
		&SetNote{Key: "plan", Text: `,"taskCount":7,"tasks":[{"id":"1","name":"no"`}} {
		d, err := Decide(s, Command{ID: fmt.Sprint("named", i), Actor: User, At: 5, Body: b})
		if err != nil {
			t.Fatal(err)
		}
		s.Apply(d.Record)
	}
	scanned(t, s)
	data := string(AppendSnapshot(nil, s))
	for name, changed := range map[string]string{
		"fields before":  strings.Replace(data, `{"v":`, `{"later":{"tasks":[1]},"v":`, 1),
		"fields after":   data[:len(data)-1] + `,"later":1}`,
		"another order":  strings.Replace(data, `{"id":"4","name":"5",`, `{"name":"5","id":"4",`, 1),
		"spaces":         strings.ReplaceAll(data, `"tasks":[`, `"tasks": [ `),
		"a count of few": strings.Replace(data, `"taskCount":5`, `"taskCount":4`, 1),
	} {
		if changed == data {
			t.Fatalf("%s: nothing is changed in %s", name, data)
		}
		n, err := DecodeTaskNames(s.Seq(), changed)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		sameNames(t, n, s)
	}
	for name, bad := range map[string]string{"a torn one": data[:len(data)/2], "none": "x",
		"a newer one": strings.Replace(data, fmt.Sprintf(`{"v":%d`, Version), fmt.Sprintf(`{"v":%d`, Version+1), 1)} {
		if _, err := DecodeTaskNames(s.Seq(), bad); err == nil {
			t.Errorf("%s was read", name)
		}
	}
	for i := range data { // whatever is cut, nothing hangs
		(&TaskNames{}).scan(data[:i])
	}
}
