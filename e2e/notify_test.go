package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestNotifierKilled checks that the next process continues when the one that notifies is killed:
// every fact is sent, and none that was recorded as sent is sent again.
func TestNotifierKilled(t *testing.T) {
	w := newWorld(t)
	sent := filepath.Join(w.dir, "sent")
	if err := os.MkdirAll(w.home, 0o700); err != nil {
		t.Fatal(err)
	}
	settings := fmt.Sprintf(`{"notify": {"command": "echo $CADRE_NOTIFY_TASK >> %s"}}`, sent)
	if err := os.WriteFile(filepath.Join(w.home, "settings.json"), []byte(settings), 0o600); err != nil {
		t.Fatal(err)
	}
	w.must("create", "demo")
	w.must("spawn", "demo", "ann", "--agent", "external")
	fail := func(task int) {
		w.must("task", "add", "demo", "the work", "--retries", "0")
		w.must("task", "claim", "demo", fmt.Sprint(task), "--as", "ann")
		w.must("task", "fail", "demo", fmt.Sprint(task), "--as", "ann", "--reason", "no")
	}
	for round := range 3 {
		one, two := w.start("notify", "--watch"), w.start("notify", "--watch")
		fail(round + 1)
		eventually(t, "the failure is recorded as sent", func() bool {
			data, _ := os.ReadFile(filepath.Join(w.home, "notified", "command.json"))
			return strings.Contains(string(data), fmt.Sprintf("/task_failed//%d/", round+1))
		})
		one.kill()
		two.kill()
	}
	got := w.lines("sent")
	slices.Sort(got)
	if want := []string{"1", "2", "3"}; !slices.Equal(got, want) {
		t.Errorf("sent %q, want %q", got, want)
	}
}
