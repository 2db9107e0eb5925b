package metrics

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"cadre/internal/team"
	"cadre/internal/testkit/golden"
	"cadre/internal/testkit/historytest"
)

// fed returns a collector with the histories of the teams t0, t1, …
func fed(t testing.TB, all ...*historytest.Team) *Collector {
	t.Helper()
	c := &Collector{}
	for i, h := range all {
		feed(t, c, i, h.Records)
	}
	return c
}

func feed(t testing.TB, c *Collector, i int, records []*team.Record) {
	t.Helper()
	for _, r := range records {
		if err := c.Add(fmt.Sprint("t", i), r); err != nil {
			t.Fatal(err)
		}
	}
}

func text(t testing.TB, c *Collector, g Gauges) string {
	t.Helper()
	var b bytes.Buffer
	if err := c.Write(&b, g); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// values returns the samples of the text by their names and labels.
func values(t testing.TB, text string) map[string]float64 {
	t.Helper()
	all := map[string]float64{}
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		at := strings.LastIndexByte(line, ' ')
		v, err := strconv.ParseFloat(strings.TrimSpace(line[at:]), 64)
		if err != nil {
			t.Fatal(err)
		}
		if _, again := all[line[:at]]; again {
			t.Fatalf("two samples of %s", line[:at])
		}
		all[line[:at]] = v
	}
	return all
}

// external is a member that acts by commands.
func external(name string) *team.SpawnMember {
	return &team.SpawnMember{Name: name, Agent: team.External, Prompt: "work"}
}

// session adds a member with a session.
func session(h *historytest.Team, name, model string) {
	h.Do("lead", &team.SpawnMember{Name: name, Agent: team.Claude, Model: model, Prompt: "work"})
	h.Do(team.Host("h"), &team.AttachMember{Member: name})
	h.Do(team.Host("h"), &team.ReportStarted{Member: name, Session: "s-" + name})
}

// record adds events to a history that the core would not decide on in a small one.
func record(h *historytest.Team, events ...team.Event) {
	h.Now += 1000
	r := &team.Record{Seq: h.State.Seq() + 1, ID: fmt.Sprint("made-", h.Now), Actor: team.User, At: h.Now,
		Events: events}
	h.State.Apply(r)
	h.Records = append(h.Records, r)
}

func usage(member string, u team.Usage) *team.ReportUsage {
	return &team.ReportUsage{Member: member, Usage: u}
}

// nest adds a member that is a team, whose team has used something.
func nest(h *historytest.Team) {
	session(h, "ann", "large")
	h.Do(team.User, &team.ReviseTeam{To: team.Team{MaxDepth: 1}, Fields: []string{"maxDepth"}})
	h.Do(team.User, &team.SpawnMember{Name: "sub", Agent: team.NestedTeam, Prompt: "Build it"})
	h.Do("lead", &team.CreateTask{Subject: "a", Owner: "sub"})
	h.Do("sub", &team.ClaimTask{})
	h.Do("sub", &team.BeginChild{Task: "1", Team: "core-sub-1", Name: "core-sub"})
	h.Do("sub", &team.ReportChild{Team: "core-sub-1", Usage: team.Usage{InputTokens: 50, CostMicroUSD: 2_000_000}})
	h.Do(team.Host("h"), usage("ann", team.Usage{InputTokens: 10, CostMicroUSD: 1_000_000}))
	if u := h.State.Team().Usage; u.InputTokens != 60 {
		panic(fmt.Sprintf("the team used %+v", u))
	}
}

// TestARestoredTeamCountsItsTeamsOnce: what a team in a restored team used is counted there.
func TestARestoredTeamCountsItsTeamsOnce(t *testing.T) {
	h := historytest.New()
	nest(h)
	d, err := team.Decide(&team.State{}, team.Command{ID: "restore", Actor: team.User, At: h.Now + 1000,
		Body: &team.RestoreTeam{From: h.State}})
	if err != nil {
		t.Fatal(err)
	}
	c := &Collector{}
	feed(t, c, 0, []*team.Record{d.Record})
	got := values(t, text(t, c, Gauges{}))
	if got[`cadre_tokens_total{kind="input",model="large"}`] != 10 || got[`cadre_cost_usd_total`] != 1 {
		t.Errorf("counted %v", got)
	}
}

// missing stands for a series that does not exist.
const missing = -1

