package tui

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"

	"cadre/internal/inspect/attention"
	"cadre/internal/render"
	"cadre/internal/team"
	"cadre/internal/ui/sessionview"
)

// last returns the last request of the screen.
func (x *screen) last() string {
	if len(x.asked) == 0 {
		return ""
	}
	return x.asked[len(x.asked)-1]
}

// wants checks what the screen asked for last.
func (x *screen) wants(want string) {
	x.t.Helper()
	if got := x.last(); got != want {
		x.t.Errorf("the screen asked for %q, and not for %q", got, want)
	}
}

// says checks that the screen shows the text.
func (x *screen) says(text string) {
	x.t.Helper()
	if frame := stripped(strings.Join(x.frame(), "\n")); !strings.Contains(frame, text) {
		x.t.Errorf("the screen does not say %q:\n%s", text, frame)
	}
}

// TestWaitingMembers: the rows and the view of a member say what it waits for an answer to, and the
// row of the person who leads says no state of a session.
func TestWaitingMembers(t *testing.T) {
	s := newStory(t)
	x := newScreen(s, 80, 24)
	x.open(s)
	x.says("ann     active   2m  asks for Bash")
	x.says("bob     active   2m  plan submitted")
	x.says("lead    you          leads")
	x.view("ann")
	x.says(" asks for Bash")
	s.do(team.User, &team.AnswerPermission{Request: "permission-2@ann", Allow: true})
	x.send(s.message())
	x.lacks("asks for Bash")
	x.keys("tab", "esc", "n", "tab", "esc", "esc")
}

// TestAnswersAreExplained: what a line asks for stays above it while the person types.
func TestAnswersAreExplained(t *testing.T) {
	s := newStory(t)
	x := newScreen(s, 80, 24)
	x.open(s)
	x.keys("a", "n", "not now")
	x.says("Say why ann may not do it. The reason may be empty.")
	x.keys("esc", "down", "n", "more")
	x.says("Say what the plan of bob lacks.")
}

// TestNarrowKeys: at 40 columns the last line says how to get help in the line to a member, and
// what any other key answers.
func TestNarrowKeys(t *testing.T) {
	s := newStory(t)
	x := newScreen(s, 40, 15)
	x.open(s)
	x.view("ann")
	x.says("F1 help")
	x.keys("tab", "x")
	x.says("any other key: no")
	x.keys("n", "?")
	x.lacks(" to ann") // letters are keys now
	x.keys("esc", "shift+down", "?", "end")
	if frame := stripped(strings.Join(x.frame(), "\n")); strings.Contains(frame, ".)") {
		t.Errorf("the help has a stop within brackets:\n%s", frame)
	}
	x.keys("esc")
	x.hosted = "demo"
	x.keys("q")
	x.says("p pause it  b background  else: cancel")
}

// TestMessages: the line goes to the member that it names, as mail or as urgent mail. A text typed
// to one member stays with that member, and a refused message comes back.
func TestMessages(t *testing.T) {
	s := newStory(t)
	x := newScreen(s, 80, 24)
	x.open(s)
	x.view("ann")
	x.wants("session demo ann")
	x.says("to ann ▸ ")
	x.keys("mind q and ?", "enter")
	x.wants(`demo *team.SendMessage &{To:ann Intent: Priority: Body:mind q and ? Metadata:map[] Answers:0}`)
	x.says("It gets the message at the next tool boundary.")
	x.keys("stop", "ctrl+s")
	x.wants(`demo *team.SendMessage &{To:ann Intent: Priority:urgent Body:stop Metadata:map[] Answers:0}`)
	x.keys("!now", "enter")
	x.wants(`demo *team.SendMessage &{To:ann Intent: Priority:urgent Body:now Metadata:map[] Answers:0}`)
	x.keys("for ann", "shift+down")
	x.says("to bob ▸ ")
	if x.draft().String() != "" {
		t.Error("the text to ann is in the line to bob")
	}
	x.keys("shift+up")
	x.says("to ann ▸ for ann")
	x.fails = errors.New("ann has stopped")
	x.keys("enter")
	x.says("ann has stopped")
	x.says("to ann ▸ for ann")
	x.send(tea.PasteMsg{Content: "\x1b[2Jtwo\nlines"})
	x.says("for ann␛[2Jtwo↵lines")
	x.send(tea.PasteMsg{Content: "one\rtwo\r\n\tthree"})
	if got := x.draft().String(); !strings.HasSuffix(got, "lines"+"one\ntwo\n three") {
		t.Errorf("the line with the paste is %q", got)
	}
}

