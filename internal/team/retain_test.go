package team

import (
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"testing"
)

// TestAStateKeepsNoRecords follows a history of long records; the state needs little of them. The
// state must not keep the records alive through texts that it shares with them.
func TestAStateKeepsNoRecords(t *testing.T) {
	s, err := DecodeSnapshot(0, "")
	if err != nil {
		t.Fatal(err)
	}
	add := func(b Body, actor string) {
		t.Helper()
		d, err := Decide(s, Command{ID: fmt.Sprintf("command-%026d", s.Seq()), Actor: actor, At: Time(1000 + s.Seq()),
			Body: b})
		if err != nil {
			t.Fatal(err)
		}
		r, err := DecodeRecord(d.Record.Seq, string(AppendRecord(nil, d.Record)))
		if err != nil {
			t.Fatal(err)
		}
		s.Apply(r)
	}
	heap := func() int {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int(m.HeapAlloc)
	}
	add(&CreateTeam{TeamID: "t1", Name: "core", Dir: "/repo"}, User)
	add(&SpawnMember{Name: "ann", Agent: Claude}, User)
	add(&AttachMember{Member: "ann"}, Host("h"))
	add(&ReportStarted{Member: "ann", Session: "s"}, Host("h"))
	before := heap()
	const records, size = 2_000, 4_000
	for i := range records {
		add(&ReportStatus{Member: "ann", Status: Active,
			Summary: strings.Repeat(string(rune('a'+i%26)), size)}, Host("h"))
	}
	if grown := heap() - before; grown > records*size/4 {
		t.Errorf("after %d records of %d bytes the state takes %d bytes more", records, size, grown)
	}
	runtime.KeepAlive(s)
}

// TestATaskKeepsNoRecords applies events that a task keeps texts of. Each is in a record with a
// long text of something else, which must not stay in memory with the task.
func TestATaskKeepsNoRecords(t *testing.T) {
	text := func(s string) *string { return &s }
	for name, of := range map[string]func(id string) Event{
		"created": func(id string) Event {
			return &TaskCreated{Task{ID: id, Name: "task-" + id, Subject: "S", Description: "D", ActiveForm: "A",
				Status: Pending, Owner: "ann", Role: "R", Priority: "medium", Run: "make", Dir: "d",
				Env: []string{"A=b"}, CreatedBy: User,
				Metadata: map[string]json.RawMessage{"key": json.RawMessage("1")}, FileDigests: []string{"a=b"}}}
		},
		"blocked": func(id string) Event {
			return &TaskCreated{Task{ID: id, Subject: "S", Status: Pending, Owner: "bob", BlockedBy: []string{"1"}}}
		},
		"updated": func(id string) Event {
			return &TaskUpdated{Task: id, Subject: text("new"), Description: text("other"), Owner: text("zoe"),
				Run: text("test"), AddBlockedBy: []string{"1"},
				Metadata: map[string]json.RawMessage{"other": json.RawMessage("2")}}
		},
		"claimed":     func(id string) Event { return &TaskClaimed{Task: id, Member: "zoe", Fence: 1} },
		"released":    func(id string) Event { return &TaskReleased{Task: id, Owner: "zoe"} },
		"failed":      func(id string) Event { return &TaskFailed{Task: id, By: "ann", Reason: "no", Result: "1"} },
		"completed":   func(id string) Event { return &TaskCompleted{Task: id, By: "zoe", Result: "yes"} },
		"rolled back": func(id string) Event { return &TaskRolledBack{Task: id, Owner: "zoe"} },
		"worked": func(id string) Event {
			return &WorkRecorded{Task: id, Work: Work{Member: "ann", Base: "b", Commit: "c", Files: []string{"f"},
				Done: true}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := DecodeSnapshot(0, "")
			if err != nil {
				t.Fatal(err)
			}
			add := func(events ...Event) {
				r := &Record{Seq: s.Seq() + 1, ID: fmt.Sprint(s.Seq()), At: Time(1000 + s.Seq()), Actor: User,
					Events: events}
				if r, err = DecodeRecord(r.Seq, string(AppendRecord(nil, r))); err != nil {
					t.Fatal(err)
				}
				s.Apply(r)
			}
			add(&TeamCreated{Team: Team{ID: "t1", Name: "core", Dir: "/repo", Status: TeamActive},
				Lead: Member{Name: "ann"}})
			const tasks, size = 500, 8_000
			added := name == "created" || name == "blocked"
			for i := 1; i <= tasks && !added; i++ {
				add(&TaskCreated{Task{ID: fmt.Sprint(i), Subject: "S", Status: Pending}})
			}
			heap := func() int {
				runtime.GC()
				runtime.GC()
				var m runtime.MemStats
				runtime.ReadMemStats(&m)
				return int(m.HeapAlloc)
			}
			before := heap()
			for i := 1; i <= tasks; i++ {
				add(of(fmt.Sprint(i)), &MemberStatusChanged{Member: "ann", Status: Active,
					Summary: strings.Repeat(string(rune('a'+i%26)), size)})
			}
			if grown := heap() - before; grown > tasks*size/3 {
				t.Errorf("%d tasks keep %d bytes each of records of %d bytes", tasks, grown/tasks, size)
			}
			runtime.KeepAlive(s)
		})
	}
}

// TestRoomForTasks: the list of tasks has little room that no task uses, and is rarely copied.
func TestRoomForTasks(t *testing.T) {
	s := &State{team: Team{ID: "t1"}}
	copies, room := 0, 0
	const tasks = 2_000
	for i := 1; i <= tasks; i++ {
		(&TaskCreated{Task{ID: fmt.Sprint(i), Status: Pending}}).apply(s, &Record{At: 1})
		if n := cap(s.tasks); n != room {
			copies, room = copies+1, n
		}
		if over := room - len(s.tasks); over > max(8, len(s.tasks)/8) {
			t.Fatalf("%d tasks have room for %d more", i, over)
		}
	}
	if copies > 60 {
		t.Errorf("%d tasks were copied %d times", tasks, copies)
	}
}