// TestFigures checks the figures of small histories. Each command comes a second after the one
// before.
func TestFigures(t *testing.T) {
	wait := func(h *historytest.Team, seconds int) { h.Now += team.Time(seconds * 1000) }
	host := team.Host("h")
	for name, one := range map[string]struct {
		play func(h *historytest.Team)
		g    Gauges
		want map[string]float64
	}{
		"an empty team": {func(*historytest.Team) {}, Gauges{}, map[string]float64{
			`cadre_members{state="active"}`: 1, `cadre_members{state="offline"}`: 0, `cadre_tasks{state="pending"}`: 0,
			`cadre_task_duration_seconds_count`: 0, `cadre_task_duration_seconds_bucket{le="+Inf"}`: 0,
			`cadre_cost_usd_total`: 0, `cadre_claim_conflicts_total`: 0, `cadre_notes`: 0, `cadre_notes_bytes`: 0}},
		"notes": {func(h *historytest.Team) {
			h.Do("lead", &team.SetNote{Key: "plan", Text: "first"})
			h.Do("lead", &team.AppendNote{Key: "plan", Text: "then"})
			h.Do("lead", &team.SetNote{Key: "api", Text: "gone"})
			h.Do("lead", &team.DeleteNote{Key: "api"})
		}, Gauges{}, map[string]float64{`cadre_notes`: 1, `cadre_notes_bytes`: 10}},
		"a task": {func(h *historytest.Team) {
			h.Do("lead", external("ann"))
			h.Do("lead", &team.CreateTask{Subject: "a"})
			wait(h, 9)
			h.Do("ann", &team.ClaimTask{})
			wait(h, 99)
			h.Do("ann", &team.CompleteTask{Task: "1"})
		}, Gauges{}, map[string]float64{
			`cadre_task_wait_seconds_sum`: 10, `cadre_task_wait_seconds_count`: 1,
			`cadre_task_wait_seconds_bucket{le="5"}`: 0, `cadre_task_wait_seconds_bucket{le="15"}`: 1,
			`cadre_task_duration_seconds_sum`: 100, `cadre_task_duration_seconds_bucket{le="60"}`: 0,
			`cadre_task_duration_seconds_bucket{le="120"}`: 1, `cadre_task_duration_seconds_bucket{le="+Inf"}`: 1,
			`cadre_tasks{state="completed"}`: 1, `cadre_members{state="active"}`: 2}},
		"a task that waits for another can be claimed once that is done": {func(h *historytest.Team) {
			h.Do("lead", external("ann"))
			h.Do("lead", &team.CreateTask{Subject: "a"})
			h.Do("lead", &team.CreateTask{Subject: "b", BlockedBy: []string{"1"}})
			h.Do("ann", &team.ClaimTask{}) // after 2 s
			wait(h, 100)
			h.Do("ann", &team.CompleteTask{Task: "1"})
			wait(h, 3)
			h.Do("ann", &team.ClaimTask{}) // after 4 s
		}, Gauges{}, map[string]float64{`cadre_task_wait_seconds_sum`: 6, `cadre_task_wait_seconds_count`: 2,
			`cadre_tasks{state="in_progress"}`: 1, `cadre_tasks{state="blocked"}`: 0}},
		"a task can be claimed when it stops waiting for another": {func(h *historytest.Team) {
			h.Do("lead", external("ann"))
			h.Do("lead", &team.CreateTask{Subject: "a", Owner: "ann"})
			h.Do("lead", &team.CreateTask{Subject: "b", BlockedBy: []string{"1"}})
			wait(h, 50)
			h.Do("lead", &team.UpdateTask{Task: "2", RemoveBlockedBy: []string{"1"}})
			wait(h, 1)
			h.Do("ann", &team.ClaimTask{Task: "2"})
		}, Gauges{}, map[string]float64{`cadre_task_wait_seconds_sum`: 2, `cadre_task_wait_seconds_count`: 1}},
		"or when the other task stops holding it back": {func(h *historytest.Team) {
			h.Do("lead", external("ann"))
			h.Do("lead", &team.CreateTask{Subject: "a", Owner: "ann"})
			h.Do("lead", &team.CreateTask{Subject: "b", BlockedBy: []string{"1"}})
			wait(h, 50)
			h.Do("lead", &team.UpdateTask{Task: "1", RemoveBlocks: []string{"2"}})
			wait(h, 1)
			h.Do("ann", &team.ClaimTask{Task: "2"})
		}, Gauges{}, map[string]float64{`cadre_task_wait_seconds_sum`: 2, `cadre_task_wait_seconds_count`: 1}},
		"a task that is out of retries can be claimed when the team file has changed": {func(h *historytest.Team) {
			h.Do("lead", external("ann"))
			h.Do("lead", &team.CreateTask{Subject: "a"})
			h.Do("ann", &team.ClaimTask{}) // after 1 s
			h.Do("ann", &team.FailTask{Task: "1", Reason: "no"})
			wait(h, 50)
			record(h, &team.TaskRevised{Task: team.Task{ID: "1", Subject: "b"}, Fields: []string{"subject"}})
			wait(h, 1)
			h.Do("ann", &team.ClaimTask{}) // after 2 s
		}, Gauges{}, map[string]float64{`cadre_task_wait_seconds_sum`: 3, `cadre_task_wait_seconds_count`: 2}},
		"a task that is out of retries does not wait for a claim": {func(h *historytest.Team) {
			h.Do("lead", external("ann"))
			h.Do("lead", &team.CreateTask{Subject: "a"})
			h.Do("ann", &team.ClaimTask{}) // after 1 s
			h.Do("ann", &team.FailTask{Task: "1", Reason: "no"})
			wait(h, 50)
			h.Do("ann", &team.ClaimTask{Task: "1"})
		}, Gauges{}, map[string]float64{`cadre_task_wait_seconds_sum`: 1, `cadre_task_wait_seconds_count`: 1,
			`cadre_tasks{state="in_progress"}`: 1}},
		"a task that was rolled back waits again": {func(h *historytest.Team) {
			h.Do("lead", external("ann"))
			h.Do("lead", &team.CreateTask{Subject: "a"})
			h.Do("ann", &team.ClaimTask{}) // after 1 s
			h.Do("ann", &team.CompleteTask{Task: "1"})
			wait(h, 50)
			record(h, &team.TaskRolledBack{Task: "1"})
			h.Do("ann", &team.ClaimTask{}) // after 1 s
		}, Gauges{}, map[string]float64{`cadre_task_wait_seconds_sum`: 2, `cadre_task_wait_seconds_count`: 2}},
		"a reassigned task is in the queue again": {func(h *historytest.Team) {
			h.Do("lead", external("ann"))
			h.Do("lead", external("bob"))
			h.Do("lead", &team.CreateTask{Subject: "a"})
			h.Do("ann", &team.ClaimTask{}) // after 1 s
			wait(h, 50)
			owner := "bob"
			h.Do("lead", &team.UpdateTask{Task: "1", Owner: &owner})
			wait(h, 1)
			h.Do("bob", &team.ClaimTask{Task: "1"}) // after 2 s
			h.Do("bob", &team.CompleteTask{Task: "1"})
		}, Gauges{}, map[string]float64{`cadre_task_wait_seconds_sum`: 3, `cadre_task_wait_seconds_count`: 2,
			`cadre_task_duration_seconds_sum`: 1}},
		"a failed attempt is no duration, and its task waits again": {func(h *historytest.Team) {
			h.Do("lead", external("ann"))
			h.Do("lead", &team.CreateTask{Subject: "a", Retries: 1})
			h.Do("lead", &team.CreateTask{Subject: "b", BlockedBy: []string{"1"}})
			h.Do("ann", &team.ClaimTask{}) // after 2 s
			h.Do("ann", &team.FailTask{Task: "1", Reason: "no"})
			wait(h, 9)
			h.Do("ann", &team.ClaimTask{}) // after 10 s
			h.Do("ann", &team.FailTask{Task: "1", Reason: "no"})
		}, Gauges{}, map[string]float64{`cadre_task_wait_seconds_sum`: 12, `cadre_task_duration_seconds_count`: 0,
			`cadre_tasks{state="failed"}`: 1, `cadre_tasks{state="pending"}`: 0, `cadre_tasks{state="blocked"}`: 1}},
		"messages": {func(h *historytest.Team) {
			h.Do("lead", external("ann"))
			h.Do("lead", external("bob"))
			h.Do("lead", &team.Broadcast{Body: "hello"})
			h.Do("ann", &team.ReceiveMessages{}) // after 1 s
			wait(h, 1)
			h.Do("bob", &team.ReceiveMessages{}) // after 3 s
			h.Do("bob", &team.SendMessage{To: "ann", Body: "hello"})
		}, Gauges{}, map[string]float64{`cadre_messages_total`: 2, `cadre_message_delivery_seconds_sum`: 4,
			`cadre_message_delivery_seconds_count`: 2, `cadre_message_delivery_seconds_bucket{le="1"}`: 1}},
		"permissions": {func(h *historytest.Team) {
			session(h, "ann", "")
			session(h, "bob", "")
			ask := func(member, tool string) {
				h.Do(host, &team.RequestPermission{Member: member, Tool: tool, Input: `{"command":"rm x"}`,
					Deadline: h.Now + 600_000})
			}
			ask("ann", "TaskList") // a rule allows it
			ask("ann", "Bash")
			wait(h, 6)
			h.Do(team.User, &team.AnswerPermission{Request: h.State.Permissions()[0].Request, Allow: true})
			ask("ann", "Bash")
			ask("bob", "Bash")
			h.Do(host, &team.DetachMember{Member: "ann", Reason: "gone"}) // nobody answered
			wait(h, 600)
			h.Do(team.User, &team.ExpirePermission{Request: h.State.Permissions()[0].Request})
		}, Gauges{}, map[string]float64{`cadre_permission_wait_seconds_count`: 2,
			`cadre_permission_wait_seconds_sum`: 7 + 602}},
		"usage": {func(h *historytest.Team) {
			session(h, "ann", "large")
			session(h, "bob", "")
			h.Do(host, usage("ann", team.Usage{InputTokens: 1, OutputTokens: 2, CacheReadTokens: 3, CacheWriteTokens: 4,
				CostMicroUSD: 1_500_000}))
			h.Do(host, usage("ann", team.Usage{InputTokens: 10}))
			h.Do(host, usage("bob", team.Usage{OutputTokens: 7, CostMicroUSD: 250}))
		}, Gauges{}, map[string]float64{`cadre_tokens_total{kind="input",model="large"}`: 11,
			`cadre_tokens_total{kind="output",model="large"}`:      2,
			`cadre_tokens_total{kind="cache_read",model="large"}`:  3,
			`cadre_tokens_total{kind="cache_write",model="large"}`: 4,
			`cadre_tokens_total{kind="output",model="default"}`:    7, `cadre_cost_usd_total`: 1.50025}},
		"a team in a team counts its own use": {nest, Gauges{}, map[string]float64{`cadre_tokens_total{kind="input",model="large"}`: 10,
			`cadre_tokens_total{kind="input",model="default"}`: missing, `cadre_cost_usd_total`: 1}},
		"budgets": {func(h *historytest.Team) {
			session(h, "ann", "")
			h.Do(team.User, &team.SetBudget{Budget: team.Budget{Tokens: 1000}})
			h.Do(team.User, &team.SetBudget{Member: "ann", Budget: team.Budget{Tokens: 100}})
			h.Do(host, usage("ann", team.Usage{InputTokens: 85}))
			session(h, "bob", "")
			h.Do(team.User, &team.SetBudget{Member: "bob", Budget: team.Budget{Tokens: 100}})
			h.Do(host, usage("bob", team.Usage{InputTokens: 95}))
			h.Do(host, &team.ReportFailed{Member: "bob", Reason: "crash"}) // it uses no more
		}, Gauges{}, map[string]float64{`cadre_budget_used_ratio{what="tokens"}`: 0.85,
			`cadre_budget_used_ratio{what="cost"}`: missing}},
		"the budget of a team that has ended": {func(h *historytest.Team) {
			session(h, "ann", "")
			h.Do(team.User, &team.SetBudget{Budget: team.Budget{Tokens: 100}})
			h.Do(host, usage("ann", team.Usage{InputTokens: 85}))
			h.Do(team.User, &team.SetStatus{Status: team.TeamAborted})
		}, Gauges{}, map[string]float64{`cadre_budget_used_ratio{what="tokens"}`: missing}},
		"a completion long after a failure is no duration": {func(h *historytest.Team) {
			h.Do("lead", external("ann"))
			h.Do("lead", &team.CreateTask{Subject: "a"})
			h.Do("ann", &team.ClaimTask{})
			h.Do("ann", &team.FailTask{Task: "1", Reason: "no"})
			h.Do("lead", &team.CompleteTask{Task: "1"})
		}, Gauges{}, map[string]float64{`cadre_task_duration_seconds_count`: 0, `cadre_tasks{state="completed"}`: 1}},
		"what waits for a person": {func(*historytest.Team) {}, Gauges{Now: 100_000, JournalBytes: 7, StreamLag: 8,
			Attention: []team.Item{{Kind: team.ItemPermission, WaitsFor: team.ForUser, Since: 90_000},
				{Kind: team.ItemPermission, WaitsFor: team.ForUser, Since: 40_000},
				{Kind: team.ItemPermission, WaitsFor: "lead", Since: 1},
				{Kind: team.ItemFacts, WaitsFor: team.ForUser}}},
			map[string]float64{`cadre_attention{kind="permission"}`: 2, `cadre_attention{kind="facts"}`: 1,
				`cadre_attention{kind="plan"}`: 0, `cadre_attention_oldest_seconds{kind="permission"}`: 60,
				`cadre_journal_bytes`: 7, `cadre_stream_lag_records`: 8}},
		"what was seen outside": {func(h *historytest.Team) { h.Do("lead", external("ann")) },
			Gauges{Outside: map[string]*team.Outside{"t0": {Sights: map[string]team.Sight{
				"ann": {Life: team.LifeOffline}}}}},
			map[string]float64{`cadre_members{state="offline"}`: 1, `cadre_members{state="active"}`: 1}},
		"a team that was cleaned up": {func(h *historytest.Team) {
			h.Do("lead", external("ann"))
			h.Do("lead", &team.SendMessage{To: "ann", Body: "hello"})
			h.Do(team.User, &team.CleanUp{Force: true})
		}, Gauges{}, map[string]float64{`cadre_members{state="active"}`: 0, `cadre_members{state="stopped"}`: 0,
			`cadre_messages_total`: 2}}, // and that it joined, to the lead
	} {
		t.Run(name, func(t *testing.T) {
			h := historytest.New()
			one.play(h)
			got := values(t, text(t, fed(t, h), one.g))
			for _, name := range slices.Sorted(maps.Keys(one.want)) {
				v, ok := got[name]
				if !ok {
					v = missing
				}
				if v != one.want[name] {
					t.Errorf("%s is %v, want %v", name, v, one.want[name])
				}
			}
		})
	}
}