// TestMessageToAShell: a shell member reads no messages, and an urgent one ends its command only
// after a question. A text that is not sent stays in the line.
func TestMessageToAShell(t *testing.T) {
	s := newStory(t)
	s.do(team.User, &team.SpawnMember{Name: "sh", Agent: team.Shell})
	s.do(team.Host("h"), &team.AttachMember{Member: "sh"})
	s.do(team.Host("h"), &team.ReportStarted{Member: "sh", Session: "s"})
	x := newScreen(s, 80, 24)
	x.open(s)
	x.run(x.openMember("sh"))
	x.keys("hello", "enter")
	x.says("Sent to sh, which reads no messages")
	s.do(team.User, &team.CreateTask{Subject: "Build", Name: "build", Run: "make", Owner: "sh"})
	s.do("sh", &team.ClaimTask{Task: "build"})
	x.send(s.message())
	asked := len(x.asked)
	x.keys("!stop", "enter")
	x.says("This ends the command of sh, and its task build fails. End it?")
	x.keys("n")
	if len(x.asked) != asked || x.draft().String() != "!stop" {
		t.Errorf("without a yes, the line is %q, and this was asked: %v", x.draft(), x.asked[asked:])
	}
	x.keys("ctrl+s", "y")
	x.wants("demo *team.SendMessage &{To:sh Intent: Priority:urgent Body:stop Metadata:map[] Answers:0}")
	x.says("It ends the command.")
}

// TestInterruptOfAShell: the screen says what an interrupt costs before the command of a shell
// member ends, asks for a letter, and says afterwards what is so.
func TestInterruptOfAShell(t *testing.T) {
	s := newStory(t)
	s.do(team.User, &team.SpawnMember{Name: "sh", Agent: team.Shell})
	s.do(team.Host("h"), &team.AttachMember{Member: "sh"})
	s.do(team.Host("h"), &team.ReportStarted{Member: "sh", Session: "s"})
	s.do(team.User, &team.CreateTask{Subject: "Build", Name: "build", Run: "make", Owner: "sh"})
	s.do("sh", &team.ClaimTask{Task: "build"})
	const question = "This ends the command of sh, and its task build fails. End it?"
	x := newScreen(s, 120, 24)
	x.open(s)
	x.view("sh")
	for _, keys := range [][]string{{"esc"}, {"tab", "esc"}, {"x"}} {
		x.keys(keys...)
		x.says(question)
		asked := len(x.asked)
		x.keys("esc")
		x.says("Nothing was changed.")
		if len(x.asked) != asked {
			t.Errorf("after %v, Escape ended the command: %s", keys, x.last())
		}
	}
	x.keys(".")
	x.says("End its command. Its task fails, and it starts no command until it gets a message.")
	x.picks("interrupt sh")
	x.says(question)
	x.keys("y")
	x.wants("demo *team.Interrupt &{Member:sh}")
	x.says("sh is interrupted, and starts no command until it gets a message.")
	s.do(team.User, &team.Interrupt{Member: "sh"})
	s.do("sh", &team.FailTask{Task: "build", Reason: "interrupted"})
	s.do(team.Host("h"), &team.ReportStatus{Member: "sh", Status: team.Idle})
	x.send(s.message())
	x.keys("tab", "go on", "enter")
	x.says("Sent to sh. It continues with its tasks.")
}

