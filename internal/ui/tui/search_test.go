package tui

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cadre/internal/engine"
	"cadre/internal/layout"
	"cadre/internal/replica/search"
	"cadre/internal/team"
)

// foundIn searches the history of the story, as a source does.
func (s *story) foundIn(ref, words string) (all []engine.Found) {
	s.t.Helper()
	for i := len(s.records) - 1; i >= 0; i-- {
		for _, e := range s.records[i].Events {
			m, is := e.(*team.MessageSent)
			if !is || m.Message.From == "" || !strings.Contains(m.Message.Body, words) {
				continue
			}
			at := strings.Index(m.Message.Body, words)
			all = append(all, engine.Found{Team: ref, Match: search.Match{Record: s.records[i].Seq, At: s.records[i].At,
				Kind: search.Message, By: m.Message.From, To: []string{m.Message.To}, Text: m.Message.Body,
				Spans: []search.Span{{From: at, To: at + len(words)}}}})
		}
	}
	return all
}

// TestSearchLeads: what a search found leads to the message in its place, to the task, and to the
// note; and Esc leads back.
func TestSearchLeads(t *testing.T) {
	s := newStory(t)
	for range 30 {
		s.do(team.User, &team.SendMessage{To: "bob", Body: "And another thing."})
	}
	x := newScreen(s, 100, 30)
	x.finds = append(s.foundIn("demo", "token.go"),
		engine.Found{Team: "demo", TaskName: "lint", Match: search.Match{Record: 15, At: s.at, Kind: search.Result,
			By: "lukas", Task: "3", Text: "no token.go\x1b[2J"}},
		engine.Found{Team: "docs", Archived: true, Match: search.Match{Record: 4, At: s.at - 86_400_000, Kind: search.Note,
			By: "eve", Note: "where", Seq: 2, Text: "the tokens are in token.go"}})
	x.keys("S")
	x.says("search all teams ▸")
	x.keys("token.go", "enter")
	x.wants(`search  ["token.go"] until 0`)
	x.says("3 texts with token.go")
	x.says("message of ann to bob: The tokens are in token.go; take them from")
	x.says("result of task lint by lukas: no token.go")
	x.says("note where, change 2, by eve: the tokens are in token.go")
	if frame := strings.Join(x.frame(), "\n"); strings.Contains(frame, "\x1b[2J") {
		t.Errorf("the terminal gets %q", frame)
	}

	x.keys("down", "down", "enter")
	x.says("Note where, change 2, by eve")
	x.says("an archived run")
	x.keys("esc")
	x.says("3 texts with token.go")
	x.keys("home", "down", "enter")
	x.wants("open demo")
	x.send(s.message())
	x.says("no findings")
	x.says("task lint")
	x.keys("esc")
	if x.place != atTeam || x.menu != nil {
		t.Errorf("behind the task is %v, with the menu %+v", x.place, x.menu)
	}

	x.keys("S")
	x.says("search demo ▸ token.go")
	x.keys("enter")
	x.wants(`search demo ["token.go"] until 0`)
	x.says("all teams")
	x.keys("enter")
	x.says("Message of ann to bob")
	x.keys("esc")
	x.says("3 messages")
	lines := x.frame()
	last := ""
	for _, l := range lines[:len(lines)-3] {
		if text := strings.TrimSpace(stripped(l)); text != "" && !strings.HasPrefix(text, "↑") && !strings.HasPrefix(text, "↓") {
			last = text
		}
	}
	if x.tab != tabMessages || !strings.Contains(last, "take them from there") {
		t.Errorf("the message is not in sight; the last line is %q, on the tab %d", last, x.tab)
	}
	x.keys("S", "enter", "end", "enter")
	x.wants(`search  ["token.go"] until 0`)
}

// TestSearchInAnotherTeam leads to a message of a team that is not open: its place is shown when
// the team has been read.
func TestSearchInAnotherTeam(t *testing.T) {
	s := newStory(t)
	for range 30 {
		s.do(team.User, &team.SendMessage{To: "bob", Body: "And another thing."})
	}
	x := newScreen(s, 100, 30)
	x.finds = s.foundIn("demo", "token.go")
	x.keys("S", "token.go", "enter", "enter", "esc")
	if x.scroll != 0 || x.ref != "demo" {
		t.Fatalf("before the team is read: %d, %s", x.scroll, x.ref)
	}
	x.send(s.message())
	if x.scroll < 30 {
		t.Errorf("the messages are at %d lines from the end", x.scroll)
	}
	x.keys("esc")
	if x.place != atTeams {
		t.Errorf("Esc leads to %v", x.place)
	}
}

// TestSearchIsCancelled: a key cancels a search, so that its answer takes no key that is meant for
// something else. In the past it finds what was written until then.
func TestSearchIsCancelled(t *testing.T) {
	s := newStory(t)
	x := newScreen(s, 80, 24)
	x.finds = s.foundIn("demo", "token.go")
	x.open(s)
	x.holds = true
	x.keys("S", "token.go", "enter")
	x.says("Searching …")
	x.keys("2")
	x.send(foundMsg{number: x.searches, query: engine.FindWords("demo", "token.go", 0), found: x.finds})
	if x.menu != nil {
		t.Error("the answer of a cancelled search is shown")
	}
	x.keys("[", "[", "S", "enter")
	if last := x.last(); strings.HasSuffix(last, "until 0") || !strings.HasPrefix(last, `search demo ["token.go"]`) {
		t.Errorf("in the past it asks for %s", last)
	}
	x.lacks("all teams")
	x.keys("esc", "0")
	x.finds = nil
	x.keys("S", "enter")
	x.says("Nothing was found.")
	x.keys("esc", "S")
	for range "token.go" {
		x.keys("backspace")
	}
	x.keys("enter")
	x.says("the line is empty")
}

// TestSourceSearches searches a team on disk.
func TestSourceSearches(t *testing.T) {
	root := t.TempDir()
	e := &engine.Engine{Home: layout.Home{Root: filepath.Join(root, "cadre"), Claude: filepath.Join(root, "claude")},
		Shared: new(engine.Shared), Log: func(string) {}}
	dir := filepath.Join(root, "project")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	body := &team.CreateTeam{Name: "demo", Dir: dir}
	if err := e.Founding(t.Context(), body); err != nil {
		t.Fatal(err)
	}
	if err := e.Create("demo", []team.Command{engine.Command(team.User, body)}); err != nil {
		t.Fatal(err)
	}
	ctx, end := context.WithCancel(t.Context())
	s := &source{engine: e, ctx: ctx}
	if msg := s.Act("demo", &team.SetNote{Key: "k", Text: "a needle"}, "done").(actedMsg); msg.err != "" {
		t.Fatal(msg.err)
	}
	msg := s.Search(7, engine.FindWords("", "needle", 0)).(foundMsg)
	if msg.number != 7 || len(msg.found) != 1 || msg.found[0].Note != "k" || msg.err != "" {
		t.Errorf("%+v", msg)
	}
	if msg = s.Search(8, engine.FindWords("nowhere", "needle", 0)).(foundMsg); msg.trouble == "" {
		t.Errorf("a team that is not there: %+v", msg)
	}
	end()
	if msg = s.Search(9, engine.FindWords("", "needle", 0)).(foundMsg); msg.err == "" {
		t.Errorf("after the end of the screen: %+v", msg)
	}
}