// TestTotals checks the totals of a team with sessions that end in different ways.
func TestTotals(t *testing.T) {
	host := team.Host("h")
	h := historytest.New()
	session(h, "ann", "")
	h.Now += 9_000
	h.Do(host, &team.DetachMember{Member: "ann", Reason: "gone"}) // after 10 s
	h.Do(host, &team.AttachMember{Member: "ann"})
	h.Do(host, &team.ReportStarted{Member: "ann", Session: "s-ann"})
	h.Now += 19_000
	h.Do(host, &team.ReportFailed{Member: "ann", Reason: "crash"}) // after 20 s
	session(h, "bob", "")
	h.Do("lead", external("cy"))
	for _, subject := range []string{"a", "b", "c", "d"} {
		h.Do("lead", &team.CreateTask{Subject: subject})
	}
	for _, id := range []string{"1", "2", "3"} {
		h.Do("cy", &team.ClaimTask{Task: id})
		h.Do("cy", &team.CompleteTask{Task: id})
	}
	h.Do("cy", &team.ClaimTask{Task: "4"})
	h.Do("cy", &team.FailTask{Task: "4", Reason: "no"})
	h.Do(host, usage("bob", team.Usage{InputTokens: 1, CacheReadTokens: 10}))
	got := fed(t, h, historytest.New()).Totals()
	want := Totals{SessionsSpawned: 3, AverageSession: 15 * time.Second, TasksProcessed: 4, SuccessRate: 0.75,
		TokensUsed: 11, TeamsCreated: 2, TeammatesSpawned: 3, TasksCompleted: 3, Messages: h.State.MessageCount()}
	if got != want {
		t.Errorf("the totals are\n%+v, want\n%+v", got, want)
	}
	if got := (&Collector{}).Totals(); got != (Totals{}) {
		t.Errorf("without teams the totals are %+v", got)
	}
}

