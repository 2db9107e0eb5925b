package projection

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
)

// TestPanes checks that the roster says where members are shown, and that a change of that alone is
// projected.
func TestPanes(t *testing.T) {
	p, h := working(t)
	shown := func() [2]string {
		t.Helper()
		project(t, p, h)
		data, err := os.ReadFile(filepath.Join(p.Claude, "teams/health/config.json"))
		if err != nil {
			t.Fatal(err)
		}
		var c Config
		if err := json.Unmarshal(data, &c); err != nil {
			t.Fatal(err)
		}
		for _, m := range c.Members {
			if m.Name == "alice" {
				return [2]string{m.BackendType, m.TmuxPaneID}
			}
		}
		t.Fatal("alice is missing")
		return [2]string{}
	}
	none := [2]string{"in-process", "in-process"}
	if got := shown(); got != none {
		t.Errorf("without panes alice is in %q", got)
	}
	dir := filepath.Dir(p.Mark)
	for _, pane := range []Pane{{"tmux", "%3"}, {"iterm2", "ID"}} {
		if err := WritePanes(dir, map[string]Pane{"alice": pane, "stranger": {"tmux", "%9"}}); err != nil {
			t.Fatal(err)
		}
		if got := shown(); got != [2]string{pane.Backend, pane.ID} {
			t.Errorf("alice is in %q, want %v", got, pane)
		}
		if n := stepsOf(t, p, h); n != 0 {
			t.Errorf("a projection of the same panes took %d steps", n)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, panesFile), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := shown(); got != none {
		t.Errorf("with a damaged file alice is in %q", got)
	}
}