// TestUnhostedMember: the view of a member says that no process runs its session, and what does.
// There is no turn: Escape leads back, and no message is promised for a tool boundary.
func TestUnhostedMember(t *testing.T) {
	s := newStory(t)
	x := newScreen(s, 80, 24)
	x.open(s)
	x.view("ann")
	x.lacks("No process runs")
	msg := s.message()
	msg.view = viewOf("demo", s.state, &team.Outside{At: s.at, Sights: map[string]team.Sight{
		"ann": {Life: team.LifeOffline, HostGone: true}}})
	x.send(msg)
	x.says("No process runs this session. Continue the team with: cadre resume")
	x.keys("hello", "enter")
	x.says("Sent to ann, which gets it when a process runs its session again.")
	x.keys("tab", "x")
	x.says("there is no turn to interrupt.")
	x.keys("tab", "esc")
	if x.place != atTeam || x.ask != nil {
		t.Errorf("Escape does not lead back:\n%s", strings.Join(x.frame(), "\n"))
	}
	x.keys(".")
	x.says("interrupt ann")
	x.picks("interrupt ann")
	if x.ask != nil {
		t.Error("an interrupt is offered")
	}
}

// TestEscapeBesideTheLine: what Escape does in the view of a member does not depend on whether the
// person is in the line.
func TestEscapeBesideTheLine(t *testing.T) {
	s := newStory(t)
	x := newScreen(s, 80, 24)
	x.open(s)
	x.view("ann")
	x.keys("tab", "esc")
	x.says("Interrupt the turn of ann?")
	x.keys("n", "tab", "text", "esc", "esc")
	if x.place != atTeam {
		t.Errorf("with a text that is kept, a second Escape does not lead back: %s", strings.Join(x.frame(), "\n"))
	}
	asked := len(x.asked)
	x.view("bob")
	x.keys("esc", "left")
	if x.place != atTeam || slices.ContainsFunc(x.asked[asked:], func(one string) bool {
		return strings.Contains(one, "Interrupt")
	}) {
		t.Errorf("← does not lead back from the question: %q", x.asked[asked:])
	}
}

// TestMessageToTheLead: a lead that cadre does not run takes no message at a tool boundary.
func TestMessageToTheLead(t *testing.T) {
	s := newStory(t)
	x := newScreen(s, 80, 24)
	x.open(s)
	for i := range x.team.members { // a session leads
		x.team.members[i].you = false
	}
	x.run(x.openMember("lead"))
	x.keys("well done", "enter")
	x.says("Sent to lead.")
	if frame := stripped(strings.Join(x.frame(), "\n")); strings.Contains(frame, "tool boundary") {
		t.Errorf("the lead has no session, and the screen says:\n%s", frame)
	}
}

// TestNoLine: there is no line to write to the person who leads, or to a member that has ended.
// There, letters are keys. A text that was typed before the member ended stays.
func TestNoLine(t *testing.T) {
	s := newStory(t)
	x := newScreen(s, 80, 24)
	x.open(s)
	none := func(why string) {
		t.Helper()
		x.keys("i")
		x.says(why)
		if frame := stripped(strings.Join(x.frame(), "\n")); x.typing || strings.Contains(frame, " ▸ ") {
			t.Errorf("there is a line:\n%s", frame)
		}
	}
	x.run(x.openMember("lead"))
	none("You lead this team: lead is you.")
	x.keys("esc")
	end := func(name string) {
		s.do(team.Host("host-1"), &team.ReportStopped{Member: name})
		x.send(s.message())
	}
	x.run(x.openMember("ann"))
	end("ann")
	none("ann has ended, and reads no messages.")
	x.keys("esc")
	x.run(x.openMember("bob"))
	x.keys("half a text")
	end("bob")
	x.says("to bob ▸ half a text")
	x.keys("ctrl+u", "esc")
	x.run(x.openMember("bob"))
	x.keys("a")
	x.says("what waits for you")
}

