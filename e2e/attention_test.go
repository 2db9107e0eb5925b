package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"cadre/internal/team"
)

// item is something that waits for a person, as each of the commands prints it.
type item struct{ Team, Kind, WaitsFor, Member, Task, Request, Text string }

// list returns what a command prints of all teams. It has an error as well if a team is damaged.
func list[T any](w *world, args ...string) (all []T) {
	w.t.Helper()
	r := w.cadre(append(args, "--json")...)
	if err := json.Unmarshal([]byte(r.out), &all); err != nil {
		w.t.Fatalf("cadre %s --json: %v\n%.2000s%s", strings.Join(args, " "), err, r.out, r.err)
	}
	return all
}

// items returns what waits in the team. It checks that status, probe, attention and ls agree on the
// items and their order.
func (w *world) items(name string) []item {
	w.t.Helper()
	status := read[struct{ Attention []item }](w, "status", name).Attention
	probe := read[struct{ Attention []item }](w, "probe", name).Attention
	one := read[[]item](w, "attention", name)
	var here []item
	for _, i := range list[item](w, "attention") {
		if i.Team == name {
			here = append(here, i)
		}
	}
	var listed []item
	for _, t := range list[struct {
		Name      string
		Attention []item
	}](w, "ls") {
		if t.Name == name {
			listed = t.Attention
		}
	}
	shape := func(items []item) string {
		var b strings.Builder
		for _, i := range items {
			i.Team, i.Text = "", "" // the text may contain a duration
			fmt.Fprintf(&b, "%+v\n", i)
		}
		return b.String()
	}
	for what, other := range map[string][]item{"probe": probe, "attention of it": one, "attention": here,
		"ls": listed} {
		if shape(other) != shape(status) {
			w.t.Errorf("%s has\n%sbut status has\n%s", what, shape(other), shape(status))
		}
	}
	for line := range strings.Lines(w.cadre("ls").out) {
		if rest, ok := strings.CutPrefix(line, name+" "); ok &&
			len(status) > 0 && !strings.Contains(rest, fmt.Sprintf(" %d ", len(status))) {
			w.t.Errorf("ls does not count %d: %s", len(status), line)
		}
	}
	if text := w.must("status", name); strings.Count(text, "\n! ")+strings.Count(text, "\n· ") != len(status) {
		w.t.Errorf("status does not show %d items:\n%s", len(status), text)
	}
	return status
}

// kinds returns the kinds of the items, in order.
func kinds(items []item) string {
	var all []string
	for _, i := range items {
		all = append(all, i.Kind)
	}
	return strings.Join(all, " ")
}

// TestAttentionIsOneList checks that all commands show the same items, and never show a killed
// process as alive.
func TestAttentionIsOneList(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.must("create", "demo")
	w.must("create", "other")
	w.must("spawn", "demo", "ann", "--agent", "external", "--plan-approval")
	w.must("spawn", "demo", "bob", "--agent", "shell")
	if got := kinds(w.items("demo")); got != "" {
		t.Errorf("a new team has the items %s", got)
	}
	w.must("task", "add", "demo", "fails", "--run", "false", "--owner", "bob")
	w.must("task", "add", "demo", "for a thinker", "--role", "thinker")
	w.must("task", "add", "demo", "for you", "--owner", "lead")
	rep := w.replica("demo")
	if _, err := rep.Do(t.Context(), team.Command{Actor: "ann", Body: &team.SubmitPlan{Plan: "1. look"}}); err != nil {
		t.Fatal(err)
	}
	if _, err := rep.Do(t.Context(), team.Command{Actor: "ann", Body: &team.RequestPermission{Tool: "Read",
		Input: `{"file_path":"x"}`, Deadline: team.Time(time.Now().Add(time.Hour).UnixMilli())}}); err != nil {
		t.Fatal(err)
	}
	w.until("the task failed", func(s *team.State) bool { task, _ := s.Task("1"); return task.OutOfRetries() })
	if got := kinds(w.items("demo")); got != "permission plan task_failed task_yours unassigned" {
		t.Errorf("the items are %s", got)
	}
	if rest := w.must("status", "demo"); !strings.HasSuffix(strings.TrimSpace(rest), "next: cadre permit demo "+
		"permission-2@ann, or with --deny") {
		t.Errorf("status does not end with the next step:\n%s", rest)
	}
	if got := kinds(w.items("other")); got != "" {
		t.Errorf("another team has the items %s", got)
	}
	// Each hint works.
	w.must("permit", "demo", "permission-2@ann")
	w.must("plan", "demo", "plan-1@ann", "--approve")
	w.must("task", "update", "demo", "1", "--run", "true")
	w.must("task", "update", "demo", "2", "--owner", "ann")
	w.must("task", "done", "demo", "3")
	w.until("it is done again", func(s *team.State) bool {
		task,
			_ := s.Task("1")
		return task.Status == team.Completed
	})
	if got := kinds(w.items("demo")); got != "" {
		t.Errorf("in the end the items are %s", got)
	}
}

