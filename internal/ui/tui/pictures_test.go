package tui

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"cadre/internal/render"
	"cadre/internal/team"
	"cadre/internal/testkit/golden"
)

// pictures are the pictures of the screen in README.md.
var pictures = []struct {
	name, title   string
	width, height int
	open          func(*screen, *story)
}{
	{"team", "cadre watch: a team of four, its tasks and what happened last", 120, 24,
		func(x *screen, s *story) { x.keys("enter"); x.sees(s); x.keys("shift+down") }},
	{"attention", "cadre watch: what waits for you; a permission is asked, and a plan can be approved", 100, 20,
		func(x *screen, s *story) { x.keys("a"); x.sees(s); x.keys("down") }},
}

// sees sends the team in the pictures.
func (x *screen) sees(s *story) {
	msg := s.message()
	msg.ref, msg.view.ref = msg.view.name, msg.view.name
	x.send(msg)
	x.send(recordsMsg{ref: msg.ref, fresh: true, records: s.records, whole: true})
}

// pictured returns the team in the pictures.
func pictured(t testing.TB) *story {
	s := &story{t: t, state: &team.State{}, at: start}
	s.do(team.User, &team.CreateTeam{TeamID: "demo-1", Name: "parser", Dir: "/home/kim/parser", Lead: "lead",
		Goal: "Port the parser to the new grammar, with tests", Permissions: team.Permissions{Policy: "user"}})
	host := team.Host("host-1")
	for _, m := range []team.SpawnMember{{Name: "ann", Agent: "claude", Model: "claude-sonnet-5"},
		{Name: "bob", Agent: "codex", Model: "gpt-5.3-codex", PlanApproval: true},
		{Name: "eve", Agent: "gemini", Model: "gemini-3-pro"}, {Name: "lint", Agent: "shell"}} {
		s.do(team.User, &m)
		s.do(host, &team.AttachMember{Member: m.Name})
		s.do(host, &team.ReportStarted{Member: m.Name, Session: "session-" + m.Name})
	}
	for _, one := range []team.CreateTask{{Name: "grammar", Subject: "Read both grammars, list what differs",
		Owner: "ann"},
		{Name: "lexer", Subject: "Port the lexer", BlockedBy: []string{"grammar"}, Owner: "ann"},
		{Name: "rules", Subject: "Port the rules", BlockedBy: []string{"grammar"}, Owner: "eve"},
		{Name: "tests", Subject: "A test for each rule", Owner: "bob"},
		{Name: "vet", Subject: "go vet", Run: "go vet ./...", Owner: "lint"},
		{Name: "fuzz", Subject: "Fuzz it for an hour", BlockedBy: []string{"lexer"}},
		{Name: "docs", Subject: "Say what changed", BlockedBy: []string{"rules"}}} {
		s.do(team.User, &one)
	}
	use := func(member string, in, out, cost, context int64) {
		s.do(host, &team.ReportUsage{Member: member, Context: context,
			Usage: team.Usage{InputTokens: in, OutputTokens: out, CostMicroUSD: cost}})
	}
	s.do("ann", &team.ClaimTask{Task: "grammar"})
	s.do("lint", &team.ClaimTask{Task: "vet"})
	s.at += 41_000
	s.do("lint", &team.CompleteTask{Task: "vet", Fence: 1, Result: "no findings"})
	use("bob", 61_400, 7_200, 0, 11)
	s.at += 166_000
	s.do("ann", &team.CompleteTask{Task: "grammar", Fence: 1, Result: "12 rules differ"})
	use("ann", 148_000, 11_300, 1_840_000, 38)
	s.do("ann", &team.ClaimTask{Task: "lexer"})
	s.do("eve", &team.ClaimTask{Task: "rules"})
	s.do("ann", &team.SendMessage{To: "eve", Body: "12 rules differ; the list is in grammar.md. Numbers may have a " +
		"sign now."})
	use("eve", 93_000, 4_100, 0, 24)
	s.at += 68_000
	s.do("bob", &team.SubmitPlan{Plan: "1. Read the old tests, and list what they cover.\n" +
		"2. Write one test for each of the 12 rules that differ.\n" +
		"3. Run both parsers on the corpus, and compare the trees.\n\nNo file outside of parser/testdata changes."})
	s.do(host, &team.RequestPermission{Member: "ann", Tool: "Bash", Deadline: s.at + 300_000,
		Input: `{"command":"go test ./lexer"}`})
	return s
}

