package sanitize_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"cadre/internal/render/sanitize"
)

func TestLine(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"nothing", "", ""},
		{"plain", "plain text", "plain text"},
		{"scripts", "ünïcödé 漢字 ✓ עברית العربية हिन्दी", "ünïcödé 漢字 ✓ עברית العربية हिन्दी"},
		{"line breaks", "one\ntwo\r\nthree\rfour", "one↵two↵three␍four"},
		{"other line breaks", "a\u2028b\u2029c\u0085d\ve\ff", "a<U+2028>b<U+2029>c<U+0085>d␋e␌f"},
		{"tab", "a\tb", "a b"},
		{"screen clear", "\x1b[2J\x1b[H", "␛[2J␛[H"},
		{"title", "\x1b]0;title\x07", "␛]0;title␇"},
		{"C1", "\u009b2J\u009d0;x\u009c", "<U+009B>2J<U+009D>0;x<U+009C>"},
		{"raw C1 bytes", "\x9b31m", "\uFFFD31m"},
		{"NUL, backspace, DEL", "a\x00b\bc\x7f", "a␀b␈c␡"},
		{"bidi", "a\u202eb\u2066c\u2069d\u200ee\u200ff\u061cg",
			"a<U+202E>b<U+2066>c<U+2069>d<U+200E>e<U+200F>f<U+061C>g"},
		{"zero width in a name", "le\u200bad le\u200dad le\u200cad le\u2060ad le\ufeffad",
			"le<U+200B>ad le<U+200D>ad le<U+200C>ad le<U+2060>ad le<U+FEFF>ad"},
		{"soft hyphen, fillers", "a\u00adb\u3164c\u115fd\u034fe", "a<U+00AD>b<U+3164>c<U+115F>d<U+034F>e"},
		{"tags", "a\U000E0068\U000E0069", "a<U+E0068><U+E0069>"},
		{"hidden in selectors", "a\ufe00 \u263a\ufe0f\ufe0f \U0001f600\U000E0100\U000E0101",
			"a<U+FE00> \u263a\ufe0f<U+FE0F> \U0001f600\U000E0100<U+E0101>"},
		{"private use, noncharacter", "\ue0b0\uffff", "<U+E0B0><U+FFFF>"},
		{"emoji", "👩‍💻 ❤️ 👍🏽 🏳️‍🌈 1️⃣ 👨‍👩‍👧‍👦", "👩‍💻 ❤️ 👍🏽 🏳️‍🌈 1️⃣ 👨‍👩‍👧‍👦"},
		{"joiners of scripts", "نامه‌ای क्‍ष", "نامه‌ای क्‍ष"},
		{"two joiners", "👩\u200d\u200d💻", "👩\u200d<U+200D>💻"},
		{"sign of Arabic numbers", "\u0600123", "\u0600123"},
		{"bad bytes", "bad \xff\xfe bytes, \xe2\x80", "bad \uFFFD\uFFFD bytes, \uFFFD\uFFFD"},
		{"surrogate", "\xed\xa0\x80", "\uFFFD\uFFFD\uFFFD"},
		{"behind many plain ones", strings.Repeat("x", 100) + "\x1b", strings.Repeat("x", 100) + "␛"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := sanitize.Line(c.text); got != c.want {
				t.Errorf("%q became %q, not %q", c.text, got, c.want)
			}
		})
	}
}

func TestLines(t *testing.T) {
	got := sanitize.Lines("one\r\ntwo\n\tthree\rover \x1b[1A\u202e")
	if want := "one\ntwo\n\tthree␍over ␛[1A<U+202E>"; got != want {
		t.Errorf("it is %q, not %q", got, want)
	}
}

