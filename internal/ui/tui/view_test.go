package tui

import (
	"fmt"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"cadre/internal/inspect/attention"
	"cadre/internal/inspect/catalog"
	"cadre/internal/render"
	"cadre/internal/render/sanitize"
	"cadre/internal/team"
	"cadre/internal/testkit/golden"
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
	{"memberpast", func(x *screen, s *story) { x.open(s); x.view("ann"); x.keys("tab", "[") }},
	{"attentionpast", func(x *screen, s *story) { x.open(s); x.keys("[", "a") }},
	{"help", func(x *screen, s *story) { x.open(s); x.keys("?") }},
	{"member", func(x *screen, s *story) { x.open(s); x.view("ann"); x.keys("mind the tabs") }},
	{"interrupts", func(x *screen, s *story) { x.open(s); x.view("ann"); x.keys("esc") }},
	{"scrolled", func(x *screen, s *story) { x.open(s); x.view("ann"); x.keys("tab", "home") }},
	{"notes", func(x *screen, s *story) { s.noted(); x.open(s); x.keys("N", "down") }},
	{"note", func(x *screen, s *story) { s.noted(); x.open(s); x.keys("N", "enter") }},
	{"attention", func(x *screen, s *story) { x.keys("a"); x.send(s.message()) }},
	{"plan", func(x *screen, s *story) { x.keys("a"); x.send(s.message()); x.keys("down") }},
	{"rejects", func(x *screen, s *story) { x.keys("a"); x.send(s.message()); x.keys("down", "n", "Name the rules") }},
	{"task", func(x *screen, s *story) { s.worked(); x.open(s); x.keys("2", "enter") }},
	{"taskpast", func(x *screen, s *story) { s.worked(); x.open(s); x.keys("2", "enter", "[", "[", "[") }},
	{"verifying", func(x *screen, s *story) { s.verified(); x.open(s); x.openNamed("grammar") }},
	{"sentback", func(x *screen, s *story) { s.checked(); x.open(s); x.openNamed("rules") }},
	{"folded", func(x *screen, s *story) { s.grouped(); x.open(s); x.keys("2", "down") }},
	{"unfolded", func(x *screen, s *story) { s.grouped(); x.open(s); x.keys("2", "z") }},
	{"group", func(x *screen, s *story) { s.grouped(); x.open(s); x.openNamed("fix") }},
	{"memberplan", func(x *screen, s *story) { s.worked(); x.open(s); x.view("bob"); x.keys("tab", "p") }},
	{"diff", func(x *screen, s *story) {
		x.diffs = diffMsg{live: true, head: "ann's worktree as it is now: /home/kim/.cadre/teams/demo/worktrees/ann",
			left: []string{"image.png (binary, or too long)"}, patch: "diff --git a/token.go b/token.go\n--- " +
				"a/token.go\n+++ b/token.go\n@@ -1,3 +1,4 @@\n package lexer\n \n-type Token int\n+// Token is a " +
				"token: 文字列, and all that the " +
				"grammar of May names.\n+type Token uint8\n"}
		x.open(s)
		x.keys("2", "enter", "d")
	}},
	{"output", func(x *screen, s *story) {
		x.prints = outputMsg{args: []string{"ls"}, text: "NAME  STATUS\ndemo  active\n"}
		x.open(s)
		x.keys(":", "ls", "enter")
	}},
	{"running", func(x *screen, s *story) {
		x.open(s)
		x.holds = true
		x.keys(":", "log --follow", "enter")
		x.Update(clockMsg(x.now + 12_000))
		x.Update(clockMsg(x.now + 1_000))
		x.send(printingMsg{number: x.commands, text: "09:01:36 ✓ lukas  lint\n09:01:37 ✉ ann → bob\n"})
	}},
	{"rule", func(x *screen, s *story) { x.keys("a"); x.send(s.message()); x.keys("a") }},
	{"actions", func(x *screen, s *story) { x.open(s); x.keys("shift+down", ".") }},
	{"budget", func(x *screen, s *story) { x.open(s); x.keys("."); x.picks("budget") }},
	{"staging", func(x *screen, s *story) {
		x.staged = stagingOf(nil)
		x.open(s)
		x.keys(".")
		x.picks("consolidate")
	}},
	{"asks", func(x *screen, s *story) { x.open(s); x.keys("shift+tab") }},
	{"hosted", func(x *screen, s *story) {
		x.open(s)
		x.hosted = "demo"
		x.send(noteMsg("no checkpoint\x1b[2J was made"))
	}},
	{"leaves", func(x *screen, s *story) { x.open(s); x.hosted = "demo"; x.keys("q") }},
}