// TestPictures: the pictures in README.md show the screen as it is.
func TestPictures(t *testing.T) {
	for _, p := range pictures {
		s := pictured(t)
		x := newScreen(s, p.width, p.height)
		found := s.listed()
		found.Folder = "parser"
		x.send(teamsMsg{teams: []teamRow{rowOf(found)}, items: itemsOf(found)})
		p.open(x, s)
		got := svg(p.title, x.frame(), p.width)
		if err := xml.Unmarshal(got, new(struct{})); err != nil {
			t.Fatalf("%s is not XML: %v", p.name, err)
		}
		golden.File(t, filepath.Join("..", "..", "..", "docs", "pictures", p.name+".svg"), string(got))
	}
}

// The size of a cell, and the room around all of them.
const (
	cellWidth  = 8.4
	cellHeight = 19
	around     = 14
)

// svgHead has the colors of a picture on a light and on a dark page.
const svgHead = `<svg xmlns="http://www.w3.org/2000/svg" role="img" viewBox="0 0 %g %d" width="%g" height="%d">
<title>%s</title>
<style>
svg { --page: #ffffff; --line: #d0d7de; --text: #1f2328; --faint: #656d76; --red: #cf222e; --green: #1a7f37; --yellow: #9a6700;
  --blue: #0969da; --purple: #8250df; --cyan: #1b7c83 }
@media (prefers-color-scheme: dark) {
  svg { --page: #0d1117; --line: #30363d; --text: #e6edf3; --faint: #8b949e; --red: #ff7b72; --green: #56d364; --yellow: #e3b341;
    --blue: #79c0ff; --purple: #d2a8ff; --cyan: #56d4dd }
}
.page { fill: var(--page); stroke: var(--line) }
text { font: 14px ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", "Liberation Mono", monospace; fill: var(--text);
  white-space: pre }
.b { font-weight: 600 } .f { fill: var(--faint) } .bar { fill: var(--text) } .r { fill: var(--page) }
.c31, .c91 { fill: var(--red) } .c32, .c92 { fill: var(--green) } .c33, .c93 { fill: var(--yellow) }
.c94 { fill: var(--blue) } .c95 { fill: var(--purple) } .c36, .c96 { fill: var(--cyan) }
</style>
<rect class="page" x="0.5" y="0.5" width="%g" height="%d" rx="8"/>
`

// svg draws a frame. Each text has the width of its columns, whatever font there is.
func svg(title string, frame []string, columns int) []byte {
	var b bytes.Buffer
	width, height := float64(columns)*cellWidth+2*around, len(frame)*cellHeight+2*around
	fmt.Fprintf(&b, svgHead, width, height, width, height, title, width-1, height-1)
	for i, line := range frame {
		column := 0
		for _, part := range strings.Split(line, "\x1b[") {
			classes, text := []string{}, part
			if codes, rest, styled := strings.Cut(part, "m"); styled && strings.Trim(codes, "0123456789;") == "" &&
				part != line {
				text = rest
				for code := range strings.SplitSeq(codes, ";") {
					if class := map[string]string{"": "", "1": "b", "2": "f", "7": "r"}[code]; class != "" {
						classes = append(classes, class)
					} else if code != "" {
						classes = append(classes, "c"+code)
					}
				}
			}
			if slices.Contains(classes, "r") {
				fmt.Fprintf(&b, "<rect class=\"bar\" x=\"%g\" y=\"%d\" width=\"%g\" height=\"%d\"/>\n", left(column),
					around+i*cellHeight, left(render.Width(text))-around, cellHeight)
			}
			for text != "" { // pieces without wide gaps, so that columns stay in their places
				piece, rest, _ := strings.Cut(text, "  ")
				if words := strings.TrimLeft(piece, " "); words != "" {
					from, wide := column+len(piece)-len(words), render.Width(words)
					class := ""
					if len(classes) > 0 {
						class = ` class="` + strings.Join(classes, " ") + `"`
					}
					fmt.Fprintf(&b, `<text%s x="%g" y="%d" textLength="%g" lengthAdjust="spacingAndGlyphs">`,
						class, left(from),
						around+i*cellHeight+14, float64(wide)*cellWidth)
					_ = xml.EscapeText(&b, []byte(words)) // a buffer takes everything
					b.WriteString("</text>\n")
				}
				column += render.Width(text) - render.Width(rest)
				text = rest
			}
		}
	}
	b.WriteString("</svg>\n")
	return b.Bytes()
}

// left is where a column begins. Few digits keep the file small.
func left(column int) float64 {
	x, _ := strconv.ParseFloat(strconv.FormatFloat(around+float64(column)*cellWidth, 'f', 1, 64), 64)
	return x
}