// TestPrintfSetsTextOff: a line of a text cannot pass for a line of cadre's.
func TestPrintfSetsTextOff(t *testing.T) {
	const forged = "ok\n#2 from user:\r\n\x1b[2Jyou may push\u2028#3 from user\r#4\n\n"
	var out bytes.Buffer
	w := sanitize.NewWriter(&out)
	err := errors.Join(
		w.Printf("#1 from %s: %s\n", "ann", forged),
		w.Printf("%v %s %q|%-6s|%.3s|%x\n", errors.New("bad\nthing"), []string{"a\nb"}, "a\nb", "é\n", "ab\ncd", "\n"),
		w.Printf("#1 from %s:\n%s\n", "ann", sanitize.Block(forged)),
		w.Printf("%d %t %v %5.1f %s\n", 7, true, nil, 1.25, sanitize.Block("")),
		w.Close(),
	)
	if err != nil {
		t.Fatal(err)
	}
	want := "#1 from ann: ok↵#2 from user:↵␛[2Jyou may push<U+2028>#3 from user␍#4↵↵\n" +
		"bad↵thing [a↵b] \"a\\nb\"|é↵    |ab↵|0a\n" +
		"#1 from ann:\n  │ ok\n  │ #2 from user:\n  │ ␛[2Jyou may push<U+2028>#3 from user␍#4\n" +
		"7 true <nil>   1.2   │\n"
	if out.String() != want {
		t.Errorf("it is\n%s\nnot\n%s", out.String(), want)
	}
}

// TestPrintfTwice: Printf does not visibly change its caller's arguments, which may be printed
// again.
func TestPrintfTwice(t *testing.T) {
	var out bytes.Buffer
	w := sanitize.NewWriter(&out)
	args := []any{"a\nb", error(errors.New("c\nd"))}
	w.Printf("%s %v\n", args...)
	w.Printf("%s %v\n", args...)
	if want := strings.Repeat("a↵b c↵d\n", 2); out.String() != want {
		t.Errorf("it is %q, not %q", out.String(), want)
	}
}

// TestBlockIsWrapped: on a terminal a long line of a text continues behind a gutter, and never at
// the left edge.
func TestBlockIsWrapped(t *testing.T) {
	for _, c := range []struct {
		columns    int
		text, want string
	}{
		{20, "short", "  │ short"},
		{20, "0123456789abcdef", "  │ 0123456789abcdef"},
		{20, "ok              #2 from user: you may", "  │ ok\n  │ #2 from user:\n  │ you may"},
		{20, "0123456789abcdefg", "  │ 0123456789abcdef\n  │ g"},
		{20, "漢字漢字漢字漢字漢字", "  │ 漢字漢字漢字漢字\n  │ 漢字"},
		{20, "❤️❤️❤️❤️❤️❤️❤️❤️", "  │ ❤️❤️❤️❤️❤️\n  │ ❤️❤️❤️"},
		{20, "a\tb\tc", "  │ a       b\n  │ c"},
		{10, "not for one so narrow", "  │ not for one so narrow"},
	} {
		var out bytes.Buffer
		w := sanitize.NewWriter(&out)
		w.Columns = func() int { return c.columns }
		w.Printf("%s", sanitize.Block(c.text))
		if out.String() != c.want {
			t.Errorf("%q in %d columns is\n%s\nnot\n%s", c.text, c.columns, out.String(), c.want)
		}
	}
}

// TestLinesFitTheTerminal: a long line is broken between words, with what follows indented, and a
// command keeps its words together.
func TestLinesFitTheTerminal(t *testing.T) {
	for _, c := range []struct {
		format string
		args   []any
		want   string
	}{
		{"%s\n", []any{"short"}, "short\n"},
		{"%s\n", []any{"a line that is too long for this"}, "a line that is too\n    long for this\n"},
		{"    %s\n", []any{"indented, and too long"}, "    indented, and\n        too long\n"},
		{"%s\n", []any{"cadre resume team --take-over"}, "cadre resume team --take-over\n"},
		{"%s\n", []any{"To go on: cadre resume x; or not"}, "To go on:\n    cadre resume x;\n    or not\n"},
		{"%s %s\n", []any{"12", sanitize.Hanging{Text: "words that hang below", At: 3, Indent: 3}},
			"12 words that hang\n   below\n"},
		{"%s\n", []any{sanitize.Hanging{Text: "a " + strings.Repeat("x", 19), Indent: 10}},
			"a\n    xxxxxxxxxxxxxxxx\n    xxx\n"},
		{"%s\n", []any{"漢字漢字漢字漢字漢字漢字"}, "漢字漢字漢字漢字漢字\n    漢字\n"},
		{"%s\n", []any{sanitize.Block("a text of some lines that is long")},
			"  │ a text of some\n  │ lines that is\n  │ long\n"},
		{"%s is %s\n", []any{sanitize.Styled{Look: sanitize.Bold, Text: "the team"},
			sanitize.Styled{Look: "", Text: "there, and well, too"}},
			"\x1b[1mthe team\x1b[0m is there,\n    and well, too\n"},
		{"%s\n", []any{"a line \x1b[2J of an agent"}, "a line ␛[2J of an\n    agent\n"},
	} {
		var out strings.Builder
		w := sanitize.NewWriter(&out)
		w.Columns, w.Colors = func() int { return 20 }, true
		w.Printf(c.format, c.args...)
		if out.String() != c.want {
			t.Errorf("it is\n%q, not\n%q", out.String(), c.want)
		}
	}
}

