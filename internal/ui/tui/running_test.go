package tui

import (
	"errors"
	"strings"
	"testing"

	"cadre/internal/consolidate"
)

// TestRunningCommand: a command of the palette that does not end is shown with its name, since when
// it runs, and what it prints. Esc ends it. The person may leave it, and come back.
func TestRunningCommand(t *testing.T) {
	s := newStory(t)
	x := newScreen(s, 80, 24)
	x.open(s)
	seconds := func(n int) {
		for range n {
			x.Update(clockMsg(x.now + 1000))
		}
	}
	run := func(line string) {
		x.holds = true
		x.keys(":", line, "enter")
	}
	x.keys("B")
	x.says("No command of the palette is running.")

	run("log --follow")
	seconds(2)
	x.says("cadre log --follow · running for 2s")
	x.says("It has printed nothing yet.")
	x.says("Esc leave")
	x.says("x end it")
	x.send(printingMsg{number: x.commands - 1, text: "of another command\n"})
	x.lacks("of another command")
	x.send(printingMsg{number: x.commands, text: strings.Repeat("an early line\n", 50) + "the latest line\n"})
	x.says("the latest line")
	x.keys("home")
	x.send(printingMsg{number: x.commands, text: strings.Repeat("an early line\n", 50) + "the latest line\nmore\n"})
	x.lacks("the latest line")
	x.keys("b")
	x.lacks("an early line")
	x.says("cadre log --follow has run for 2s; B shows it")
	seconds(3)
	x.says("cadre log --follow has run for 5s; B shows it") // it does not open again by itself
	x.keys("2", "B")
	x.says("the latest line")
	x.keys("q")
	x.says("cadre log --follow has not ended, and ends with the screen. Quit? [y/N]")
	x.keys("n")
	if x.ctx.Err() != nil {
		t.Fatal("the command is cancelled")
	}
	x.keys("esc")
	if x.ctx.Err() != nil || x.overlay != nil {
		t.Fatal("Esc ends the command, or does not leave its view")
	}
	x.keys("B", "x")
	x.says("End cadre log --follow, with all of its processes? [y/N]")
	x.keys("n")
	if x.ctx.Err() != nil {
		t.Fatal("the command ends without a yes")
	}
	x.keys("x", "y")
	if x.ctx.Err() == nil {
		t.Error("x does not end the command")
	}
	x.says("cadre log --follow · ends …")
	x.keys("x")
	x.says("The command is being ended.")
	x.send(outputMsg{number: x.commands, args: []string{"log", "--follow"}, text: "an early line\nthe latest line\n",
		code: 1})
	x.says("cadre log --follow · cancelled")
	x.says("the latest line")
	x.keys("esc")
	x.lacks("the latest line")
	if len(x.running) != 0 || x.overlay != nil {
		t.Errorf("%+v, %+v", x.running, x.overlay)
	}

	// A command that ends soon is not shown as running, and one that a person types over waits.
	x.prints = outputMsg{args: []string{"ls"}, text: "demo"}
	x.keys(":", "ls", "enter")
	x.says("demo")
	run("probe")
	x.keys("/", "m:a")
	seconds(3)
	if x.overlay != nil {
		t.Error("the view takes the keys from a line")
	}
	x.says("cadre probe has run for 3s; B shows it")
	x.keys("esc")
	seconds(2)
	x.says("cadre probe · running for 5s")
	x.send(outputMsg{number: x.commands, args: []string{"probe"}, text: "fine"})
	x.says("fine")
	if x.overlay != nil {
		t.Errorf("the view of a command that has ended is open: %+v", x.overlay)
	}
}

// TestRunningSinceItBegan: the time of a command counts from its start, and not from the tick
// before.
func TestRunningSinceItBegan(t *testing.T) {
	s := newStory(t)
	x := newScreen(s, 80, 24)
	x.open(s)
	x.time = x.now + 990
	x.holds = true
	x.keys(":", "probe", "enter")
	x.Update(clockMsg(x.now + 1000)) // the command has run for 10 ms
	x.stirred = false
	x.Update(clockMsg(x.now + 1))
	if x.overlay != nil {
		t.Error("the view of a command that runs for 11 ms opens")
	}
	x.Update(clockMsg(x.now + 1000))
	x.says("cadre probe · running for 1s")
}

// TestRunningOnASmallScreen: the keys that leave the view and end the command are shown.
func TestRunningOnASmallScreen(t *testing.T) {
	s := newStory(t)
	x := newScreen(s, 40, 15)
	x.open(s)
	x.holds = true
	x.keys(":", "probe", "enter", "B")
	x.says(" Esc leave  x end it  ")
}

