package e2e

import (
	"strings"
	"syscall"
	"testing"

	"cadre/internal/team"
)

// TestOutsideTeamLosesItsLead checks a team without a host, whose members are all outside sessions.
// They send their own heartbeats, and notice by themselves that their lead is lost.
func TestOutsideTeamLosesItsLead(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.must("create", "demo", "--liveness", soon)
	w.must("spawn", "demo", "bob", "--agent", "external")
	w.must("task", "add", "demo", "slow", "--owner", "bob")
	lead := w.mcp("mcp", "--team", "demo")
	bob := w.mcp("mcp", "--team", "demo", "--as", "bob")
	if text, failed := bob.call("TaskClaim", map[string]any{"taskId": "1"}); failed {
		t.Fatalf("bob cannot claim task 1: %s", text)
	}
	eventually(t, "bob sends heartbeats", func() bool {
		b, there, err := w.beats().Of(t.Context(), "bob")
		return err == nil && there && b.Status == "active" && b.Task == "1" && b.Pid > 0
	})
	if life, status := w.lives("bob"); life != "online" || status != "active" {
		t.Errorf("bob is %s, %s", life, status)
	}
	lead.dies()
	w.lost()
	eventually(t, "bob's heartbeat says that it is a zombie", func() bool {
		b, _, err := w.beats().Of(t.Context(), "bob")
		return err == nil &&
			b.Status == "zombie"
	})
	if life, status := w.lives("bob"); life != "online" || status != "zombie" {
		t.Errorf("bob is %s, %s", life, status)
	}
	if text, _ := bob.call("TeamStatus", nil); !strings.Contains(text, "No session has led it for") {
		t.Errorf("bob is told:\n%s", text)
	}
	w.must("resume", "demo")
	eventually(t, "bob is not a zombie any more", func() bool {
		b, _, err := w.beats().Of(t.Context(), "bob")
		return err == nil &&
			b.Status == "active"
	})
	bob.leave()
	if _, there, err := w.beats().Of(t.Context(), "bob"); there || err != nil {
		t.Errorf("bob has left, but its heartbeat file is still there: %v", err)
	}
	if life, _ := w.lives("bob"); life != "outside" {
		t.Errorf("bob is %s", life)
	}
}

// TestNoTeamWithoutAClient checks that cadre mcp creates a team when a client initializes it, and
// says so, but not before: a mistyped name creates no team.
func TestNoTeamWithoutAClient(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.refused(w.cadre("mcp", "--team", "nope"), 1, "no client has initialized the server, so team nope was not created")
	w.refused(w.cadre("status", "nope"), 2, "nope")
	lead := w.mcp("mcp", "--team", "real")
	if text, failed := lead.call("TeamStatus", nil); failed || !strings.Contains(text, "real") {
		t.Errorf("the client is told:\n%s", text)
	}
	w.must("status", "real")
}

// TestLeadIsToldWhoIsOffline checks that the lead is told once when a teammate is unreachable, and
// what it can do. The teammate is a killed or stopped outside session, or one whose host is killed.
func TestLeadIsToldWhoIsOffline(t *testing.T) {
	t.Parallel()
	start := func(t *testing.T) (w *world, lead *client) {
		w = newWorld(t)
		w.must("create", "demo", "--liveness", soon)
		w.must("spawn", "demo", "bob", "--agent", "external")
		return w, w.mcp("mcp", "--team", "demo")
	}
	offline := func(w *world, member string, is bool) {
		w.t.Helper()
		w.until("the history says whether "+member+" is offline",
			func(s *team.State) bool { m, _ := s.Member(member); return (m.Offline != 0) == is })
	}
	told := func(t *testing.T, lead *client, words string, n int) {
		t.Helper()
		if text, failed := lead.call("TeamStatus", nil); failed || strings.Count(text, words) != n {
			t.Errorf("the lead is told:\n%s", text)
		}
	}
	t.Run("killed", func(t *testing.T) {
		t.Parallel()
		w, lead := start(t)
		w.must("task", "add", "demo", "slow", "--owner", "bob")
		bob := w.mcp("mcp", "--team", "demo", "--as", "bob")
		bob.call("TaskClaim", map[string]any{"taskId": "1"})
		eventually(t, "bob sends heartbeats", func() bool {
			_, there,
				err := w.beats().Of(t.Context(), "bob")
			return err == nil && there
		})
		bob.dies()
		offline(w, "bob", true)
		if life, _ := w.lives("bob"); life != "offline" {
			t.Errorf("bob is %s", life)
		}
		told(t, lead, "bob is offline: its session has ended. It holds task 1: give that to another member", 1)
		told(t, lead, "[active] (external) at #1 slow; offline for", 1)
		told(t, lead, "bob is offline:", 0)
		again := w.mcp("mcp", "--team", "demo", "--as", "bob")
		offline(w, "bob", false)
		told(t, lead, "bob is online again", 1)
		again.leave()
		lead.leave()
	})
	t.Run("stopped", func(t *testing.T) {
		t.Parallel()
		w, lead := start(t)
		bob := w.mcp("mcp", "--team", "demo", "--as", "bob")
		eventually(t, "bob sends heartbeats", func() bool {
			_, there,
				err := w.beats().Of(t.Context(), "bob")
			return err == nil && there
		})
		b, _, err := w.beats().Of(t.Context(), "bob")
		if err != nil {
			t.Fatal(err)
		}
		if err := syscall.Kill(b.Pid, syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		offline(w, "bob", true)
		told(t, lead, "bob is offline: it sent no heartbeat for", 1)
		if err := syscall.Kill(b.Pid, syscall.SIGCONT); err != nil {
			t.Fatal(err)
		}
		offline(w, "bob", false)
		bob.leave()
		lead.leave()
	})
	t.Run("host", func(t *testing.T) {
		t.Parallel()
		w, lead := start(t)
		w.must("spawn", "demo", "ann")
		w.must("task", "add", "demo", "slow", "--run", "echo slow >>ran; test $(wc -l <ran) -gt 1 || sleep 600")
		eventually(t, "the task runs", func() bool { return len(w.lines("ran")) == 1 })
		b, _, err := w.beats().Of(t.Context(), "ann")
		if err != nil || b.Pid == 0 {
			t.Fatalf("got the heartbeat %+v of ann (%v), want one with a pid", b, err)
		}
		if err := syscall.Kill(b.Pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		offline(w, "ann", true)
		told(t, lead, "ann is offline: the host that ran its session has ended. It holds task 1", 1)
		w.must("resume", "demo")
		offline(w, "ann", false)
		w.untilCompleted(1)
		lead.leave()
	})
}