// noted adds notes to the story, one of them with what a terminal must not get.
func (s *story) noted() {
	s.do("ann", &team.SetNote{Key: "decisions/api", Text: "# Errors\n\nErrors are *JSON*.\n\n- each has a `code`\n" +
		"- 文字列 in `text`\n"})
	s.at += 65_000
	s.do("bob", &team.AppendNote{Key: "decisions/api", Text: "- no \x1b[2Jstack traces"})
	s.do(team.User, &team.SetNote{Key: "tried", Text: "A cache: stale after a restart."})
}

// TestNotesStayBelow: a note goes back to the list of notes, and that to the team. A team without
// notes says how to set one.
func TestNotesStayBelow(t *testing.T) {
	s := newStory(t)
	x := newScreen(s, 80, 24)
	x.open(s)
	x.keys("N")
	if x.menu != nil || !strings.Contains(x.notice.text, "cadre note set demo KEY TEXT") {
		t.Errorf("without notes it says %q", x.notice.text)
	}
	s.noted()
	x.send(s.message())
	x.keys("N", "enter", "esc")
	if x.overlay != nil || x.menu == nil || x.menu.title != "Notes of demo" {
		t.Fatalf("behind a note there is %+v", x.menu)
	}
	x.keys("esc")
	if x.menu != nil || x.place != atTeam {
		t.Errorf("behind the notes there is %+v", x.menu)
	}
}

// TestFrames compares every view with a golden frame: at three sizes, without colors and with
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
				if w := render.Widest(stripped(l)); w > size[0] {
					t.Errorf("%s at %v has a line of %d columns: %q", v.name, size, w, l)
				}
			}
			compare(t, fmt.Sprintf("%s-%dx%d", v.name, size[0], size[1]), stripped(strings.Join(frame, "\n")))
			compare(t, fmt.Sprintf("%s-%dx%d-colors", v.name, size[0], size[1]),
				strings.ReplaceAll(strings.Join(frame, "\n"), "\x1b", "␛"))
		}
	}
}

// TestTwins: rows with similar names can be told apart at the usual size: teams of one name by
// their projects, and tasks by the ends of their names.
func TestTwins(t *testing.T) {
	s := newStory(t)
	for i := range 12 {
		s.do(team.User, &team.CreateTask{Name: fmt.Sprintf("lint-module-number-%02d", i), Subject: "lint"})
	}
	x := newScreen(s, 80, 24)
	var teams []teamRow
	for _, dir := range []string{"/home/kim/code/first/parser", "/home/kim/code/second/parser"} {
		o := catalog.Overview{ID: dir, Name: "release", Project: dir, Status: team.TeamActive, Tasks: map[string]int{}}
		teams = append(teams, rowOf(attention.Found{Folder: dir, Overview: o}))
	}
	x.send(teamsMsg{teams: append(teams, rowOf(s.listed()))})
	frame := stripped(strings.Join(x.frame(), "\n"))
	for _, want := range []string{"/home/kim/co…irst/parser", "/home/kim/co…cond/parser"} {
		if !strings.Contains(frame, want) {
			t.Errorf("the teams do not show %s:\n%s", want, frame)
		}
	}
	x.send(teamsMsg{teams: []teamRow{rowOf(s.listed())}})
	x.open(s)
	x.keys("2")
	frame = stripped(strings.Join(x.frame(), "\n"))
	for i := range 12 {
		if want := fmt.Sprintf("lint-mod…mber-%02d ", i); !strings.Contains(frame, want) {
			t.Errorf("the tasks do not show %s:\n%s", want, frame)
		}
	}
}

// TestNobodyWorksInADormantTeam: the last recorded turns do not count when no process is alive.
func TestNobodyWorksInADormantTeam(t *testing.T) {
	s := newStory(t)
	if n := viewOf("demo", s.state, s.found()).atWork(); n == 0 {
		t.Fatal("nobody works")
	}
	if v := viewOf("demo", s.state, &team.Outside{At: s.at}); v.state != "dormant" || v.atWork() > 0 {
		t.Errorf("%s, and %d work", v.state, v.atWork())
	}
}

