package lineedit

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"cadre/internal/render/sanitize"
)

// TestKeys types keys as a terminal sends them, in one piece and byte by byte.
func TestKeys(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, keys string
		entered    []string
		rest       string
	}{
		{"lines", "one\rtwo\nthree", []string{"one", "two"}, "three"},
		{"a paste", "a \x1b[200~one\r\ntwo\rthree\nf\tour\r\x1b[201~!\r", []string{"a one\ntwo\nthree\nf our\n!"}, ""},
		{"a paste with controls", "\x1b[200~\x1b[2J\x03\x1b[20\x1b[201~", nil, "␛[2J␃␛[20"},
		{"a paste without an end", "\x1b[200~one\ntw", nil, "one\ntw"},
		{"wide characters", "ä€😀\x7f!", nil, "ä€!"},
		{"cursor", "bcd\x1b[D\x1b[D\x1b[D\x1b[Da\x1b[C\x1b[3~\x1bOFe\x01_", nil, "_abde"},
		{"words", "one two  three\x17\x17x\x15y", nil, "y"},
		{"keys without a meaning", "a\x1b[1;5C\x1b[15~\x1bx\x1b\x1b[A\x1bä\x0cb", nil, "ab"},
		{"a tab", "a\tb", nil, "a b"},
		{"no UTF-8", "a\xffb", nil, "a\ufffdb"},
	} {
		for _, size := range []int{len(c.keys), 1, 3} {
			var k Keys
			var entered []string
			synctest.Test(t, func(*testing.T) { // in no time
				for part := range slices.Chunk([]byte(c.keys), size) {
					entered = append(entered, k.Type(part)...)
				}
			})
			if !slices.Equal(entered, c.entered) || k.String() != c.rest {
				t.Errorf("%s, %d bytes at a time: %q and %q, not %q and %q", c.name, size, entered, k.String(),
					c.entered, c.rest)
			}
		}
	}
}

// TestEscape checks that Escape, and a sequence that is not complete, swallow no key that comes
// later. A sequence and a paste that come slowly stay whole.
func TestEscape(t *testing.T) {
	t.Parallel()
	const soon, late = EscapeTime, EscapeTime + time.Millisecond
	for _, c := range []struct {
		name  string
		parts []string
		pause time.Duration
		want  string
	}{
		{"Escape and a key", []string{"\x1b", "!now"}, late, "!now"},
		{"Escape twice and a key", []string{"\x1b\x1b", "!now"}, late, "!now"},
		{"Escape and Ctrl-U", []string{"text\x1b", "\x15"}, late, ""},
		{"an incomplete sequence", []string{"\x1b[1", "x"}, late, "x"},
		{"a sequence in parts", []string{"b\x1b", "[", "D", "a"}, soon, "ab"},
		{"a paste in parts", []string{"\x1b[200~one\x1b[20", "1~ two"}, late, "one two"},
		{"a character in parts", []string{"\xe2\x82", "\xac"}, late, "€"},
	} {
		synctest.Test(t, func(t *testing.T) {
			var k Keys
			for _, part := range c.parts {
				k.Type([]byte(part))
				time.Sleep(c.pause)
			}
			if got := k.String(); got != c.want {
				t.Errorf("%s: the line is %q, want %q", c.name, got, c.want)
			}
		})
	}
}

// TestBound checks that a line that is too long is kept and not entered, until it is short enough.
func TestBound(t *testing.T) {
	t.Parallel()
	k := Keys{Most: 10}
	paste := strings.Repeat("€", 4)
	if got := k.Type([]byte("\x1b[200~" + paste + "\x1b[201~\r")); got != nil || k.TooLong() != 12 ||
		k.String() != paste {
		t.Errorf("entered %q, refused %d bytes, and the line is %q", got, k.TooLong(), k.String())
	}
	if got := k.Type([]byte("\x7f\r")); len(got) != 1 || got[0] != "€€€" || k.TooLong() != 0 {
		t.Errorf("the shorter line: entered %q, refused %d bytes", got, k.TooLong())
	}
	drop := Keys{Most: 10, Drop: true}
	if got := drop.Type([]byte(strings.Repeat("x", 11) + "\nnext\n")); len(got) != 1 || got[0] != "next" ||
		drop.TooLong() != 11 {
		t.Errorf("where long lines are dropped: entered %q, refused %d bytes", got, drop.TooLong())
	}
	k.Type([]byte("\x1b[200~" + strings.Repeat("x", 100) + "\x1b[201~"))
	if got := k.Type([]byte("c\r")); got != nil || k.TooLong() != 101 || len(k.String()) > mostKept*k.Most {
		t.Errorf("a huge paste: entered %q, refused %d bytes, kept %d", got, k.TooLong(), len(k.String()))
	}
	if got := k.Type([]byte("\x15now\r")); len(got) != 1 || got[0] != "now" {
		t.Errorf("after the line was erased: entered %q, refused %d bytes", got, k.TooLong())
	}
}

// FuzzKeys checks that nothing that comes from a terminal breaks the line, or stays in it as a
// control character.
func FuzzKeys(f *testing.F) {
	f.Add("a\x1b[200~b\r\n\x1b[201~\x1b[D\x7f\r", 3)
	f.Fuzz(func(t *testing.T, keys string, size int) {
		var k Keys
		for part := range slices.Chunk([]byte(keys), max(size, 1)) {
			for _, line := range append(k.Type(part), k.String()) {
				if sanitize.Lines(line) != line {
					t.Errorf("the line is %q", line)
				}
			}
			before, columns, after := k.Shown(20)
			if columns >= 20 || sanitize.Line(before+after) != before+after {
				t.Errorf("%q and %q are shown, with the cursor in column %d", before, after, columns)
			}
		}
	})
}
