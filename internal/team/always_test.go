package team

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestAlways checks that in any history, a task with When always is ready exactly when each of its
// blockers is closed, or cannot be done any more. A state that was read from a snapshot says the
// same. A record names the tasks that no longer wait because of it.
func TestAlways(t *testing.T) {
	ran, freed := 0, 0
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 1))
		s := named(t)
		n := 0
		do := func(body Body) {
			n++
			d, err := Decide(s, Command{ID: fmt.Sprint("c", n), Actor: User, At: 1, Body: body})
			if err != nil || d.Record == nil {
				return
			}
			before := blockedIn(s)
			s.Apply(d.Record)
			var unblocked []string
			switch e := d.Record.Events[0].(type) {
			case *TaskCompleted:
				unblocked = e.Unblocked
			case *TaskDeleted:
				unblocked = e.Unblocked
			case *TaskFailed:
				unblocked = e.Unblocked
				freed += len(unblocked)
			default:
				return
			}
			after := blockedIn(s)
			ready := slices.DeleteFunc(before, func(id string) bool {
				return slices.Contains(after, id) || s.task(id).Status != Pending
			})
			if !slices.Equal(slices.Sorted(slices.Values(unblocked)), ready) {
				t.Fatalf("seed %d: %T freed %v, and the record says %v", seed, d.Record.Events[0], ready, unblocked)
			}
		}
		do(&SpawnMember{Name: "ann", Agent: External})
		for i := range 8 {
			task := &CreateTask{Subject: "x", When: []string{"", Always}[r.IntN(2)]}
			for range r.IntN(3) {
				if i > 0 {
					task.BlockedBy = append(task.BlockedBy, fmt.Sprint(1+r.IntN(i)))
				}
			}
			do(task)
		}
		for range 30 {
			id := fmt.Sprint(1 + r.IntN(8))
			switch r.IntN(7) {
			case 0, 1:
				do(&ClaimTask{Task: id, Member: "ann"})
			case 2:
				do(&FailTask{Task: id, Member: "ann"})
			case 3:
				do(&CompleteTask{Task: id, Member: "ann"})
			case 4:
				do(&ReleaseTask{Task: id})
			case 5:
				do(&DeleteTask{Task: id})
			default:
				do(&UpdateTask{Task: id, AddBlockedBy: []string{fmt.Sprint(1 + r.IntN(8))}})
			}
			again, err := DecodeSnapshot(s.Seq(), string(AppendSnapshot(nil, s)))
			if err != nil {
				t.Fatal(err)
			}
			for i := range s.tasks {
				if a, b := &s.tasks[i], &again.tasks[i]; a.blockage != b.blockage || a.waits() < 0 ||
					a.Status == InProgress && a.waits() > 0 {
					t.Fatalf("seed %d: task %s (%s) has %+v, and from a snapshot %+v", seed, a.ID, a.Status, a.blockage,
						b.blockage)
				}
			}
			for _, s := range []*State{s, again} {
				for one := range s.Tasks() {
					free := true
					for _, id := range one.BlockedBy {
						b, _ := s.Task(id)
						free = free && (!b.Status.open() || one.When == Always && never(s, b))
					}
					want := one.Status == Pending && free && !one.OutOfRetries()
					got := s.ready[priorityIndex(one.Priority)].has(taskIndex(one.ID))
					if got != want || one.Status == Pending && free != (len(one.Blocked()) == 0) {
						t.Fatalf("seed %d: task %s (%q) is ready: %t, want %t; it waits for %v", seed, one.ID,
							one.When, got,
							want, one.Blocked())
					}
					if want && one.When == Always && len(one.BlockedBy) > 0 {
						ran++
					}
				}
			}
		}
	}
	if ran < 100 || freed < 20 {
		t.Errorf("only %d times a task that runs always was ready, and %d times a failure made it so", ran, freed)
	}
}

// blockedIn returns the ids of the pending tasks that are blocked, sorted.
func blockedIn(s *State) (ids []string) {
	for t := range s.Tasks() {
		if t.Status == Pending && len(t.Blocked()) > 0 {
			ids = append(ids, t.ID)
		}
	}
	slices.Sort(ids)
	return ids
}

// never says whether a task is stuck, without counting.
func never(s *State, t Task) bool {
	if t.OutOfRetries() {
		return true
	}
	if t.Status != Pending || t.When != "" && t.Submission == nil {
		return false
	}
	for _, id := range t.BlockedBy {
		if b, _ := s.Task(id); b.Status.open() && never(s, b) {
			return true
		}
	}
	return false
}

