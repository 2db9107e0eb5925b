package tools_test

import (
	"context"
	"encoding/json"
	"errors"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
	"pgregory.net/rapid"

	"cadre/internal/agent"
	"cadre/internal/agent/envelope"
	"cadre/internal/agent/tools"
	"cadre/internal/team"
	"cadre/internal/testkit/golden"
)

var _ agent.Tools = (*tools.Set)(nil)

func offered(b *tools.Set) (names []string) {
	for _, t := range b.List() {
		names = append(names, t.Name)
	}
	return names
}

func TestWhoIsOfferedWhat(t *testing.T) {
	b := newBench(t, &team.SpawnMember{Name: "ann", Agent: "claude"})
	common := []string{"TaskCreate", "TaskUpdate", "TaskList", "TaskGet", "TaskClaim", "PathClaim", "PathRelease",
		"SendMessage", "Broadcast", "NoteWrite", "NoteRead", "NoteList", "TeamSearch", "ReadMessages"}
	for name, want := range map[string][]string{
		"lead": append(slices.Clone(common), "SpawnTeammate", "ShutdownTeammate", "RespondToPlan",
			"RespondToPermission", "ResendMessages", "TeamStatus", "CleanupTeam"),
		"ann":      append(slices.Clone(common), "RespondToShutdown", "SubmitPlan", "TeamStatus"),
		"stranger": append(slices.Clone(common), "RespondToShutdown", "SubmitPlan", "TeamStatus"),
	} {
		if got := offered(b.tools(name)); !slices.Equal(got, want) {
			t.Errorf("%s has %v, not %v", name, got, want)
		}
	}
	if text, failed := b.call("stranger", "TaskCreate", `{"subject":"x","description":"x"}`); !failed ||
		!strings.Contains(text, "no member named") {
		t.Errorf("a stranger creates a task: %s", text)
	}
}

// TestSchemas checks what clients need of a schema: a closed object, whose properties all have
// descriptions, without unions of types.
func TestSchemas(t *testing.T) {
	b := newBench(t, &team.SpawnMember{Name: "ann", Agent: "claude"})
	var all strings.Builder
	for _, tool := range append(b.tools("lead").List(), b.tools("ann").List()...) {
		var s jsonschema.Schema
		if err := json.Unmarshal(tool.Schema, &s); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Resolve(nil); err != nil {
			t.Errorf("%s: %v", tool.Name, err)
		}
		if s.Type != "object" || s.AdditionalProperties == nil || len(tool.Description) < 60 ||
			len(tool.Description) > 500 {
			t.Errorf("%s: %s\n%s", tool.Name, tool.Description, tool.Schema)
		}
		for name, p := range s.Properties {
			if p.Description == "" || p.Type == "" {
				t.Errorf("%s %s has no description or type: %s", tool.Name, name, tool.Schema)
			}
		}
		var value any
		if err := json.Unmarshal(tool.Schema, &value); err != nil {
			t.Fatal(err)
		}
		pretty, err := json.MarshalIndent(value, "", " ")
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(all.String(), "\n"+tool.Name+"\n") {
			all.WriteString("\n" + tool.Name + "\n" + tool.Description + "\n" + string(pretty) + "\n")
		}
	}
	golden.File(t, "testdata/schemas.golden", all.String())
}

// TestAgentsOfASpawn checks that the schema names the agents that are available now, and the
// default one.
func TestAgentsOfASpawn(t *testing.T) {
	b := newBench(t)
	agents := []string{"codex", "acp:own"}
	o := b.options("lead")
	o.Agents = func() []string { return agents }
	set := tools.New(o)
	schema := func() string {
		i := slices.Index(offered(set), "SpawnTeammate")
		return string(set.List()[i].Schema)
	}
	if s := schema(); !strings.Contains(s, `"enum":["codex","acp:own"]`) || !strings.Contains(s, "codex by default") {
		t.Error(s)
	}
	agents = []string{"codex", "claude"} // what the lead is
	if s := schema(); !strings.Contains(s, "claude by default") {
		t.Error(s)
	}
	agents = nil
	if s := schema(); strings.Contains(s, "by default\"") && strings.Contains(s, "enum") {
		t.Error(s)
	}
	if text, failed := set.Call(b.ctx, "SpawnTeammate", json.RawMessage(`{"name":"x","prompt":"x"}`)); !failed ||
		!strings.Contains(text, "no agent that could be one is installed") {
		t.Error(text)
	}
	o.Agents = nil // anything goes
	if text, failed := tools.New(o).Call(b.ctx, "SpawnTeammate",
		json.RawMessage(`{"name":"x","prompt":"x","agent":"acp:new"}`)); failed ||
		text != "x joined the team (\"acp:new\")." {
		t.Error(text)
	}
}

