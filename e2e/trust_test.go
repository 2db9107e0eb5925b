package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestTrustAsks checks that a person at a terminal sees the hooks and what trust covers, and is
// asked. A file that the person did not see is not trusted.
func TestTrustAsks(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.write(".claude/settings.json",
		`{"hooks":{"TaskCreated":[{"hooks":[{"type":"command","command":"setsid -w sh ./gate && make -s $GOAL"}]}]}}`)
	w.write("gate", "echo no >&2; exit 2\n")
	trusted := func() bool { return strings.Contains(w.must("trust", "--list", "--json"), w.dir) }
	ask := func(answer string, before func()) (*terminal, int) {
		t.Helper()
		p := w.terminal(cadre, "trust")
		p.shows("Let them run? [y/N]")
		if screen := p.screen(); !strings.Contains(screen, "covered files gate") ||
			!strings.Contains(screen, "by make, setsid") || !strings.Contains(screen, "when it runs, $GOAL") {
			t.Errorf("the question does not say what is covered:\n%s", screen)
		}
		before()
		p.enter(answer)
		return p, p.ended()
	}
	p, status := ask("n", func() {})
	if status != 1 || trusted() {
		t.Errorf("after a no it ended with %d, trusted: %t", status, trusted())
	}
	p.close()
	p, status = ask("y", func() {})
	if status != 0 || !trusted() {
		t.Errorf("after a yes it ended with %d, trusted: %t", status, trusted())
	}
	p.close()
	w.must("create", "demo")
	w.refused(w.cadre("task", "add", "demo", "x"), 1, "no")

	// A change while the person reads is not part of the agreement.
	_, status = ask("y", func() {
		if err := os.WriteFile(filepath.Join(w.dir, "gate"), []byte("exit 2\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	})
	if status != 0 {
		t.Errorf("trust ended with %d", status)
	}
	if r := w.cadre("task", "add", "demo", "x"); r.code != 0 || !strings.Contains(r.err, "cadre trust") {
		t.Errorf("a hook ran that was not shown: %d, %s", r.code, r.err)
	}
}