// TestEscape: with a turn running and an empty line Escape asks, and a second one interrupts. With
// a text it keeps the text. Otherwise it leads back.
func TestEscape(t *testing.T) {
	s := newStory(t)
	x := newScreen(s, 80, 24)
	x.open(s)
	x.view("ann")
	x.keys("text", "esc")
	if x.typing || x.ask != nil || x.draft().String() != "text" {
		t.Error("Escape did not keep the text")
	}
	x.keys("tab", "backspace", "backspace", "backspace", "backspace", "esc")
	x.says("Interrupt the turn of ann?")
	x.keys("n")
	x.says("Nothing was changed.")
	x.keys("esc", "esc")
	x.wants("demo *team.Interrupt &{Member:ann}")
	s.do(team.Host("host-1"), &team.ReportStatus{Member: "lukas", Status: team.Idle})
	x.send(s.message())
	x.keys("shift+down", "shift+down", "esc")
	if x.place != atTeam {
		t.Errorf("Escape did not lead back from a member without a turn: %s", strings.Join(x.frame(), "\n"))
	}
	x.wants("session")
}

// TestAnswers answers what waits: each answer goes to the item that is selected, and to no other
// one when that item is settled meanwhile.
func TestAnswers(t *testing.T) {
	s := newStory(t)
	x := newScreen(s, 80, 24)
	x.keys("a")
	x.wants("open demo")
	x.send(s.message())
	x.says("rm -rf build && make")
	x.keys("r")
	x.says("Only a failed task and a rate-limited model are tried again.")
	x.keys("y")
	x.wants("demo *team.AnswerPermission &{Request:permission-2@ann Allow:true Reason:}")
	x.keys("n", "not now", "enter")
	x.wants("demo *team.AnswerPermission &{Request:permission-2@ann Allow:false Reason:not now}")
	x.keys("down")
	x.says("3. Port the parser.")
	x.keys("y")
	x.wants("demo *team.AnswerPlan &{Request:plan-1@bob Approved:true Feedback:}")
	x.keys("n", "Name the rules", "enter")
	x.wants("demo *team.AnswerPlan &{Request:plan-1@bob Approved:false Feedback:Name the rules}")
	x.keys("m", "Which?", "enter")
	x.wants("demo *team.SendMessage &{To:bob Intent: Priority: Body:Which? Metadata:map[] Answers:0}")
	x.keys("up")

	x.mine = "" // another process answers now
	asked := len(x.asked)
	s.do(team.User, &team.AnswerPermission{Request: "permission-2@ann", Allow: true})
	x.send(teamsMsg{teams: []teamRow{rowOf(s.listed())}, items: itemsOf(s.listed())})
	x.says("This item is settled")
	x.says("lead settled permission-2@ann: denied, just now.")
	x.keys("y", "n")
	if len(x.asked) != asked {
		t.Errorf("a key for an item that is settled asked for %q", x.last())
	}
	x.keys("down")
	x.says("3. Port the parser.")
}

// TestAttentionOfTheOpenTeam: what waits in the open team comes first and is selected, also when
// the list changes. The message about an action names the team.
func TestAttentionOfTheOpenTeam(t *testing.T) {
	s := newStory(t)
	x := newScreen(s, 80, 24)
	other := func(f attention.Found) attention.Found {
		f.Folder = "another"
		return f
	}(s.listed())
	list := teamsMsg{teams: []teamRow{rowOf(other), rowOf(s.listed())},
		items: append(itemsOf(other), itemsOf(s.listed())...)}
	x.send(list)
	for one := (teamRow{}); one.ref != "demo"; one = x.teams[x.teamIndex()] {
		x.keys("down")
	}
	x.open(s)
	x.keys("a")
	x.send(list)
	x.keys("y")
	x.wants("demo *team.AnswerPermission &{Request:permission-2@ann Allow:true Reason:}")
	x.says("demo: ann may do it.")
	x.keys("esc", "esc", "a")
	if one, _ := x.item(); one.ref != "another" {
		t.Errorf("the list of all teams begins with %+v", one)
	}
}

