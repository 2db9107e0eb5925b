package board

import (
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"cadre/internal/layout"
	"cadre/internal/sys/filelock"
	"cadre/internal/sys/proc"
	"cadre/internal/team"
)

// story is a team whose history is written as the core decides it, at the times of the story.
type story struct {
	t        testing.TB
	state    *team.State
	at       team.Time
	commands []team.Command
	hosted   bool // a host of the team seems to run: this process holds its lock
}

// began is when the stories begin.
var began = team.Time(time.Now().Add(-28 * time.Minute).UnixMilli())

func newStory(t testing.TB, name, goal string) *story {
	t.Helper()
	return storyOf(t, &team.CreateTeam{TeamID: name + "-" + strings.ToLower(rand.Text()), Name: name,
		Goal: goal, Lead: "lead", Permissions: team.Permissions{Policy: "user"}})
}

// storyOf returns a new team, in a folder of its own.
func storyOf(t testing.TB, create *team.CreateTeam) *story {
	t.Helper()
	s, err := team.DecodeSnapshot(0, "")
	if err != nil {
		t.Fatal(err)
	}
	b := &story{t: t, state: s, at: began}
	create.Dir = t.TempDir()
	b.do(team.User, create)
	return b
}

// do sends a command that the core must accept.
func (s *story) do(actor string, body team.Body) *team.Record {
	s.t.Helper()
	resolved, err := s.state.Resolve(body)
	if err != nil {
		s.t.Fatal(err)
	}
	s.at += 700
	c := team.Command{ID: fmt.Sprint("command-number-", len(s.commands)+1), Actor: actor, At: s.at, Body: resolved}
	d, err := team.Decide(s.state, c)
	if err != nil {
		s.t.Fatalf("%T: %v", body, err)
	}
	s.commands = append(s.commands, c)
	if d.Record != nil {
		s.state.Apply(d.Record)
	}
	return d.Record
}

// after lets so many seconds pass.
func (s *story) after(seconds int) { s.at += team.Time(seconds) * 1000 }

// save writes the team into the home. Its id is its name in the address.
func (s *story) save(home string) {
	s.t.Helper()
	h := layout.Home{Root: home}
	if err := h.Create(s.state.Team().Name, s.commands); err != nil {
		s.t.Fatal(err)
	}
	if s.hosted {
		dir, err := h.Folder(s.state.Team().Name)
		if err != nil {
			s.t.Fatal(err)
		}
		dir = filepath.Join(dir, "hosts", "h1")
		if err := os.MkdirAll(dir, 0o700); err != nil {
			s.t.Fatal(err)
		}
		lock, err := filelock.New(filepath.Join(dir, proc.AliveFile))
		if err != nil {
			s.t.Fatal(err)
		}
		s.t.Cleanup(func() { lock.Unlock() })
	}
}

var host = team.Host("h1")

func (s *story) join(name, agent, model, role string, plan bool) {
	s.do(team.User, &team.SpawnMember{Name: name, Agent: agent, Model: model, Role: role, PlanApproval: plan,
		Prompt: "Work on the tasks of your role."})
	s.do(host, &team.AttachMember{Member: name})
	s.do(host, &team.ReportStarted{Member: name, Session: "session-" + name})
	s.do(host, &team.ReportStatus{Member: name, Status: team.Idle})
}

func (s *story) add(name, subject, role string, by ...string) {
	s.do(team.User, &team.CreateTask{Name: name, Subject: subject, Role: role, BlockedBy: by})
}

// works lets a member claim a task and work on it.
func (s *story) works(name, task string) {
	s.do(name, &team.ClaimTask{Task: task})
	s.do(host, &team.ReportStatus{Member: name, Status: team.Active})
}

func (s *story) uses(name, task string, in, out, micro int64, context int64) {
	t, _ := s.state.Lookup(task)
	s.do(host, &team.ReportUsage{Member: name, Task: t.ID, Context: context,
		Usage: team.Usage{InputTokens: in, OutputTokens: out, CacheReadTokens: 4 * in, CostMicroUSD: micro}})
}

func (s *story) completes(name, task, result string) {
	s.do(name, &team.CompleteTask{Task: task, Result: result})
	s.do(host, &team.ReportStatus{Member: name, Status: team.Idle})
}

func (s *story) says(from, to, text, intent string) {
	s.do(from, &team.SendMessage{To: to, Body: text, Intent: intent})
	if to != "lead" {
		s.do(to, &team.ReceiveMessages{})
	}
}