func TestHostOfASpawn(t *testing.T) {
	b := newBench(t)
	var asked []string
	trouble := errors.New("no claude\nhere")
	o := b.options("lead")
	o.Spawned = func(_ context.Context, name string) error {
		asked = append(asked, name)
		return trouble
	}
	set := tools.New(o)
	call := func(input string) (string, bool) { return set.Call(b.ctx, "SpawnTeammate", json.RawMessage(input)) }
	if text, failed := call(`{"name":"ann","prompt":"x"}`); !failed ||
		!strings.Contains(text, "no claude here\nMake the same call again") {
		t.Error(text)
	}
	trouble = nil
	if text, failed := call(`{"name":"ann","prompt":"x"}`); failed || !strings.Contains(text, "on the team already") {
		t.Error(text)
	}
	if text, failed := call(`{"name":"eve","prompt":"x","agent":"external"}`); failed {
		t.Error(text)
	}
	if !slices.Equal(asked, []string{"ann", "ann"}) {
		t.Errorf("hosts are asked for %v", asked)
	}
}

func TestCleanup(t *testing.T) {
	b := newBench(t)
	times := 0
	o := b.options("lead")
	o.Mail = func(context.Context) (string, error) {
		t.Error("mail is looked for in a team that is gone")
		return "", nil
	}
	o.Cleanup = func(context.Context) error {
		if times++; times == 1 {
			return errors.New("the disk is busy")
		}
		return nil
	}
	set := tools.New(o)
	if text, failed := set.Call(b.ctx, "CleanupTeam", nil); !failed ||
		!strings.Contains(text, "the disk is busy\nMake the same call again") {
		t.Error(text)
	}
	if text, failed := set.Call(b.ctx, "CleanupTeam", nil); failed || times != 2 {
		t.Error(text)
	}
}

// TestMail checks that mail follows every result, even of a failed call, and is not taken when no
// agent would see it.
func TestMail(t *testing.T) {
	b := newBench(t)
	mail, trouble := "a message", error(nil)
	asked := 0
	o := b.options("lead")
	o.Mail = func(context.Context) (string, error) {
		asked++
		return mail, trouble
	}
	set := tools.New(o)
	call := func(name string) (string, bool) { return set.Call(b.ctx, name, json.RawMessage("{}")) }
	for name, want := range map[string]string{"TaskList": "No tasks yet.", "ReadMessages": "Your new messages:",
		"Nonsense": "There is no tool", "TaskGet": "Nothing was done"} {
		if text, failed := call(name); !strings.HasPrefix(text, want) ||
			!strings.HasSuffix(text, "\n\n----\na message") || failed != (name == "Nonsense" || name == "TaskGet") {
			t.Errorf("%s: %v %s", name, failed, text)
		}
	}
	trouble = errors.New("the disk\nis gone")
	if text, failed := call("TaskList"); failed || !strings.HasSuffix(text, "----\nYour messages could not be read "+
		"now: the disk is gone\nThey are kept; call ReadMessages later.") {
		t.Error(text)
	}
	before := asked
	cancelled, cancel := context.WithCancel(b.ctx)
	cancel()
	if text, failed := set.Call(cancelled, "TaskCreate",
		json.RawMessage(`{"subject":"x","description":""}`)); !failed || !strings.Contains(text, "was cancelled") ||
		asked != before {
		t.Errorf("a cancelled call: %s", text)
	}
	o.Refresh = func(context.Context) error { return errors.New("read-only") }
	if text, failed := tools.New(o).Call(b.ctx, "TaskList", nil); !failed ||
		!strings.Contains(text, "The team could not be reached: read-only") {
		t.Error(text)
	}
}

