package layout_test

import (
	"os"
	"path/filepath"
	"testing"

	"cadre/internal/layout"
)

// TestRemoved checks that a team counts as removed here only with the checkpoint that it had then,
// and no id leads out of the folder.
func TestRemoved(t *testing.T) {
	t.Parallel()
	h := layout.Home{Root: t.TempDir()}
	if h.Removed("demo-1", "c1") {
		t.Error("a team that was never here is known as removed")
	}
	if err := h.KeepRemoved("demo-1", "c1"); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		id, commit string
		want       bool
	}{{"demo-1", "c1", true}, {"demo-1", "c2", false}, {"demo-1", "", false}, {"demo-2", "c1", false},
		{"", "c1", false}} {
		if got := h.Removed(c.id, c.commit); got != c.want {
			t.Errorf("%q with %q: %v", c.id, c.commit, got)
		}
	}
	outside := filepath.Join(h.Root, "c")
	if err := os.WriteFile(outside, []byte("c1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"../c", "..", ".", outside, "a/../../c"} {
		if h.Removed(id, "c1") {
			t.Errorf("the id %q is read as a path", id)
		}
		if err := h.DropRemoved(id); err != nil {
			t.Errorf("the id %q: %v", id, err)
		}
	}
	if _, err := os.Stat(outside); err != nil {
		t.Error(err)
	}
	for range 2 {
		if err := h.DropRemoved("demo-1"); err != nil || h.Removed("demo-1", "c1") {
			t.Errorf("it is still known: %v", err)
		}
	}
}