// TestSessionsThatEndOtherwise checks the time of a session whose end was not recorded before the
// next one of the member started, and of the lead's session, which ends with the team.
func TestSessionsThatEndOtherwise(t *testing.T) {
	host := team.Host("h")
	h := &historytest.Team{State: &team.State{}, Now: historytest.Began}
	h.Do(team.User, &team.CreateTeam{TeamID: "t1", Name: "core", Dir: "/repo", LeadAgent: team.Claude})
	h.Do(host, &team.AttachMember{Member: "lead"})
	h.Do(host, &team.ReportStarted{Member: "lead", Session: "s1"})
	h.Now += 3_000
	record(h, &team.MemberStarted{Member: "lead", Session: "s2"}) // after 4 s
	h.Now += 5_000
	record(h, &team.TeamStatusChanged{Status: team.TeamComplete}) // after 6 s
	if got := fed(t, h).Totals(); got.SessionsSpawned != 2 || got.AverageSession != 5*time.Second {
		t.Errorf("%d sessions of %s, want 2 of 5s", got.SessionsSpawned, got.AverageSession)
	}
}

// TestNothingIsLeft checks that what has ended takes no memory beside the state.
func TestNothingIsLeft(t *testing.T) {
	h := historytest.New()
	session(h, "ann", "")
	h.Do("lead", external("bob"))
	h.Do("lead", &team.Broadcast{Body: "hello"})
	h.Do("ann", &team.ReceiveMessages{})
	h.Do("lead", &team.ReceiveMessages{})
	h.Do("lead", &team.CreateTask{Subject: "a"})
	h.Do("lead", &team.CreateTask{Subject: "b"})
	h.Do("bob", &team.ClaimTask{})
	h.Do("bob", &team.CompleteTask{Task: "1"})
	h.Do("lead", &team.DeleteTask{Task: "2"})
	h.Do(team.Host("h"), &team.RequestPermission{Member: "ann", Tool: "Bash", Input: "{}", Deadline: h.Now + 9_000})
	h.Do(team.Host("h"), &team.ReportFailed{Member: "ann", Reason: "crash"})
	left, _ := h.State.Member("bob")
	record(h, &team.MessagesReturned{Member: "bob", Seqs: left.Inbox})
	left, _ = h.State.Member("lead")
	record(h, &team.MessagesDelivered{Member: "lead", Seqs: left.Inbox})
	r := fed(t, h).teams["t0"].running
	if n := len(r.queued) + len(r.claimed) + len(r.sent) + len(r.asked) + len(r.sessions); n > 0 {
		t.Errorf("%d things are left: %v %v %v %v %v", n, r.queued, r.claimed, r.sent, r.asked, r.sessions)
	}
}

