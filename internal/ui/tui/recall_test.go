package tui

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"

	"cadre/internal/consolidate"
	"cadre/internal/journal/memjournal"
	"cadre/internal/journal/recorded"
	"cadre/internal/team"
)

// moment is what the source answers for a moment of the story.
func (x *screen) moment(ref string, seq int64) tea.Msg {
	x.t.Helper()
	var encoded [][]byte
	for _, r := range x.story.records {
		encoded = append(encoded, team.AppendRecord(nil, r))
	}
	j := memjournal.New("demo-1", encoded...).Open()
	s, err := recorded.NewPast(j).At(x.t.Context(), seq)
	if err != nil {
		return momentMsg{ref: ref, seq: seq, err: err.Error()}
	}
	return momentMsg{ref: ref, seq: seq, view: viewOf(ref, s, nil), feed: feedOf(x.story.records[:seq], s),
		items: itemsAt(ref, s)}
}

// TestTimeTravel walks through the history with the keys, and checks that each moment is shown as
// it was, that news of the present do not disturb it, and that nothing can be done there.
func TestTimeTravel(t *testing.T) {
	s := newStory(t)
	x := newScreen(s, 100, 30)
	x.keys("enter")
	x.keys("[")
	if !strings.Contains(x.notice.text, "not been read yet") {
		t.Errorf("before the history is there: %q", x.notice.text)
	}
	x.send(s.message())
	x.send(recordsMsg{ref: "demo", fresh: true, records: s.records, whole: true})
	last := s.state.Seq()
	x.keys("]")
	if x.away() || !strings.Contains(x.notice.text, "This is the present") {
		t.Errorf("%d, %q", x.travel.seq, x.notice.text)
	}
	x.keys("[")
	if x.travel.seq != last-1 || x.team.seq != last-1 || len(x.team.requests) != 1 {
		t.Fatalf("at %d, %+v", x.travel.seq, x.team)
	}
	if frame := stripped(strings.Join(x.frame(), "\n")); !strings.Contains(frame,
		fmt.Sprintf("record %d of %d", last-1, last)) {
		t.Errorf("no slider:\n%s", frame)
	}
	x.keys("D")
	if len(x.asked) > 0 && strings.Contains(x.asked[len(x.asked)-1], "SetDelegate") {
		t.Error("a command was sent from the past")
	}
	if x.ask != nil || !strings.Contains(x.notice.text, "in the past") ||
		strings.Contains(stripped(x.keyLine()), "delegate") {
		t.Errorf("the notice is %q", x.notice.text)
	}
	if keys := stripped(x.keyLine()); !strings.HasPrefix(keys, " [ earlier  ] later  { mark before  } mark after  0 "+
		"now") {
		t.Errorf("the keys of the past are %q", keys)
	}
	if frame := stripped(x.title()); strings.Contains(frame, "needs you") || !strings.Contains(frame, "as of ") {
		t.Errorf("the title of the past is %q", frame)
	}
	// The team continues meanwhile.
	s.do("ann", &team.SendMessage{To: "bob", Body: "tomorrow"})
	x.send(s.message())
	x.send(recordsMsg{ref: "demo", records: s.records[last:], whole: true})
	if x.team.seq != last-1 || strings.Contains(strings.Join(x.frame(), ""), "tomorrow") {
		t.Errorf("the past changed: %d", x.team.seq)
	}
	x.keys("{")
	if x.travel.seq != last-1 || !strings.Contains(x.notice.text, "no failure, wait or commit before") {
		t.Errorf("at %d, %q", x.travel.seq, x.notice.text)
	}
	x.keys("}")
	if x.travel.seq != last || len(x.team.requests) != 2 {
		t.Errorf("the mark after it: %d", x.travel.seq)
	}
	x.keys("}")
	if x.away() {
		t.Errorf("behind the last mark: %d", x.travel.seq)
	}
	x.keys("{", "{")
	if x.travel.seq != last-1 {
		t.Errorf("the second mark before the present: %d", x.travel.seq)
	}
	for range 40 {
		x.keys("<")
	}
	if x.travel.seq != 1 || len(x.team.members) != 1 || len(x.team.tasks) != 0 {
		t.Errorf("at the beginning: %d, %+v", x.travel.seq, x.team)
	}
	x.keys("}")
	if x.travel.seq != last-1 {
		t.Errorf("no mark after: %d", x.travel.seq)
	}
	x.keys("esc")
	if x.away() || x.place != atTeam || x.team.seq != s.state.Seq() ||
		!strings.Contains(fmt.Sprint(x.feed), "tomorrow") {
		t.Errorf("back at %d, place %d, team at %d", x.travel.seq, x.place, x.team.seq)
	}
	// Keys that are faster than the answers lead to the last wish alone.
	x.travel.wanted = 5
	x.send(x.moment("demo", 9))
	if x.away() {
		t.Error("got a moment after the user had left the past")
	}
	x.send(momentMsg{ref: "demo", seq: 5, err: "the state after record 5 is lost"})
	if x.away() || x.notice.look != alarm || x.travel.wanted != 0 {
		t.Errorf("%+v, %+v", x.travel, x.notice)
	}
}