// TestStyled: a look is written only where there are colors, and an agent's text has none.
func TestStyled(t *testing.T) {
	for colors, want := range map[bool]string{
		true:  "\x1b[31mred↵\x1b[0m and \x1b[2m   12\x1b[0m plain ␛[2J\n\x1b[1mx\n\x1b[0m",
		false: "red↵ and    12 plain ␛[2J\nx\n",
	} {
		var out strings.Builder
		w := sanitize.NewWriter(&out)
		w.Colors = colors
		w.Printf("%s and %5s %s %s\n", sanitize.Styled{Look: sanitize.Red, Text: "\x1b[32mred\n"},
			sanitize.Styled{Look: sanitize.Dim, Text: "12"}, sanitize.Styled{Look: "", Text: "plain"}, "\x1b[2J")
		w.Print(sanitize.Bold, "x\n", sanitize.Normal)
		if out.String() != want {
			t.Errorf("with colors %v it is\n%q, not\n%q", colors, out.String(), want)
		}
	}
}

func TestDraw(t *testing.T) {
	var out counted
	w := sanitize.NewWriter(&out)
	io.WriteString(w, "cut \xe2\x80")
	if err := w.Draw(sanitize.EraseLine, sanitize.Red, "a\x1b[2J\nb", sanitize.Normal, 7); err != nil {
		t.Fatal(err)
	}
	if want := "cut \uFFFD\uFFFD\r\x1b[K\x1b[31ma␛[2J↵b\x1b[0m7"; out.String() != want || out.writes != 2 {
		t.Errorf("it is %q in %d writes, not %q", out.String(), out.writes, want)
	}
}

// counted counts the writes.
type counted struct {
	bytes.Buffer
	writes int
}

func (c *counted) Write(p []byte) (int, error) {
	c.writes++
	return c.Buffer.Write(p)
}

// TestOthers: the output of another program comes in whole lines, each behind the gutter, whatever
// is written between its pieces.
func TestOthers(t *testing.T) {
	var out bytes.Buffer
	w := sanitize.NewWriter(&out)
	others := w.Others()
	for _, piece := range []string{"one\r\ntw", "o\n\ncadre: fo", "rged\n", "\xe2\x80", "\xaex",
		strings.Repeat("y", 64<<10), "z", "\n#2 from user"} {
		io.WriteString(others, piece)
		w.Printf("between\n")
	}
	others.Close()
	others.Close()
	got := out.String()
	harmless(t, out.Bytes())
	long := "  │ <U+202E>x" + strings.Repeat("y", 64<<10)
	want := "  │ one\nbetween\n  │ two\n  │\nbetween\n  │ cadre: forged\nbetween\nbetween\nbetween\n" + long +
		"\nbetween\nbetween\n  │ z\nbetween\n  │ #2 from user\n"
	if got != want {
		t.Errorf("it is\n%.3000s\nnot\n%.3000s", strings.ReplaceAll(got, long, "LONG"),
			strings.ReplaceAll(want, long, "LONG"))
	}
}

// TestOneWriteEach: a piece that is written in one call comes out in one write, so that the output
// of several processes does not mix within a line.
func TestOneWriteEach(t *testing.T) {
	var out counted
	w := sanitize.NewWriter(&out)
	w.Printf("%s %s %d\n", "a\x1b", strings.Repeat("é", 1000), 3)
	io.WriteString(w, "plain\n")
	w.Value(map[string]string{"a": "\u202e"})
	if out.writes != 3 {
		t.Errorf("three lines were %d writes", out.writes)
	}
}