// TestAnyHistory checks the figures of random histories against the state of the team, and
// durations against a plain reading of the states before and after each record.
func TestAnyHistory(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		h := historytest.Play(historytest.Choices(200).Draw(rt, "choices"))
		c := fed(t, h)
		got := values(t, text(t, c, Gauges{Now: h.Now}))
		expect := func(name string, want float64) {
			if v := got[name]; v != want {
				rt.Fatalf("%s is %v, want %v", name, v, want)
			}
		}
		s := h.State
		expect("cadre_messages_total", float64(s.MessageCount()))
		expect("cadre_cost_usd_total", float64(s.Team().Usage.CostMicroUSD)/1e6)
		tokens, tasks, members := 0.0, 0.0, 0.0
		for name, v := range got {
			switch {
			case strings.HasPrefix(name, "cadre_tokens_total"):
				tokens += v
			case strings.HasPrefix(name, "cadre_tasks"):
				tasks += v
			case strings.HasPrefix(name, "cadre_members"):
				members += v
			}
		}
		if want := s.Team().Usage.Tokens(); tokens != float64(want) || c.Totals().TokensUsed != want {
			rt.Fatalf("%v tokens and %d, the team has %d", tokens, c.Totals().TokensUsed, want)
		}
		if want := len(slices.Collect(s.Tasks())); tasks != float64(want) {
			rt.Fatalf("%v tasks, want %d", tasks, want)
		}
		if want := len(s.Members()); members != float64(want) {
			rt.Fatalf("%v members, want %d", members, want)
		}
		for name, all := range plainly(h.Records) {
			expect(name+"_count", float64(len(all)))
			sum := 0.0
			for _, ms := range all {
				sum += float64(ms)
			}
			expect(name+"_sum", sum/1e3)
		}
	})
}