// TestRefusedLine: what was typed is not lost when it is refused, and Escape gives it up.
func TestRefusedLine(t *testing.T) {
	s := newStory(t)
	x := newScreen(s, 80, 24)
	x.keys("a")
	x.send(s.message())
	x.keys("down")
	x.fails = errors.New("this plan was answered already")
	x.keys("n", "Name the rules", "enter")
	x.says("this plan was answered already")
	x.says("reject bob ▸ Name the rules")
	x.keys("esc")
	if x.input != nil {
		t.Error("Escape does not close the line")
	}
	x.keys("n", "Name the rules", "enter")
	x.fails = nil
	x.keys("!", "enter")
	x.wants("demo *team.AnswerPlan &{Request:plan-1@bob Approved:false Feedback:Name the rules!}")
	if x.input != nil {
		t.Error("the line stays although its text was accepted")
	}
}

// TestPlanByPages: a page of a long plan follows the one before without a gap, and the screen says
// that more follows.
func TestPlanByPages(t *testing.T) {
	s := newStory(t)
	var plan strings.Builder
	for i := range 60 {
		fmt.Fprintf(&plan, "step %d of it\n\n", i)
	}
	s.do(team.User, &team.SpawnMember{Name: "eve", Agent: "claude", PlanApproval: true})
	s.do(team.Host("host-1"), &team.AttachMember{Member: "eve"})
	s.do(team.Host("host-1"), &team.ReportStarted{Member: "eve", Session: "session-eve"})
	s.do("eve", &team.SubmitPlan{Plan: plan.String()})
	x := newScreen(s, 80, 24)
	x.keys("a")
	x.send(s.message())
	for one, _ := x.item(); one.Member != "eve"; one, _ = x.item() {
		x.keys("down")
	}
	x.says("↓ ")
	seen, before := "", ""
	for frame := ""; ; before = frame {
		if frame = stripped(strings.Join(x.frame(), "\n")); frame == before {
			break
		}
		seen += frame
		x.keys("pgdown")
	}
	for i := range 60 {
		if !strings.Contains(seen, fmt.Sprintf("step %d of it", i)) {
			t.Errorf("no page has step %d", i)
		}
	}
}

// TestNearestDeadlineFirst checks that the item with the nearest deadline comes first, and that a
// list that is cut says how many items follow.
func TestNearestDeadlineFirst(t *testing.T) {
	s := newStory(t)
	x := newScreen(s, 80, 24)
	late := attention.Found{Folder: "aaa"}
	for i := range 20 {
		late.Items = append(late.Items, team.Item{Kind: team.ItemTaskFailed, Task: fmt.Sprint(i),
			WaitsFor: team.ForUser, Text: "Stale."})
	}
	soon := attention.Found{Folder: "zzz", Items: []team.Item{{Kind: team.ItemPermission, WaitsFor: team.ForUser,
		Request: "permission-1@z", Member: "z", Deadline: x.now + 60_000, Text: "z asks."}}}
	var items []itemRow
	for _, one := range []attention.Found{late, s.listed(), soon} {
		items = append(items, itemsOf(one)...)
	}
	x.send(teamsMsg{teams: []teamRow{rowOf(s.listed())}, items: items})
	x.keys("a")
	if one, _ := x.item(); one.ref != "zzz" || x.items[1].Request != "permission-2@ann" {
		t.Errorf("the first items are %+v and %+v", one, x.items[1])
	}
	x.says("↓ ")
}

