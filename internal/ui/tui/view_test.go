package tui

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cadre/internal/render"
	"cadre/internal/render/sanitize"
	"cadre/internal/team"
)

// sizes are those at which every view is shown: usual, large, and the smallest that is usable.
var sizes = [][2]int{{80, 24}, {120, 40}, {40, 15}}

// views are the views, and how to get to them in a screen that was just opened.
var views = []struct {
	name string
	open func(*screen, *story)
}{
	{"teams", func(*screen, *story) {}},
	{"members", func(x *screen, s *story) { x.open(s) }},
	{"tasks", func(x *screen, s *story) { x.open(s); x.keys("2", "down") }},
	{"messages", func(x *screen, s *story) { x.open(s); x.keys("3") }},
	{"timeline", func(x *screen, s *story) { x.open(s); x.keys("4", "down") }},
	{"graph", func(x *screen, s *story) { x.open(s); x.keys("5", "down") }},
	{"costs", func(x *screen, s *story) { x.open(s); x.keys("6") }},
	{"past", func(x *screen, s *story) { x.open(s); x.keys("4", "<", "<", "<") }},
	{"help", func(x *screen, s *story) { x.open(s); x.keys("?") }},
	{"member", func(x *screen, s *story) { x.open(s); x.view("ann"); x.keys("mind the tabs") }},
	{"interrupts", func(x *screen, s *story) { x.open(s); x.view("ann"); x.keys("esc") }},
	{"scrolled", func(x *screen, s *story) { x.open(s); x.view("ann"); x.keys("tab", "home") }},
	{"attention", func(x *screen, s *story) { x.keys("a"); x.send(s.message()) }},
	{"plan", func(x *screen, s *story) { x.keys("a"); x.send(s.message()); x.keys("down") }},
	{"rejects", func(x *screen, s *story) { x.keys("a"); x.send(s.message()); x.keys("down", "n", "Name the rules") }},
	{"output", func(x *screen, s *story) {
		x.prints = outputMsg{args: []string{"ls"}, text: "NAME  STATUS\ndemo  active\n"}
		x.open(s)
		x.keys(":", "ls", "enter")
	}},
	{"asks", func(x *screen, s *story) { x.open(s); x.keys("shift+tab") }},
}

// TestFrames compares every view with a golden frame: at three sizes without colors, and at one with
// colors. No line is wider than the screen.
func TestFrames(t *testing.T) {
	for _, v := range views {
		for _, size := range sizes {
			s := newStory(t)
			x := newScreen(s, size[0], size[1])
			v.open(x, s)
			frame := x.frame()
			if len(frame) != size[1] {
				t.Errorf("%s has %d lines at %v", v.name, len(frame), size)
			}
			for _, l := range frame {
				if w := widest(stripped(l)); w > size[0] {
					t.Errorf("%s at %v has a line of %d columns: %q", v.name, size, w, l)
				}
			}
			compare(t, fmt.Sprintf("%s-%dx%d", v.name, size[0], size[1]), stripped(strings.Join(frame, "\n")))
			if size[0] == 80 {
				compare(t, v.name+"-colors", strings.ReplaceAll(strings.Join(frame, "\n"), "\x1b", "␛"))
			}
		}
	}
}

// widest returns the most columns that a terminal may give to the line.
func widest(line string) (columns int) {
	for _, r := range line {
		columns += sanitize.Columns(r)
	}
	return columns
}

func compare(t *testing.T, name, got string) {
	t.Helper()
	var lines []string
	for l := range strings.SplitSeq(got, "\n") {
		lines = append(lines, strings.TrimRight(l, " "))
	}
	got = strings.Join(lines, "\n") + "\n"
	file := filepath.Join("testdata", name+".txt")
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("the frame %s is\n%s\nnot\n%s", name, got, want)
	}
}

// TestKeys checks the table of keys: each key has a help, means one thing in a place, and those that
// terminals swallow have a second plain one.
func TestKeys(t *testing.T) {
	for _, place := range []scope{inTeams, inTeam, inMember, inLine, inAttention, inPager} {
		known := map[string]string{}
		for _, k := range keymap() {
			if k.help == "" {
				t.Errorf("%v has no help", k.names)
			}
			if k.in&place == 0 {
				continue
			}
			plain := place == inLine // where letters are text
			for _, name := range k.names {
				if other, twice := known[name]; twice {
					t.Errorf("%s means both %q and %q", name, other, k.help)
				}
				known[name] = k.help
				if !strings.Contains(name, "+") && name != "esc" {
					plain = true
				}
			}
			if !plain && k.names[0] != "ctrl+l" && k.names[0] != "ctrl+z" {
				t.Errorf("%v has no plain key beside it", k.names)
			}
		}
	}
}

// TestHostileTexts: texts of agents change nothing outside of their place.
func TestHostileTexts(t *testing.T) {
	const evil = "\x1b[2J\x1b]0;owned\x07\x1b[31mred\r\nnext\u202eline\x9b2J\u200b"
	s := newStory(t)
	s.do("ann", &team.SendMessage{To: "bob", Body: evil})
	s.do("ann", &team.CreateTask{Subject: evil})
	s.do(team.Host("host-1"), &team.ReportStatus{Member: "bob", Summary: evil, Status: team.Active})
	for _, v := range views {
		for _, size := range sizes {
			x := newScreen(s, size[0], size[1])
			v.open(x, s)
			frame := x.frame()
			if len(frame) != size[1] {
				t.Errorf("%s has %d lines at %v", v.name, len(frame), size)
			}
			for _, l := range frame {
				if text := stripped(l); text != sanitize.Line(text) || widest(text) > size[0] {
					t.Errorf("%s at %v shows %q", v.name, size, l)
				}
			}
		}
	}
}

// stripped returns a line without the looks that paint gives to texts.
func stripped(line string) string {
	var b strings.Builder
	for {
		text, rest, styled := strings.Cut(line, "\x1b[")
		b.WriteString(text)
		if !styled {
			return b.String()
		}
		codes, after, ok := strings.Cut(rest, "m")
		if !ok || strings.Trim(codes, "0123456789;") != "" {
			b.WriteString("\x1b[")
			line = rest
			continue
		}
		line = after
	}
}

// TestWrap checks that a wrapped text has all of its characters, and no line that is too wide.
func TestWrap(t *testing.T) {
	for _, text := range []string{"", "one two three", "  indented and long", "averyveryverylongword", "漢字 漢字漢字漢字",
		"e\u0301e\u0301e\u0301e\u0301e\u0301", "a  b   c"} {
		for width := 2; width < 12; width++ {
			parts := wrap(text, width)
			for _, p := range parts {
				if widest(p) > width {
					t.Errorf("%q in %d columns: %q", text, width, p)
				}
			}
			squeeze := func(s string) string { return strings.ReplaceAll(s, " ", "") }
			if squeeze(strings.Join(parts, "")) != squeeze(text) {
				t.Errorf("%q in %d columns: %q", text, width, parts)
			}
		}
	}
	if got := render.Width("漢"); got != 2 {
		t.Fatal(got)
	}
}