// plainly returns the durations of a history in milliseconds, from the whole state before and after
// each record.
func plainly(records []*team.Record) map[string][]int64 {
	all := map[string][]int64{"cadre_task_duration_seconds": nil, "cadre_task_wait_seconds": nil,
		"cadre_permission_wait_seconds": nil, "cadre_message_delivery_seconds": nil}
	s := &team.State{}
	since := map[string]team.Time{} // tasks that can be claimed
	for _, r := range records {
		ended := func(name string, began team.Time) { all[name] = append(all[name], int64(r.At-began)) }
		for _, e := range r.Events {
			switch e := e.(type) {
			case *team.TaskClaimed:
				if at, ok := since[e.Task]; ok {
					ended("cadre_task_wait_seconds", at)
				}
			case *team.TaskCompleted:
				if t, _ := s.Task(e.Task); t.Status == team.InProgress {
					ended("cadre_task_duration_seconds", t.StartedAt)
				}
			case *team.PermissionAnswered:
				for _, p := range s.Permissions() {
					if p.Request == e.Request && (e.By != "" || e.Outcome == "timed_out") {
						ended("cadre_permission_wait_seconds", p.AskedAt)
					}
				}
			case *team.MessagesDelivered:
				for _, m := range s.Inbox(e.Member) {
					if slices.Contains(e.Seqs, m.Seq) {
						ended("cadre_message_delivery_seconds", m.SentAt)
					}
				}
			}
		}
		s.Apply(r)
		now := map[string]team.Time{}
		for _, t := range s.Claimable("") {
			now[t.ID] = r.At
			if at, ok := since[t.ID]; ok {
				now[t.ID] = at
			}
		}
		since = now
	}
	return all
}

// TestSameTwice checks that figures are a function of the histories: whether they come at once or
// in parts, with repeats, team after team or mixed, and after a team was forgotten and is back.
func TestSameTwice(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		a := historytest.Play(historytest.Choices(100).Draw(rt, "one"))
		b := historytest.Play(historytest.Choices(100).Draw(rt, "other"))
		g := Gauges{Now: max(a.Now, b.Now) + 1}
		once := fed(t, a, b)
		c := &Collector{}
		cut := rapid.IntRange(0, len(a.Records)).Draw(rt, "cut")
		feed(t, c, 0, a.Records[:cut])
		feed(t, c, 1, b.Records)
		feed(t, c, 0, a.Records[cut/2:cut]) // again
		if rapid.Bool().Draw(rt, "forgotten") {
			c.Forget("t0")
			feed(t, c, 0, a.Records[:cut/2])
		}
		feed(t, c, 0, a.Records[int(c.Seq("t0")):])
		if got, want := text(t, c, g), text(t, once, g); got != want {
			rt.Fatalf("in parts it is\n%s\nand at once\n%s", got, want)
		}
		if got, want := c.Totals(), once.Totals(); got != want {
			rt.Fatalf("in parts the totals are %+v, at once %+v", got, want)
		}
	})
}

// TestForget checks that a forgotten team is not in the gauges and stays in the counters.
func TestForget(t *testing.T) {
	h := historytest.Long(100, 5)
	c := fed(t, h)
	before := values(t, text(t, c, Gauges{}))
	totals := c.Totals()
	c.Forget("t0")
	c.Forget("unknown")
	for name, v := range values(t, text(t, c, Gauges{})) {
		switch {
		case strings.HasPrefix(name, "cadre_members"), strings.HasPrefix(name, "cadre_tasks"):
			if v != 0 {
				t.Errorf("%s is %v", name, v)
			}
		case v != before[name]:
			t.Errorf("%s was %v and is %v", name, before[name], v)
		}
	}
	if got := c.Totals(); got != totals || c.Seq("t0") != 0 {
		t.Errorf("the totals were %+v and are %+v; the seq is %d", totals, got, c.Seq("t0"))
	}
}

