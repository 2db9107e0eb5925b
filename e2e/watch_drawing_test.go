package e2e

import (
	"regexp"
	"strings"
	"testing"

	"cadre/internal/team"
)

// settles waits until the terminal shows the same as after it was drawn again from nothing.
func (p *terminal) settles(what string) {
	p.t.Helper()
	drawn, same := "", 0
	p.wait("the screen is not stable", func() bool { // it has handled all keys
		if now := p.visible(); now != drawn {
			drawn, same = now, 0
		}
		same++
		return same > 12
	})
	p.keys("C-l")
	p.wait(what+": another screen after Ctrl-L, and not\n"+drawn, func() bool { return p.visible() == drawn })
}

// passed is a duration on the screen, which grows without any input.
var passed = regexp.MustCompile(` +\d+[smh]\b`)

// visible returns what the terminal shows now, without the clock and durations.
func (p *terminal) visible() string {
	first, rest, _ := strings.Cut(p.do("capture-pane", "-p"), "\n")
	first, _, _ = strings.Cut(first, ":")
	return first + "\n" + passed.ReplaceAllString(rest, " T")
}

// TestWatchDrawing: the screen is as it would be drawn from nothing: with characters that a
// terminal counts otherwise than libraries do, and after the window was as small as can be. Accents
// stay.
func TestWatchDrawing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.must("create", "demo", "--goal", "cafe\u0301 q\u0303uest x\u0302")
	texts := []string{"re\u0301sume\u0301 z\u0323\u0307", "विकास क्षेत्र का काम",
		"ภาษาไทย น้ำใจ ที่นี่",
		"தமிழ் மொழி கொடு", "한국어 \u1112\u1161\u11ab", "👩\u200d🚀 flies ❤\ufe0f",
		"العربية لغة",
		"plain text to compare with", "བོད་ཡིག",
		"မြန်မာဘာသာ", "ខ្មែរ ភាសា"}
	for _, text := range texts {
		w.must("task", "add", "demo", text)
	}
	for _, size := range [][2]int{{80, 24}, {40, 15}} {
		p := w.terminalOf(size[0], size[1], cadre, "watch", "demo")
		p.shows("MEMBER")
		p.keys("2")
		p.shows("plain text")
		for range 3 * len(texts) {
			p.keys("Down")
		}
		p.keys("k", "k", "3", "2", "k", "k", "5", "2", "g", "j")
		p.shows("▸ 2 ")
		p.settles("the tasks")
		if size[0] == 80 {
			p.keys("g")
			for _, text := range texts[:1] {
				p.shows(text)
			}
		}
		p.keys("3")
		p.keys("k", "k", "k", "j")
		p.settles("the messages")
		p.keys("BSpace")
		if size[0] == 80 {
			p.shows("cafe\u0301 q\u0303uest x\u0302")
		}
		p.keys("q")
		p.ended()
	}
}

// TestWatchResize: after the window was one column wide, or one line high, the screen is whole
// again.
func TestWatchResize(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.must("create", "demo", "--goal", "Port the parser")
	w.must("spawn", "demo", "ann", "--agent", "external")
	w.must("task", "add", "demo", "文書を更新する")
	rep := w.replica("demo")
	p := w.terminalOf(80, 24, cadre, "watch", "demo")
	p.shows("MEMBER")
	for _, small := range [][2]string{{"1", "24"}, {"80", "1"}, {"1", "1"}, {"2", "2"}, {"3", "24"}} {
		before := p.visible()
		p.do("resize-window", "-x", small[0], "-y", small[1])
		p.wait("the window is not small", func() bool { return p.visible() != before })
		if _, err := rep.Do(t.Context(), team.Command{Actor: team.User, Body: &team.CreateTask{Subject: "A task at " +
			small[0] + " columns"}}); err != nil {
			t.Fatal(err)
		}
		p.do("resize-window", "-x", "80", "-y", "24")
		p.shows("A task at " + small[0] + " columns")
		p.shows("? help")
		p.settles("after " + small[0] + " columns")
	}
	p.keys("q")
	p.ended()
}
