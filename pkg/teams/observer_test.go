package teams_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"cadre/internal/layout"
	"cadre/internal/team"
	"cadre/pkg/teams"
)

// This example is a relay that passes an agent's output on to a browser, and beside it what its
// team does.
func ExampleObserver() {
	observer, err := teams.NewObserver(teams.ObserverOptions{})
	if err != nil {
		log.Fatal(err)
	}
	stream := `
{"type":"assistant","session_id":"s1","message":{"id":"m1","content":[{"type":"tool_use","id":"t1","name":"TeamCreate","input":{"team_name":"docs"}}]}}
{"type":"user","session_id":"s1","message":{"content":[{"type":"tool_result","tool_use_id":"t1","content":"ok"}]},"tool_use_result":{"team_name":"docs","lead_agent_id":"team-lead@docs"}}
{"type":"assistant","session_id":"s1","message":{"id":"m2","content":[{"type":"text","text":"Now the tasks."}]}}
{"type":"assistant","session_id":"s1","message":{"id":"m2","content":[{"type":"tool_use","id":"t2","name":"TaskCreate","input":{"subject":"Describe the flags","description":"All of them."}}]}}
{"type":"user","session_id":"s1","message":{"content":[{"type":"tool_result","tool_use_id":"t2","content":"Task #1 created successfully"}]},"tool_use_result":{"task":{"id":"1","subject":"Describe the flags"}}}
`
	for line := range strings.Lines(strings.TrimSpace(stream)) {
		sight := observer.Show("lead", []byte(line))
		for _, notice := range sight.Notices {
			fmt.Println(string(notice))
		}
		for _, e := range sight.Events {
			if created, ok := e.Fact.(teams.TaskCreated); ok {
				fmt.Println(observer.TeamName(), "is to", created.Task.Subject)
			}
		}
	}
	// Output: {"type":"team:created","sessionId":"s1","teamName":"docs"}
	// {"type":"team:task:created","sessionId":"s1","task":{"id":"1","subject":"Describe the flags","description":"All of them.","status":"pending","blockedBy":[],"blocks":[]}}
	// docs is to Describe the flags
}

