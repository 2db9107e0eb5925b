package tui

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"go.uber.org/goleak"

	"cadre/internal/agent/sessionlog"
	"cadre/internal/engine"
	"cadre/internal/inspect/attention"
	"cadre/internal/inspect/catalog"
	"cadre/internal/layout"
	"cadre/internal/team"
	"cadre/internal/ui/sessionview"
)

func TestMain(m *testing.M) {
	time.Local = time.UTC
	goleak.VerifyTestMain(m)
}

// start is the time at which stories begin.
var start = team.Time(time.Date(2026, 11, 23, 9, 0, 0, 0, time.UTC).UnixMilli())

// story is a team that is made by commands, through the core.
type story struct {
	t       testing.TB
	state   *team.State
	records []*team.Record
	at      team.Time
}

// newStory returns a team with an example of everything that the screen shows.
func newStory(t testing.TB) *story {
	s := &story{t: t, state: &team.State{}, at: start}
	s.do(team.User, &team.CreateTeam{TeamID: "demo-1", Name: "demo", Dir: "/w/parser", Lead: "lead",
		Goal:        "Port the parser to the new grammar and keep every test of the old one",
		Permissions: team.Permissions{Policy: "user"}})
	for _, m := range []team.SpawnMember{{Name: "ann", Agent: "claude", Model: "claude-sonnet-5", Role: "developer"},
		{Name: "bob", Agent: "codex", PlanApproval: true}, {Name: "lukas", Agent: "shell"}} {
		s.do(team.User, &m)
	}
	for _, m := range []string{"ann", "bob", "lukas"} {
		s.do(team.Host("host-1"), &team.AttachMember{Member: m})
		s.do(team.Host("host-1"), &team.ReportStarted{Member: m, Session: "session-" + m})
	}
	s.do(team.User, &team.CreateTask{Name: "lexer", Subject: "Write the lexer for the new tokens"})
	s.do(team.User, &team.CreateTask{Name: "parser", Subject: "Write the parser", BlockedBy: []string{"lexer"}})
	s.do(team.User, &team.CreateTask{Name: "lint", Subject: "Run the linter", Run: "make lint"})
	s.do(team.User, &team.CreateTask{Name: "docs", Subject: "文書を更新する: wide characters stay in their column"})
	s.do("ann", &team.ClaimTask{Task: "lexer"})
	s.do("lukas", &team.ClaimTask{Task: "lint"})
	s.at += 95_000
	s.do("lukas", &team.CompleteTask{Task: "3", Fence: 1, Result: "no findings"})
	s.do("ann", &team.SendMessage{To: "bob", Body: "The tokens are in token.go; take them from there."})
	s.do(team.Host("host-1"), &team.ReportUsage{Member: "ann", Task: "1",
		Usage: team.Usage{InputTokens: 48_000, OutputTokens: 5_200, CostMicroUSD: 412_000}})
	s.do("bob", &team.SubmitPlan{Plan: "1. Read the old tests.\n2. Write one test for each rule.\n3. Port the parser."})
	s.do(team.Host("host-1"), &team.RequestPermission{Member: "ann", Tool: "Bash", Deadline: s.at + 600_000,
		Input: `{"command":"rm -rf build && make"}`})
	return s
}

// do sends a command that the core must accept.
func (s *story) do(actor string, body team.Body) {
	s.t.Helper()
	resolved, err := s.state.Resolve(body)
	if err != nil {
		s.t.Fatal(err)
	}
	s.at += 1000
	d, err := team.Decide(s.state, team.Command{ID: fmt.Sprint("c", s.state.Seq()+1), Actor: actor, At: s.at,
		Body: resolved})
	if err != nil {
		s.t.Fatalf("%T: %v", body, err)
	}
	if d.Record != nil {
		s.state.Apply(d.Record)
		s.records = append(s.records, d.Record)
	}
}

// found is what a look outside of the journal finds: everybody is alive.
func (s *story) found() *team.Outside {
	return &team.Outside{At: s.at, Hosted: true, Led: true}
}

// listed is the team in a list.
func (s *story) listed() attention.Found {
	o := catalog.Summarize(layout.Home{Root: "/nowhere"}, s.state, s.found())
	return attention.Found{Folder: "demo", Overview: o, Items: o.Attention}
}

// message is what the source sends of the team.
func (s *story) message() teamMsg {
	return teamMsg{ref: "demo", view: viewOf("demo", s.state, s.found()), fresh: true, feed: feedOf(s.records, s.state)}
}