// TestPastInEveryView: the view of a member, what waits, and a task stay in the past, and show that
// moment. Keys for the present say why they do not apply.
func TestPastInEveryView(t *testing.T) {
	s := newStory(t)
	x := newScreen(s, 100, 30)
	x.open(s)
	last := s.state.Seq()
	x.keys("[") // ann has not asked yet
	stays := func(seq int64, where place) {
		t.Helper()
		if x.travel.seq != seq || x.place != where {
			t.Fatalf("at record %d, place %d", x.travel.seq, x.place)
		}
	}
	refuses := func(keys ...string) {
		t.Helper()
		for _, key := range keys {
			asked := len(x.asked)
			x.keys(key)
			if !strings.Contains(x.notice.text, "0 returns to the present") || x.ask != nil || x.input != nil ||
				len(x.asked) != asked {
				t.Errorf("%s: %q", key, x.notice.text)
			}
		}
	}

	x.keys("a")
	stays(last-1, atAttention)
	x.says("what waited for you")
	x.says("bob submitted a plan")
	x.lacks("ann asks")     // later
	x.lacks("broken")       // another team
	x.lacks("rm -rf")       // a request of the present
	x.lacks("cadre answer") // the command that would answer it now
	refuses("y", "n", "a", "A", "m", "r", "R", "c", ".")
	s.do("ann", &team.SendMessage{To: "lead", Body: "which grammar?", Intent: "question"})
	x.send(teamsMsg{teams: []teamRow{rowOf(s.listed())}, items: itemsOf(s.listed())})
	x.lacks("which grammar")
	x.keys("[")
	stays(last-2, atAttention)
	x.says("Nothing waited for you at that time.")
	x.keys("]", "esc")
	stays(last-1, atTeam)

	x.keys("1")
	x.view("ann") // its lines are of the first minutes
	stays(last-1, atMember)
	x.says("FAIL lexer")
	x.lacks("The build fails because") // not finished: it is of the present
	x.lacks("to ann ▸")
	refuses("i", "x", "d", ".")
	x.keys("<", "<", "<", "<", "<", "<", "<", "<", "<")
	x.keys("[", "[", "[")
	x.lacks("FAIL lexer")
	x.says("nothing at that time")
	x.keys("}")
	stays(last-1, atMember)
	x.says("FAIL lexer")
	x.keys("/", "grammar", "enter")
	x.says("grammar.ebnf")
	x.keys("a")
	stays(last-1, atAttention)
	x.keys("esc")
	stays(last-1, atMember)
	x.keys("esc")
	stays(last-1, atTeam)

	x.keys("2", "enter")
	stays(last-1, atTask)
	x.keys("enter") // the session of its owner
	stays(last-1, atMember)
	x.keys("left", "left")
	stays(last-1, atTeam)
	x.keys("a", "0")
	stays(0, atAttention)
	x.says("ann asks")
	x.keys("[", "esc")
	x.keys("esc") // to the present
	stays(0, atTeam)

	x.keys("esc", "a") // opened from the list of teams
	x.send(s.message())
	x.send(recordsMsg{ref: "demo", fresh: true, records: s.records, whole: true})
	x.keys("[")
	stays(s.state.Seq()-1, atAttention)
	x.keys("esc")
	stays(0, atAttention)
	x.keys("esc")
	stays(0, atTeams)
}

