package tracing

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"cadre/internal/agent/traceparent"
	"cadre/internal/team"
	"cadre/internal/testkit/golden"
	"cadre/internal/testkit/historytest"

	"pgregory.net/rapid"
)

var host = team.Host("h")

// stories are histories that together have every kind of span, link and outcome.
var stories = []struct {
	name string
	tell func(t *testing.T, h *historytest.Team)
}{
	{"two members, and a task that waits for another", func(t *testing.T, h *historytest.Team) {
		spawn(t, h, "ann", team.Claude)
		spawn(t, h, "bob", team.Codex)
		do(t, h, "lead", &team.CreateTask{Subject: "look"})
		do(t, h, "lead", &team.CreateTask{Name: "write", Subject: "write it", BlockedBy: []string{"1"}})
		do(t, h, "ann", &team.ClaimTask{})
		do(t, h, host, &team.ReportUsage{Member: "ann", Task: "1", Usage: team.Usage{InputTokens: 10, OutputTokens: 5,
			CacheReadTokens: 100, CacheWriteTokens: 20, CostMicroUSD: 1500}})
		do(t, h, "ann", &team.SendMessage{To: "bob", Body: "it is in the cellar"})
		do(t, h, "ann", &team.CompleteTask{Task: "1", Result: "secret result"})
		do(t, h, host, &team.ReportUsage{Member: "ann", Task: "1", Usage: team.Usage{OutputTokens: 1}})
		do(t, h, host, &team.ReportStatus{Member: "ann", Status: team.Idle})
		do(t, h, "bob", &team.ReceiveMessages{})
		do(t, h, "bob", &team.ClaimTask{})
		do(t, h, "bob", &team.FailTask{Task: "2", Reason: "exit status 1"})
		do(t, h, host, &team.ReportStopped{Member: "ann", Reason: "it was asked to"})
		do(t, h, host, &team.ReportStopped{Member: "bob"})
		do(t, h, team.User, &team.SetStatus{Status: team.TeamComplete})
	}},
	{"a session that ends, and another one with the same task", func(t *testing.T, h *historytest.Team) {
		spawn(t, h, "ann", team.Claude)
		do(t, h, "lead", &team.CreateTask{Subject: "look"})
		do(t, h, "ann", &team.ClaimTask{})
		do(t, h, host, &team.DetachMember{Member: "ann", Reason: "the host was killed"})
		do(t, h, host, &team.AttachMember{Member: "ann"})
		do(t, h, host, &team.ReportStarted{Member: "ann", Session: "again"})
		do(t, h, host, &team.ReportTrouble{Member: "ann", Trouble: "limit", Text: "429"})
		do(t, h, "ann", &team.ClaimTask{})
		do(t, h, "ann", &team.CompleteTask{Task: "1"})
		do(t, h, host, &team.ReportFailed{Member: "ann", Reason: "crash"})
		do(t, h, team.User, &team.CleanUp{Force: true})
	}},
	{"a plan, permissions and hooks", func(t *testing.T, h *historytest.Team) {
		spawn(t, h, "ann", team.Claude)
		do(t, h, team.User, &team.RequestPermission{Member: "ann", Tool: "Bash", Input: `{"command":"rm secret"}`,
			Deadline: h.Now + 600_000})
		do(t, h, team.User, &team.AnswerPermission{Request: h.State.Permissions()[0].Request, Allow: true})
		do(t, h, team.User, &team.RequestPermission{Member: "ann", Tool: "Edit", Input: `{}`,
			Deadline: h.Now + 600_000})
		do(t, h, "lead", &team.SpawnMember{Name: "eve", Agent: team.External})
		do(t, h, "lead", &team.CreateTask{Subject: "look", Owner: "eve"})
		do(t, h, "eve", &team.ClaimTask{})
		do(t, h, team.User, &team.RejectByHook{Hook: "TaskCompleted", Member: "eve", Task: "1",
			Feedback: "tests\nfail"})
		do(t, h, team.User, &team.RejectByHook{Hook: "TeammateIdle", Member: "ann", Feedback: "go on"})
		do(t, h, "lead", &team.SpawnMember{Name: "bob", Agent: team.Claude, PlanApproval: true})
		do(t, h, host, &team.AttachMember{Member: "bob"})
		do(t, h, host, &team.ReportStarted{Member: "bob", Session: "bob"})
		do(t, h, "bob", &team.SubmitPlan{Plan: "secret plan"})
		bob, _ := h.State.Member("bob")
		do(t, h, "lead", &team.AnswerPlan{Request: bob.Plan.Request, Feedback: "no"})
		do(t, h, team.User, &team.SetStatus{Status: team.TeamAborted, Reason: "too slow"})
	}},
	{"checks, and a team that is opened again", func(t *testing.T, h *historytest.Team) {
		do(t, h, team.User, &team.ReviseTeam{To: team.Team{Checks: []team.Check{{Name: "build", Command: "make"},
			{Name: "test", Command: "make test"}}}, Fields: []string{"checks"}})
		spawn(t, h, "ann", team.Claude)
		do(t, h, "lead", &team.CreateTask{Subject: "look"})
		do(t, h, "ann", &team.ClaimTask{})
		do(t, h, "ann", &team.CompleteTask{Task: "1"})
		do(t, h, host, &team.ReportStopped{Member: "ann"})
		do(t, h, team.User, &team.SetStatus{Status: team.TeamComplete})
		for attempt := range int64(2) {
			attempt++
			do(t, h, team.User, &team.Consolidate{NoCommit: true})
			do(t, h, team.User, &team.ReportMerged{Attempt: attempt})
			do(t, h, team.User, &team.ReportStaged{Attempt: attempt})
			do(t, h, team.User, &team.ReportCheck{Attempt: attempt, Check: "build", Took: 300 * time.Millisecond})
			if attempt == 1 {
				do(t, h, team.User, &team.ReportCheck{Attempt: 1, Check: "test", Took: time.Second,
					Failure: "exit status 2", Output: "secret output"})
			}
		}
		do(t, h, team.User, &team.ReportCheck{Attempt: 2, Check: "test", Took: time.Second})
		do(t, h, team.User, &team.ReportMade{Attempt: 2})
		do(t, h, team.User, &team.ReportConsolidated{Attempt: 2})
	}},
}