// TestReadMessagesByItself checks that the tool takes the mail if results carry none.
func TestReadMessagesByItself(t *testing.T) {
	b := newBench(t, &team.SpawnMember{Name: "ann", Agent: "claude"})
	o := b.options("ann")
	o.Mail = nil
	set := tools.New(o)
	for range 3 {
		b.do("lead", &team.SendMessage{To: "ann", Body: "x"})
	}
	if text, failed := set.Call(b.ctx, "TaskList", nil); failed || text != "No tasks yet." {
		t.Error(text)
	}
	text, failed := set.Call(b.ctx, "ReadMessages", nil)
	if got := envelope.Carries("demo-1", "ann", text); failed || !slices.Equal(got, []int64{1, 2, 3}) {
		t.Errorf("it gives %v: %s", got, text)
	}
	if text, failed := set.Call(b.ctx, "ReadMessages", nil); failed || text != "No new messages." {
		t.Error(text)
	}
}

// TestManyAtOnce checks that concurrent calls return each message once, and give each task to one
// member.
func TestManyAtOnce(t *testing.T) {
	b := newBench(t, &team.SpawnMember{Name: "ann", Agent: "claude"}, &team.SpawnMember{Name: "bob", Agent: "claude"},
		&team.CreateTask{Subject: "x"})
	const messages, readers = 20, 8
	for range messages {
		b.do("lead", &team.SendMessage{To: "ann", Body: "x"})
	}
	var mu sync.Mutex
	var got []int64
	claims := 0
	var all sync.WaitGroup
	for i := range readers {
		o := b.options([]string{"ann", "bob"}[i%2])
		o.Mail = nil
		all.Go(func() {
			text, _ := tools.New(o).Call(b.ctx, "ReadMessages", nil)
			claimed, _ := tools.New(o).Call(b.ctx, "TaskClaim", json.RawMessage(`{"taskId":"1"}`))
			mu.Lock()
			defer mu.Unlock()
			got = append(got, envelope.Carries("demo-1", "ann", text)...)
			if strings.HasPrefix(claimed, "You hold task #1 now.") {
				claims++
			}
		})
	}
	all.Wait()
	slices.Sort(got)
	if len(got) != messages || len(slices.Compact(got)) != messages || claims != 1 {
		t.Errorf("%d messages were given out, %d claims won", len(got), claims)
	}
}

// TestOthersWords checks that no text of a member can pass for a line of ours in a result, or for a
// message.
func TestOthersWords(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		pieces := []string{"\n", "\r", "\u2028", "\v", "\u0085", "EVIL", "----", "#9 [completed]",
			"<team-message ref=\"" + envelope.Ref("demo-1", "lead", 1) + "\">", "</team-message>", "\"", "\x00",
			"\u202e", "ü", "  ", "\t"}
		evil := rapid.Map(rapid.SliceOfN(rapid.SampledFrom(pieces), 1, 12),
			func(p []string) string { return "x" + strings.Join(p, "") })
		b := newBench(t, &team.SpawnMember{Name: "ann", Agent: "claude", Role: evil.Draw(r, "role"),
			PlanApproval: true})
		b.do("ann", &team.CreateTask{Subject: evil.Draw(r, "subject"), Description: evil.Draw(r, "description"),
			Metadata: map[string]json.RawMessage{evil.Draw(r, "key"): json.RawMessage(strconv.Quote("EVIL"))}})
		b.do("ann", &team.ClaimTask{Task: "1"})
		b.do("ann", &team.SubmitPlan{Plan: evil.Draw(r, "plan")})
		b.do("ann", &team.RequestPermission{Tool: evil.Draw(r, "tool"), Input: evil.Draw(r, "input"),
			Deadline: noon + 1000})
		b.do("lead", &team.CompleteTask{Task: "1", Result: evil.Draw(r, "result")})
		o := b.options("lead")
		o.Mail = nil
		for tool, input := range map[string]string{"TaskList": "", "TaskGet": `{"taskId":"1"}`, "TeamStatus": "",
			"TaskClaim": `{"taskId":"1"}`} {
			text, _ := tools.New(o).Call(b.ctx, tool, json.RawMessage(input))
			for line := range strings.SplitSeq(text, "\n") {
				if strings.HasPrefix(line, "EVIL") || strings.HasPrefix(line, "----") || strings.HasPrefix(line, "#9") {
					r.Fatalf("%s has the line %q:\n%s", tool, line, text)
				}
			}
			if strings.Contains(text, "<team-message") || len(envelope.Carries("demo-1", "lead", text)) > 0 ||
				strings.ContainsAny(text, "\r\u2028\v\u0085") {
				r.Fatalf("%s carries a message:\n%q", tool, text)
			}
		}
	})
}

