package sanitize_test

import (
	"strings"
	"testing"

	"cadre/internal/render/sanitize"
)

func TestStrip(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"plain", "plain\n\ttext", "plain\n\ttext"},
		{"colors", "\x1b[1;31merror\x1b[0m: no\x1b[K", "error: no"},
		{"title, link", "\x1b]0;title\x07a \x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "a link"},
		{"C1", "\u009b31mred\u009d0;x\u009c!", "red!"},
		{"device control", "\x1bP1$r0m\x1b\\done\x1b_G;\x1b\\", "done"},
		{"character set, keypad, reset", "\x1b(B\x1b=\x1bcx\x1bM", "x"},
		{"private modes", "\x1b[?25l\x1b[?1049hx\x1b[>c\x1b[ q", "x"},
		{"a title that does not end hides nothing", "\x1b]0;rm -rf\nnext", "␛]0;rm -rf\nnext"},
		{"at the end", "x\x1b", "x␛"},
		{"half a sequence", "x\x1b[31", "x␛[31"},
		{"damaged", "\x1b[3\nm\x1b\x1b[0mx\x1b[é", "␛[3\nm␛x␛[é"},
		{"other controls", "50%\r100%\r\nbell\a", "50%␍100%\nbell␇"},
		{"bytes", "\xff\x1b[0m\x9b1m", "\uFFFD\uFFFD1m"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := sanitize.Strip(c.text); got != c.want {
				t.Errorf("%q became %q, not %q", c.text, got, c.want)
			}
		})
	}
}

func TestDropEscapes(t *testing.T) {
	for in, want := range map[string]string{
		"plain":                    "plain",
		"a\x00\xff\u200b":          "a\x00\xff\u200b",
		"\x1b[1mbold\x1b[0m":       "bold",
		"\x1b\x1b[m[mx":            "[mx",
		"x\x1b[31":                 "x[31",
		"\u009b\u009b1mx\u009d":    "x",
		"\xc2\x1b[m\x9b1mx":        "\uFFFD\uFFFD1mx", // no U+009B is made
		"\xc2\xc2\x1b\x9b\x9b1mx":  "\uFFFD\uFFFD1mx",
		"\u0090\u0098\u009e\u009f": "",
	} {
		if got := sanitize.DropEscapes(in); got != want {
			t.Errorf("%q became %q, not %q", in, got, want)
		}
	}
}

func FuzzStrip(f *testing.F) {
	for _, s := range append(hostile, "\x1b]0;x\x07\x1b[31m\x1bP\x1b\\\u009b1m\x1b(B\x1b") {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got := sanitize.Strip(s)
		harmless(t, []byte(got))
		if again := sanitize.Strip(got); again != got {
			t.Errorf("%q became %q, and that %q", s, got, again)
		}
		dropped := sanitize.DropEscapes(s)
		if strings.ContainsAny(dropped, "\x1b\u0090\u0098\u009b\u009d\u009e\u009f") {
			t.Errorf("%q still has the beginning of a sequence: %q", s, dropped)
		}
		if !strings.ContainsAny(s, "\x1b\u0090\u0098\u009b\u009d\u009e\u009f") && got != sanitize.Lines(s) {
			t.Errorf("%q became %q", s, got)
		}
	})
}

// TestColorsAreRemoved: a text without its colors is readable. Any other sequence is shown.
func TestColorsAreRemoved(t *testing.T) {
	for given, want := range map[string]string{
		"\x1b[31mred\x1b[0m":              "red",
		"\x1b[mplain \x1b[1;38;5;4mblue":  "plain blue",
		"\x1b[38:2::1:2:3mrgb\u009b0m":    "rgb",
		"\x1b[2Jcleared":                  "␛[2Jcleared",
		"\x1b[>4;2mkeys":                  "␛[>4;2mkeys",
		"\x1b]2;title\x1b\\\x1b[1mbold":   "␛]2;title␛\\bold",
		"\x1b[3\x1b[0m1mput together\x1b": "␛[31mput together␛",
	} {
		if got := sanitize.Line(given); got != want {
			t.Errorf("Line(%q) = %q, not %q", given, got, want)
		}
		if got := sanitize.Lines(given + "\n"); got != want+"\n" {
			t.Errorf("Lines(%q) = %q", given, got)
		}
		var out strings.Builder
		if sanitize.NewWriter(&out).Printf("%s|%s\n", given, sanitize.Block(given)); out.String() != want+"|"+
			sanitize.Gutter+want+"\n" {
			t.Errorf("Printf of %q wrote %q", given, out.String())
		}
	}
}
