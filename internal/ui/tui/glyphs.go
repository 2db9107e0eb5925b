package tui

import (
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/clipperhouse/displaywidth"

	"cadre/internal/render"
	"cadre/internal/render/sanitize"
)

// glyphs gives the library that draws the screen one character per column by which a terminal moves
// its cursor. The library drops a mark that follows an ASCII letter. It counts a cluster of
// Devanagari or Thai as one column, where terminals count its letters and spacing marks. Then it
// draws at the wrong place. So each such part reaches the library as one private-use character, and
// is put back on the way to the terminal.
//
// Sanitized texts contain no private-use characters, so none can be confused with a part.
type glyphs struct {
	mu        sync.Mutex
	of        map[string]rune
	texts     []string
	clustered bool // the terminal counts clusters as the library does (mode 2027)
}

// These private-use characters stand for parts.
const (
	firstGlyph = '\U000F0000'
	mostGlyphs = 0xFFF0
)

// simple reports whether nothing in the text combines. Most lines have only Latin letters and the
// symbols of the screen.
func simple(text string) bool {
	for i := 0; i < len(text); i++ {
		switch b := text[i]; {
		case b < 0xcc: // before U+0300
		case b != 0xe2 || i+2 >= len(text) || text[i+1] == 0x83 || text[i+1] >= 0xb3 ||
			text[i+1] == 0x80 && text[i+2] < 0x90:
			return false
		default: // U+2010 to U+2CBF, except for combining marks for symbols
			i += 2
		}
	}
	return true
}

// hide returns the text with one character for each part.
func (g *glyphs) hide(text string) string {
	if simple(text) {
		return text
	}
	var b strings.Builder
	g.mu.Lock()
	defer g.mu.Unlock()
	for l := range strings.Lines(text) {
		if simple(l) {
			b.WriteString(l)
		} else {
			g.hideLine(&b, l)
		}
	}
	return b.String()
}

func (g *glyphs) hideLine(b *strings.Builder, l string) {
	for clusters := displaywidth.StringGraphemes(l); clusters.Next(); {
		for part, one := range parts(clusters.Value()) {
			if !one || g.clustered && len(part) < len(clusters.Value()) || len(g.texts) == mostGlyphs {
				b.WriteString(part)
				continue
			}
			r, known := g.of[part]
			if !known {
				if r = firstGlyph + rune(len(g.texts)); g.of == nil {
					g.of = map[string]rune{}
				}
				g.of[part], g.texts = r, append(g.texts, part)
			}
			b.WriteRune(r)
		}
	}
}

// show puts the parts back.
func (g *glyphs) show(p []byte) []byte {
	const lead = 0xf3 // the first byte of every character that stands for a part
	at := strings.IndexByte(string(p), lead)
	if at < 0 {
		return p
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	out := append([]byte(nil), p[:at]...)
	for at < len(p) {
		r, size := utf8.DecodeRune(p[at:])
		if i := int(r - firstGlyph); i >= 0 && i < len(g.texts) {
			out = append(out, g.texts[i]...)
		} else {
			out = append(out, p[at:at+size]...)
		}
		at += size
	}
	return out
}

// parts splits a cluster into the parts by which a terminal moves its cursor. For each part it
// yields whether the library must get one character for it.
func parts(cluster string) func(yield func(part string, one bool) bool) {
	return func(yield func(string, bool) bool) {
		first, size := utf8.DecodeRuneInString(cluster)
		if size == len(cluster) || first < ' ' || !splits(cluster) && first >= utf8.RuneSelf {
			yield(cluster, false)
			return
		}
		if !splits(cluster) { // an ASCII letter with marks
			yield(cluster, true)
			return
		}
		begin := 0
		for i, r := range cluster {
			if i > begin && sanitize.Columns(r) > 0 {
				if !yield(cluster[begin:i], true) {
					return
				}
				begin = i
			}
		}
		yield(cluster[begin:], true)
	}
}

// joiner joins the characters before and after it into one picture.
const joiner = '\u200d'

// splits reports whether the cluster takes more columns than its first character. Pictures and
// Korean syllables do not split: terminals know them.
func splits(cluster string) bool {
	more := false
	for i, r := range cluster {
		switch {
		case r == joiner || r == emojiSelector || r >= 0x1f000 || unicode.Is(unicode.Hangul, r) ||
			sanitize.Columns(r) > 1:
			return false
		case i > 0 && sanitize.Columns(r) > 0:
			more = true
		}
	}
	return more
}

// drawn returns how many columns the text takes on the screen.
func drawn(text string) (columns int) {
	if simple(text) {
		return displaywidth.String(text)
	}
	for clusters := displaywidth.StringGraphemes(text); clusters.Next(); {
		if splits(clusters.Value()) {
			columns += render.Widest(clusters.Value())
		} else {
			columns += clusters.Width()
		}
	}
	return columns
}