func recordedStream(t *testing.T) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(source, "..", "..", "internal", "observe", "testdata", "claude", "2.1.47",
		"stream.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// TestObserverOfAPersistedState checks a consumer that saved only the state of the team and
// continues with it. A state of an older version has the agents' names only.
func TestObserverOfAPersistedState(t *testing.T) {
	whole, err := teams.NewObserver(teams.ObserverOptions{})
	if err != nil {
		t.Fatal(err)
	}
	lines := bytes.SplitAfter(recordedStream(t), []byte("\n"))
	if err := whole.Read(t.Context(), "lead", bytes.NewReader(bytes.Join(lines[:100], nil))); err != nil {
		t.Fatal(err)
	}
	kept, err := json.Marshal(whole.State())
	if err != nil {
		t.Fatal(err)
	}
	var state teams.TeamState
	if err := json.Unmarshal(kept, &state); err != nil {
		t.Fatal(err)
	}
	again, err := teams.NewObserver(teams.ObserverOptions{State: &state})
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(again.State(), whole.State()) || len(state.Members) < 3 || len(state.Tasks) < 3 ||
		again.TeamName() != "fx-team" {
		t.Errorf("%s became %+v", kept, again.State())
	}
	for _, o := range []*teams.Observer{whole, again} {
		if err := o.Read(t.Context(), "lead", bytes.NewReader(bytes.Join(lines[100:], nil))); err != nil {
			t.Fatal(err)
		}
		if o.State() != nil {
			t.Errorf("after its deletion the team is %+v", o.State())
		}
	}
	old, err := teams.NewObserver(teams.ObserverOptions{Agents: []string{"alice", "bob"}})
	if err != nil {
		t.Fatal(err)
	}
	if got := old.Agents(); !slices.Equal(got, []string{"alice", "bob"}) || len(old.State().Members) != 2 {
		t.Errorf("%v, %+v", got, old.State())
	}
	state.Role = "boss"
	if _, err := teams.NewObserver(teams.ObserverOptions{State: &state}); !errors.Is(err, teams.ErrInvalid) {
		t.Errorf("an unknown role: %v", err)
	}
}

// TestAdapters checks that a consumer can ask whether a way to observe a session shows teams.
func TestAdapters(t *testing.T) {
	has := teams.Adapters()
	for name, teams := range map[string]bool{"stream": true, "transcript": true, "sdk-url": true, "agent-sdk": true,
		"acp": false, "codex": false} {
		if c, ok := has[name]; !ok || c.Teams != teams || c.Availability == "" {
			t.Errorf("%s: %+v", name, c)
		}
	}
	if len(has) != 6 {
		t.Errorf("%d adapters", len(has))
	}
}

// TestObserverGoesOn checks that another observer continues from the state that was saved at any
// message, and that a message that comes again counts once.
func TestObserverGoesOn(t *testing.T) {
	lines := bytes.SplitAfter(recordedStream(t), []byte("\n"))[:120]
	whole, err := teams.NewObserver(teams.ObserverOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := whole.Read(t.Context(), "lead", bytes.NewReader(bytes.Join(lines, nil))); err != nil {
		t.Fatal(err)
	}
	var saved []byte
	for i := 0; i < len(lines); i += 10 {
		part, err := teams.NewObserver(teams.ObserverOptions{Saved: saved})
		if err != nil {
			t.Fatal(err)
		}
		if err := part.Read(t.Context(), "lead", bytes.NewReader(bytes.Join(lines[max(0, i-5):i+10],
			nil))); err != nil {
			t.Fatal(err)
		}
		if saved, err = part.Save(); err != nil {
			t.Fatal(err)
		}
		if i+10 == len(lines) {
			if got, want := asJSON(part.State()), asJSON(whole.State()); got != want || part.TeamName() != "fx-team" ||
				!reflect.DeepEqual(part.Agents(), whole.Agents()) {
				t.Errorf("in parts:\n%s\nwhole:\n%s", got, want)
			}
		}
	}
	if _, err := teams.NewObserver(teams.ObserverOptions{Saved: []byte(`{"v":99}`)}); !errors.Is(err,
		teams.ErrNewerVersion) {
		t.Errorf("saved by a newer version: %v", err)
	}
}

func asJSON(v any) string {
	out, _ := json.Marshal(v)
	return string(out)
}

// TestObserverEvents checks that consumers get every event since their subscription, whatever they
// call meanwhile. A consumer that does not read delays no other.
func TestObserverEvents(t *testing.T) {
	o, err := teams.NewObserver(teams.ObserverOptions{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	o.Events(ctx)
	events := o.Events(ctx)
	path := filepath.Join(t.TempDir(), "stream.jsonl")
	followed := make(chan error, 1)
	following, stop := context.WithCancel(ctx)
	go func() { followed <- o.Follow(following, path) }()
	if err := os.WriteFile(path, recordedStream(t), 0o600); err != nil {
		t.Fatal(err)
	}
	var heard []string
	for e, err := range events {
		if err != nil {
			t.Fatal(err)
		}
		o.State()
		heard = append(heard, reflect.TypeOf(e.Fact).Name())
		if _, last := e.Fact.(teams.TeamCleanedUp); last {
			break
		}
	}
	stop()
	if err := <-followed; !errors.Is(err, context.Canceled) {
		t.Errorf("following ended with %v", err)
	}
	for fact, want := range map[string]int{"TeamCreated": 1, "MemberSpawned": 4, "TaskCreated": 4, "MessageSent": 3,
		"ShutdownRequested": 5, "TaskDeleted": 1} {
		got := 0
		for _, one := range heard {
			if one == fact {
				got++
			}
		}
		if got != want {
			t.Errorf("got event %s %d times, want %d: %v", fact, got, want, heard)
		}
	}
	if o.State() != nil || o.TeamName() != "" {
		t.Errorf("the team is gone, but the state is %s", asJSON(o.State()))
	}
}

// TestObserverOfSeveralSources checks that the caller's introduction of a stream says which
// teammate it belongs to. Lost events are reported, and transcripts are found in their folder.
func TestObserverOfSeveralSources(t *testing.T) {
	o, err := teams.NewObserver(teams.ObserverOptions{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	events := o.Events(ctx)
	calls := func(session, id, tool, input, result string) []byte {
		return fmt.Appendf(nil, `{"type":"assistant","sessionId":"%[1]s","timestamp":"2026-11-21T00:00:00.000Z","message":{"id":"m%[2]s","content":[{"type":"tool_use","id":"%[2]s","name":"%[3]s","input":%[4]s}]}}
{"type":"user","sessionId":"%[1]s","timestamp":"2026-11-21T00:00:01.000Z","message":{"content":[{"type":"tool_result","tool_use_id":"%[2]s","content":"ok"}]},"toolUseResult":%[5]s}
`, session, id, tool, input, result)
	}
	claude := t.TempDir()
	transcript := filepath.Join(claude, "projects", "-w", "lead.jsonl")
	if err := errors.Join(os.MkdirAll(filepath.Dir(transcript), 0o700),
		os.WriteFile(transcript, calls("s1", "t1", "TeamCreate", `{"team_name":"fx"}`, `{"team_name":"fx"}`),
			0o600)); err != nil {
		t.Fatal(err)
	}
	followed := make(chan error, 1)
	go func() { followed <- o.Transcripts(ctx, claude) }()
	for e, err := range events {
		if err != nil {
			t.Fatal(err)
		}
		switch fact := e.Fact.(type) {
		case teams.TeamCreated:
			o.Introduce("pane", "ann")
			if err := o.Read(ctx, "pane", bytes.NewReader(calls("s2", "t2", "TaskCreate",
				`{"subject":"Look","description":"at it"}`, `{"task":{"id":"1","subject":"Look"}}`))); err != nil {
				t.Fatal(err)
			}
		case teams.TaskCreated:
			if e.By != "ann" || fact.Task.CreatedBy != "ann" || !slices.Equal(o.Agents(), []string{"ann"}) {
				t.Errorf("by %s there is %+v, of the team %v", e.By, fact.Task, o.Agents())
			}
			o.Gap("pane", "its pane was closed")
		case teams.GapNoticed:
			if fact != (teams.GapNoticed{Source: "pane", Reason: "its pane was closed"}) {
				t.Errorf("the lost events are %+v", fact)
			}
			cancel()
		}
		if ctx.Err() != nil {
			break
		}
	}
	if err := <-followed; !errors.Is(err, context.Canceled) {
		t.Errorf("it ended with %v", err)
	}
}

// TestObservedTeamIsNotManaged checks that a team that is only observed cannot be managed, neither
// as its lead nor as a member.
func TestObservedTeamIsNotManaged(t *testing.T) {
	h := layout.Home{Root: t.TempDir(), Claude: t.TempDir()}
	record := &team.Record{Seq: 1, ID: "c1", At: 1, Events: []team.Event{&team.TeamCreated{
		Team: team.Team{ID: "fx-1", Name: "fx", Observed: "fx", Status: team.TeamPending},
		Lead: team.Member{Name: "lead", Agent: team.External, Status: team.Active}}}}
	if _, err := h.Found("fx", "fx-1", [][]byte{team.AppendRecord(nil, record)}); err != nil {
		t.Fatal(err)
	}
	for _, as := range []string{"", "lead"} {
		m, err := teams.New(teams.Options{Home: h.Root, ClaudeHome: h.Claude, As: as})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := m.OpenTeam(t.Context(), "fx"); !errors.Is(err, teams.ErrDenied) {
			t.Errorf("as %q: %v", as, err)
		}
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestObserverOfFiles checks that a team can be observed by its files alone, and that the
// observation ends with the team.
func TestObserverOfFiles(t *testing.T) {
	claude := t.TempDir()
	write := func(path, text string) {
		t.Helper()
		path = filepath.Join(claude, path)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text),
			0o600)); err != nil {
			t.Fatal(err)
		}
	}
	o, err := teams.NewObserver(teams.ObserverOptions{Team: "fx"})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	want(t, o.ClaudeTeam(ctx, claude, "fx"), teams.ErrNotFound)
	want(t, o.Follow(ctx, claude), teams.ErrInvalid)
	write("file", "{}")
	want(t, o.Transcripts(ctx, filepath.Join(claude, "file")), teams.ErrInvalid)
	write("teams/fx/config.json", `{"name":"fx","createdAt":1795218547497,"leadAgentId":"team-lead@fx","leadSessionId":"s","members":[
		{"agentId":"team-lead@fx","name":"team-lead","agentType":"team-lead","joinedAt":1795218547497,"cwd":"/w"},
		{"agentId":"ann@fx","name":"ann","agentType":"general-purpose","prompt":"Work.","joinedAt":1795218547498,"cwd":"/w","isActive":true}]}`)
	events := o.Events(ctx)
	followed := make(chan error, 1)
	go func() { followed <- o.ClaudeTeam(ctx, claude, "fx") }()
	for e, err := range events {
		if err != nil {
			t.Fatal(err)
		}
		switch fact := e.Fact.(type) {
		case teams.MemberSpawned:
			if o.Show("another",
				[]byte(
					`{"type":"assistant","session_id":"x","message":{"id":"m1","content":[{"type":"tool_use","id":"t1","name":"TeamCreate","input":{"team_name":"other"}}]}}`)); o.TeamName() != "fx" {
				t.Errorf("the state is %s", o.TeamName())
			}
			write("tasks/fx/1.json",
				`{"id":"1","subject":"Do it","description":"","status":"in_progress","owner":"ann","blocks":[],"blockedBy":[]}`)
		case teams.TaskClaimed:
			write("teams/fx/inboxes/ann.json",
				`[{"from":"team-lead","text":"Well done","timestamp":"2026-11-21T00:00:00.000Z","read":false}]`)
		case teams.MessageSent:
			if fact.Message.Body != "Well done" || fact.Message.To != "ann" {
				t.Errorf("the message is %+v", fact.Message)
			}
			write("teams/fx/inboxes/ann.json", "[]")
		case teams.MessagesDelivered:
			if err := os.RemoveAll(filepath.Join(claude, "teams")); err != nil {
				t.Fatal(err)
			}
		}
		if _, last := e.Fact.(teams.TeamCleanedUp); last {
			break
		}
	}
	if err := <-followed; err != nil {
		t.Errorf("the observation ended with %v", err)
	}
	saved, err := o.Save()
	if err != nil {
		t.Fatal(err)
	}
	_, err = teams.NewObserver(teams.ObserverOptions{Team: "gx", Saved: saved})
	want(t, err, teams.ErrInvalid)
}