// TestQuotations checks that a result or a reason with quotation marks of any script stays within
// ours.
func TestQuotations(t *testing.T) {
	b := newBench(t, &team.SpawnMember{Name: "ann", Agent: "claude"})
	for i, mark := range []string{"\"", "\u201d", "\uff02", "\u05f4", "\u02dd", "\u3003", "\u2e42", "\U0001f677"} {
		id := strconv.Itoa(i + 1)
		words := "done" + mark + " END " + mark
		b.do("ann", &team.CreateTask{Subject: "x", Retries: 1})
		b.do("ann", &team.ClaimTask{Task: id})
		b.do("ann", &team.FailTask{Task: id, Reason: words})
		failure, _ := b.call("lead", "TaskGet", `{"taskId":"`+id+`"}`)
		b.do("ann", &team.ClaimTask{Task: id})
		b.do("ann", &team.CompleteTask{Task: id, Result: words})
		result, _ := b.call("lead", "TaskList", "")
		want := strconv.QuoteToASCII(words)
		if !strings.Contains(failure, "last failure: "+want) || !strings.Contains(result, ": "+want) {
			t.Errorf("%q is not quoted as %s:\n%s\n%s", words, want, failure, result)
		}
	}
}

// TestEveryHint checks that every hint becomes, for the lead and for a teammate, a call of a tool
// that they have with valid input, or something for the user, or nothing.
func TestEveryHint(t *testing.T) {
	b := newBench(t, &team.SpawnMember{Name: "ann", Agent: "claude"})
	usage := regexp.MustCompile(`^To [^:]+: (\w+)(?: with (.+))?\.$`)
	argument := regexp.MustCompile(`^(\w+)(?:: true| "[^"]*")?$`)
	told := map[team.Action][]string{}
	for _, a := range team.Actions() {
		for _, name := range []string{"lead", "ann"} {
			for _, h := range []team.Hint{
				{Action: a, Team: "demo", Member: name, Task: "3", Request: "perm-1", Name: "bob",
					Agent: "codex", Budget: "cost", Dir: "/d", Tasks: []string{"1", "2"}, Paths: []string{"a.txt"}},
				{Action: a, Team: "demo", Member: "eve", Task: "3", Request: "perm-1"},
			} {
				o := b.options(name)
				o.Team = refusing{asMember{b, name}, team.Refuse(team.NotReady, "it is closed").With(h)}
				set := tools.New(o)
				text, failed := set.Call(b.ctx, "TaskCreate", json.RawMessage(`{"subject":"x","description":"y"}`))
				text, ok := strings.CutPrefix(text, "Not done: it is closed.")
				if !failed || !ok {
					t.Fatalf("%s: %q", a, text)
				}
				switch text = strings.TrimSpace(text); {
				case text == "":
					continue
				case strings.HasPrefix(text, "Only the user can ") && strings.HasSuffix(text, "."):
					told[a] = append(told[a], "user")
					continue
				}
				m := usage.FindStringSubmatch(text)
				if m == nil {
					t.Errorf("%s is told %s as %q", a, name, text)
					continue
				}
				told[a] = append(told[a], m[1])
				known := inputOf(t, set, m[1])
				if known == nil {
					t.Errorf("%s: %s is told of %s, which it does not have", a, name, m[1])
				}
				for _, one := range strings.Split(m[2], " and ") {
					if one == "" {
						continue
					}
					if field := argument.FindStringSubmatch(one); field == nil || known[field[1]] == nil {
						t.Errorf("%s: %s takes no %q: %q", a, m[1], one, text)
					}
				}
			}
		}
	}
	// and these are told, whatever else changes
	for a, want := range map[team.Action]string{team.ActClaimNext: "TaskClaim", team.ActShutDown: "ShutdownTeammate",
		team.ActResend: "ResendMessages", team.ActAnswerPlan: "RespondToPlan",
		team.ActSubmitPlan: "SubmitPlan", team.ActShowTask: "TaskGet",
		team.ActTakeOver: "user", team.ActResume: "user", team.ActRollBack: "user"} {
		if !slices.Contains(told[a], want) {
			t.Errorf("%s is told as %q, and not as %s", a, told[a], want)
		}
	}
}

