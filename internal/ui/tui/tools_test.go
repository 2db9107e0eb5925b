package tui

import (
	"strings"
	"testing"

	"cadre/internal/agent/sessionlog"
	"cadre/internal/team"
)

// TestTools: the tools that a session log shows are in the timeline: also those that ran before it
// was read, side by side, and until the end of their turn.
func TestTools(t *testing.T) {
	s := newStory(t)
	x := newScreen(s, 80, 24)
	x.open(s)
	x.keys("4")
	if frame := stripped(strings.Join(x.frame(), "\n")); strings.Contains(frame, "▓") {
		t.Fatalf("without a log there are tools:\n%s", frame)
	}
	folder := sessionlog.Of(t.TempDir())
	log, err := folder.Open("ann")
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	l := &toolLog{folder.View("ann"), map[string]bool{}}
	defer l.viewer.Close()
	add := func(at team.Time, kind sessionlog.Kind, id string) {
		t.Helper()
		if err := log.Add(sessionlog.Entry{At: start + at, Kind: kind, ID: id, Tool: "Bash"}); err != nil {
			t.Fatal(err)
		}
	}
	add(20_000, sessionlog.Tool, "a")
	add(30_000, sessionlog.Tool, "b")
	add(35_000, sessionlog.Result, "a")
	add(36_000, sessionlog.Result, "a") // a second end of the same use
	add(50_000, sessionlog.Result, "b")
	add(80_000, sessionlog.Tool, "c")
	uses := l.read("ann")
	if len(uses) != 5 {
		t.Fatalf("the log has the uses %+v", uses)
	}
	x.send(toolsMsg{ref: "other", uses: uses})
	x.send(toolsMsg{ref: "demo", uses: uses})
	add(90_000, sessionlog.TurnEnded, "")
	x.send(toolsMsg{ref: "demo", uses: l.read("ann")})
	lane := func() string {
		for _, line := range x.frame() {
			if line = stripped(line); strings.HasPrefix(line, "  ann") || strings.HasPrefix(line, "▸ ann") {
				return line
			}
		}
		return ""
	}
	if got := strings.Count(lane(), "▓"); got < 15 || !strings.Contains(lane(), "▓█") ||
		!strings.Contains(lane(), "█▓") {
		t.Errorf("the lane of ann is %q", lane())
	}
	if len(l.open) != 0 {
		t.Errorf("uses outlive their turn: %v", l.open)
	}
}