// TestAnotherLookCopiesNoTasks: a look at the processes of a team, in which nothing was recorded
// since the look before, takes over the tasks. Any record makes them again.
func TestAnotherLookCopiesNoTasks(t *testing.T) {
	s := newStory(t)
	for i := range 200 {
		s.do(team.User, &team.CreateTask{Subject: fmt.Sprint("Task ", i)})
	}
	first := viewOf("demo", s.state, s.found())
	copies := testing.AllocsPerRun(10, func() { viewOf("demo", s.state, s.found()) })
	if again := testing.AllocsPerRun(10, func() { viewAfter(first, "demo", s.state, s.found()) }); again > copies-40 {
		t.Errorf("another look allocates %.0f times, and the first one %.0f times", again, copies)
	}
	again := viewAfter(first, "demo", s.state, &team.Outside{At: s.at})
	if want := viewOf("demo", s.state, &team.Outside{At: s.at}); !reflect.DeepEqual(again, want) {
		t.Errorf("another look shows %+v, and not %+v", again, want)
	}
	s.do(team.User, &team.CompleteTask{Task: "1"})
	if got, want := viewAfter(first, "demo", s.state, s.found()), viewOf("demo", s.state,
		s.found()); !reflect.DeepEqual(got, want) {
		t.Errorf("after a record it shows %+v, and not %+v", got, want)
	}
}

// TestHiddenTasksCostNoMemory: a frame makes the rows that it shows, and not those of all tasks.
func TestHiddenTasksCostNoMemory(t *testing.T) {
	frame := func(tasks int) float64 {
		s := newStory(t)
		for i := range tasks {
			s.do(team.User, &team.CreateTask{Subject: fmt.Sprint("Task ", i), Owner: "ann"})
		}
		x := newScreen(s, 120, 40)
		x.open(s)
		return testing.AllocsPerRun(10, func() { x.frame() })
	}
	if few, many := frame(50), frame(350); many > few+100 {
		t.Errorf("a frame of 50 tasks allocates %.0f times, and one of 350 tasks %.0f times", few, many)
	}
}

// TestOwnerOfATask: a task keeps its owner when another member completes it.
func TestOwnerOfATask(t *testing.T) {
	s := newStory(t)
	s.do(team.User, &team.CompleteTask{Task: "1"})
	s.do(team.User, &team.CompleteTask{Task: "4"})
	for _, one := range viewOf("demo", s.state, s.found()).tasks {
		if want := map[string]string{"1": "ann", "4": team.User}[one.id]; want != "" && one.owner != want {
			t.Errorf("the owner of task %s is %q, and not %q", one.id, one.owner, want)
		}
	}
}

// TestHelpIsWhole: the help shows every text to its end, whatever the width.
func TestHelpIsWhole(t *testing.T) {
	for _, size := range sizes {
		for _, ended := range []bool{false, true} {
			s := newStory(t)
			x := newScreen(s, size[0], size[1])
			x.open(s)
			x.team.ended = ended
			x.keys("?")
			text := stripped(strings.Join(x.overlay.text, " "))
			if strings.Contains(text, "…") {
				t.Errorf("at %v the help is cut:\n%s", size, strings.Join(x.overlay.text, "\n"))
			}
			if want := "only coordinates"; !strings.Contains(strings.Join(strings.Fields(text), " "), want) &&
				size[0] > 40 {
				t.Errorf("at %v the help lacks %q", size, want)
			}
		}
	}
}

func TestCutMiddle(t *testing.T) {
	for _, c := range []struct {
		text  string
		width int
		want  string
	}{{"short", 5, "short"}, {"lint-module-01", 9, "lint…e-01"}, {"lint-module-01", 10, "lint-…e-01"},
		{"文書を更新する", 9, "文書…する"}, {"lint-module-01", 4, "lin…"}, {"aaaaaaaaae\u0301", 5, "aa…ae\u0301"}} {
		if got := cutMiddle(c.text, c.width); got != c.want || render.Widest(got) > c.width {
			t.Errorf("%q in %d columns is %q, not %q", c.text, c.width, got, c.want)
		}
	}
}

// compare compares a frame with its golden file, without the spaces at the ends of lines.
func compare(t *testing.T, name, got string) {
	t.Helper()
	var lines []string
	for l := range strings.SplitSeq(got, "\n") {
		lines = append(lines, strings.TrimRight(l, " "))
	}
	golden.File(t, filepath.Join("testdata", name+".txt"), strings.Join(lines, "\n")+"\n")
}

// TestKeys checks the table of keys: each key has a help, means one thing in a place, and those
// that terminals swallow have a second plain one.
func TestKeys(t *testing.T) {
	for _, place := range []scope{inTeams, inTeam, inMember, inTask, inLine, inAttention, inPager, inMenu, inStaging,
		inRunning} {
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
				if text := stripped(l); text != sanitize.Line(text) || render.Widest(text) > size[0] {
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
		"e\u0301e\u0301e\u0301e\u0301e\u0301", "a  b   c", "aaa👩\u200d🚀👩\u200d🚀 b❤\ufe0f❤\ufe0f❤\ufe0f"} {
		for width := 2; width < 12; width++ {
			parts := wrap(text, width)
			for _, p := range parts {
				if render.Widest(p) > width || width > 5 && p != sanitize.Line(p) {
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
