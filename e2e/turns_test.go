package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestSettingsLimitTurns: maxParallel of the settings limits the turns on the machine, where the
// team file allows more; and no team runs with settings that have a mistake.
func TestSettingsLimitTurns(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	set := func(text string) {
		t.Helper()
		if err := os.MkdirAll(w.home, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(w.home, "settings.json"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	w.write("two.yaml", `name: two
maxParallel: 2
members: [{name: ann}, {name: bob}]
tasks:
  - {id: a, owner: ann, run: 'mkdir busy || touch overlap; echo a >>done; rmdir busy'}
  - {id: b, owner: bob, run: 'mkdir busy || touch overlap; echo b >>done; rmdir busy'}
`)
	set(`{"maxParallel": "one"}`)
	if r := w.cadre("run", "two.yaml", "--plain"); r.code == 0 || !strings.Contains(r.err, "settings.json:1:") ||
		has(w.dir, "done") {
		t.Errorf("with wrong settings it ends with %d: %s", r.code, r.err)
	}
	set(`{"maxParallel": 1}`)
	r := w.cadre("run", "two.yaml", "--plain")
	if r.code != 0 || has(w.dir, "overlap") || len(w.lines("done")) != 2 {
		t.Errorf("it ends with %d, and has done %q\n%s", r.code, w.lines("done"), r.err)
	}
	said := "waits for a free turn: teammates on this machine have 1 turn (maxParallel in settings.json)"
	if !strings.Contains(r.out+r.err, said) {
		t.Errorf("it does not say %q:\n%s%s", said, r.out, r.err)
	}
}
