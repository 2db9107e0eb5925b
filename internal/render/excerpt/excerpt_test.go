package excerpt_test

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"cadre/internal/render/excerpt"
)

func TestAnyText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, n := rapid.String().Draw(t, "text"), rapid.IntRange(1, 40).Draw(t, "n")
		cut := excerpt.Bytes(s, n, " …")
		if body, was := strings.CutSuffix(cut, " …"); len(s) > n && (!was || len(body) > n || len(body) < n-3) {
			t.Errorf("Bytes(%q, %d) = %q", s, n, cut)
		}
		few := excerpt.Characters(s, n)
		if utf8.RuneCountInString(few) > n {
			t.Errorf("Characters(%q, %d) = %q", s, n, few)
		}
		for _, got := range []string{cut, few, excerpt.Line(s, n)} {
			if !utf8.ValidString(got) {
				t.Errorf("%q of %q is no text", got, s)
			}
		}
		if len(s) <= n && (cut != s || few != s) {
			t.Errorf("%q fits into %d, and became %q and %q", s, n, cut, few)
		}
	})
}

func TestWords(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{excerpt.Bytes("äöü", 3, "…"), "ä…"},
		{excerpt.Bytes("äöü", 0, "…"), "…"},
		{excerpt.Characters("äöü", 2), "ä…"},
		{excerpt.Characters("äöü", 1), "…"},
		{excerpt.Characters("äöü", 3), "äöü"},
		{excerpt.Line("one\n\ttwo  three", 7), "one two…"},
	} {
		if c.got != c.want {
			t.Errorf("%q, not %q", c.got, c.want)
		}
	}
}

func TestLastLines(t *testing.T) {
	for text, want := range map[string]string{"": "", "a": "a", "a\nb\n\n": "a\nb", "a\nb\nc\n": "b\nc 1", "\n": "",
		"a\n\nb": "\nb 1"} {
		got, left := excerpt.LastLines(text, 2)
		if left > 0 {
			got += fmt.Sprint(" ", left)
		}
		if got != want {
			t.Errorf("of %q: %q, not %q", text, got, want)
		}
	}
}
