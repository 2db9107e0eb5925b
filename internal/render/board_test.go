package render_test

import (
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"cadre/internal/render"
	"cadre/internal/render/sanitize"
	"cadre/internal/team"
)

// watched returns a team with that many members and tasks. A third of the tasks is in progress, and
// a third is done.
func watched(members, tasks int) *team.State {
	s := &team.State{}
	see := func(events ...team.Event) {
		n := s.Seq() + 1
		s.Apply(&team.Record{Seq: n, ID: fmt.Sprint("c", n), At: team.Time(1000 * n), Events: events})
	}
	see(&team.TeamCreated{Team: team.Team{ID: "t", Name: "here", Observed: "fx", Status: team.TeamPending},
		Lead: team.Member{Name: "boss", Agent: team.External, Status: team.Active}})
	for i := range members {
		name := fmt.Sprint("m", i)
		see(&team.MemberSpawned{Member: team.Member{Name: name, Agent: team.External, Status: team.Active,
			Role: "worker", Incarnation: 1}})
		if i%2 == 1 {
			see(&team.MemberStopped{Member: name, Reason: "it was\nenough"})
		}
	}
	for i := range tasks {
		id := fmt.Sprint(i + 1)
		see(&team.TaskCreated{Task: team.Task{ID: id, Subject: "Subject 漢字 " + id, Status: team.Pending}})
		if i%3 > 0 {
			see(&team.TaskClaimed{Task: id, Member: "m0", Fence: 1})
		}
		if i%3 == 2 {
			see(&team.TaskCompleted{Task: id, By: "m0"})
		}
	}
	return s
}

func text(lines []render.Line) string {
	var b strings.Builder
	for _, line := range lines {
		fmt.Fprintf(&b, "%d %s\n", line.Tone, line.Text)
	}
	return b.String()
}

func TestBoard(t *testing.T) {
	said := render.Sayings(&team.Record{At: 1999, Events: []team.Event{
		&team.MessageSent{Message: team.Message{From: "m0", To: "boss", Body: "two\nlines"}},
		&team.TaskUpdated{Task: "1"},
		&team.GapNoticed{Source: "stdin", Reason: "a line was cut off"},
	}})
	said = append(said, render.Saying{At: 1000, Text: "read later, and said before"})
	got := text(render.Board(watched(2, 3), said, 80, 30))
	want := `1 here (fx) · 1 of 3 tasks done
0 
1 MEMBER  STATUS   ROLE    NOTE
0 boss    active   lead
2 m0      active   worker  2 Subject 漢字 2
3 m1      stopped  worker  it was↵enough
0 
1 TASK  STATUS       OWNER  SUBJECT
2 2     in_progress  m0     Subject 漢字 2
0 1     pending             Subject 漢字 1
3 3     completed    m0     Subject 漢字 3
0 
1 MESSAGES
0 CLOCK  read later, and said before
0 CLOCK  m0 → boss: two↵lines
4 CLOCK  something of stdin was missed: a line was cut off
`
	if want = strings.ReplaceAll(want, "CLOCK", render.Clock(1000)); got != want {
		t.Errorf("the board is\n%s\nnot\n%s", got, want)
	}
}

// TestBoardOfASession: a single observed session is called a session, and its tasks are not
// counted.
func TestBoardOfASession(t *testing.T) {
	for name, want := range map[string]string{"codex": "a session of codex · 7 tokens",
		"lone": "lone (a session of codex) · 7 tokens"} {
		s := &team.State{}
		s.Apply(&team.Record{Seq: 1, ID: "c", At: 1, Events: []team.Event{
			&team.TeamCreated{Team: team.Team{ID: "t", Name: name, Observed: "codex", Session: true,
				Status: team.TeamPending}, Lead: team.Member{Name: "boss", Agent: team.External, Status: team.Active}},
			&team.MemberSpawned{Member: team.Member{Name: "codex", Agent: team.External, Status: team.Active,
				Incarnation: 1}},
			&team.UsageReported{Member: "codex", Usage: team.Usage{InputTokens: 7}},
		}})
		if got := render.Board(s, nil, 80, 30)[0].Text; got != want {
			t.Errorf("its headline is %q, not %q", got, want)
		}
	}
}

