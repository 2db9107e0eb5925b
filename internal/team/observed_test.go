package team

import (
	"fmt"
	"testing"
)

// watched is a state to which records of an observed team are applied, with one event each.
type watched struct{ *State }

func (w watched) see(events ...Event) {
	for _, e := range events {
		n := w.Seq() + 1
		w.Apply(&Record{Seq: n, ID: fmt.Sprint("c", n), At: Time(1000 * n), Events: []Event{e}})
	}
}

func observed() watched {
	w := watched{&State{}}
	w.see(&TeamCreated{Team: Team{ID: "t", Name: "fx", Status: TeamPending}, Lead: Member{Name: "lead", Agent: External,
		Status: Active}})
	return w
}

// TestSkippedTasks checks another program's task list with ids that this journal does not have:
// hidden tasks, or tasks from before the observation.
func TestSkippedTasks(t *testing.T) {
	w := observed()
	w.see(&TasksSkipped{Through: 2}, &TaskCreated{Task{ID: "3", Subject: "C", Status: Pending}})
	if n := w.Count(Deleted); n != 2 {
		t.Errorf("%d places are held for 2 skipped ids", n)
	}
	for task := range w.Tasks() {
		if task.ID != "3" {
			t.Errorf("task %s is shown, but was never seen", task.ID)
		}
	}
	w.see(&TaskCreated{Task{ID: "1", Subject: "A", Status: Pending}},
		&TaskUpdated{Task: "3", AddBlockedBy: []string{"1"}})
	if c, _ := w.Task("3"); len(c.Blocked()) != 1 {
		t.Errorf("3 waits for %v", c.Blocked())
	}
	if w.Count(Deleted) != 1 || w.Count(Pending) != 2 {
		t.Errorf("counts: %d deleted, %d pending", w.Count(Deleted), w.Count(Pending))
	}
	w.see(&TaskDeleted{Task: "1"}, &TaskCreated{Task{ID: "1", Subject: "again", Status: Pending}})
	if a, _ := w.Task("1"); a.Subject != "A" || a.Status != Deleted {
		t.Errorf("a task that was there is created again: %v", a.Subject)
	}
	w.see(&TasksSkipped{Through: 1 << 40})
	if _, ok := w.Task("4"); ok {
		t.Error("a skip to a huge id made tasks; want none")
	}
	again := reopened(t, w.State)
	if a, _ := again.Task("2"); a.Status != Deleted || !again.task("2").skipped() {
		t.Error("a snapshot forgot that 2 was skipped")
	}
}

func TestReturnedMember(t *testing.T) {
	w := observed()
	w.see(&MemberSpawned{Member{Name: "ann", Agent: External, Status: Active, Incarnation: 1}},
		&MemberReturned{Member{Name: "ann", Status: Active, Model: "m2"}})
	if m, _ := w.Member("ann"); m.Model == "m2" {
		t.Error("a member that had not ended returned; want it unchanged")
	}
	w.see(&MemberStopped{Member: "ann"}, &MemberReturned{Member{Name: "ann", Status: Active, Model: "m2",
		Color: "blue"}})
	if m, _ := w.Member("ann"); m.Status != Active || m.Model != "m2" || m.Color != "blue" || m.Incarnation != 2 ||
		m.Agent != External {
		t.Errorf("ann is %+v", m)
	}
	w.see(&MemberDescribed{Member: "ann", Role: "reviewer"}, &MemberDescribed{Member: "nobody", Role: "x"})
	if m, _ := w.Member("ann"); m.Role != "reviewer" || m.Model != "m2" {
		t.Errorf("described, ann is %+v", m)
	}
	w.see(&MemberReturned{Member{Name: "nobody", Status: Active}}, &GapNoticed{Source: "s", Reason: "r"})
	if len(w.Members()) != 2 {
		t.Error("an unknown member returned; want it ignored")
	}
}

// TestObservedTeamTakesNoCommand checks that only its own agents change an observed team; no
// command does.
func TestObservedTeamTakesNoCommand(t *testing.T) {
	w := watched{&State{}}
	w.see(&TeamCreated{Team: Team{ID: "t", Name: "here", Observed: "fx", Status: TeamPending},
		Lead: Member{Name: "lead", Agent: External, Status: Active}},
		&MemberSpawned{Member{Name: "ann", Agent: External, Status: Active, Incarnation: 1}},
		&TaskCreated{Task{ID: "1", Subject: "A", Status: Pending}})
	for _, body := range []Body{&CreateTask{Subject: "B"}, &ClaimTask{Task: "1"},
		&SendMessage{To: "ann", Body: "hello"}, &CleanUp{Force: true}} {
		for _, actor := range []string{User, "lead", "ann", hostPrefix + "h"} {
			d, err := Decide(w.State, Command{ID: "c-1", Actor: actor, At: 5000, Body: body})
			if CodeOf(err) != Denied || d.Record != nil {
				t.Errorf("%T by %s: got %v, want Denied", body, actor, err)
			}
		}
	}
	if again := reopened(t, w.State); again.Team().Observed != "fx" {
		t.Error("a snapshot forgot that the team is observed")
	}
}