func spawn(t *testing.T, h *historytest.Team, name, agent string) {
	t.Helper()
	do(t, h, "lead", &team.SpawnMember{Name: name, Agent: agent, Prompt: "secret prompt", Role: "tester", Model: "m-1"})
	do(t, h, host, &team.AttachMember{Member: name})
	do(t, h, host, &team.ReportStarted{Member: name, Session: "session-of-" + name})
}

func do(t *testing.T, h *historytest.Team, actor string, b team.Body) {
	t.Helper()
	h.Now += 1000
	d, err := team.Decide(h.State, team.Command{ID: fmt.Sprintf("command-number-%d", h.Now), Actor: actor, At: h.Now,
		Body: b})
	if err != nil || d.Record == nil {
		t.Fatalf("%T by %s: %v, %v", b, actor, d.Record, err)
	}
	h.State.Apply(d.Record)
	h.Records = append(h.Records, d.Record)
}

func spansOf(records []*team.Record) (all []Span) {
	h := NewHistory()
	for _, r := range records {
		all = append(all, h.Add(r)...)
	}
	return all
}

// show writes spans as a person reads them, with times in seconds since the start.
func show(spans []Span) string {
	name := map[traceparent.SpanID]string{{}: "none"}
	for _, s := range spans {
		name[s.ID] = s.Name
		for _, a := range s.Attributes {
			if a.Key == "cadre.session" || a.Key == "cadre.task.id" {
				name[s.ID] += fmt.Sprintf(" %v", a.Value)
			}
		}
	}
	var b strings.Builder
	attributes := func(all []Attribute) {
		for _, a := range all {
			fmt.Fprintf(&b, " %s=%v", a.Key, a.Value)
		}
		b.WriteString("\n")
	}
	seconds := func(at team.Time) float64 { return float64(at-historytest.Began) / 1000 }
	for _, s := range spans {
		fmt.Fprintf(&b, "%s, in %s, %g-%g s\n   ", name[s.ID], name[s.Parent], seconds(s.Start), seconds(s.End))
		attributes(s.Attributes)
		for _, e := range s.Events {
			fmt.Fprintf(&b, "    at %g s %s:", seconds(e.At), e.Name)
			attributes(e.Attributes)
		}
		for _, l := range s.Links {
			fmt.Fprintf(&b, "    to %s:", name[l.To])
			attributes(l.Attributes)
		}
		if s.Failed {
			fmt.Fprintf(&b, "    failed: %s\n", s.Failure)
		}
	}
	return b.String()
}

