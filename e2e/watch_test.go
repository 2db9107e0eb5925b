package e2e

import (
	"strings"
	"testing"
	"time"

	"cadre/internal/team"
)

// keys presses keys, by tmux's names.
func (p *terminal) keys(names ...string) {
	p.t.Helper()
	p.do(append([]string{"send-keys"}, names...)...)
}

// answers presses the key that answers the selected item, and waits for the text. The screen asks
// for the key again where the item has just taken the place of another one.
func (p *terminal) answers(key, text string) {
	p.t.Helper()
	const held = time.Second // a key that comes earlier counts as held down
	p.keys(key)
	pressed := time.Now()
	p.wait("the terminal does not show "+text, func() bool {
		screen := p.screen()
		if strings.Contains(screen, text) {
			return true
		}
		if strings.Contains(screen, "Press the key again") && time.Since(pressed) > held {
			p.keys(key)
			pressed = time.Now()
		}
		return false
	})
}

// TestWatch steers a team on its screen, in a terminal: it opens the team, writes to a member,
// answers a permission, rejects and approves a plan, and runs a command. Each arrives in the
// history.
func TestWatch(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.must("create", "demo", "--goal", "Port the parser")
	w.must("spawn", "demo", "ann", "--agent", "external", "--plan-approval")
	w.must("spawn", "demo", "bob", "--agent", "shell")
	w.must("spawn", "demo", "cas", "--agent", "external")
	w.must("task", "add", "demo", "greet", "--run", "echo hello from the shell", "--owner", "bob")
	w.until("the task is done", func(s *team.State) bool {
		task, _ := s.Task("1")
		return task.Status == team.Completed
	})
	rep := w.replica("demo")
	do := func(actor string, body team.Body) {
		t.Helper()
		if _, err := rep.Do(t.Context(), team.Command{Actor: actor, Body: body}); err != nil {
			t.Fatal(err)
		}
	}
	p := w.terminalOf(80, 24, cadre, "watch")
	p.shows("Nothing waits for you.")
	p.shows("Port the parser")
	p.keys("Enter")
	p.shows("greet")
	p.shows("MEMBER")

	p.keys("S-Down", "S-Down")
	p.shows("▸ bob")
	p.keys("Enter")
	p.shows("to bob ▸")
	p.shows("hello from the shell")
	p.keys("-l", "say hello again")
	p.shows("to bob ▸ say hello again")
	p.keys("Enter")
	eventually(t, "the message is sent", func() bool {
		return strings.Contains(w.must("log", "demo"), "@user → bob: say hello again")
	})

	p.keys("Tab")
	p.shows("write")
	p.keys("q") // it is a key again, and no text
	if status := p.ended(); status != 0 {
		t.Fatalf("the screen ended with %d:\n%s", status, p.screen())
	}
	if strings.Contains(p.screen(), "to bob") {
		t.Errorf("the screen did not close:\n%s", p.screen())
	}

	do("ann", &team.SubmitPlan{Plan: "1. Look.\n2. Port it."})
	do("cas", &team.RequestPermission{Tool: "Bash", Input: `{"command":"make clean"}`,
		Deadline: team.Time(time.Now().Add(time.Hour).UnixMilli())})
	p = w.terminalOf(80, 24, cadre, "watch", "demo")
	p.shows("! needs you 2")
	p.keys("a")
	p.shows("make clean")
	p.answers("y", "cas may do it.")
	p.keys("Down")
	p.shows("2. Port it.")
	p.answers("n", "reject ann ▸")
	p.keys("-l", "Name the tests")
	p.keys("Enter")
	p.shows("The plan of ann is rejected.")
	do("ann", &team.SubmitPlan{Plan: "1. Look at the tests.\n2. Port it."})
	p.wait("the screen does not show the new plan", func() bool {
		p.keys("Down") // nothing is selected by itself where an item was settled
		return strings.Contains(p.screen(), "1. Look at the tests.")
	})
	p.shows("y yes")
	p.answers("y", "The plan of ann is approved.")
	w.until("the answers are recorded", func(s *team.State) bool {
		ann, _ := s.Member("ann")
		return ann.Plan.State == "approved" && len(s.Permissions()) == 0
	})
	p.shows("Nothing waits for you.")

	p.keys("Left")
	p.shows("1 members")
	p.keys(":")
	p.shows("demo : cadre")
	p.keys("-l", "task add 'from the palette' --owner ann")
	p.keys("Enter")
	p.shows("task 2: from the palette")
	p.keys("C-l")
	p.keys("C-z") // there is no shell to return to
	p.shows("No shell started cadre here")
	p.keys("C-c")
	if status := p.ended(); status != 0 {
		t.Errorf("the screen ended with %d:\n%s", status, p.screen())
	}
}

// TestWatchRefusals checks that without a terminal the screen says what to use instead.
func TestWatchRefusals(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.must("create", "demo")
	w.refused(w.cadre("watch", "demo"), 2, "standard input is not a terminal", "cadre log demo --follow")
	w.refused(w.cadre("watch", "nowhere"), 2, "team nowhere does not exist")
}

// TestWatchLines checks that a screen reader gets the same as lines, without terminal sequences,
// until the team has ended.
func TestWatchLines(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.must("create", "demo")
	w.must("spawn", "demo", "ann", "--agent", "external")
	w.must("spawn", "demo", "bob", "--agent", "external")
	w.must("shutdown", "demo", "bob", "--deadline", "10ms")
	all, one := w.start("watch", "--screen-reader"), w.start("watch", "demo", "--screen-reader")
	says := func(p *process, texts ...string) {
		t.Helper()
		for _, text := range texts {
			eventually(t, "it says "+text, func() bool { return strings.Contains(p.said(), text) })
		}
	}
	says(all, "demo is ")
	says(one, "demo is active: 0 of 0 tasks done", "ann is active", "bob is stopped: shut down")
	w.must("task", "add", "demo", "greet", "--owner", "lead")
	says(one, "task 1  greet", "needs you: Task 1 waits for you: greet. Type: cadre task done demo 1")
	says(all, "needs you, demo: Task 1 waits for you", "demo is active: 0 of 1 task done")
	w.must("abort", "demo", "--reason", "enough")
	says(one, "demo is aborted")
	if code := one.wait(); code != 0 {
		t.Errorf("it ended with %d: %s", code, one.said())
	}
	if strings.Contains(one.said(), "\x1b") {
		t.Errorf("it moves the cursor: %q", one.said())
	}
	all.kill()
}