// awaits waits for an item, in a process of its own.
func (w *world) awaits(args ...string) *process {
	w.t.Helper()
	return w.start(append([]string{"attention", "--wait", "--timeout", "1m"}, args...)...)
}

// TestAttentionOfTheKilled checks that a killed host, lead or consolidation is shown at once, and
// that a waiting attention command returns.
func TestAttentionOfTheKilled(t *testing.T) {
	t.Parallel()
	t.Run("host", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		w.must("create", "demo")
		w.must("spawn", "demo", "ann")
		var pid int
		eventually(t, "its session sends a heartbeat", func() bool {
			b, there, err := w.beats().Of(t.Context(), "ann")
			pid = b.Pid
			return err == nil && there && b.Pid != 0
		})
		waits := w.awaits()
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		if code := waits.wait(); code != 0 || !strings.Contains(waits.said(), "cadre resume demo") {
			t.Errorf("the waiting command ended with status %d: %s", code, waits.said())
		}
		eventually(t, "what guarded the host has ended, too", func() bool {
			return strings.Contains(w.must("status", "demo"), "demo is dormant")
		})
		if got := kinds(w.items("demo")); got != "dormant" {
			t.Errorf("the items are %s", got)
		}
		status := w.must("status", "demo")
		order(t, status, "demo is dormant", "ann ", "offline", "next: cadre resume demo")
		if state := w.state(); state != "dormant" {
			t.Errorf("ls says that the team is %s", state)
		}
		if text := w.must("ls"); !strings.Contains(text, "1, 1 offline") {
			t.Errorf("ls counts no member as offline:\n%s", text)
		}
		w.must("resume", "demo")
		eventually(t, "nothing waits when it is resumed", func() bool { return len(w.items("demo")) == 0 })
	})
	t.Run("lead", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		w.must("create", "demo", "--liveness", soon)
		w.must("spawn", "demo", "ann")
		lead := w.mcp("mcp", "--team", "demo")
		w.must("task", "add", "demo", "slow", "--run", "until test -e go; do sleep 0.02; done")
		eventually(t, "the task runs, and nothing waits", func() bool {
			return len(w.items("demo")) == 0 &&
				w.task("1").Status == team.InProgress
		})
		waits := w.awaits("demo")
		lead.dies()
		if got := kinds(w.items("demo")); got != "lead_lost" {
			t.Errorf("right after its end the items are %s", got)
		}
		if code := waits.wait(); code != 0 || !strings.Contains(waits.said(), "No session leads") {
			t.Errorf("the waiting command ended with status %d: %s", code, waits.said())
		}
		w.lost()
		order(t, w.must("status", "demo"), "lead ", "offline", "ann ", "zombie", "No session leads",
			"next: cadre resume demo")
		if text := w.must("ls"); !strings.Contains(text, "1, 1 without a lead") {
			t.Errorf("ls shows no zombie:\n%s", text)
		}
		w.must("spawn", "demo", "eve", "--agent", "external")
		order(t, w.must("send", "demo", "--as", "eve", "--to", "ann", "are you there?"),
			"is held: no session leads team demo", "cadre resume demo")
		order(t, w.must("broadcast", "demo", "--as", "eve", "anybody?"), "is held")
		if r := read[struct{ Held bool }](w, "send", "demo", "--as", "eve", "--to", "ann", "once more"); !r.Held {
			t.Error("the JSON does not mark the member as a zombie")
		}
		if text := w.must("send", "demo", "--to", "ann", "go on"); strings.Contains(text, "held") {
			t.Errorf("the user's message is held: %s", text)
		}
		order(t, w.must("attention", "demo"), "3 messages wait until a session leads")
		w.must("resume", "demo")
		eventually(t, "nothing waits when a session leads", func() bool { return len(w.items("demo")) == 0 })
		w.write("go", "")
	})
	t.Run("consolidation", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		w.repository()
		mark := mark()
		w.must("create", "demo", "--check", "slow: sleep "+mark)
		w.must("spawn", "demo", "eve", "--agent", "external")
		p := w.start("consolidate", "demo")
		eventually(t, "the check runs", func() bool { return len(marked(t, mark)) > 0 })
		if got := kinds(w.items("demo")); got != "" {
			t.Errorf("during the consolidation the items are %s", got)
		}
		if state := w.state(); state != "consolidating" {
			t.Errorf("the items are %s", state)
		}
		waits := w.awaits("demo")
		p.kill()
		if got := kinds(w.items("demo")); got != "interrupted" {
			t.Errorf("the items are %s", got)
		}
		if state := w.state(); state != "interrupted" {
			t.Errorf("ls says that the team is %s", state)
		}
		if code := waits.wait(); code != 0 || !strings.Contains(waits.said(), "cadre consolidate demo") {
			t.Errorf("the waiting command ended with status %d: %s", code, waits.said())
		}
		order(t, w.must("status", "demo"), "demo is interrupted",
			"checks: slow not run; cadre consolidate runs them before the commit", "next: cadre consolidate demo")
		w.must("consolidate", "demo", "--rollback")
		if got := kinds(w.items("demo")); got != "" {
			t.Errorf("after the rollback the items are %s", got)
		}
		noneLeft(t, mark)
	})
}