// billing is a team in the middle of its work: some tasks are done, one failed, and three things wait for a
// person.
func billing(t testing.TB) *story {
	s := newStory(t, "billing", "Port the billing service to the new ledger API, keep every test of the old one "+
		"green, and write a migration guide for the teams that call it")
	s.do(team.User, &team.SetBudget{Budget: team.Budget{CostMicroUSD: 25_000_000}})
	s.join("ann", "claude", "claude-opus-5", "backend", false)
	s.join("bob", "codex", "gpt-6-codex", "backend", false)
	s.join("cleo", "claude", "claude-sonnet-5", "tests", false)
	s.join("dan", "gemini", "", "docs", true)
	s.add("survey", "List every caller of the old billing API", "backend")
	s.add("schema", "Design the schema of the ledger entries", "backend", "survey")
	s.add("client", "Write the client for the ledger API", "backend", "survey")
	s.add("invoices", "Move invoices to ledger entries", "backend", "schema", "client")
	s.add("refunds", "Move refunds and partial refunds to ledger entries", "backend", "schema", "client")
	s.add("rounding", "Keep the rounding rules of the old service, cent by cent", "backend", "schema")
	s.add("fixtures", "Record answers of the old service as fixtures", "tests")
	s.add("contract", "Run the old contract tests against the new client", "tests", "fixtures", "client")
	s.add("load", "Load test with the traffic of a month's end", "tests", "invoices", "refunds")
	s.add("guide", "Write the migration guide for callers", "docs", "client")
	s.add("changelog", "Update the changelog and the API reference", "docs", "invoices", "refunds", "rounding")
	s.add("rollout", "Plan the rollout with a flag per customer", "", "load", "changelog")

	s.works("ann", "survey")
	s.works("cleo", "fixtures")
	s.after(95)
	s.uses("ann", "survey", 21_000, 2_900, 310_000, 18)
	s.says("ann", "bob", "There are 14 callers. Three of them sum invoices themselves, so the client needs a total "+
		"that they can trust.", "")
	s.after(60)
	s.completes("ann", "survey", "14 callers in 9 services; the list is in docs/callers.md.")
	s.works("ann", "schema")
	s.works("bob", "client")
	s.after(40)
	s.uses("cleo", "fixtures", 34_000, 4_100, 190_000, 22)
	s.do(host, &team.ReportTrouble{Member: "cleo", Trouble: "limit", Text: "429: rate limit of the model",
		Retrying: true})
	s.after(70)
	s.do(host, &team.ReportStatus{Member: "cleo", Status: team.Active})
	s.completes("cleo", "fixtures", "312 recorded answers, 4 of them with rounding edge cases.")
	s.after(30)
	s.says("bob", "ann", "Does the ledger number entries per account or globally? The client has to know for its "+
		"idempotency keys.", "question")
	s.after(25)
	s.says("ann", "bob", "Per account. I put the rule into schema.md.", "resolution")
	s.uses("ann", "schema", 41_000, 6_200, 720_000, 41)
	s.uses("bob", "client", 52_000, 9_800, 610_000, 35)
	s.after(80)
	s.completes("ann", "schema", "Double entry, one row a movement; the migration is reversible.")
	s.works("ann", "rounding")
	s.after(65)
	s.do(host, &team.RequestPermission{Member: "bob", Tool: "Bash",
		Input: `{"command":"go test ./client/... -run Contract"}`, Deadline: s.at + 600_000})
	s.after(50)
	s.do(team.User, &team.AnswerPermission{Request: s.state.Permissions()[0].Request, Allow: true})
	s.after(45)
	s.uses("bob", "client", 60_000, 12_000, 840_000, 52)
	s.completes("bob", "client", "client/ with retries, idempotency keys and a total per invoice.")
	s.works("bob", "invoices")
	s.works("cleo", "contract")
	s.do("dan", &team.SubmitPlan{Plan: "1. One page a caller group: batch jobs, web, partners.\n" +
		"2. A table from each old call to the new one.\n" +
		"3. What changes in rounding, with three worked examples.\n4. How to switch back with the flag."})
	s.after(240)
	s.uses("ann", "rounding", 38_000, 5_100, 660_000, 58)
	s.completes("ann", "rounding", "Half-even as before; 4 edge cases are tests now.")
	s.works("ann", "refunds")
	s.after(75)
	s.do(host, &team.ReportStatus{Member: "cleo", Status: team.Active})
	s.do("cleo", &team.FailTask{Task: "contract",
		Reason: "2 of 118 contract tests fail: partial refunds differ by one cent",
		Result: "--- FAIL: TestPartialRefund/three_items (0.02s)\n    want 33.33, got 33.34\n" +
			"--- FAIL: TestPartialRefund/with_discount (0.01s)\n    want 12.49, got 12.50\n" +
			"FAIL\nFAIL\tbilling/contract\t4.1s"})
	s.do(host, &team.ReportStatus{Member: "cleo", Status: team.Idle})
	s.says("cleo", "ann", "Partial refunds differ by one cent from the old service in two tests. Is that the new "+
		"rounding, or a bug in the client?", "challenge")
	s.uses("cleo", "contract", 44_000, 3_900, 210_000, 47)
	s.after(20)
	s.says("cleo", "lead", "May the two refund tests change, if the ledger's rounding is the right one?", "question")
	s.after(40)
	s.uses("bob", "invoices", 70_000, 14_000, 1_020_000, 71)
	s.do(host, &team.RequestPermission{Member: "bob", Tool: "Bash",
		Input: `{"command":"psql \"$LEDGER_DSN\" -f migrations/0042_ledger_entries.sql",` +
			`"description":"Apply the migration to the test database"}`,
		Deadline: s.at + 30*60_000})
	s.after(35)
	s.uses("ann", "refunds", 26_000, 4_400, 480_000, 63)
	s.do("ann", &team.SetNote{Key: "decisions/rounding", Text: "Half-even, as in the old service."})
	s.do("bob", &team.SetNote{Key: "interfaces/client",
		Text: "client.Total(invoice) is the sum that callers trust.\nIt fails with ErrStale while entries are on their way."})
	s.do("cleo", &team.AppendNote{Key: "decisions/rounding", Text: "Refunds are rounded once, at the end."})
	s.hosted = true
	return s
}

// finished is a team that has ended.
func finished(t testing.TB, name, goal string) *story {
	s := newStory(t, name, goal)
	s.join("eve", "claude", "claude-sonnet-5", "", false)
	for i, subject := range []string{"Read the failing jobs of a week", "Quarantine the flaky tests",
		"Fix the two that hide a bug"} {
		task := fmt.Sprint("step-", i+1)
		s.add(task, subject, "")
		s.works("eve", task)
		s.after(120)
		s.uses("eve", task, 20_000, 3_000, 250_000, int64(20+10*i))
		s.completes("eve", task, "done")
	}
	s.do(team.User, &team.SetStatus{Status: team.TeamAborted})
	return s
}