// TestStories compares the spans of each story with a golden file. What members say to each other
// and to models is in none.
func TestStories(t *testing.T) {
	var b strings.Builder
	for _, s := range stories {
		h := historytest.New()
		s.tell(t, h)
		fmt.Fprintf(&b, "# %s\n\n%s\n", s.name, show(spansOf(h.Records)))
	}
	if got := b.String(); strings.Contains(got, "secret") || strings.Contains(got, "cellar") {
		t.Errorf("a text that is nobody's business is in\n%s", got)
	}
	golden.File(t, "testdata/stories.txt", b.String())
}

// check fails if the spans so far, and what is open, contradict the state or the descriptions.
func check(t rapid.TB, h *History, sent map[traceparent.SpanID]Span, ended []Span) {
	for _, s := range ended {
		if _, again := sent[s.ID]; again {
			t.Fatalf("two spans have the id of %s", s.Name)
		}
		sent[s.ID] = s
		if s.End < s.Start {
			t.Errorf("%s ends before it starts", s.Name)
		}
		name := s.Attributes[0].Value
		i := slices.IndexFunc(kinds, func(k kind) bool { return k.Kind == name })
		for _, a := range s.Attributes[1:] {
			if !slices.Contains(kinds[i].Attributes, a.Key) {
				t.Errorf("a span of kind %s has %s", name, a.Key)
			}
			outcomes := kinds[i].Outcomes
			if s.Failed {
				outcomes = kinds[i].Failures
			}
			if a.Key == "cadre.outcome" && !slices.Contains(outcomes, a.Value.(string)) {
				t.Errorf("a span of kind %s ends as %s", name, a.Value)
			}
		}
	}
	known := maps.Clone(sent)
	for _, all := range []map[string]*open{h.sessions, h.attempts, h.settling, h.waits, {"": h.run, " ": h.merge}} {
		for _, o := range all {
			if o != nil {
				known[o.ID] = o.Span
			}
		}
	}
	for _, s := range ended {
		if _, is := known[s.Parent]; !is && s.Parent != (traceparent.SpanID{}) {
			t.Errorf("the parent of %s does not exist", s.Name)
		}
		for _, l := range s.Links {
			if _, is := known[l.To]; !is {
				t.Errorf("a link of %s leads nowhere", s.Name)
			}
		}
	}
	var tasks, requests []string
	for task := range h.state.Tasks() {
		if task.Status == team.InProgress {
			tasks = append(tasks, task.ID)
		}
	}
	for _, p := range h.state.Permissions() {
		requests = append(requests, p.Request)
	}
	for task, o := range h.settling {
		if h.sessions[o.member] == nil {
			t.Fatalf("the attempt at task %s ended without a turn, and is not reported", task)
		}
	}
	for request, o := range h.waits {
		if o.kind == kindPlan {
			requests = append(requests, request)
		}
	}
	slices.Sort(tasks)
	slices.Sort(requests)
	if open := slices.Sorted(maps.Keys(h.attempts)); !slices.Equal(open, tasks) {
		t.Fatalf("attempts are open at %v, and tasks in progress are %v", open, tasks)
	}
	if open := slices.Sorted(maps.Keys(h.waits)); !slices.Equal(open, requests) {
		t.Fatalf("waits are open for %v, and requests are %v", open, requests)
	}
	for _, m := range h.state.Members() {
		if o := h.sessions[m.Name]; (o != nil) != (m.Host != "") {
			t.Fatalf("%s is with host %q, and its session is open: %t", m.Name, m.Host, o != nil)
		} else if o != nil && o.ID != traceparent.Session("t1", m.Name, m.Incarnation) {
			t.Fatalf("the open session of %s is not its present one", m.Name)
		}
	}
}