// TestTasksThatFailed: a failed task goes back to the queue after a question, or to another member.
func TestTasksThatFailed(t *testing.T) {
	s := newStory(t)
	s.do("ann", &team.FailTask{Task: "lexer", Fence: 1, Reason: "the grammar is missing",
		Result: "line 1\n" + strings.Repeat("more\n", mostOfFailure-1) + "no such file\n"})
	owner := "ann"
	s.do(team.User, &team.UpdateTask{Task: "lexer", Owner: &owner})
	x := newScreen(s, 80, 24)
	x.keys("a")
	x.send(s.message())
	for one, _ := x.item(); one.Kind != team.ItemTaskFailed; one, _ = x.item() {
		x.keys("down")
	}
	x.says("owner ann, 1 attempt. Enter opens the task, with its output.")
	x.says("no such file")
	x.says("missing") // the list has no room for the whole sentence
	x.send(tea.WindowSizeMsg{Width: 120, Height: 24})
	if frame := stripped(strings.Join(x.frame(), "\n")); strings.Count(frame, "the grammar is missing") != 1 ||
		strings.Contains(frame, "line 1") {
		t.Errorf("the screen shows the sentence twice, or more than the last lines:\n%s", frame)
	}
	x.send(tea.WindowSizeMsg{Width: 80, Height: 24})
	x.keys("m", "why?", "enter")
	x.wants("demo *team.SendMessage &{To:ann Intent: Priority: Body:why? Metadata:map[] Answers:0}")
	x.keys("r")
	x.says("Return task")
	x.keys("y")
	x.wants("demo *team.ReleaseTask &{Task:1 Member: Fence:0 Reason:}")
	x.keys("R")
	x.says("who gets task lexer")
	x.keys("bo", "tab", "enter")
	x.wants("reassign demo 1 bob")
	x.keys("c")
	x.says(": cadre ")
	x.keys("esc", "enter")
	x.send(s.message())
	x.says("last failure  the grammar is missing")
}

// TestPalette runs commands: what is asked for by a command is asked on the screen.
func TestPalette(t *testing.T) {
	s := newStory(t)
	x := newScreen(s, 80, 24)
	x.open(s)
	x.prints = outputMsg{text: "task 5: say hello\n"}
	x.keys(":", `task add demo 'say hello'`, "enter")
	x.wants(`command demo ["task" "add" "demo" "say hello"]`)
	x.says("task 5: say hello")
	x.prints = outputMsg{args: []string{"abort", "demo"}, code: 2, asked: "Do it?"}
	x.keys(":", "abort demo", "enter")
	x.says("Do it? [y/N]")
	x.prints = outputMsg{text: "aborted"}
	x.keys("y")
	x.wants(`command demo ["abort" "demo" "--yes"]`)
	x.keys(":", "it's", "enter")
	x.says(`The command was not run: ' begins a quote that does not end.`)
	x.says(`"don't"`)
	x.says(" : cadre it's") // it can be corrected
}

// TestOverlayIsLaidOutAgain: what a command printed, and the list of keys, fit a terminal that
// became narrower.
func TestOverlayIsLaidOutAgain(t *testing.T) {
	s := newStory(t)
	x := newScreen(s, 120, 30)
	x.open(s)
	x.prints = outputMsg{text: strings.Repeat("many words ", 30) + "the end\nmore"}
	for _, end := range []string{"the end", "show all keys"} {
		x.keys(map[bool]string{true: ":", false: "?"}[end == "the end"])
		if x.input != nil {
			x.keys("show", "enter")
		}
		x.send(tea.WindowSizeMsg{Width: 60, Height: 70})
		x.says(end)
		x.overlay = nil
		x.send(tea.WindowSizeMsg{Width: 120, Height: 30})
	}
}

// TestHelpInTheLine: the list of keys has no letters where letters are text.
func TestHelpInTheLine(t *testing.T) {
	s := newStory(t)
	x := newScreen(s, 120, 60)
	x.open(s)
	x.view("ann")
	for _, typing := range []bool{true, false} {
		if x.typing != typing {
			x.keys("tab")
		}
		x.help()
		letters := 0
		for _, l := range x.overlay.text {
			words := strings.Fields(stripped(l))
			for _, word := range words[:min(2, len(words))] {
				if len(strings.Trim(word, ",")) == 1 && word != "a" {
					letters++
				}
			}
		}
		if typing == (letters > 0) {
			t.Errorf("with the line open %v it names %d letters:\n%s", typing, letters,
				strings.Join(x.overlay.text, "\n"))
		}
		x.overlay = nil
	}
}

