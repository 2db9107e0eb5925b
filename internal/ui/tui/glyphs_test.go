package tui

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/clipperhouse/displaywidth"
	"pgregory.net/rapid"

	"cadre/internal/render"
	"cadre/internal/render/sanitize"
)

// TestGlyphs: the library gets a character for each column by which a terminal moves, also for
// accents behind ASCII letters, which it would drop; the terminal gets the text.
func TestGlyphs(t *testing.T) {
	var g glyphs
	for text, want := range map[string]int{"cafe\u0301": 4, "x\u0302y": 2, "plain": 5, "漢字": 4,
		"विकास":   5,
		"क्षेत्र": 4,
		"น้ำ":     2, "தமிழ்": 4, "👩\u200d🚀": 2, "한국": 4, "か\u3099": 2,
		"e\u0301\u0323": 1} {
		hidden := g.hide(text)
		if got := displaywidth.String(hidden); got != want || drawn(text) != want {
			t.Errorf("%q takes %d columns in the library and %d in tables, not %d", text, got, drawn(text), want)
		}
		for clusters := displaywidth.StringGraphemes(hidden); clusters.Next(); {
			if r, size := utf8.DecodeRuneInString(clusters.Value()); r < utf8.RuneSelf && size < len(clusters.Value()) {
				t.Errorf("%q has a mark behind an ASCII letter: %q", text, clusters.Value())
			}
		}
		if got := string(g.show([]byte("\x1b[1m" + hidden + "\x1b[m"))); got != "\x1b[1m"+text+"\x1b[m" {
			t.Errorf("%q comes back as %q", text, got)
		}
	}
	g.clustered = true
	if got := g.hide("का e\u0301"); !strings.HasPrefix(got, "का") || strings.Contains(got, "\u0301") {
		t.Errorf("for a terminal that counts clusters it is %q", got)
	}
}

// TestSimple: a text that is taken to be simple has no cluster of several characters.
func TestSimple(t *testing.T) {
	for r := rune(0x20); r < 0x30000; r++ {
		text := "a" + string(r)
		if simple(text) && sanitize.Line(text) == text && sanitize.Columns(r) == 0 {
			t.Errorf("%q is taken to be simple", text)
		}
	}
	if !simple("▸ ann · … ─ │ █ ⋯ ✗ ↺ é") {
		t.Error("the signs of the screen are not simple")
	}
}

// BenchmarkGlyphs measures what a frame costs: one without joined characters, and one of
// Devanagari.
func BenchmarkGlyphs(b *testing.B) {
	for name, l := range map[string]string{"latin": "\x1b[1m▸ ann\x1b[m  active · writes the lexer for the new " +
		"tokens …",
		"devanagari": "\x1b[1m▸ ann\x1b[m  विकास क्षेत्र का काम"} {
		frame := strings.Repeat(l+"\n", 40)
		b.Run(name, func(b *testing.B) {
			var g glyphs
			for b.Loop() {
				g.hide(frame)
			}
		})
	}
}

// TestGlyphsComeBack: every harmless text comes back as it was, and is as wide as it says.
func TestGlyphsComeBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := sanitize.Line(rapid.String().Draw(t, "text"))
		var g glyphs
		hidden := g.hide(text)
		if got := string(g.show([]byte(hidden))); got != text {
			t.Fatalf("%q comes back as %q", text, got)
		}
		if drawn(text) > render.Widest(text) {
			t.Fatalf("%q takes %d columns, more than %d", text, drawn(text), render.Widest(text))
		}
	})
}