// TestHistories checks random histories: spans agree with the state at each record, ids are unique,
// and the same records from a disk give the same spans.
func TestHistories(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		played := historytest.Play(historytest.Choices(120).Draw(t, "choices"))
		h, sent := NewHistory(), map[traceparent.SpanID]Span{}
		var all []Span
		for _, r := range played.Records {
			ended := h.Add(r)
			check(t, h, sent, ended)
			all = append(all, ended...)
			if again := h.Add(r); again != nil {
				t.Fatalf("a record that was added again ends %d spans", len(again))
			}
		}
		var read []*team.Record
		for i, line := range played.Encoded() {
			r, err := team.DecodeRecord(int64(i+1), string(line))
			if err != nil {
				t.Fatal(err)
			}
			read = append(read, r)
		}
		if again := spansOf(read); !reflect.DeepEqual(all, again) {
			t.Fatalf("the same history gives other spans:\n%s\nand\n%s", show(all), show(again))
		}
	})
}

// TestEverythingIsReached checks that each described attribute, kind and link occurs in a story.
func TestEverythingIsReached(t *testing.T) {
	seen := map[string]bool{}
	for _, s := range stories {
		h := historytest.New()
		s.tell(t, h)
		spans := NewHistory()
		sent := map[traceparent.SpanID]Span{}
		for _, r := range h.Records {
			check(t, spans, sent, spans.Add(r))
		}
		for _, span := range sent {
			for _, a := range span.Attributes {
				seen[fmt.Sprint(span.Attributes[0].Value, " ", a.Key)] = true
			}
			for _, l := range span.Links {
				seen[fmt.Sprint("link ", l.Attributes[0].Value)] = true
			}
		}
	}
	for _, k := range kinds {
		for _, a := range k.Attributes {
			if !seen[k.Kind+" "+a] {
				t.Errorf("no span of kind %s has %s", k.Kind, a)
			}
		}
	}
	for _, l := range linkKinds {
		if !seen["link "+l.Link] {
			t.Errorf("no link is of kind %s", l.Link)
		}
	}
}

// TestRestored checks that a history that continues a lost one has what was open, in the same
// trace, with the same ids.
func TestRestored(t *testing.T) {
	h := historytest.New()
	stories[2].tell(t, h)
	n := slices.IndexFunc(h.Records, func(r *team.Record) bool {
		_, is := team.EventIn[*team.TaskClaimed](r)
		return is
	})
	s := &team.State{}
	lost := NewHistory()
	for _, r := range h.Records[:n+1] {
		s.Apply(r)
		lost.Add(r)
	}
	d, err := team.Decide(&team.State{}, team.Command{ID: "restored-by-this", Actor: team.User, At: h.Now,
		Body: &team.RestoreTeam{From: s}})
	if err != nil {
		t.Fatal(err)
	}
	goes := NewHistory()
	if ended := goes.Add(d.Record); ended != nil {
		t.Errorf("the restoration ends\n%s", show(ended))
	}
	before, _ := lost.Trace()
	if after, _ := goes.Trace(); after != before || goes.Version() != "restored-by-this" || lost.Version() != "" {
		t.Errorf("the trace %s continues as %s, in the history %q", before, after, goes.Version())
	}
	if goes.run == nil || goes.run.ID != lost.run.ID || goes.run.Start != lost.run.Start {
		t.Errorf("the team is %+v, and was %+v", goes.run, lost.run)
	}
	if a := goes.attempts["1"]; a == nil || a.ID != lost.attempts["1"].ID || a.Start != lost.attempts["1"].Start {
		t.Errorf("the attempt is %+v, and was %+v", a, lost.attempts["1"])
	}
	if len(goes.sessions) != 0 {
		t.Errorf("sessions went on: %v", goes.sessions)
	}
	check(t, goes, map[traceparent.SpanID]Span{}, nil)
}

