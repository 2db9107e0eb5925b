package tui

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"cadre/internal/team"
)

// TestAlways answers a request by a rule: the narrowest one is proposed, the screen says what a
// rule allows while it is typed, and asks before one that sets no bounds.
func TestAlways(t *testing.T) {
	s := newStory(t)
	x := newScreen(s, 100, 24)
	x.keys("a")
	x.keys("a")
	x.says("The request has not been read yet.")
	x.send(s.message())
	x.keys("a")
	x.says("rule for ann ▸ Bash(rm -rf build && make)")
	x.says("Allows exactly the command rm -rf build && make.")
	x.keys("enter")
	x.wants("demo *team.AddRule &{Rule:Bash(rm -rf build && make) Member:ann Unbounded:false}")
	x.says("ann may always use: exactly the command rm -rf build && make.")
	x.keys("A")
	x.says("rule for all members ▸ ")
	x.keys(slices.Repeat([]string{"backspace"}, len("-rf build && make)"))...)
	x.keys("*)")
	x.says("This rule does not cover the request of ann.")
	x.keys("enter")
	x.says("This rule sets no bounds: rm with any words after it can destroy work. Add it? [y/N]")
	asked := len(x.asked)
	x.keys("n")
	if len(x.asked) != asked {
		t.Errorf("a rule without bounds was added without a yes: %s", x.last())
	}
	x.says("rule for all members ▸ Bash(rm *)") // it can be corrected
	x.keys("esc", "A", "enter")
	x.wants("demo *team.AddRule &{Rule:Bash(rm -rf build && make) Member: Unbounded:false}")
	x.keys("down", "a")
	x.says("Only a request for permission is answered by a rule.")

	s.do(team.Host("host-1"), &team.RequestPermission{Member: "ann", Tool: "Bash", Deadline: s.at + 600_000,
		Input: `{"command":"make\nmake install"}`})
	x.send(teamsMsg{teams: []teamRow{rowOf(s.listed())}, items: itemsOf(s.listed())})
	x.send(s.message())
	for one, _ := x.item(); !strings.Contains(one.text, "install"); one, _ = x.item() {
		x.keys("up")
		if one.Request == "permission-2@ann" {
			x.keys("down")
			break
		}
	}
	for one, _ := x.item(); one.Request != "permission-3@ann"; one, _ = x.item() {
		x.keys("down")
	}
	x.keys("a")
	x.says("No rule can cover this request")
}

// TestRuleWords checks the description of a rule. Of a text that is no rule, it says so.
func TestRuleWords(t *testing.T) {
	for rule, want := range map[string]string{"": "Type a rule", "Bash(rm": "Not a rule yet: ",
		"Edit(src/main.go)sh(git": "Not a rule yet: ",
		"foo bar":                 "Not a rule yet: ", "Bash()": "Not a rule yet: ",
		"Bsh":  "No agent has a tool called Bsh.",
		"Bash": "No bounds: ", "Edit(src/**)": "Allows changes to "} {
		if got, _ := ruleWords(rule, "/w"); !strings.HasPrefix(got, want) {
			t.Errorf("%q: %q", rule, got)
		}
	}
}

// TestAnswerOfAQuestion settles a question with its answer. The text of one who was slower is kept
// in the line to the member.
func TestAnswerOfAQuestion(t *testing.T) {
	s := newStory(t)
	s.do(team.User, &team.SpawnMember{Name: "eve", Agent: team.External})
	s.do("eve", &team.SendMessage{To: "lead", Body: "which grammar?", Intent: "question"})
	x := newScreen(s, 100, 24)
	x.keys("a")
	for one, _ := x.item(); one.Kind != team.ItemQuestion; one, _ = x.item() {
		x.keys("down")
	}
	one, _ := x.item()
	x.send(s.message())
	x.keys("m", "the new one", "enter")
	if want := "Body:the new one Metadata:map[] Answers:" + strings.TrimPrefix(one.About,
		"#"); !strings.Contains(x.last(), want) {
		t.Errorf("the screen asked for %s, which lacks %s", x.last(), want)
	}
	s.do(team.User, &team.SendMessage{To: "eve", Body: "the new one", Answers: one.answers()})
	if slices.ContainsFunc(s.listed().Items, func(i team.Item) bool { return i.Kind == team.ItemQuestion }) {
		t.Error("the question waits although it was answered")
	}
	x.fails = errors.New("somebody answered it already")
	x.keys("m", "the old one", "enter")
	x.says("somebody answered it already Your text is in the line to eve.")
	if got := x.drafts["demo/eve"].String(); got != "the old one" {
		t.Errorf("the text of a slower answer is %q", got)
	}
}

// TestInterruptOfAnExternalMember: the key says why it does nothing, and Escape leads back.
func TestInterruptOfAnExternalMember(t *testing.T) {
	s := newStory(t)
	s.do(team.User, &team.SpawnMember{Name: "eve", Agent: team.External})
	s.do("eve", &team.CreateTask{Subject: "more"})
	x := newScreen(s, 100, 24)
	x.open(s)
	x.view("eve")
	x.keys("tab", "x")
	x.says("eve runs its own session: its turns cannot be interrupted from here.")
	x.keys("tab", "esc")
	if x.ask != nil || x.place != atTeam {
		t.Errorf("Escape does not lead back from an external member")
	}
}

// TestLongNotice shows the whole of a notice with a command, on several lines.
func TestLongNotice(t *testing.T) {
	s := newStory(t)
	x := newScreen(s, 40, 15)
	x.open(s)
	const command = "cadre budget demo --tokens 2000000"
	x.send(actedMsg{err: strings.Repeat("The token budget of the team is spent. ", 3) + "To raise it: " + command})
	frame := stripped(strings.Join(x.frame(), "\n"))
	if !strings.Contains(strings.Join(strings.Fields(frame), " "), command) {
		t.Errorf("the command of a notice cannot be read:\n%s", frame)
	}
	if n := len(x.frame()); n != 15 {
		t.Errorf("the screen has %d lines", n)
	}
	x.send(actedMsg{err: strings.Repeat("It is a very long text. ", 40) + "To raise it: " + command})
	frame = stripped(strings.Join(x.frame(), "\n"))
	if !strings.Contains(strings.Join(strings.Fields(frame), " "), command) ||
		!strings.Contains(frame, "It is a very") || strings.Count(frame, "\n") != 14 {
		t.Errorf("the command of a very long notice cannot be read:\n%s", frame)
	}
}