// TestAnotherHistory checks that a restored history takes the place of the one before it, and has
// what that one had.
func TestAnotherHistory(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		h := historytest.Play(historytest.Choices(150).Draw(rt, "choices"))
		c := fed(t, h)
		d, err := team.Decide(&team.State{}, team.Command{ID: "restore", Actor: team.User, At: h.Now + 1000,
			Body: &team.RestoreTeam{From: h.State}})
		if err != nil {
			rt.Fatal(err)
		}
		d.Record.Seq = 1
		feed(t, c, 0, []*team.Record{d.Record})
		s := &team.State{}
		s.Apply(d.Record)
		got := values(t, text(t, c, Gauges{}))
		totals := c.Totals()
		completed := int64(s.Count(team.Completed))
		if got["cadre_messages_total"] != float64(s.MessageCount()) || totals.TasksCompleted != completed ||
			totals.TokensUsed != s.Team().Usage.Tokens() || totals.TeamsCreated != 1 ||
			totals.TeammatesSpawned != int64(len(s.Members())-1) ||
			got["cadre_cost_usd_total"] != float64(s.Team().Usage.CostMicroUSD)/1e6 {
			rt.Fatalf("%v messages and %+v, the team has %d messages and %d of %d tasks completed, and used %+v",
				got["cadre_messages_total"], totals, s.MessageCount(), completed, len(slices.Collect(s.Tasks())),
				s.Team().Usage)
		}
	})
}

// TestRestoredTeam checks that what began before a restoration counts when it ends.
func TestRestoredTeam(t *testing.T) {
	h := historytest.New()
	session(h, "ann", "large")
	h.Do("lead", external("bob"))
	h.Do("lead", external("cy"))
	h.Do("lead", &team.CreateTask{Subject: "a"})
	h.Do("bob", &team.ClaimTask{})
	h.Do(team.Host("h"), usage("ann", team.Usage{InputTokens: 5}))
	record(h, &team.UsageReported{Usage: team.Usage{InputTokens: 2}}) // of no member
	h.Do("bob", &team.RequestPermission{Tool: "Bash", Input: "{}", Deadline: h.Now + 600_000})
	h.Do("lead", &team.Broadcast{Body: "hello"})
	sent, asked := h.Now, h.State.Permissions()[0]
	claimed, _ := h.State.Task("1")

	d, err := team.Decide(&team.State{}, team.Command{ID: "restore", Actor: team.User, At: h.Now + 1000,
		Body: &team.RestoreTeam{From: h.State}})
	if err != nil {
		t.Fatal(err)
	}
	again := &historytest.Team{State: &team.State{}, Records: []*team.Record{d.Record}, Now: h.Now + 10_000}
	d.Record.Seq = 1
	again.State.Apply(d.Record)
	for _, name := range []string{"bob", "cy"} {
		again.Do(name, &team.ReceiveMessages{})
	}
	received := again.Now
	again.Do("lead", &team.AnswerPermission{Request: asked.Request, Allow: true})
	answered := again.Now
	again.Do("bob", &team.CompleteTask{Task: "1"})
	completed := again.Now
	got := values(t, text(t, fed(t, again), Gauges{}))
	delivery := received.Sub(sent) + (received - 1000).Sub(sent)
	for name, want := range map[string]float64{
		`cadre_message_delivery_seconds_count`:           2,
		`cadre_message_delivery_seconds_sum`:             delivery.Seconds(),
		`cadre_permission_wait_seconds_sum`:              answered.Sub(asked.AskedAt).Seconds(),
		`cadre_task_duration_seconds_sum`:                completed.Sub(claimed.StartedAt).Seconds(),
		`cadre_tokens_total{kind="input",model="large"}`: 5, `cadre_tokens_total{kind="input",model="default"}`: 2} {
		if got[name] != want {
			t.Errorf("%s is %v, want %v", name, got[name], want)
		}
	}
}

