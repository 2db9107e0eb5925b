package team

import (
	"fmt"
	"strings"
	"testing"
)

// named returns a team with tasks of these names; "" is for a task without one.
func named(t *testing.T, names ...string) *State {
	t.Helper()
	s := &State{}
	n := 0
	do := func(body Body) {
		t.Helper()
		n++
		d, err := Decide(s, Command{ID: fmt.Sprint(n), Actor: User, At: 1, Body: body})
		if err != nil {
			t.Fatal(err)
		}
		s.Apply(d.Record)
	}
	do(&CreateTeam{TeamID: "t1", Name: "demo", Dir: "/repo"})
	for _, name := range names {
		do(&CreateTask{Name: name, Subject: "do " + name})
	}
	return s
}

func TestFind(t *testing.T) {
	s := named(t, "lint", "", "2", "9", "4")
	again, err := DecodeSnapshot(s.Seq(), string(AppendSnapshot(nil, s)))
	if err != nil {
		t.Fatal(err)
	}
	for ref, want := range map[string]string{
		"lint": "1", "#1": "1", "1": "1", // a number that is not a name
		"#2": "2", "#3": "3", "9": "4", "#4": "4", "5": "5", "name:2": "3",
		"2":    `2 is the name of the task #3 (do 2), and the number of another one (do ): write '#3' or '#2'`,
		"4":    `4 is the name of the task #5 (do 4), and the number of another one (9): write '#5' or '#4'`,
		"#9":   `no task "#9" in team demo`,
		"#":    `no task "#" in team demo`,
		"":     `no task "" in team demo`,
		"Lint": `no task "Lint" in team demo, did you mean lint?`, "01": `no task "01" in team demo`,
	} {
		for _, s := range []*State{s, again} {
			got, err := s.TaskID(ref)
			if err != nil {
				got = err.Error()
			}
			if got != want {
				t.Errorf("%q is %s, want %s", ref, got, want)
			}
		}
	}
}

// TestFindDeleted checks that the number of a deleted task finds nothing, and its name may be used
// again.
func TestFindDeleted(t *testing.T) {
	s := named(t, "lint", "1")
	do := func(body Body) {
		t.Helper()
		d, err := Decide(s, Command{ID: fmt.Sprint("more", s.Seq()), Actor: User, At: 1, Body: body})
		if err != nil {
			t.Fatal(err)
		}
		s.Apply(d.Record)
	}
	if _, err := s.TaskID("1"); CodeOf(err) != Invalid {
		t.Fatalf("1 is both: %v", err)
	}
	do(&DeleteTask{Task: "lint"})
	for ref, want := range map[string]string{"1": "2", "lint": "1", "#1": "1"} {
		if got, err := s.TaskID(ref); got != want {
			t.Errorf("%q is %q %v, want %s", ref, got, err, want)
		}
	}
	do(&CreateTask{Name: "lint", Subject: "again"})
	again, err := DecodeSnapshot(s.Seq(), string(AppendSnapshot(nil, s)))
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []*State{s, again} {
		if got, err := s.TaskID("lint"); got != "3" {
			t.Errorf("lint is %q %v, want the new one", got, err)
		}
	}
}

func TestValidTaskName(t *testing.T) {
	for name, want := range map[string]bool{"lint": true, "12": true, "a.b-c_d": true, "0": true, "": false,
		".a": false,
		"-a": false, "a b": false, "#1": false, "a:b": false, "ä": false, strings.Repeat("a", 64): true,
		strings.Repeat("a", 65): false} {
		if ValidTaskName(name) != want {
			t.Errorf("%q: %v", name, !want)
		}
	}
}

// TestCalled checks that no two tasks of a team are called the same: the number of a task without a
// name has a mark where it is another task's name, whichever of the two was added first.
func TestCalled(t *testing.T) {
	s := named(t, "2", "", "", "3")
	do := func(body Body) {
		t.Helper()
		d, err := Decide(s, Command{ID: fmt.Sprint("more", s.Seq()), Actor: User, At: 1, Body: body})
		if err != nil {
			t.Fatal(err)
		}
		s.Apply(d.Record)
	}
	do(&CreateTask{Subject: "last", BlockedBy: []string{"1", "2", "3"}})
	again, err := DecodeSnapshot(s.Seq(), string(AppendSnapshot(nil, s)))
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []*State{s, again} {
		if got := fmt.Sprint(s.CalledAll([]string{"1", "2", "3", "4", "5", "6"})); got != "[2 #2 #3 3 5 6]" {
			t.Errorf("the tasks are called %s", got)
		}
		last, _ := s.Task("5")
		if got := fmt.Sprint(last.WaitsFor(""), last.WaitsFor("#")); got != "[2 #2 #3] [2 #2 #3]" {
			t.Errorf("the last one waits for %s", got)
		}
		second, _ := s.Task("2")
		if h := second.Hint(&s.team, ActShowTask); h.TypedTask() != "#2" || h.Purpose() != "look at task #2" {
			t.Errorf("a hint about the second: %+v, typed as %s, to %s", h, h.TypedTask(), h.Purpose())
		}
		for task := range s.Tasks() {
			h := task.Hint(&s.team, ActShowTask)
			if id, err := s.TaskID(h.TypedTask()); id != task.ID {
				t.Errorf("%s of a hint is the task %q, want %s: %v", h.TypedTask(), id, task.ID, err)
			}
		}
		if text := second.label(); !strings.HasPrefix(text, "task #2 (") {
			t.Errorf("an error calls the second %q", text)
		}
	}
	do(&UpdateTask{Task: "5", RemoveBlockedBy: []string{"1"}})
	do(&DeleteTask{Task: "1"}) // records from before still call it 2
	if got := fmt.Sprint(s.CalledAll([]string{"1", "2"})); got != "[2 #2]" {
		t.Errorf("after the first was deleted, the tasks are called %s", got)
	}
}