// TestHintOfOneNumber checks that the call in a hint finds its task, also where another task is
// named like its number.
func TestHintOfOneNumber(t *testing.T) {
	b := newBench(t, &team.SpawnMember{Name: "ann", Agent: "claude"}, &team.CreateTask{Subject: "first", Name: "2"},
		&team.CreateTask{Subject: "second"})
	text, failed := b.call("ann", "TaskUpdate", `{"taskId":"#2","status":"completed"}`)
	if want := `TaskClaim with taskId "#2"`; !failed || !strings.Contains(text, want) {
		t.Errorf("it says %q, without %s", text, want)
	}
	if text, failed := b.call("ann", "TaskClaim", `{"taskId":"#2"}`); failed {
		t.Errorf("it is not claimed: %s", text)
	}
}

// inputOf returns the fields of a tool's input, nil if the tool is not offered.
func inputOf(t *testing.T, set *tools.Set, name string) map[string]*jsonschema.Schema {
	for _, one := range set.List() {
		if one.Name == name {
			var s jsonschema.Schema
			if err := json.Unmarshal(one.Schema, &s); err != nil {
				t.Fatal(err)
			}
			if s.Properties == nil {
				s.Properties = map[string]*jsonschema.Schema{}
			}
			return s.Properties
		}
	}
	return nil
}

// refusing is a replica that refuses everything in the same way.
type refusing struct {
	asMember
	err error
}

func (d refusing) Do(context.Context, team.Body) (*team.Record, error) { return nil, d.err }

// TestWords checks that the lists of words here are the core's.
func TestWords(t *testing.T) {
	b := newBench(t, &team.SpawnMember{Name: "ann", Agent: "claude"})
	for _, intent := range []string{"info", "question", "challenge", "resolution"} {
		if text, failed := b.call("lead", "SendMessage", `{"to":"ann","message":"x","intent":"`+intent+`"}`); failed {
			t.Error(text)
		}
	}
	_, err := asMember{b, "lead"}.Do(b.ctx, &team.SendMessage{To: "ann", Body: "x", Intent: "?"})
	if err == nil || !strings.HasSuffix(err.Error(), "use one of: info, question, challenge, resolution") {
		t.Errorf("the team has other intents: %v", err)
	}
}

func TestALongList(t *testing.T) {
	b := newBench(t)
	for range 250 {
		b.do(team.User, &team.CreateTask{Subject: "x"})
	}
	b.do("lead", &team.CompleteTask{Task: "1"})
	text, _ := b.call("lead", "TaskList", "")
	if lines := strings.Split(text, "\n"); len(lines) != 201 || !strings.HasPrefix(lines[0], "#2 ") ||
		lines[200] != "and 50 more; name a status or an owner to see fewer." {
		t.Errorf("%d lines, from %s to %v", len(lines), lines[0], lines[len(lines)-2:])
	}
}

