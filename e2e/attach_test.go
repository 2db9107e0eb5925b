package e2e

import (
	"slices"
	"strings"
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