// screen is a model without a terminal. Its requests are recorded.
type screen struct {
	t testing.TB
	*Model
	asked  []string
	fails  error
	prints outputMsg // what the next command prints
	diffs  diffMsg   // the next diff
	story  *story
	staged stagingMsg
	busy   bool            // a member works on each task
	holds  bool            // the next command does not end yet
	finds  []engine.Found  // what a search finds
	ctx    context.Context // of the last command
	time   team.Time       // of its clock, if it is later than that of the model
}

// newScreen shows a screen of that size with the team of the story, and two others.
func newScreen(s *story, width, height int) *screen {
	x := &screen{t: s.t, story: s}
	x.time = s.at + 30_000
	x.Model = newModel(x, "", func() team.Time {
		if x.Model == nil {
			return x.time
		}
		return max(x.time, x.now)
	})
	x.send(tea.WindowSizeMsg{Width: width, Height: height})
	msg := teamsMsg{teams: []teamRow{rowOf(s.listed())}, items: itemsOf(s.listed())}
	for _, o := range []catalog.Overview{
		{ID: "docs-1", Name: "docs", Status: team.TeamActive, Teammates: 2, Tasks: map[string]int{"pending": 4,
			"completed": 1}, UpdatedAt: s.at - 60_000, Goal: "Write the handbook"},
		{ID: "old-1", Name: "old", Status: team.TeamComplete, Tasks: map[string]int{"completed": 12},
			UpdatedAt: s.at - 7_200_000, Goal: "Release 1.4"},
	} {
		msg.teams = append(msg.teams, rowOf(attention.Found{Folder: o.Name, Overview: o}))
	}
	broken := attention.Found{Folder: "broken", Items: []team.Item{{Kind: team.ItemDamaged, WaitsFor: team.ForUser,
		Text: "The team is damaged: record 7 cannot be read\x1b[2J."}}}
	msg.teams, msg.items = append(msg.teams, rowOf(broken)), append(msg.items, itemsOf(broken)...)
	x.send(msg)
	return x
}

// send updates the model with the message, and runs what it asks for, but for timers.
func (x *screen) send(msg tea.Msg) {
	_, cmd := x.Update(msg)
	x.run(cmd)
}

func (x *screen) run(cmd tea.Cmd) {
	if cmd == nil {
		return
	}
	switch msg := cmd().(type) {
	case tea.BatchMsg:
		for _, one := range msg {
			x.run(one)
		}
	case actedMsg, busyMsg, outputMsg, stagingMsg, completionMsg:
		x.send(msg)
	case momentMsg, taskMsg, diffMsg, foundMsg:
		x.send(msg)
	case quitMsg:
		x.asked = append(x.asked, "quit")
	}
}

// OpenTeam implements [outside].
func (x *screen) OpenTeam(_ int, ref string) { x.asked = append(x.asked, "open "+ref) }

// Moment implements [outside].
func (x *screen) Moment(ref string, seq int64) tea.Msg {
	x.asked = append(x.asked, fmt.Sprint("moment ", ref, " ", seq))
	return x.moment(ref, seq)
}

// Task implements [outside].
func (x *screen) Task(ref, id string, seq int64) tea.Msg {
	msg := taskMsg{ref: ref, id: id, seq: seq}
	s := x.story.state
	if seq > 0 {
		s = &team.State{}
		for _, r := range x.story.records[:seq] {
			s.Apply(r)
		}
	}
	var err error
	if msg.detail, err = detailOf(s, id); err != nil {
		msg.err = err.Error()
	}
	return msg
}

// Diff implements [outside].
func (x *screen) Diff(ref, task string) tea.Msg {
	x.asked = append(x.asked, "diff "+ref+" "+task)
	msg := x.diffs
	msg.ref, msg.task = ref, task
	return msg
}

// Search implements [outside].
func (x *screen) Search(number int, q engine.Search) tea.Msg {
	x.asked = append(x.asked, fmt.Sprintf("search %s %q until %d", q.Team, q.Words, q.Until))
	if x.holds {
		x.holds = false
		return nil
	}
	return foundMsg{number: number, query: q, found: x.finds}
}

// OpenSession implements [outside].
func (x *screen) OpenSession(_ int, ref, member string) {
	x.asked = append(x.asked, strings.TrimSpace("session "+ref+" "+member))
}

// Reassign implements [outside].
func (x *screen) Reassign(ref, task, to string, force bool) tea.Msg {
	x.asked = append(x.asked, "reassign "+ref+" "+task+" "+to)
	if x.busy && !force {
		return busyMsg{ref: ref, task: task, to: to, why: "ann works on task lexer", owner: "ann"}
	}
	return actedMsg{said: "reassigned"}
}

