package e2e

import (
	"slices"
	"strings"
	"syscall"
	"testing"

	"cadre/internal/team"
)

// TestTypingIntoAttach checks a person who watches a member at a terminal and types: each line is a
// message to the member, a line after ! is urgent and ends its command, and Ctrl-C ends the watching
// and nothing else.
func TestTypingIntoAttach(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.must("create", "demo")
	w.must("spawn", "demo", "bob", "--wait")
	w.must("task", "add", "demo", "long", "--run", "echo it begins; sleep 300")
	p := w.terminal(cadre, "attach", "demo", "bob")
	p.shows("a line that you type goes to bob; leave with Ctrl-C")
	p.shows("it begins")
	type letter struct{ From, Body, Priority string }
	letters := func() []letter { return read[[]letter](w, "inbox", "demo", "bob", "--all") }
	sent := func(body, priority string) {
		t.Helper()
		eventually(t, "bob has the message "+body, func() bool {
			return slices.Contains(letters(), letter{"@user", body, priority})
		})
	}
	p.enter("look at the log")
	p.enter("   ")
	p.enter("! stop at once")
	sent("look at the log", "normal")
	sent("stop at once", "urgent")
	p.shows("interrupted by an urgent message of the user")
	p.enter(strings.Repeat("wide ", 60) + "ä€😀")
	sent(strings.Repeat("wide ", 60)+"ä€😀", "normal")
	p.do("send-keys", "C-c")
	if code := p.ended(); code != 0 {
		t.Errorf("Ctrl-C ended it with %d:\n%s", code, p.screen())
	}
	if got := letters(); len(got) != 3 {
		t.Errorf("these messages were sent: %+v", got)
	}
	if log := w.must("log", "demo"); !strings.Contains(log, "interrupted by an urgent message of the user") {
		t.Errorf("the log does not say why the task failed:\n%s", log)
	}
	w.until("bob continues", func(s *team.State) bool {
		m, _ := s.Member("bob")
		return m.Status == team.Idle && len(s.Held("bob")) == 0
	})
	w.must("abort", "demo", "--yes")
}

// TestAttachWithoutHost kills the host of a member that a person watches. The person is told at once,
// with the command that continues the team, and sees the session again when the next host runs it.
func TestAttachWithoutHost(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.must("create", "demo")
	w.must("spawn", "demo", "bob", "--wait")
	w.must("task", "add", "demo", "long", "--run", "echo it begins; sleep 300")
	p := w.terminal(cadre, "attach", "demo", "bob")
	p.shows("it begins")
	b, there, err := w.beats().Of("bob")
	if err != nil || !there {
		t.Fatalf("bob sends no heartbeat: %v", err)
	}
	if err := syscall.Kill(b.Pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	p.shows("No process runs this session any more. Continue the team with: cadre resume demo")
	w.must("resume", "demo")
	p.shows("A process runs this session again.")
	p.wait("the task runs again", func() bool { return strings.Count(p.screen(), "echo it begins") >= 2 })
	w.must("abort", "demo", "--yes")
	if code := p.ended(); code != 0 {
		t.Errorf("attach ended with %d:\n%s", code, p.screen())
	}
}

// TestAttachShowsOutput checks that the output of a running command is shown as it comes: to a person who
// watches, to one who comes late, and after the host was killed in the middle, which ends no command's entry.
func TestAttachShowsOutput(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.must("create", "demo")
	w.must("spawn", "demo", "bob", "--wait")
	p := w.terminal(cadre, "attach", "demo", "bob")
	p.shows("a line that you type goes to bob")
	w.must("task", "add", "demo", "long", "--run",
		"for i in 1 2 3; do echo \"count $i\"; sleep 0.5; done; printf '\\033[2Jno clear\\n'; sleep 300")
	p.shows("│ count 1")
	if strings.Contains(p.screen(), "count 3") {
		t.Errorf("all of it was shown at once:\n%s", p.screen())
	}
	p.shows("│ count 3")
	p.shows("no clear")
	if !strings.Contains(p.screen(), "count 1") {
		t.Errorf("the command cleared the terminal:\n%s", p.screen())
	}
	late := w.terminal(cadre, "attach", "demo", "bob")
	late.shows("│ count 3")
	b, there, err := w.beats().Of("bob")
	if err != nil || !there {
		t.Fatalf("bob sends no heartbeat: %v", err)
	}
	if err := syscall.Kill(b.Pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	p.shows("No process runs this session any more")
	kept := w.must("attach", "demo", "bob", "--no-follow")
	if !strings.Contains(kept, "│ count 3") || strings.Contains(kept, "✓ done") || strings.Contains(kept, "✗") {
		t.Errorf("after the host was killed, this is shown:\n%s", kept)
	}
	w.must("abort", "demo", "--yes")
}
