package tui

import (
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"cadre/internal/engine"
)

// leaves returns the reason with which the command closes the screen; -1 if it does not.
func leaves(cmd tea.Cmd) Leave {
	if cmd == nil {
		return -1
	}
	if q, is := cmd().(quitMsg); is {
		return q.leave
	}
	return -1
}

// TestHostedQuits: the screen of a process that runs the team asks what happens to it. Ctrl-C
// pauses it without a question, except where it clears a line.
func TestHostedQuits(t *testing.T) {
	press := func(x *screen, name string) Leave {
		k, is := special[name]
		if !is {
			k = tea.Key{Code: rune(name[0]), Text: name}
		}
		_, cmd := x.Update(tea.KeyPressMsg(k))
		return leaves(cmd)
	}
	s := newStory(t)
	for answer, want := range map[string]Leave{"p": Pause, "s": Pause, "b": Background, "esc": -1, "q": -1,
		"ctrl+c": Pause} {
		x := newScreen(s, 80, 24)
		x.hosted = "demo"
		x.open(s)
		if got := press(x, "q"); got != -1 || x.ask == nil {
			t.Fatalf("q closes the screen without a question: %v", got)
		}
		if got := press(x, answer); got != want || x.ask != nil {
			t.Errorf("q and %s: %v, want %v", answer, got, want)
		}
	}
	x := newScreen(s, 80, 24)
	x.open(s)
	if got := press(x, "q"); got != Closed || x.ask != nil {
		t.Errorf("q on the screen of another process's teams: %v", got)
	}
	x = newScreen(s, 80, 24)
	x.hosted = "demo"
	x.open(s)
	x.view("ann")
	x.keys("half a line")
	if got := press(x, "ctrl+c"); got != -1 || !x.draft().empty() {
		t.Errorf("Ctrl-C in a line with text: %v, and the line is %q", got, x.draft())
	}
	if got := press(x, "ctrl+c"); got != Pause {
		t.Errorf("Ctrl-C in an empty line: %v", got)
	}
}

// TestHostedEnds: the screen closes when the team has ended. It waits for a line with text, and not
// for ever for a question. It closes only when the terminal has answered.
func TestHostedEnds(t *testing.T) {
	t.Parallel()
	s := newStory(t)
	opened := func() (*program, *screen) {
		x := newScreen(s, 80, 24)
		x.hosted = "demo"
		x.open(s)
		return &program{Model: x.Model, settled: true}, x
	}
	quits := func(cmd tea.Cmd) bool {
		if cmd == nil {
			return false
		}
		_, is := cmd().(tea.QuitMsg)
		return is
	}
	p, _ := opened()
	if _, cmd := p.Update(endedMsg{}); !quits(cmd) || p.leave != Closed {
		t.Error("the screen stays open after the end of the team")
	}
	p, _ = opened()
	p.settled = false
	if _, cmd := p.Update(endedMsg{}); cmd != nil {
		t.Error("the screen closes before the terminal has answered")
	}
	if _, cmd := p.Update(settledMsg{}); !quits(cmd) {
		t.Error("the screen stays open after the terminal has answered")
	}
	p, x := opened()
	x.view("ann")
	p.Update(tea.KeyPressMsg{Code: 'x', Text: "x"})
	p.now = engine.Now()
	if _, cmd := p.Update(endedMsg{}); quits(cmd) || p.notice.text == "" {
		t.Error("the screen closes while the person types, or does not say that the team has ended")
	}
	p.Update(tea.KeyPressMsg(special["ctrl+c"])) // clears the line
	if _, cmd := p.Update(clockMsg(p.now)); !quits(cmd) {
		t.Error("the screen stays open when the person has finished")
	}
	p, x = opened()
	x.view("ann")
	p.Update(tea.KeyPressMsg{Code: 'x', Text: "x"})
	p.Update(endedMsg{})
	late := p.pressed.Add(attentive + time.Second)
	if _, cmd := p.Update(clockMsg(late)); quits(cmd) || x.draft().String() != "x" {
		t.Error("the screen closes over a line with text")
	}
	p, x = opened()
	x.keys("q")
	p.Update(tea.KeyPressMsg(special["up"]))
	p.Update(endedMsg{})
	late = p.pressed.Add(attentive + time.Second)
	if _, cmd := p.Update(clockMsg(late)); !quits(cmd) {
		t.Error("an unanswered question keeps the screen open for ever")
	}
}

// TestHostedStays: the screen of a team that has ended and needs the person stays open until the
// person quits, without a question.
func TestHostedStays(t *testing.T) {
	t.Parallel()
	s := newStory(t)
	x := newScreen(s, 80, 24)
	x.hosted = "demo"
	x.open(s)
	p := &program{Model: x.Model, settled: true}
	if _, cmd := p.Update(endedMsg{stays: true}); leaves(cmd) != -1 {
		t.Error("the screen closes")
	}
	x.says("something needs you")
	if _, cmd := p.Update(clockMsg(engine.Now().Add(time.Hour))); leaves(cmd) != -1 {
		t.Error("the screen closes by itself")
	}
	x.keys("a", "esc")
	if _, cmd := p.Update(tea.KeyPressMsg{Code: 'q', Text: "q"}); leaves(cmd) != Closed || x.ask != nil {
		t.Error("q does not close the screen")
	}
}

// TestHostedEndsDuringTheQuestion: at the end of the run, the question what happens to the team
// goes away. What the screen says then names the keys as they work in the view that is open.
func TestHostedEndsDuringTheQuestion(t *testing.T) {
	s := newStory(t)
	opened := func() (*program, *screen) {
		x := newScreen(s, 100, 24)
		x.hosted = "demo"
		x.open(s)
		return &program{Model: x.Model, settled: true}, x
	}
	p, x := opened()
	x.keys("q")
	p.Update(endedMsg{stays: true})
	if x.ask != nil {
		t.Errorf("it still asks %q", x.ask.text)
	}
	x.says("something needs you: a lists it, q closes the screen.")
	x.run(x.openMember("ann"))
	p.Update(clockMsg(x.now))
	x.says("something needs you: Esc, then a lists it, q closes the screen.")
	x.keys("tab", "[")
	p.Update(clockMsg(x.now))
	x.says(" 0 now") // where in the past the person is
	p, x = opened()
	x.keys("q")
	if _, cmd := p.Update(endedMsg{}); cmd == nil {
		t.Error("the question keeps the screen of a team that has ended open")
	}
}