// TestSinceYouLastLooked checks the summary of what happened while another team was shown.
func TestSinceYouLastLooked(t *testing.T) {
	s := newStory(t)
	x := newScreen(s, 100, 30)
	x.open(s)
	x.keys("s")
	if !strings.Contains(x.notice.text, "for the first time") {
		t.Errorf("%q", x.notice.text)
	}
	x.keys("esc")
	x.send(x.open2("docs")())
	s.do("ann", &team.CompleteTask{Task: "1", Fence: 1, Result: "done"})
	s.do("bob", &team.SendMessage{To: "lead", Body: "which grammar?", Intent: "question"})
	x.keys("enter")
	x.send(s.message())
	x.send(recordsMsg{ref: "demo", fresh: true, records: s.records, whole: true})
	if !strings.Contains(x.notice.text, "2 changes since you last looked at demo") {
		t.Errorf("the notice is %q", x.notice.text)
	}
	x.keys("s")
	if x.overlay == nil || !slices.Contains(x.overlay.text, "· bob asks: which grammar?") ||
		!slices.Contains(x.overlay.text, "· 1 task was completed: lexer.") {
		t.Errorf("%+v", x.overlay)
	}
}

// TestSinceAnEarlierProgram checks that a look of an earlier program counts.
func TestSinceAnEarlierProgram(t *testing.T) {
	s := newStory(t)
	x := newScreen(s, 100, 30)
	x.keys("enter")
	x.send(s.message())
	x.send(recordsMsg{ref: "demo", fresh: true, looked: s.state.Seq() - 1, records: s.records, whole: true})
	if !strings.Contains(x.notice.text, "1 change since you last looked at demo") {
		t.Errorf("the notice is %q", x.notice.text)
	}
}

// open2 shows another team.
func (x *screen) open2(ref string) tea.Cmd { return x.Model.open(ref) }

// TestGapsAreShown checks that the lanes continue after lost records, and say so.
func TestGapsAreShown(t *testing.T) {
	s := newStory(t)
	x := newScreen(s, 80, 24)
	x.keys("enter")
	x.send(s.message())
	x.send(recordsMsg{ref: "demo", fresh: true, records: s.records[:3]})
	x.send(recordsMsg{ref: "demo", lost: s.state})
	x.send(recordsMsg{ref: "demo", whole: true})
	x.keys("4")
	if frame := strings.Join(x.frame(), "\n"); !strings.Contains(frame, "lost to damage") ||
		!strings.Contains(frame, "bob") {
		t.Errorf("%s", frame)
	}
}

// TestRecallKeepsNoRecords reads a long history of records with long texts, of which the screen
// shows little. What it keeps must not keep the records.
func TestRecallKeepsNoRecords(t *testing.T) {
	owner := "ann"
	for name, of := range map[string]func(id string) team.Event{
		"created": func(id string) team.Event {
			return &team.TaskCreated{Task: team.Task{ID: "1" + id, Name: "task-" + id, Subject: "S",
				Status: team.Pending, Owner: "nobody", Role: "r" + id, BlockedBy: []string{"1"}}}
		},
		"updated": func(id string) team.Event {
			return &team.TaskUpdated{Task: id, Owner: &owner, AddBlockedBy: []string{"1"}}
		},
		"claimed":   func(id string) team.Event { return &team.TaskClaimed{Task: id, Member: "zoe", Fence: 1} },
		"released":  func(id string) team.Event { return &team.TaskReleased{Task: id, Owner: "zoe", Reason: "late"} },
		"failed":    func(id string) team.Event { return &team.TaskFailed{Task: id, By: "zoe", Reason: "no"} },
		"completed": func(id string) team.Event { return &team.TaskCompleted{Task: id, By: "zoe", Result: "yes"} },
		"rejected": func(id string) team.Event {
			return &team.HookRejected{Hook: "TaskCompleted", Member: "zoe", Task: id, Feedback: "no", Count: 9}
		},
		"mentioned": func(id string) team.Event {
			return &team.MessageSent{Message: team.Message{From: "zoe", To: "ann", Type: team.TypeMessage,
				Body: "see #" + id}}
		},
		"used": func(string) team.Event {
			return &team.UsageReported{Member: "zoe", Usage: team.Usage{InputTokens: 1}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStory(t)
			x := newScreen(s, 100, 30)
			x.open(s)
			const tasks, size = 500, 8_000
			seq := s.state.Seq()
			read := func(events ...team.Event) {
				seq++
				s.at += 10
				r := &team.Record{Seq: seq, ID: fmt.Sprint("r", seq), At: s.at, Events: events}
				r, err := team.DecodeRecord(seq, string(team.AppendRecord(nil, r)))
				if err != nil {
					t.Fatal(err)
				}
				x.Update(recordsMsg{ref: "demo", records: []*team.Record{r}, whole: true})
			}
			x.past.seen = seq // there is a summary for the person, too
			for i := 1; i <= tasks; i++ {
				id := fmt.Sprint(100 + i)
				read(&team.TaskCreated{Task: team.Task{ID: id, Subject: "S", Status: team.Pending}},
					&team.TaskClaimed{Task: id, Member: "zoe", Fence: 1})
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
				read(of(fmt.Sprint(100+i)), &team.MemberStatusChanged{Member: "zoe", Status: team.Active,
					Summary: strings.Repeat(string(rune('a'+i%26)), size)})
			}
			if grown := heap() - before; grown > tasks*size/3 {
				t.Errorf("of %d records of %d bytes, %d bytes each are kept", tasks, size, grown/tasks)
			}
			runtime.KeepAlive(x)
		})
	}
}