// TestWorksOn: a member with several tasks in progress works on all of them. A member without any
// works on what it says itself.
func TestWorksOn(t *testing.T) {
	works := render.WorksOn(watched(2, 6))
	if works["m0"] != "2 Subject 漢字 2, 5 Subject 漢字 5" || works["m1"] != "it was\nenough" {
		t.Errorf("they work on %q", works)
	}
}

// TestWaitsBeforeATurn: a member that waits for a rate limit or for a free turn is said to do so,
// whatever task it has.
func TestWaitsBeforeATurn(t *testing.T) {
	s := &team.State{}
	until := time.Date(2026, 2, 20, 14, 5, 0, 0, time.Local)
	at := team.Time(until.Add(-time.Hour).UnixMilli())
	member := func(name, agent string) *team.MemberSpawned {
		return &team.MemberSpawned{Member: team.Member{Name: name, Agent: agent, Status: team.Spawning, Incarnation: 1}}
	}
	s.Apply(&team.Record{Seq: 1, At: at, Events: []team.Event{
		&team.TeamCreated{Team: team.Team{ID: "x", Name: "x", Lead: "lead", Status: team.TeamActive, MaxParallel: 1},
			Lead: team.Member{Name: "lead", Agent: team.External, Status: team.Active}},
		member("ann", team.Claude), member("bob", team.Codex), member("cy", team.Codex),
		&team.MemberAttached{Member: "ann", Host: "h", Lease: 1, Pool: "claude, login"},
		&team.MemberStarted{Member: "ann", Session: "s"},
		&team.TaskCreated{Task: team.Task{ID: "1", Subject: "Look", Status: team.Pending}},
		&team.TaskClaimed{Task: "1", Member: "ann", Fence: 1},
		&team.RateLimited{Pool: "claude, login", Until: team.Time(until.UnixMilli()), By: "ann", Text: "429", Tries: 1,
			Ended: true}}})
	works := render.WorksOn(s)
	if works["ann"] != "rate limit until 14:05" || works["bob"] != "" || works["cy"] != "waits for a free turn" ||
		works["lead"] != render.You {
		t.Errorf("they work on %q", works)
	}
}

// TestTaskHasOneForm: a task is called the same by the state and by the host of its member.
func TestTaskHasOneForm(t *testing.T) {
	s := &team.State{}
	s.Apply(&team.Record{Seq: 1, At: 1, Events: []team.Event{
		&team.TeamCreated{Team: team.Team{ID: "x", Name: "x", Lead: "lead", Status: team.TeamActive},
			Lead: team.Member{Name: "lead", Agent: team.External, Status: team.Active}},
		&team.MemberSpawned{Member: team.Member{Name: "ann", Agent: "shell", Status: team.Idle}},
		&team.MemberSpawned{Member: team.Member{Name: "bob", Agent: "shell", Status: team.Idle}},
		&team.TaskCreated{Task: team.Task{ID: "1", Name: "look", Subject: "Look around", Status: team.Pending}},
		&team.MemberStatusChanged{Member: "ann", Status: team.Active, Summary: "task look: Look around"},
		&team.MemberStatusChanged{Member: "bob", Status: team.Active, Summary: "task of mine: think"}}})
	works := render.WorksOn(s)
	if works["ann"] != "look Look around" || works["bob"] != "task of mine: think" {
		t.Errorf("they work on %q", works)
	}
}

// TestBoardFits: a board fits a screen of any size, and work in progress comes before finished
// work.
func TestBoardFits(t *testing.T) {
	s := watched(40, 300)
	var said []render.Saying
	for i := range 100 {
		said = append(said, render.Saying{At: 1, Text: fmt.Sprint("message ", i)})
	}
	for _, size := range [][2]int{{80, 24}, {200, 60}, {40, 10}, {20, 5}, {10, 1}, {1, 0}} {
		lines := render.Board(s, said, size[0], size[1])
		if len(lines) > size[1] {
			t.Errorf("%v: %d lines", size, len(lines))
		}
		for _, line := range lines {
			columns := 0
			for _, r := range line.Text {
				columns += sanitize.Columns(r)
			}
			if columns > size[0] || !utf8.ValidString(line.Text) {
				t.Errorf("%v: %d columns: %q", size, columns, line.Text)
			}
		}
		if all := text(lines); size[1] >= 24 && (!strings.Contains(all, "message 99") ||
			!strings.Contains(all, " in progress") || !strings.Contains(all, "more tasks") ||
			!strings.Contains(all, "more teammates")) {
			t.Errorf("%v: it shows\n%s", size, all)
		}
	}
}

