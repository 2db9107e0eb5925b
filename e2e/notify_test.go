package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// notified writes settings that notify the person by the command.
func (w *world) notified(command string) {
	w.t.Helper()
	if err := os.MkdirAll(w.home, 0o700); err != nil {
		w.t.Fatal(err)
	}
	settings := fmt.Sprintf(`{"notify": {"command": %q}}`, command)
	if err := os.WriteFile(filepath.Join(w.home, "settings.json"), []byte(settings), 0o600); err != nil {
		w.t.Fatal(err)
	}
}

// fail lets ann fail a new task of team demo, which is its task number n.
func (w *world) fail(n int) {
	w.t.Helper()
	w.must("task", "add", "demo", "the work", "--retries", "0")
	w.must("task", "claim", "demo", fmt.Sprint(n), "--as", "ann")
	w.must("task", "fail", "demo", fmt.Sprint(n), "--as", "ann", "--reason", "no")
}

// recordedSent reports whether it is recorded that the failure of task n was sent.
func (w *world) recordedSent(n int) bool {
	data, _ := os.ReadFile(filepath.Join(w.home, "notified", "command.json"))
	return strings.Contains(string(data), fmt.Sprintf("/task_failed//%d/", n))
}

// TestSettingsChange checks that a process that notifies follows a change of the settings, and that
// a run whose notification is slow waits for it.
func TestSettingsChange(t *testing.T) {
	w := newWorld(t)
	w.notified("echo $CADRE_NOTIFY_TASK >> " + filepath.Join(w.dir, "old"))
	w.must("create", "demo")
	w.must("spawn", "demo", "ann", "--agent", "external")
	p := w.start("notify", "--watch")
	failed := 0
	fail := func() {
		failed++
		w.fail(failed)
		// The next step waits for the record. Without it the failure would be sent once more: in
		// the new way after the settings changed, or by the next process after a kill.
		eventually(t, "the failure is recorded as sent", func() bool { return w.recordedSent(failed) })
	}
	fail()
	w.notified("sleep 4; echo $CADRE_NOTIFY_TASK $CADRE_NOTIFY_KIND >> " + filepath.Join(w.dir, "new"))
	eventually(t, "the process follows the settings", func() bool {
		fail()
		return has(w.dir, "new")
	})
	p.kill()
	w.write("team.yaml", "name: quick\nmembers: [{name: w, agent: shell}]\n"+
		"tasks: [{id: a, subject: a, run: 'true', owner: w}]\n")
	w.must("run", "team.yaml")
	if got := w.lines("new"); !slices.Equal(got, []string{fmt.Sprint(failed), "task_failed", "complete"}) {
		t.Errorf("sent %q, want %d, task_failed and complete", got, failed)
	}
	// the last one too, if it was not recorded as sent when the settings changed
	if got := w.lines("old"); len(got) < failed-1 || len(got) > failed {
		t.Errorf("sent in the old way: %q, of %d", got, failed)
	}
}

// TestNotifierKilled checks that the next process continues when the one that notifies is killed:
// every fact is sent, and none that was recorded as sent is sent again.
func TestNotifierKilled(t *testing.T) {
	w := newWorld(t)
	w.notified(fmt.Sprintf("echo $CADRE_NOTIFY_TASK >> %s", filepath.Join(w.dir, "sent")))
	w.must("create", "demo")
	w.must("spawn", "demo", "ann", "--agent", "external")
	for round := range 3 {
		one, two := w.start("notify", "--watch"), w.start("notify", "--watch")
		w.fail(round + 1)
		eventually(t, "the failure is recorded as sent", func() bool { return w.recordedSent(round + 1) })
		one.kill()
		two.kill()
	}
	got := w.lines("sent")
	slices.Sort(got)
	if want := []string{"1", "2", "3"}; !slices.Equal(got, want) {
		t.Errorf("sent %q, want %q", got, want)
	}
}

// TestNotNotified checks that a person is not notified of the member that they look at in another
// process, but of a member beside it, and of both once they look away.
func TestNotNotified(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.notified("echo $CADRE_NOTIFY_MEMBER/$CADRE_NOTIFY_KIND >> " + filepath.Join(w.dir, "sent"))
	w.must("create", "demo")
	w.must("spawn", "demo", "ann", "--wait") // its host notifies
	w.must("spawn", "demo", "bob", "--wait")
	ask := func(member string) {
		t.Helper()
		w.must("task", "add", "demo", "ask", "--owner", member, "--run", cadre+
			" send --to lead --intent question 'Which one?'")
	}
	inner := filepath.Join(w.root, "inner")
	p := w.terminal("env", "-u", "TMUX", "tmux", "-S", inner, "-f", "/dev/null", "new-session", cadre, "attach", "demo",
		"ann")
	p.shows("\nto ann ") // it is recorded by then what the person looks at
	ask("ann")
	p.shows("Which one?")
	ask("bob")
	sent := func() []string {
		if !has(w.dir, "sent") {
			return nil
		}
		return w.lines("sent")
	}
	eventually(t, "the question of bob is sent", func() bool { return slices.Contains(sent(), "bob/question") })
	if got := sent(); len(got) != 1 {
		t.Errorf("sent %q, want one notification", got)
	}
	p.do("send-keys", "C-b", "d")
	if code := p.ended(); code != 0 {
		t.Fatalf("tmux ended with %d", code)
	}
	ask("ann")
	eventually(t, "the question of ann is sent", func() bool { return slices.Contains(sent(), "ann/question") })
	w.must("abort", "demo", "--yes")
}

// TestEachTerminalRings checks that the bell rings in each terminal with a screen.
func TestEachTerminalRings(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.must("create", "demo")
	w.must("spawn", "demo", "ann", "--agent", "external")
	if err := os.WriteFile(filepath.Join(w.home, "settings.json"), []byte(`{"notify": {"bell": true}}`),
		0o600); err != nil {
		t.Fatal(err)
	}
	terminals := []*terminal{w.terminal(cadre, "watch", "demo"), w.terminal(cadre, "watch", "demo")}
	for _, p := range terminals {
		p.shows("ann")
	}
	failed := 0
	eventually(t, "the bell rings in both terminals", func() bool {
		failed++ // what failed before a screen began to notify rings no bell
		w.fail(failed)
		return !slices.ContainsFunc(terminals, func(p *terminal) bool {
			return strings.TrimSpace(p.do("display-message", "-p", "#{window_bell_flag}")) != "1"
		})
	})
}

// TestWatchSaysThatNothingIsSent checks that the screen says why no notification can be sent.
func TestWatchSaysThatNothingIsSent(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.must("create", "demo")
	if err := os.WriteFile(filepath.Join(w.home, "settings.json"), []byte(`{"notify": `), 0o600); err != nil {
		t.Fatal(err)
	}
	p := w.terminalOf(160, 30, cadre, "watch", "demo")
	p.shows("No notification can be sent: ")
	p.keys("q")
	if code := p.ended(); code != 0 {
		t.Errorf("the screen ended with %d:\n%s", code, p.screen())
	}
}