// TestMomentArrivesLate: what the person began for the present while a moment was read does not
// reach the team once the screen shows the past.
func TestMomentArrivesLate(t *testing.T) {
	s := newStory(t)
	opened := func() (x *screen, arrives func()) {
		x = newScreen(s, 100, 30)
		x.open(s)
		x.run(x.openMember("ann"))
		x.keys("tab")
		_, late := x.Update(tea.KeyPressMsg{Code: '[', Text: "["})
		return x, func() { x.run(late) }
	}
	x, arrives := opened()
	x.keys("tab", "go on")
	arrives()
	asked := len(x.asked)
	if !x.away() || x.typing {
		t.Errorf("away: %v, typing: %v", x.away(), x.typing)
	}
	x.keys("enter")
	x.run(x.say(false))
	if len(x.asked) != asked || x.draft().String() != "go on" {
		t.Errorf("%s, and the line is %q", x.last(), x.draft())
	}
	x.says("Nothing can be done in the past.")

	x, arrives = opened()
	x.keys(".")
	if x.menu == nil {
		t.Fatal("no menu")
	}
	arrives()
	if asked = len(x.asked); x.menu != nil {
		t.Error("the menu for the present is still open")
	}
	x.run(x.runCommand([]string{"pause"}))
	if len(x.asked) != asked {
		t.Error(x.last())
	}

	x, arrives = opened()
	x.staged = stagingMsg{ref: "demo", plan: &consolidate.Plan{Team: "demo"}}
	x.run(x.plansConsolidation())
	x.keys("enter")
	if x.ask == nil {
		t.Fatal("no question")
	}
	arrives()
	asked = len(x.asked)
	x.keys("y")
	x.says("Nothing can be done in the past.")
	if len(x.asked) != asked || x.overlay.stage == nil {
		t.Errorf("%s, and %q is open", x.last(), x.overlay.title)
	}
}

// TestPastEndsBeforeTheList: the list of teams is never shown in the past of a team.
func TestPastEndsBeforeTheList(t *testing.T) {
	s := newStory(t)
	x := newScreen(s, 100, 30)
	x.open(s)
	x.keys("esc", ".") // the menu of the list opens the team without leaving the list
	x.send(s.message())
	x.send(recordsMsg{ref: "demo", fresh: true, records: s.records, whole: true})
	x.keys("esc", "a", "[")
	if !x.away() || x.place != atAttention {
		t.Fatalf("away: %v, place %d", x.away(), x.place)
	}
	x.keys("esc")
	if x.away() || x.place != atAttention {
		t.Errorf("away: %v, place %d", x.away(), x.place)
	}
	x.keys("esc")
	if x.place != atTeams {
		t.Errorf("place %d", x.place)
	}
}