// TestBounds checks that a span has a bounded number of links and events, and says how many it
// lacks, and that messages that nobody fetches do not pile up.
func TestBounds(t *testing.T) {
	h := historytest.New()
	spawn(t, h, "ann", team.Claude)
	spawn(t, h, "bob", team.Claude)
	const n = maxEach + 50
	for range n {
		do(t, h, "ann", &team.SendMessage{To: "bob", Body: "once more"})
		do(t, h, "bob", &team.ReceiveMessages{})
	}
	spans := NewHistory()
	for _, r := range h.Records {
		spans.Add(r)
	}
	bob := spans.sessions["bob"]
	for range n {
		bob.event(Event{Name: "trouble"})
	}
	if len(bob.Links) != maxEach || bob.DroppedLinks != 50 || len(bob.Events) != maxEach || bob.DroppedEvents != 50 {
		t.Errorf("%d links and %d more, %d events and %d more", len(bob.Links), bob.DroppedLinks, len(bob.Events),
			bob.DroppedEvents)
	}
	if len(spans.waiting) != 0 {
		t.Errorf("%d delivered messages are kept", len(spans.waiting))
	}
	for i := range int64(maxWaiting + 50) {
		spans.sent(team.Message{Seq: i, From: "ann", To: "bob"})
	}
	if len(spans.waiting) != maxWaiting {
		t.Errorf("%d messages are kept", len(spans.waiting))
	}
}

// TestSecretsStay checks that a likely secret in an agent's words is replaced.
func TestSecretsStay(t *testing.T) {
	const secret = "ghp_0123456789abcdefghijABCDEFGHIJ012345"
	h := historytest.New()
	spawn(t, h, "ann", team.Claude)
	do(t, h, "lead", &team.CreateTask{Subject: "log in with " + secret})
	do(t, h, "ann", &team.ClaimTask{})
	do(t, h, "ann", &team.FailTask{Task: "1", Reason: "cannot log in with " + secret})
	do(t, h, host, &team.ReportStopped{Member: "ann", Reason: secret})
	if got := show(spansOf(h.Records)); strings.Contains(got, secret[4:]) ||
		!strings.Contains(got, "cannot log in with") {
		t.Errorf("a secret is in\n%s", got)
	}
}

// TestLedByAnAgent checks that the session of a lead ends with its team, though nothing records
// that, and has one span however often its start is reported.
func TestLedByAnAgent(t *testing.T) {
	h := &historytest.Team{State: &team.State{}, Now: historytest.Began}
	do(t, h, team.User, &team.CreateTeam{TeamID: "t1", Name: "core", Dir: "/repo", LeadAgent: team.Claude})
	do(t, h, host, &team.AttachMember{Member: "lead"})
	do(t, h, host, &team.ReportStarted{Member: "lead", Session: "one"})
	spawn(t, h, "ann", team.Claude)
	do(t, h, host, &team.ReportStopped{Member: "ann"})
	do(t, h, host, &team.ReportStatus{Member: "lead", Status: team.Idle})
	do(t, h, team.User, &team.SetStatus{Status: team.TeamComplete})
	do(t, h, team.User, &team.Consolidate{NoCommit: true})
	do(t, h, host, &team.ReportStarted{Member: "lead", Session: "two"})
	do(t, h, team.User, &team.AbandonConsolidation{Attempt: 1})
	var leads []any
	for _, s := range spansOf(h.Records) {
		if s.Name == "invoke_agent lead" {
			leads = append(leads, s.ID, ours(s.Attributes))
		}
	}
	if len(leads) != 2 || !strings.Contains(leads[1].(string), "cadre.outcome=team_ended") {
		t.Errorf("the sessions of the lead are %v", leads)
	}
}

// FuzzTexts checks that no text makes a span that a receiver cannot read.
func FuzzTexts(f *testing.F) {
	f.Add("plain")
	f.Add("two\nlines\x00\x1b[31m\u202e")
	f.Add("broken \xff\xfe utf-8")
	f.Add(strings.Repeat("ж", 300))
	f.Add("key AKIAIOSFODNN7EXAMPLE and ghp_0123456789abcdefghijABCDEFGHIJ012345")
	f.Fuzz(func(t *testing.T, text string) {
		for _, got := range []string{clean(text), words(text)} {
			if !utf8.ValidString(got) || len(got) > maxText+len("…") || strings.ContainsAny(got, "\n\r\x00\x1b") {
				t.Errorf("%q became %q", text, got)
			}
		}
	})
}