// TestGap checks that a record that does not follow is refused and changes nothing.
func TestGap(t *testing.T) {
	h := historytest.Long(20, 2)
	c := fed(t, h)
	before := text(t, c, Gauges{})
	for name, id := range map[string]string{"a known team": "t0", "a new team": "t7"} {
		err := c.Add(id, &team.Record{Seq: 99, ID: "x", Events: []team.Event{&team.MemberSpawned{}}})
		if err == nil || !strings.Contains(err.Error(), "record 99 of team "+id) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if after := text(t, c, Gauges{}); after != before || c.Seq("t7") != 0 {
		t.Errorf("it changed\n%s\ninto\n%s", before, after)
	}
}

// TestModels checks that models beyond the first ones are one series, whatever the order of the
// teams, and that no name breaks the text or is long.
func TestModels(t *testing.T) {
	var all []*historytest.Team
	var used int64
	for i := range 12 {
		h := historytest.New()
		h.Now += team.Time(i * 1_000_000)
		for n := range 10 {
			session(h, fmt.Sprintf("m%d", n), fmt.Sprintf("model-%d-%d", i, n))
			h.Do(team.Host("h"), usage(fmt.Sprintf("m%d", n), team.Usage{InputTokens: 1}))
		}
		used += h.State.Team().Usage.InputTokens
		all = append(all, h)
	}
	c := fed(t, all...)
	got := values(t, text(t, c, Gauges{}))
	series, sum := 0, int64(0)
	for name, v := range got {
		if strings.HasPrefix(name, `cadre_tokens_total{kind="input"`) {
			series++
			sum += int64(v)
		}
	}
	if used != 120 || series != MostModels+1 || sum != used {
		t.Errorf("%d series of %d tokens, of %d", series, sum, used)
	}
	if got[`cadre_tokens_total{kind="input",model="other"}`] != 70 ||
		got[`cadre_tokens_total{kind="input",model="model-4-9"}`] != 1 {
		t.Errorf("the first models are not those with a series:\n%s", text(t, c, Gauges{}))
	}
	slices.Reverse(all)
	if reversed := text(t, fed(t, all...), Gauges{}); reversed != text(t, c, Gauges{}) {
		t.Errorf("in another order it is\n%s", reversed)
	}

	var s sums
	for i := range 200 {
		s.use(fmt.Sprint("model ", i), 1, team.Usage{InputTokens: 1})
	}
	if last := s.models[len(s.models)-1]; len(s.models) != MostModels+1 || last.model != otherModels ||
		last.usage.InputTokens != 150 {
		t.Errorf("a team has %d models, the last is %+v", len(s.models), last)
	}
}

func TestModelLabel(t *testing.T) {
	for name, want := range map[string]string{"": "default", "  ": "default", "claude-x": "claude-x",
		"a\nb": "a↵b", "\x1b[31mred\x1b[m": "red", strings.Repeat("é", 40): strings.Repeat("é", 32),
		"x" + strings.Repeat("é", 40): "x" + strings.Repeat("é", 31), "\xff": "\ufffd"} {
		if got := modelLabel(name); got != want {
			t.Errorf("the label of %q is %q, want %q", name, got, want)
		}
	}
}

// TestStates checks that each state that a member can have has a series.
func TestStates(t *testing.T) {
	want := []team.Phase{team.Away}
	for _, m := range team.MemberMoves() {
		want = append(want, m.To)
	}
	slices.Sort(want)
	if got := slices.Sorted(slices.Values(phases)); !slices.Equal(got, slices.Compact(want)) {
		t.Errorf("the states are %q, want %q", got, want)
	}
}

// shown is a collector and gauges with a sample of every metric.
func shown(t testing.TB) (*Collector, Gauges) {
	h := historytest.Long(400, 30)
	session(h, "quoted", `a "quoted" \ name`)
	h.Do(team.Host("h"), usage("quoted", team.Usage{InputTokens: 5}))
	h.Do(team.User, &team.SetBudget{Budget: team.Budget{Tokens: 100_000, CostMicroUSD: 10_000_000,
		Time: 24 * time.Hour}})
	c := fed(t, h)
	c.Conflict()
	for _, took := range []time.Duration{80 * time.Microsecond, 3 * time.Millisecond, 2 * time.Second, -1} {
		c.ObserveAppend(took)
	}
	return c, Gauges{Now: h.Now, JournalBytes: 1 << 40, StreamLag: 12, Attention: []team.Item{
		{Kind: team.ItemPermission, WaitsFor: team.ForUser, Since: h.Now - 90_500}}}
}

// TestText compares the whole text with a file.
func TestText(t *testing.T) {
	c, g := shown(t)
	golden.File(t, "testdata/metrics.txt", text(t, c, g))
}

// TestConcurrent checks that teams that are added at the same time, and read meanwhile, give the
// same figures as one after the other.
func TestConcurrent(t *testing.T) {
	var all []*historytest.Team
	for range 4 {
		all = append(all, historytest.Long(200, 10))
	}
	c := &Collector{}
	var wait sync.WaitGroup
	for i, h := range all {
		wait.Go(func() {
			for _, r := range h.Records {
				if err := c.Add(fmt.Sprint("t", i), r); err != nil {
					t.Error(err)
				}
				if r.Seq%50 == 0 {
					c.Totals()
					c.text(Gauges{})
				}
			}
		})
	}
	wait.Wait()
	if got, want := text(t, c, Gauges{}), text(t, fed(t, all...), Gauges{}); got != want {
		t.Errorf("at the same time it is\n%s\nand one after the other\n%s", got, want)
	}
}