// TestRunningInTheBackground: a command that outlives the screen is not ended by a key, and
// quitting does not ask about it.
func TestRunningInTheBackground(t *testing.T) {
	s := newStory(t)
	for _, command := range []string{"run team.yaml", "resume", "host"} {
		x := newScreen(s, 80, 24)
		x.open(s)
		x.holds = true
		x.keys(":", command, "enter", "B")
		x.says("cadre " + command + " · starts, and continues in the background")
		x.keys("x")
		x.says("It continues in the background, also when you quit.")
		x.keys("q")
		if x.ask != nil || x.last() != "quit" || x.ctx.Err() != nil {
			t.Errorf("%s: %v, %s", command, x.ask, x.last())
		}
	}
}

// TestRunningEndsDuringTheQuestion: the question whether to end a command goes away with it.
func TestRunningEndsDuringTheQuestion(t *testing.T) {
	s := newStory(t)
	x := newScreen(s, 80, 24)
	x.open(s)
	x.holds = true
	x.keys(":", "probe", "enter", "B", "x")
	x.send(outputMsg{number: x.commands, args: []string{"probe"}, text: "fine"})
	x.says("fine")
	if x.ask != nil {
		t.Errorf("it still asks %q", x.ask.text)
	}
}

// TestRunningIsNotLost: the keys that leave the screen ask first where that would end a command.
func TestRunningIsNotLost(t *testing.T) {
	s := newStory(t)
	begin := func(hosted string) *screen {
		x := newScreen(s, 100, 24)
		x.hosted = hosted
		x.open(s)
		x.holds = true
		x.keys(":", "probe", "enter")
		return x
	}
	x := begin("")
	x.run(x.openMember("ann"))
	x.keys("ctrl+c")
	x.says("cadre probe has not ended, and ends with the screen. Quit? [y/N]")
	for _, key := range []string{"q", "ctrl+c"} {
		x = begin("demo")
		x.keys(key)
		x.says("cadre probe has not ended, and ends with the screen. Pause team demo, or let it continue")
		if x.ctx.Err() != nil || x.last() == "quit" {
			t.Errorf("%s quits", key)
		}
	}
	x.keys("ctrl+c") // pressed again, it pauses the team
	x.wants("quit")

	x = begin("demo")
	p := &program{Model: x.Model, settled: true}
	if _, cmd := p.Update(endedMsg{}); leaves(cmd) != -1 || p.quitting {
		t.Error("the end of the run ends the command")
	}
	x.says("The team has ended. The screen closes when cadre probe has ended.")
	if _, cmd := p.Update(clockMsg(x.now + 3_600_000)); cmd == nil || p.quitting {
		t.Error("the screen does not wait for the command")
	}
	p.Update(outputMsg{number: x.commands, args: []string{"probe"}, text: "one\ntwo"})
	if p.quitting {
		t.Error("the screen closes before its output can be read")
	}
	p.Update(clockMsg(p.pressed.Add(2 * attentive)))
	if !p.quitting {
		t.Error("the screen stays open")
	}
}

// TestRunningHidesNoOtherLine: the line of a running command leaves the place in the past, and what
// is wrong, on the screen. B does not end a plan that is being chosen.
func TestRunningHidesNoOtherLine(t *testing.T) {
	s := newStory(t)
	x := newScreen(s, 100, 24)
	x.open(s)
	x.holds = true
	x.keys(":", "probe", "enter")
	x.notice = notice{}
	x.send(teamMsg{ref: "demo", err: errors.New("the disk is full")})
	x.says("cadre probe has run for")
	x.says("the disk is full")
	x.keys("[")
	x.says("cadre probe has run for")
	x.says("record 20 of 21")
	x.keys("0")
	x.overlay = &pager{title: "consolidate demo", stage: newStage(stagingMsg{plan: &consolidate.Plan{}})}
	x.keys("B")
	if x.overlay == nil || x.overlay.stage == nil {
		t.Error("B ends the plan")
	}
	x.says("Leave this plan first: its choices would be lost.")
}

// TestSeveralRunningCommands: each of several commands that run can be shown, and ended, however
// many started after it.
func TestSeveralRunningCommands(t *testing.T) {
	s := newStory(t)
	x := newScreen(s, 100, 24)
	x.open(s)
	for _, line := range []string{"log --follow", "probe", "attention --follow"} {
		x.holds = true
		x.keys(":", line, "enter")
	}
	x.keys("B")
	x.says("cadre attention --follow · running for 0s · 1 of 3, B shows the next")
	x.keys("B")
	x.says("cadre probe · running for 0s · 2 of 3, B shows the next")
	x.keys("B")
	x.says("cadre log --follow · running for 0s · 3 of 3, B shows the next")
	x.keys("x", "y")
	x.says("cadre log --follow · ends …")
	x.keys("B")
	x.says("cadre attention --follow · running for 0s · 1 of 3")
	for _, one := range x.running {
		if ends := one.command == "cadre log --follow"; one.cancelled != ends {
			t.Errorf("%s is ended: %v", one.command, one.cancelled)
		}
	}
	x.send(outputMsg{number: x.running[1].number, args: []string{"probe"}, text: "demo"})
	x.send(outputMsg{number: x.running[0].number, args: []string{"log", "--follow"}, text: ""})
	x.keys("B")
	x.says("No other command of the palette is running.")
}