// TestLateCommand: what a command prints or asks while the person types in a line does not take the
// keys.
func TestLateCommand(t *testing.T) {
	s := newStory(t)
	x := newScreen(s, 80, 24)
	x.open(s)
	x.view("ann")
	second := func() { x.Update(clockMsg(x.now + 1000)) }
	for _, late := range []outputMsg{{args: []string{"permission", "add"}, code: 2, asked: "Do it?"},
		{args: []string{"probe", "demo"}, text: "one\ntwo\n"}} {
		x.holds = true
		x.keys("tab", ":", "probe demo", "enter", "tab", "ab")
		late.number = x.commands
		x.send(late)
		x.says("has ended. Its output follows when you finish here.")
		x.keys("yq")
		if got := x.draft().String(); got != "abyq" || x.ask != nil || x.overlay != nil {
			t.Errorf("the line holds %q, the question is %v", got, x.ask)
		}
		second()
		second()
		if x.ask != nil || x.overlay != nil {
			t.Error("the command takes the keys while the line has a text")
		}
		x.keys("backspace", "backspace", "backspace", "backspace")
		second()
		if x.ask != nil || x.overlay != nil {
			t.Error("the command takes the keys at once after a key")
		}
		second()
		if (x.ask != nil) != (late.asked != "") || (x.overlay != nil) != (late.text != "") {
			t.Errorf("what the command said is not shown: %+v", late)
		}
		x.ask, x.overlay = nil, nil
	}
}

// TestSplit divides command lines into words.
func TestSplit(t *testing.T) {
	for line, want := range map[string][]string{"": nil, " a  b ": {"a", "b"}, `a "b c" 'd"e' f''g`: {"a", "b c", `d"e`,
		"fg"}, `''`: {""}} {
		if got, err := split(line); err != nil || !slices.Equal(got, want) {
			t.Errorf("%q: %q, %v", line, got, err)
		}
	}
}

// TestScroll: a position stays where it is while the session grows, and moving goes by rows, also
// within a line of many rows.
func TestScroll(t *testing.T) {
	var s session
	add := func(n int) {
		var msg sessionMsg
		for range n {
			i := len(s.lines) + len(msg.lines)
			msg.lines = append(msg.lines, sessionview.Line{At: start, Text: fmt.Sprintf("│ line %d %s", i,
				strings.Repeat("word ", i%40))})
		}
		s.add(msg)
	}
	add(300)
	const width, height = 60, 12
	bottom := s.shown(width, height)
	var all []string
	for _, l := range s.lines {
		all = append(all, s.rows(l, width)...)
	}
	if !slices.Equal(bottom, all[len(all)-height:]) {
		t.Errorf("the end is\n%s", strings.Join(bottom, "\n"))
	}
	for i := 1; i < len(all)-height+5; i++ {
		s.move(-1, width, height)
		end := max(height, len(all)-i)
		if got := s.shown(width, height); !slices.Equal(got, all[end-height:end]) {
			t.Fatalf("after %d rows up it shows\n%s\nand not\n%s", i, strings.Join(got, "\n"),
				strings.Join(all[end-height:end], "\n"))
		}
	}
	top := s.shown(width, height)
	add(50)
	if got := s.shown(width, height); !slices.Equal(got, top) {
		t.Errorf("new lines moved what is read:\n%s", strings.Join(got, "\n"))
	}
	if !s.seek("LINE 299 ", true, false) || !strings.Contains(strings.Join(s.shown(width, height), ""), "299") {
		t.Error("a search does not show what it found")
	}
	s.move(farAway, width, height)
	if s.pos != (position{}) {
		t.Errorf("the end is %+v", s.pos)
	}
}