// TestBoardOfALargeTeam: a screen of 80 columns and 24 lines has room for a team of 12 with 45
// tasks. It shows each member with its work, the open tasks with their blockers, and the last
// messages.
func TestBoardOfALargeTeam(t *testing.T) {
	s := &team.State{}
	see := func(events ...team.Event) {
		n := s.Seq() + 1
		s.Apply(&team.Record{Seq: n, ID: fmt.Sprint("c", n), At: team.Time(1000 * n), Events: events})
	}
	see(&team.TeamCreated{Team: team.Team{ID: "t", Name: "fx", Observed: "fx", Status: team.TeamPending},
		Lead: team.Member{Name: "team-lead", Agent: team.External, Status: team.Active}})
	var names []string
	for i := range 12 {
		names = append(names, fmt.Sprintf("m%d-specialist-for-one-part", i)[:max(5, 26-2*i)])
		see(&team.MemberSpawned{Member: team.Member{Name: names[i], Agent: team.External, Status: team.Active,
			Role: "general-purpose", Model: "claude-opus-4-6-20260115", Incarnation: 1}},
			&team.UsageReported{Member: names[i], Usage: team.Usage{InputTokens: 1_234_567}})
	}
	for i := 1; i <= 45; i++ {
		id := fmt.Sprint(i)
		see(&team.TaskCreated{Task: team.Task{ID: id, Subject: "Implement part " + id + " of the checkout, with its " +
			"tests and its pages", Status: team.Pending}})
		switch {
		case i <= 12:
			see(&team.TaskClaimed{Task: id, Member: names[i-1], Fence: 1})
		case i <= 15:
			see(&team.TaskClaimed{Task: id, Member: names[0], Fence: 1}, &team.TaskCompleted{Task: id, By: names[0]})
		default:
			see(&team.TaskUpdated{Task: id, AddBlockedBy: []string{"1", "2", "3", "4", "5"}[:1+i%5]})
		}
	}
	var said []render.Saying
	for i := range 20 {
		said = append(said, render.Saying{At: team.Time(i), Text: fmt.Sprintf("team-lead → %s: message %d",
			names[i%12], i)})
	}
	for _, size := range [][2]int{{80, 24}, {160, 50}} {
		lines := render.Board(s, said, size[0], size[1])
		all := text(lines)
		for i, name := range names {
			at := strings.Index(all, "2 "+render.Cut(name, 20)+" ")
			if at < 0 {
				t.Fatalf("%v: %s is not there:\n%s", size, name, all)
			}
			row, _, _ := strings.Cut(all[at:], "\n")
			_, works, ok := strings.Cut(row, fmt.Sprintf("  %d Implement part ", i+1))
			if !ok || len(works) < 9 {
				t.Errorf("%v: what %s works on has no room: %q", size, name, row)
			}
		}
		for _, want := range []string{"blocked by 1,2 ", "more tasks: ", "message 19", "3 done", "claude-opus"} {
			if strings.Contains(all, want) == (want == "claude-opus" && size[0] == 80) {
				t.Errorf("%v: of %q it shows\n%s", size, want, all)
			}
		}
		if len(lines) > size[1] {
			t.Errorf("%v: %d lines", size, len(lines))
		}
	}
}

func TestCut(t *testing.T) {
	for _, c := range []struct {
		text    string
		columns int
		want    string
	}{
		{"short", 10, "short"}, {"exactly", 7, "exactly"}, {"too long", 7, "too lo…"}, {"漢字漢字", 8, "漢字漢字"},
		{"漢字漢字", 7, "漢字漢…"}, {"漢字", 2, "…"}, {"👩‍💻👩‍💻", 6, "👩‍💻…"}, {"👩‍💻👩‍💻", 3, "…"},
		{strings.Repeat("👩\u200d", 200) + "x", 80, "…"}, {"a\u0308bc", 2, "a\u0308…"}, {"xyz", 0, "…"}, {"éé", 2, "éé"},
	} {
		if got := render.Cut(c.text, c.columns); got != c.want && c.columns > 0 {
			t.Errorf("%q in %d columns is %q, not %q", c.text, c.columns, got, c.want)
		}
	}
}