// Answered implements [outside].
func (x *screen) Answered(ref, request string) tea.Msg {
	return actedMsg{said: answered(team.Answer{Request: request, Outcome: "denied", By: "lead", At: x.now}, x.now)}
}

// Command implements [outside].
func (x *screen) Command(ctx context.Context, _ int, ref string, args []string) tea.Msg {
	x.ctx = ctx
	x.asked = append(x.asked, fmt.Sprintf("command %s %q", ref, args))
	if x.holds {
		x.holds = false
		return nil
	}
	return x.prints
}

// Act implements [outside].
func (x *screen) Act(ref string, body team.Body, said string) tea.Msg {
	x.asked = append(x.asked, fmt.Sprintf("%s %T %+v", ref, body, body))
	if x.fails != nil {
		return actedMsg{err: x.fails.Error()}
	}
	return actedMsg{said: said}
}

// special are the keys with names.
var special = map[string]tea.Key{"enter": {Code: tea.KeyEnter}, "tab": {Code: tea.KeyTab}, "esc": {Code: tea.KeyEscape},
	"shift+tab": {Code: tea.KeyTab, Mod: tea.ModShift}, "up": {Code: tea.KeyUp}, "down": {Code: tea.KeyDown},
	"shift+up": {Code: tea.KeyUp, Mod: tea.ModShift}, "shift+down": {Code: tea.KeyDown, Mod: tea.ModShift},
	"pgup": {Code: tea.KeyPgUp}, "pgdown": {Code: tea.KeyPgDown}, "home": {Code: tea.KeyHome},
	"end": {Code: tea.KeyEnd}, "left": {Code: tea.KeyLeft}, "right": {Code: tea.KeyRight},
	"delete": {Code: tea.KeyDelete}, "backspace": {Code: tea.KeyBackspace}, "ctrl+t": {Code: 't', Mod: tea.ModCtrl}, "ctrl+s": {Code: 's', Mod: tea.ModCtrl},
	"ctrl+c": {Code: 'c', Mod: tea.ModCtrl}, "alt+enter": {Code: tea.KeyEnter, Mod: tea.ModAlt}}

// keys presses keys: the named ones in brackets, and each other character as itself.
func (x *screen) keys(all ...string) {
	x.t.Helper()
	for _, name := range all {
		if k, is := special[name]; is {
			x.send(tea.KeyPressMsg(k))
			continue
		}
		for _, r := range name {
			x.send(tea.KeyPressMsg{Code: r, Text: string(r)})
		}
	}
}

// view views the session of the member, which shows an example of everything.
func (x *screen) view(member string) {
	for m := (memberRow{}); m.name != member; m, _ = x.selectedMember() {
		x.keys("shift+down")
	}
	x.keys("enter")
	msg := sessionMsg{ref: "demo", member: member}
	var lines sessionview.Lines
	for i, e := range []sessionlog.Entry{
		{Kind: sessionlog.Started, Text: "session-ann"},
		{Kind: sessionlog.Prompt, Text: "task lexer: Write the lexer for the new tokens"},
		{Kind: sessionlog.Text, Text: "I read the grammar first. It has 41 tokens, and the draft of May names them " +
			"in another order than the tests do.\n\n  1. read grammar.ebnf\n  2. write token.go"},
		{Kind: sessionlog.Tool, Tool: "Bash", Text: `{"command":"rg -n 'token' --glob '*.ebnf' | head -40"}`},
		{Kind: sessionlog.Result, Text: "grammar.ebnf:12: token = ident | number | 文字列 ;\n\x1b[31mgrammar.ebnf:19: more\n"},
		{Kind: sessionlog.Tool, Tool: "Bash", Text: `{"command":"go test ./lexer"}`},
		{Kind: sessionlog.Result, Failed: true, Text: "FAIL lexer [build failed]"},
		{Kind: sessionlog.Part, Text: "The build fails because token.go is not"},
	} {
		e.Seq, e.At = int64(i+1), start+team.Time(60_000+i*1000)
		msg.lines = append(msg.lines, lines.Add(e)...)
	}
	msg.writing = unfinished(lines.Writing())
	x.send(msg)
}

// open opens the team of the story.
func (x *screen) open(s *story) {
	x.keys("enter")
	x.send(s.message())
	x.send(recordsMsg{ref: "demo", fresh: true, records: s.records, whole: true})
}
