package render

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"cadre/internal/team"
)

// TestDigest: there is about one line per task, and each comes at its time.
func TestDigest(t *testing.T) {
	var created []team.Event
	for n := range 10 {
		created = append(created, &team.TaskCreated{Task: team.Task{ID: fmt.Sprint(n + 1),
			Subject: fmt.Sprint("part ", n+1),
			Status:  team.Pending}})
	}
	at := func(at team.Time, events ...team.Event) team.Record { return team.Record{At: at, Events: events} }
	made := at(0, &team.TeamCreated{Team: team.Team{ID: "t", Name: "demo"}, Lead: team.Member{Name: "lead"}})
	joined := at(1, &team.MemberSpawned{Member: team.Member{Name: "ann", Agent: team.Shell}},
		&team.MemberSpawned{Member: team.Member{Name: "bob", Agent: "claude"}})
	var crowd []team.Event
	for n := range 12 {
		agent := team.Shell
		if n%3 == 0 {
			agent = "claude"
		}
		crowd = append(crowd, &team.MemberSpawned{Member: team.Member{Name: fmt.Sprint("m", n), Agent: agent}})
	}
	for name, c := range map[string]struct {
		records []team.Record
		want    string
	}{
		"a large team begins with one line": {[]team.Record{made, joined, at(2, created...),
			at(10, &team.TaskClaimed{Task: "1", Member: "ann"}), at(500, &team.TaskCompleted{Task: "1", By: "ann"})},
			"2 + 10 tasks for ann (shell), bob (claude)\n500 ✓ ann  part 1 (490 ms)\n"},
		"many members are counted": {[]team.Record{made, at(1, crowd...), at(2, created...),
			at(10, &team.TaskClaimed{Task: "1", Member: "m1"})},
			"2 + 10 tasks for 12 members (4 claude, 8 shell)\nlater 10 ▸ m1  part 1\n"},
		"members without tasks are no tasks": {[]team.Record{made, at(1, crowd...),
			at(10, &team.MemberFailed{Member: "m1", Reason: "gone"})},
			"1 + 12 members (4 claude, 8 shell)\n10 ! m1 FAILED: gone\n"},
		"tasks for nobody yet": {[]team.Record{made, at(2, created...),
			at(10, &team.MemberFailed{Member: "m1", Reason: "gone"})},
			"2 + 10 tasks\n10 ! m1 FAILED: gone\n"},
		"a small one line by line": {[]team.Record{made, joined, at(2, created[:1]...),
			at(10, &team.TaskClaimed{Task: "1", Member: "ann"})},
			"1 + ann (shell)\n1 + bob (claude)\n2 · task 1  part 1\nlater 10 ▸ ann  part 1\n"},
		"a task that comes later has its line": {[]team.Record{made, joined, at(2, created[:1]...),
			at(10, &team.TaskClaimed{Task: "1", Member: "ann"}), at(20, created[1])},
			"1 + ann (shell)\n1 + bob (claude)\n2 · task 1  part 1\n20 · task 2  part 2\nlater 10 ▸ ann  part 1\n"},
		"a long task has two lines": {[]team.Record{made, joined, at(2, created[:1]...),
			at(10, &team.TaskClaimed{Task: "1", Member: "ann"}), at(2010, &team.MemberStarted{Member: "bob"}),
			at(3000, &team.TaskCompleted{Task: "1", By: "ann"})},
			"1 + ann (shell)\n1 + bob (claude)\n2 · task 1  part 1\n10 ▸ ann  part 1\n3000 ✓ ann  part 1 (3 s)\n"},
		"what a person has to see shows what is under way": {[]team.Record{made, joined, at(2, created[:1]...),
			at(10, &team.TaskClaimed{Task: "1", Member: "ann"}),
			at(20, &team.MemberFailed{Member: "bob", Reason: "gone"})},
			"1 + ann (shell)\n1 + bob (claude)\n2 · task 1  part 1\n10 ▸ ann  part 1\n20 ! bob FAILED: gone\n"},
		"one that was released is not said to begin": {[]team.Record{made, joined, at(2, created[:1]...),
			at(10, &team.TaskClaimed{Task: "1", Member: "ann"}),
			at(20, &team.TaskReleased{Task: "1", Reason: "later"})},
			"1 + ann (shell)\n1 + bob (claude)\n2 · task 1  part 1\n20 ↺ part 1: later\n"},
		"what a command writes to the lead is left out": {[]team.Record{made, joined, at(2, created[:1]...),
			at(30, &team.MessageSent{Message: team.Message{Seq: 1, From: "ann", To: "lead", Type: team.TypeMessage,
				Intent: "info", Body: "Task 1 is done after " +
					"3ms."}}), at(31, &team.MessageSent{Message: team.Message{Seq: 2, From: "bob", To: "lead",
				Type: team.TypeMessage, Body: "hello"}})},
			"1 + ann (shell)\n1 + bob (claude)\n2 · task 1  part 1\n31 ✉ bob → lead: hello\n"},
	} {
		var d Digest
		var s team.State
		var got strings.Builder
		write := func(when string, lines []News) {
			for _, n := range lines {
				fmt.Fprintf(&got, "%s%d %s\n", when, n.At, n.Text)
			}
		}
		for i := range c.records {
			r := &c.records[i]
			r.Seq = int64(i + 1)
			s.Apply(r)
			due, _ := d.Due(r.At)
			write("", due)
			write("", d.Add(r, &s, func(team.Event) bool { return false }))
		}
		due, next := d.Due(1_000_000)
		write("later ", due)
		if next != 0 {
			t.Errorf("%s: more is due at %d", name, next)
		}
		if got.String() != c.want {
			t.Errorf("%s: it is\n%s\nnot\n%s", name, got.String(), c.want)
		}
	}
}

// TestDigestHeldAtTheStart checks that the lines of the team's start come before what a person is
// asked for, which releases the lines that are held back.
func TestDigestHeldAtTheStart(t *testing.T) {
	var d Digest
	var s team.State
	for i, e := range []team.Event{
		&team.TeamCreated{Team: team.Team{ID: "t", Name: "t", Lead: "lead"}, Lead: team.Member{Name: "lead"}},
		&team.MemberSpawned{Member: team.Member{Name: "pat", Agent: team.External}},
		&team.TaskCreated{Task: team.Task{ID: "1", Subject: "one"}}} {
		r := &team.Record{Seq: int64(i + 1), At: 1, Events: []team.Event{e}}
		s.Apply(r)
		if lines := d.Add(r, &s, func(team.Event) bool { return false }); len(lines) > 0 {
			t.Errorf("before the first work it shows %v", lines)
		}
	}
	var got []string
	for _, n := range d.Held() {
		got = append(got, n.Text)
	}
	if want := []string{"+ pat (external)", "· task 1  one"}; !slices.Equal(got, want) {
		t.Errorf("it holds %q, want %q", got, want)
	}
}
