package e2e

import (
	"strings"
	"testing"
)

// TestInterruptAsks: on a terminal, cadre interrupt and an urgent cadre send ask before they end
// the command of a shell member. --yes skips the question, and a script is not asked.
func TestInterruptAsks(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.must("create", "demo")
	w.must("spawn", "demo", "bob", "--wait")
	begins := func(task string) {
		t.Helper()
		w.must("task", "add", "demo", task, "--name", task, "--owner", "bob", "--run", "sleep 300")
		eventually(t, "bob runs "+task, func() bool {
			return strings.Contains(w.must("task", "show", "demo", task), "in_progress")
		})
	}
	failed := func(task string) bool {
		return strings.Contains(w.must("task", "show", "demo", task), "interrupted")
	}
	begins("one")
	const question = "This ends the command of bob, and its task one fails. End it? [y/N]"
	p := w.terminal("sh")
	for name, command := range map[string]string{"first": "interrupt demo bob",
		"second": "send demo --to bob --priority urgent stop"} {
		p.enter("clear; " + cadre + " " + command + "; echo " + name + " $?")
		p.shows(question)
		p.enter("n")
		p.shows("not confirmed; nothing was changed")
		p.shows(name + " 1")
	}
	if failed("one") {
		t.Fatal("without a yes the command was ended")
	}
	p.enter(cadre + " send demo --to bob 'look at the log'; echo sent $?") // it ends nothing
	p.shows("sent 0")
	p.enter("clear; " + cadre + " interrupt demo bob; echo status $?")
	p.shows(question)
	p.enter("y")
	p.shows("bob is interrupted, and starts no command until it gets a message")
	eventually(t, "the task one failed", func() bool { return failed("one") })

	w.must("send", "demo", "--to", "bob", "continue")
	begins("two")
	p.enter("clear; " + cadre + " interrupt demo bob --yes; echo ended $?")
	p.shows("ended 0")
	eventually(t, "the task two failed", func() bool { return failed("two") })

	w.must("send", "demo", "--to", "bob", "continue")
	begins("three")
	w.must("send", "demo", "--to", "bob", "--priority", "urgent", "stop") // a script
	eventually(t, "the task three failed", func() bool { return failed("three") })
}
