package e2e

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"cadre/internal/agent/wake"
	"cadre/internal/sys/proc"
)

// A session is woken once for each message: one that does not look at it is not woken at the end of
// each turn. What waits finds the team by the session beside it, whatever its directory is called,
// and also where its environment names another team.
func TestWakesOnceForEachMessage(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.must("create", "other")
	w.env = append(w.env, "CADRE_TEAM=no such name")
	lead := w.mcp("mcp", "--team", "elsewhere")
	if text, failed := lead.call("SpawnTeammate", map[string]any{"name": "ann", "agent": "external",
		"prompt": "x"}); failed {
		t.Fatal(text)
	}
	wakes := func(p *process) {
		t.Helper()
		if code := p.wait(); code != 2 || strings.Count(p.said(), "There is news from your team.") != 1 {
			t.Fatalf("exit status %d: %s", code, p.said())
		}
	}
	waits := func() *process {
		t.Helper()
		p := w.start("wake")
		eventually(t, "it waits",
			func() bool { return proc.Held(wake.Lock(filepath.Join(w.home, "teams", "elsewhere"), "lead")) })
		select {
		case <-p.gone:
			t.Fatalf("it wakes the session again: %s", p.said())
		case <-time.After(3 * time.Second): // three times as long as it takes to wake it
		}
		return p
	}
	send := func(text string) { t.Helper(); w.must("send", "elsewhere", "--to", "lead", text, "--from", "ann") }

	send("one")
	for _, args := range [][]string{{"--team", "other"}, {"--as", "ann"}, {"--team", "bad name"}, {"--as", "../../x"}} {
		if r := w.cadre(append([]string{"wake"}, args...)...); r.code != 0 || r.out+r.err != "" {
			t.Errorf("%v: exit status %d: %s%s", args, r.code, r.out, r.err)
		}
	}
	wakes(w.start("wake"))
	p := waits()
	send("two")
	wakes(p)
	p = waits()
	if text, failed := lead.call("ReadMessages", nil); failed || !strings.Contains(text, "two") {
		t.Fatal(text)
	}
	send("three")
	wakes(p)

	// Another session knows nothing of what that one was told, and one that has ended is waited for
	// no more.
	lead.leave()
	if r := w.cadre("wake"); r.code != 0 {
		t.Errorf("exit status %d: %s%s", r.code, r.out, r.err)
	}
	w.mcp("mcp", "--team", "elsewhere")
	wakes(w.start("wake", "--team", "elsewhere", "--as", "lead"))
}