// TestStuckIsCheap checks that in a thousand layers of tasks, each waiting for both tasks of the
// layer before, a failure of the first ones visits each task once.
func TestStuckIsCheap(t *testing.T) {
	b := newBusy(t)
	for i := range 1000 {
		task := &CreateTask{Subject: "x"}
		if i > 0 {
			task.BlockedBy = []string{fmt.Sprint(2*i - 1), fmt.Sprint(2 * i)}
		}
		b.do(User, task)
		b.do(User, task)
	}
	b.do(User, &CreateTask{Subject: "x", When: Always, BlockedBy: []string{"1999", "2000"}})
	blocked := func() int { last, _ := b.Task("2001"); return len(last.Blocked()) }
	if blocked() != 2 {
		t.Errorf("it waits for %d tasks", blocked())
	}
	b.do("ann", &ClaimTask{Task: "1"})
	failed := b.do("ann", &FailTask{Task: "1"}).Events[0].(*TaskFailed)
	if blocked() != 0 || !slices.Equal(failed.Unblocked, []string{"2001"}) {
		t.Errorf("it waits for %d tasks, and the failure frees %v", blocked(), failed.Unblocked)
	}
	if b.do(User, &ReleaseTask{Task: "1"}); blocked() != 2 {
		t.Errorf("it waits for %d tasks", blocked())
	}
}

// TestWaitsNoMore checks that the owner of a task with When always is notified that the task is no
// longer blocked, when that is so and not before.
func TestWaitsNoMore(t *testing.T) {
	b := newBusy(t)
	b.do(User, &SpawnMember{Name: "bob", Agent: External})
	for _, task := range []*CreateTask{{Subject: "a"}, {Subject: "x"},
		{Subject: "t", When: Always, Owner: "bob", BlockedBy: []string{"1", "2"}}} {
		b.do(User, task)
	}
	b.do("bob", &ReceiveMessages{})
	b.do("ann", &ClaimTask{Task: "1"})
	b.do("ann", &FailTask{Task: "1"})
	b.do("ann", &ClaimTask{Task: "1"})
	completed := b.do("ann", &CompleteTask{Task: "1"}).Events[0].(*TaskCompleted)
	if len(completed.Unblocked) != 0 || len(b.Inbox("bob")) != 0 {
		t.Errorf("task 1 frees %v while task 3 waits for task 2, and bob reads %v", completed.Unblocked, b.Inbox("bob"))
	}
	b.do("ann", &ClaimTask{Task: "2"})
	b.do("ann", &FailTask{Task: "2"})
	if mail := b.Inbox("bob"); len(mail) != 1 || mail[0].Body != `Task 3 (t), which is yours, is no longer blocked: `+
		`task 2 has failed (out of retries).` {
		t.Errorf("bob reads %+v", mail)
	}
}

func TestCheckPlace(t *testing.T) {
	for _, one := range []struct {
		task CreateTask
		ok   bool
	}{
		{CreateTask{Run: "x", Dir: "a/b", Env: []string{"A=1", "B="}}, true},
		{CreateTask{Run: "x", Dir: ".."}, false}, {CreateTask{Run: "x", Dir: "../a"}, false},
		{CreateTask{Run: "x", Dir: "/a"}, false}, {CreateTask{Run: "x", Dir: "a/../.."}, false},
		{CreateTask{Run: "x", Dir: "a/"}, true}, {CreateTask{Run: "x", Dir: "./a//b/../c/"}, true},
		{CreateTask{Dir: "a"}, false},
		{CreateTask{Env: []string{"A=1"}}, false},
		{CreateTask{Run: "x", Env: []string{"A"}}, false}, {CreateTask{Run: "x", Env: []string{"=1"}}, false},
		{CreateTask{Run: "x", Env: []string{"A=\x00"}}, false}, {CreateTask{When: "never"}, false},
	} {
		if err := one.task.checkPlace(); (err == nil) != one.ok {
			t.Errorf("%+v: got %v, want valid: %t", one.task, err, one.ok)
		}
	}
	b := newBusy(t)
	for dir, want := range map[string]string{"services/": "services", "./a//b/../c/": "a/c", "./": "", "a": "a"} {
		made := b.do(User, &CreateTask{Subject: "x", Run: "x", Dir: dir}).Events[0].(*TaskCreated)
		if made.Task.Dir != want {
			t.Errorf("the directory %q is recorded as %q, not %q", dir, made.Task.Dir, want)
		}
	}
}
