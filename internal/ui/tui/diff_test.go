package tui

import (
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
)

// TestDiff: d shows what is changed for a task as it is now, and again while it is shown; what is
// read stays where it is. A slow diff is not read all the time.
func TestDiff(t *testing.T) {
	s := newStory(t)
	x := newScreen(s, 80, 24)
	x.open(s)
	x.openNamed("lexer")
	x.diffs = diffMsg{live: true, head: "ann's worktree as it is now", patch: strings.Repeat("+first\n", 60)}
	x.keys("d")
	x.wants("diff demo #1")
	x.says("ann's worktree")
	x.keys("pgdown")
	top := x.overlay.top
	x.diffs.patch = strings.Repeat("+second\n", 60)
	x.clock(1_000)
	x.says("+first")
	x.clock(2_000)
	x.says("+second")
	if x.overlay.top != top || top == 0 {
		t.Errorf("the diff moved from %d to %d", top, x.overlay.top)
	}
	x.diffs.took = 3 * time.Second
	x.clock(2_000)
	asked := len(x.asked)
	x.clock(20_000)
	if len(x.asked) != asked {
		t.Error("a slow diff is read all the time")
	}
	x.clock(8_000)
	if len(x.asked) == asked {
		t.Error("a slow diff is not read again")
	}
	x.keys("esc")
	asked = len(x.asked)
	x.clock(60_000)
	if len(x.asked) != asked || x.place != atTask {
		t.Errorf("a diff that is closed is read: %q", x.last())
	}
	x.diffs = diffMsg{err: "Nothing of task lexer was saved."}
	x.keys("enter", "tab", "d")
	x.wants("diff demo lexer")
	x.says("Nothing of task lexer was saved.")
	x.keys("esc", "left", "[", "d")
	x.says("Diffs of the past are not kept.")
}

// clock lets that many milliseconds pass.
func (x *screen) clock(ms int64) {
	_, cmd := x.Update(clockMsg(int64(x.now) + ms))
	if x.overlay != nil && x.overlay.diff != nil && x.overlay.diff.asked {
		x.run(cmd().(tea.BatchMsg)[1]) // the first one is the timer
	}
}