// TestField edits a line with wide and joined characters, which are one to the cursor.
func TestField(t *testing.T) {
	var f field
	press := func(names ...string) {
		for _, name := range names {
			k, is := special[name]
			if !is {
				k = tea.Key{Code: []rune(name)[0], Text: name}
			}
			if !f.press(tea.KeyPressMsg(k)) {
				t.Errorf("%s does nothing", name)
			}
		}
	}
	press("a", "漢", "e\u0301", "👩\u200d🚀", "b")
	press("left", "left", "backspace")
	if f.String() != "a漢👩\u200d🚀b" {
		t.Errorf("%q", f.String())
	}
	press("backspace", "end", "left", "backspace", "home", "x")
	if f.String() != "xab" {
		t.Errorf("%q", f.String())
	}
	f.set(strings.Repeat("漢", 40))
	if text, at := f.shown(21); render.Widest(text) > 21 || at > 20 {
		t.Errorf("%q with the cursor at %d is too wide", text, at)
	}
}

// TestPaletteCompletes checks that Tab completes a command as a shell does, with what the program
// says could follow, unless the line has changed since.
func TestPaletteCompletes(t *testing.T) {
	s := newStory(t)
	x := newScreen(s, 100, 30)
	x.open(s)
	x.prints = outputMsg{text: "task\tWork on tasks\n:4\nCompletion ended with directive: NoFileComp\n"}
	x.keys(":", "ta", "tab")
	if got := x.input.field.String(); got != "task " || x.asked[len(x.asked)-1] != `command demo ["__complete" "ta"]` {
		t.Errorf("completed to %q, after %q", got, x.asked)
	}
	x.prints.text = "release\tReturn a task to the queue\nrm\tDelete a task\n:4\n"
	x.keys("r", "tab")
	if got := x.input.field.String(); got != "task r" || x.notice.text != "release  rm" ||
		x.asked[len(x.asked)-1] != `command demo ["__complete" "task" "r"]` {
		t.Errorf("completed to %q, offered %q, after %q", got, x.notice.text, x.asked)
	}
	x.prints = outputMsg{text: "cadre: it failed\n", code: 2}
	x.keys("x", "tab")
	if got := x.input.field.String(); got != "task rx" || !strings.HasPrefix(x.notice.text, "Nothing is known") {
		t.Errorf("completed to %q, said %q", got, x.notice.text)
	}
	x.send(completionMsg{before: "ta", terms: []string{"task"}})
	if got := x.input.field.String(); got != "task rx" {
		t.Errorf("a late answer made it %q", got)
	}
}

// TestConflictOpensItsTask: the item of a branch that does not merge leads to the task that says
// how.
func TestConflictOpensItsTask(t *testing.T) {
	s := newStory(t)
	x := newScreen(s, 80, 24)
	x.open(s)
	x.send(teamsMsg{teams: []teamRow{rowOf(s.listed())}, items: []itemRow{{ref: "demo", text: "Merge it by hand.",
		Item: team.Item{Kind: team.ItemConflict, WaitsFor: team.ForUser, Member: "ann", Task: "4"}}}})
	x.keys("!") // the sign of the title
	x.says("Merge it by hand.")
	x.keys("enter")
	if x.place != atTask || x.shown.id != "4" {
		t.Errorf("Enter shows place %d and the task %q", x.place, x.shown.id)
	}
}

// TestKeysToLeave: the bottom line has the keys for help and to quit on every width, in every view.
func TestKeysToLeave(t *testing.T) {
	s := newStory(t)
	for _, width := range []int{40, 60, 80, 120} {
		x := newScreen(s, width, 24)
		views := []func(){func() {}, func() { x.open(s) }, func() { x.keys("2", "enter") }, func() { x.keys("a") },
			func() { x.run(x.openMember("ann")); x.keys("tab") }, func() { x.keys("?") }}
		for i, show := range views {
			show()
			line := stripped(x.keyLine())
			if !strings.Contains(line, "? help") || !strings.Contains(line, "q quit") || drawn(line) > width {
				t.Errorf("view %d on %d columns has the keys %q", i, width, line)
			}
		}
	}
}