type failing struct{}

func (failing) Write(p []byte) (int, error) { return len(p) / 2, io.ErrClosedPipe }

func TestErrors(t *testing.T) {
	w := sanitize.NewWriter(failing{})
	if n, err := w.Write([]byte("\x1b\x1b\x1b")); err != io.ErrClosedPipe || n > 3 {
		t.Errorf("Write: %d, %v", n, err)
	}
	for name, err := range map[string]error{"Printf": w.Printf("x"), "Value": w.Value(1), "Draw": w.Draw("x")} {
		if err != io.ErrClosedPipe {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestJSONKeepsItsValue(t *testing.T) {
	value := map[string]any{"a\u202e": "b\u009b\x7f\u2028\x1b[2J\u200b\n\U000E0041👩‍💻é",
		"raw": json.RawMessage("{\"x\u202e\":\r\n[\"\u0085\", 1]}")}
	var out bytes.Buffer
	w := sanitize.NewWriter(&out)
	if err := w.Value(value); err != nil {
		t.Fatal(err)
	}
	harmless(t, out.Bytes())
	if strings.Contains(out.String(), "<U+") || !strings.Contains(out.String(), "👩‍💻é") {
		t.Errorf("it is %s", out.Bytes())
	}
	var got, want any
	plain, _ := json.Marshal(value)
	if err := errors.Join(json.Unmarshal(out.Bytes(), &got), json.Unmarshal(plain, &want)); err != nil ||
		!reflect.DeepEqual(got, want) {
		t.Errorf("it is %#v, not %#v: %v", got, want, err)
	}
}

// harmless fails where a terminal would obey something.
func harmless(t *testing.T, out []byte) {
	t.Helper()
	if !utf8.Valid(out) {
		t.Errorf("it is not UTF-8: %q", out)
	}
	prev := rune(-1)
	for i, r := range string(out) {
		switch {
		case r == '\n' || r == '\t':
		case r < ' ' || r >= 0x7f && r < 0xa0, r == 0xad, unicode.In(r, unicode.Zl, unicode.Zp, unicode.Co),
			r >= 0x202a && r <= 0x202e, r >= 0x2060 && r <= 0x206f, r >= 0x200e && r <= 0x200f, r == 0x061c,
			r == 0x200b, r == 0xfeff, r >= 0xe0000 && r <= 0xe007f:
			t.Errorf("there is %U at %d of %q", r, i, out)
		case r == 0x200c || r == 0x200d || r >= 0xfe00 && r <= 0xfe0f || r >= 0xe0100 && r <= 0xe01ef:
			if prev < 0xa9 && !strings.ContainsRune("0123456789#*", prev) || prev == 0x200c || prev == 0x200d {
				t.Errorf("%U stands alone at %d of %q", r, i, out)
			}
		}
		prev = r
	}
}

var hostile = []string{"", "plain\n", "a\x1b[31mb\r\n\u202e\xff", "\u009b2J\xc2\x9b2J\x9b", "👩‍💻❤️1️⃣\u200d\u200d",
	"x\ufe0f\ufe0f\u0600", "\xe2\x80\xae\xe2\x80", "\xf0\x9f", "\t\x7f\x00", "\\u202e\"\\", "ا\u200c\u200d",
	"\U000E0041\U000E0100"}

// FuzzWriter: whatever is written, with any cuts, the output is harmless, does not depend on the
// cuts, and does not change in a second pass. Harmless input is not changed.
func FuzzWriter(f *testing.F) {
	for i, s := range hostile {
		f.Add([]byte(s), i)
	}
	f.Fuzz(func(t *testing.T, p []byte, cut int) {
		before := bytes.Clone(p)
		cut = int(uint(cut) % uint(len(p)+1))
		var whole, parts, again bytes.Buffer
		for _, to := range []struct {
			out    *bytes.Buffer
			pieces [][]byte
		}{{&whole, [][]byte{p}}, {&parts, [][]byte{p[:cut], p[cut:]}}} {
			w := sanitize.NewWriter(to.out)
			for _, piece := range to.pieces {
				if n, err := w.Write(piece); n != len(piece) || err != nil {
					t.Fatalf("%d of %d bytes: %v", n, len(piece), err)
				}
			}
			w.Close()
		}
		if !bytes.Equal(p, before) {
			t.Errorf("the writer changed what it was given from %q to %q", before, p)
		}
		harmless(t, whole.Bytes())
		if !bytes.Equal(whole.Bytes(), parts.Bytes()) {
			t.Errorf("%q cut at %d is %q, not %q", p, cut, parts.Bytes(), whole.Bytes())
		}
		sanitize.NewWriter(&again).Write(whole.Bytes())
		if !bytes.Equal(again.Bytes(), whole.Bytes()) {
			t.Errorf("%q became %q", whole.Bytes(), again.Bytes())
		}
		if !bytes.ContainsFunc(p, func(r rune) bool { return (r < ' ' || r > '~') && r != '\n' && r != '\t' }) &&
			!bytes.Equal(p, whole.Bytes()) {
			t.Errorf("plain text %q became %q", p, whole.Bytes())
		}
	})
}

// FuzzText: a text becomes one line or a block, and formatting it again changes nothing.
func FuzzText(f *testing.F) {
	for _, s := range hostile {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		line := sanitize.Line(s)
		harmless(t, []byte(line))
		if strings.ContainsAny(line, "\n\t") || sanitize.Line(line) != line {
			t.Errorf("%q became the line %q", s, line)
		}
		lines := sanitize.Lines(s)
		harmless(t, []byte(lines))
		if sanitize.Lines(lines) != lines {
			t.Errorf("%q became %q", s, lines)
		}
		var out bytes.Buffer
		sanitize.NewWriter(&out).Printf("%s\n", sanitize.Block(s))
		harmless(t, out.Bytes())
		narrow := out.Len()
		w := sanitize.NewWriter(&out)
		w.Columns = func() int { return 20 }
		w.Printf("%s\n", sanitize.Block(s))
		for line := range strings.SplitSeq(out.String()[narrow:], "\n") {
			columns := 0
			for _, r := range line {
				columns += sanitize.Columns(r)
			}
			if columns > 20 {
				t.Errorf("%q has a line of %d columns: %q", s, columns, line)
			}
		}
		for one := range strings.Lines(out.String()) {
			if !strings.HasPrefix(one, strings.TrimRight(sanitize.Gutter, " ")) || !strings.HasSuffix(one, "\n") {
				t.Errorf("%q has the line %q", s, one)
			}
		}
	})
}

// FuzzJSON: JSON that encoding/json accepts has the same value afterwards.
func FuzzJSON(f *testing.F) {
	for _, s := range hostile {
		encoded, _ := json.Marshal(s)
		f.Add(encoded)
		f.Add([]byte(fmt.Sprintf("{\"a\":\r[\"%s\"]}", s)))
	}
	f.Fuzz(func(t *testing.T, p []byte) {
		var want, got any
		if json.Unmarshal(p, &want) != nil {
			return
		}
		before := bytes.Clone(p)
		out := sanitize.JSON(p)
		if !bytes.Equal(p, before) {
			t.Errorf("JSON changed what it was given from %q to %q", before, p)
		}
		harmless(t, out)
		if err := json.Unmarshal(out, &got); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%q became %q: %v", p, out, err)
		}
	})
}

var list = strings.Repeat(
	`{"id":"4711","subject":"Audit the error handling of the storage layer","status":"pending","owner":"ann","blockedBy":[],"createdAt":1795216422106},`, 1000)

func BenchmarkWriter(b *testing.B) {
	mixed := strings.ReplaceAll(list, "Audit", "Prüfe „alles“ ✓")
	for _, c := range []struct {
		name string
		text string
		to   io.Writer
	}{{"copy", list, io.Discard}, {"plain", list, sanitize.NewWriter(io.Discard)},
		{"unicode", mixed, sanitize.NewWriter(io.Discard)}, {"json", list, sanitize.NewWriter(io.Discard).JSON()}} {
		b.Run(c.name, func(b *testing.B) {
			text := []byte(c.text)
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				c.to.Write(text)
			}
		})
	}
}
