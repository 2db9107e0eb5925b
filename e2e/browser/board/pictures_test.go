package board

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/chromedp/chromedp"

	"cadre/internal/testkit/golden"
)

// TestPictures draws the pictures of the board that the documents show. With -update it writes them; without, it only
// checks that they are there: two versions of a browser do not draw the same.
func TestPictures(t *testing.T) {
	dir := filepath.Join("..", "..", "..", "docs", "pictures")
	pictures := []struct {
		name, at, shows string
		width, height   int64
		dark            bool
	}{
		{"board.png", "#team=billing", "Move invoices to ledger entries", 1440, 900, false},
		{"board-dark.png", "#team=billing&task=8", "Why it failed", 1440, 900, true},
		{"board-timeline.png", "#team=billing&tab=timeline", "waits for a person", 1440, 560, false},
		{"board-graph.png", "#team=billing&tab=graph", "Plan the rollout", 1440, 560, false},
		{"board-phone.png", "#team=billing", "Allow once", 360, 740, false},
	}
	if !golden.Updating() {
		for _, p := range pictures {
			if _, err := os.Stat(filepath.Join(dir, p.name)); err != nil {
				t.Errorf("%v; to write it: go test -run Pictures -update", err)
			}
		}
		return
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	w := serve(t, billing(t), finished(t, "flaky", "Find out why a tenth of the builds fail"))
	b := browse(t, 1440, 900)
	for _, p := range pictures {
		if p.width < 700 {
			b.do(chromedp.EmulateViewport(p.width, p.height, chromedp.EmulateScale(2), chromedp.EmulateMobile))
		} else {
			b.do(chromedp.EmulateViewport(p.width, p.height))
		}
		b.scheme(map[bool]string{false: "light", true: "dark"}[p.dark])
		b.login(w, p.at)
		b.shows(p.shows)
		js[bool](b, `document.fonts.ready.then(() => new Promise(f => requestAnimationFrame(
			() => requestAnimationFrame(() => f(true)))))`)
		b.picture(filepath.Join(dir, p.name))
	}
}