// TestAttentionWaits checks a wait that ends without an item: the status says so. A team that is
// created meanwhile counts. A damaged team does not block the wait for the others.
func TestAttentionWaits(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.refused(w.cadre("attention", "--wait", "--timeout", "50ms"), 1, "nothing waited for you within 50 ms")
	w.refused(w.cadre("attention", "--timeout", "50ms"), 2, "add --wait")
	w.refused(w.cadre("attention", "--new"), 2, "add --wait")
	w.refused(w.cadre("attention", "nowhere"), 2, "team nowhere does not exist; there is no team yet")
	if out := w.must("attention"); out != "Nothing waits for you.\n" {
		t.Errorf("the command prints %q", out)
	}
	waits := w.awaits()
	w.must("create", "late")
	w.must("task", "add", "late", "for nobody")
	if code := waits.wait(); code != 0 || !strings.Contains(waits.said(), "late: 1 thing waits") {
		t.Errorf("with status %d the command prints: %s", code, waits.said())
	}

	w.must("create", "damaged")
	segments, err := filepath.Glob(filepath.Join(w.home, "teams", "damaged", "journal", "*.jsonl"))
	if err != nil || len(segments) != 1 {
		t.Fatalf("got the segments %v (%v), want one", segments, err)
	}
	text, err := os.ReadFile(segments[0])
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(segments[0], []byte(strings.Replace(string(text), "team_created", "team_crested", 1)),
		0o600); err != nil {
		t.Fatal(err)
	}
	if r := w.cadre("attention"); r.code != 2 || !strings.Contains(r.out, "cadre fsck damaged") {
		t.Errorf("for a damaged team the command ends with status %d: %s%s", r.code, r.out, r.err)
	}
}

// TestFirstAnswerWins checks that the first answer to a request counts. The second command says who
// answered first.
func TestFirstAnswerWins(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.must("create", "demo")
	w.must("spawn", "demo", "ann", "--agent", "external", "--plan-approval")
	rep := w.replica("demo")
	do := func(body team.Body) {
		t.Helper()
		if _, err := rep.Do(t.Context(), team.Command{Actor: "ann", Body: body}); err != nil {
			t.Fatal(err)
		}
	}
	for round := range 5 {
		do(&team.RequestPermission{Tool: "Read", Deadline: team.Time(time.Now().Add(time.Hour).UnixMilli())})
		request := w.items("demo")[0].Request
		answers := []*process{w.start("permit", "demo", request), w.start("permit", "demo", request, "--deny",
			"--as", "lead")}
		codes := []int{answers[0].wait(), answers[1].wait()}
		if codes[0]+codes[1] != 1 {
			t.Fatalf("two answers end with %v:\n%s%s", codes, answers[0].said(), answers[1].said())
		}
		won, lost := answers[0], answers[1]
		by := "allowed by the user"
		if codes[0] == 1 {
			won, lost, by = lost, won, "denied by lead"
		}
		if !strings.Contains(won.said(), request) || !strings.Contains(lost.said(), "the request "+request+" was "+by+
			" already; the first answer counts") {
			t.Errorf("round %d: the first command prints %q, the second %q", round, won.said(), lost.said())
		}
	}
	do(&team.SubmitPlan{Plan: "1. look"})
	w.must("plan", "demo", "plan-6@ann", "--reject", "too short", "--as", "lead")
	w.refused(w.cadre("plan", "demo", "plan-6@ann", "--approve"), 1, "the plan plan-6@ann was rejected by lead "+
		"already; the first answer counts")
	outcomes := map[string]int{}
	for _, e := range w.history("demo") {
		if e.is("permission_answered") {
			outcomes[fmt.Sprint(e["request"])]++
		}
	}
	for request, n := range outcomes {
		if n != 1 {
			out, _ := json.Marshal(outcomes)
			t.Errorf("%s was answered %d times: %s", request, n, out)
		}
	}
}