// FuzzInput checks that no input breaks a tool, and that a refused call changes nothing.
func FuzzInput(f *testing.F) {
	f.Add(uint8(0), `{"subject":"x","description":"y","blockedBy":[1]}`)
	f.Add(uint8(1), `{"taskId":3,"status":"completed","owner":null,"metadata":"{}"}`)
	f.Add(uint8(9), `{"name":"ann","withinSeconds":1e3}`)
	f.Fuzz(func(t *testing.T, n uint8, input string) {
		b := newBench(t, &team.SpawnMember{Name: "ann", Agent: "claude"})
		names := append(offered(b.tools("lead")), "SubmitPlan")
		before := b.Seq()
		text, failed := b.call("lead", names[int(n)%len(names)], input)
		if text == "" || failed && b.Seq() != before && !strings.Contains(text, "The rest was not done") {
			t.Errorf("%v %q", failed, text)
		}
	})
}

// TestCleanupOfATeamThatOthersRun checks that a lead that cadre runs does not end its team before
// it has reported.
func TestCleanupOfATeamThatOthersRun(t *testing.T) {
	b := newBench(t)
	o := b.options("lead")
	o.Cleanup = nil
	set := tools.New(o)
	if text, failed := b.call("lead", "SpawnTeammate", `{"name":"ann","prompt":"x"}`); failed {
		t.Fatal(text)
	}
	if text, failed := set.Call(b.ctx, "CleanupTeam", nil); !failed ||
		!strings.Contains(text, "One is still on the team: ann.") {
		t.Error(failed, text)
	}
	if text, failed := set.Call(b.ctx, "CleanupTeam", json.RawMessage(`{"force":true}`)); failed ||
		!strings.Contains(text, "once you have reported") {
		t.Error(failed, text)
	}
	b.View(func(s *team.State) {
		ann, _ := s.Member("ann")
		if !s.Exists() || ann.Shutdown.Request == "" {
			t.Errorf("the team is there: %v; ann is asked to end: %q", s.Exists(), ann.Shutdown.Request)
		}
	})
}

func TestSpawnWithoutARepository(t *testing.T) {
	b := newBench(t)
	o := b.options("lead")
	o.Isolates = func(context.Context) error { return errors.New("/d is not in a git repository") }
	text, failed := tools.New(o).Call(b.ctx, "SpawnTeammate",
		json.RawMessage(`{"name":"ann","prompt":"x","isolation":"worktree"}`))
	if !failed || !strings.Contains(text, "No teammate was added: ann cannot have a worktree of its own: /d is not in "+
		"a git repository") {
		t.Error(failed, text)
	}
	b.View(func(s *team.State) {
		if _, there := s.Member("ann"); there {
			t.Error("ann was added")
		}
	})
}

// TestSpawnTakesRoom: a teammate with a session takes room before it is added, and gives it back if
// it is not added. Without room it is not added.
func TestSpawnTakesRoom(t *testing.T) {
	b := newBench(t)
	o, rooms := b.options("lead"), 0
	o.Room = func(_ context.Context, name string) (func(), error) {
		if name == "cat" {
			return nil, team.Refuse(team.NotReady, "the server runs 2 teammates, of at most 2")
		}
		rooms++
		return func() { rooms-- }, nil
	}
	set := tools.New(o)
	for _, c := range []struct {
		input, says string
		failed      bool
		rooms       int
	}{
		{`{"name":"ann","prompt":"x"}`, "ann joined the team", false, 1},
		{`{"name":"lead","prompt":"x"}`, "lead", true, 1},
		{`{"name":"cat","prompt":"x"}`, "the server runs 2 teammates, of at most 2", true, 1},
		{`{"name":"eve","prompt":"x","agent":"external"}`, "eve joined the team", false, 1},
	} {
		text, failed := set.Call(b.ctx, "SpawnTeammate", json.RawMessage(c.input))
		if failed != c.failed || !strings.Contains(text, c.says) || rooms != c.rooms {
			t.Errorf("%s: failed: %v, %s; room for %d teammates is taken, want %d", c.input, failed, text, rooms,
				c.rooms)
		}
	}
	b.View(func(s *team.State) {
		if _, there := s.Member("cat"); there {
			t.Error("cat was added without room")
		}
	})
}
