package e2e

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"cadre/internal/journal/store/filestore"
	"cadre/internal/liveness/heartbeat"
	"cadre/internal/liveness/leader"
	"cadre/internal/team"
)

// soon sets short periods, which a test can wait for. If other tests keep a lead from its work for
// leadLost, the lead is lost. It is back at its next heartbeat.
const soon = "beat=200ms,checkpoint=200ms,offline=2s,leadLost=1500ms,undelivered=1s,stale=1h"

// order checks that the words occur in that order, each behind the one before.
func order(t *testing.T, text string, words ...string) {
	t.Helper()
	rest := text
	for _, word := range words {
		_, behind, found := strings.Cut(rest, word)
		if !found {
			t.Fatalf("%q is missing, or in the wrong place:\n%s", word, text)
		}
		rest = behind
	}
}

// state returns the state of the team in ls.
func (w *world) state() string {
	w.t.Helper()
	for line := range strings.Lines(w.must("ls")) {
		if fields := strings.Fields(line); fields[0] == "demo" {
			return fields[1]
		}
	}
	return ""
}

// TestResumeRefuses checks that a team that cannot be resumed is refused, with what to do instead.
// The exit status says whether a retry can help.
func TestResumeRefuses(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.refused(w.cadre("resume", "nowhere"), 2, "team nowhere does not exist; there is no team yet")
	w.must("create", "demo")
	w.refused(w.cadre("resume", "demo"), 2,
		"team demo has not begun: it has no goal and no teammates. To add a teammate: cadre spawn demo NAME")
	w.must("abort", "demo", "--yes")
	w.refused(w.cadre("resume", "demo"), 2, "team demo is aborted. To see what it did: cadre review demo")
	w.must("run", w.write("quick.yaml", "name: quick\nmembers: [{name: ann}]\ntasks: [{id: one, run: echo 1}]\n"))
	w.refused(w.cadre("resume", "quick"), 2, "team quick is complete. To see what it did: cadre review quick")
	w.refused(w.cadre("run", w.write("lost.yaml", "name: lost\nfacts: [go.mod]\nmembers: [{name: ann}]\ntasks: [{id: "+
		"one, run: echo 1}]\n")), 2, "go.mod cannot be a fact: there is no such file in "+w.dir)
	if has(w.home, "teams", "lost") {
		t.Error("the refused run created a team")
	}
	w.refused(w.cadre("create", "other", "--fact", "go.mod"), 2, "there is no such file")
	w.refused(w.cadre("create", "other", "--fact", "."), 2, "it is not a regular file")
	w.refused(w.cadre("resend", "quick"), 2, `needs TEAM and NAME, and "quick" is not enough`, "cadre resend --help")
	w.refused(w.cadre("create", "other", "--liveness", "beet=1s"), 2,
		`no period is named "beet"; their names are beat, blocked, checkpoint, leadLost`)
	w.refused(w.cadre("create", "other", "--liveness", "beat=0s"), 2, "such as 90s or 10m")
	w.refused(w.cadre("create", "other", "--liveness", "beat=10m"), 2, "the periods of silence must be longer")

	w.must("create", "broken")
	w.must("spawn", "broken", "eve", "--agent", "external")
	segments, err := filepath.Glob(filepath.Join(w.home, "teams", "broken", "journal", "*.jsonl"))
	if err != nil || len(segments) != 1 {
		t.Fatalf("got the segments %v (%v), want one", segments, err)
	}
	text, err := os.ReadFile(segments[0])
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(segments[0], bytes.Replace(text, []byte("broken"), []byte("brokem"), 1), 0o600); err != nil {
		t.Fatal(err)
	}
	w.refused(w.cadre("resume", "broken"), 2, "cadre fsck")
}

// TestResumeExamines checks that a team that its user leads is examined in the documented order,
// and that changes since then are reported.
func TestResumeExamines(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.write("go.mod", "module example\n")
	w.write("db/schema.sql", "-- empty\n")
	w.must("create", "demo", "--fact", "go.mod", "--fact", "schema=db/schema.sql")
	for _, name := range []string{"ann", "bob"} {
		w.must("spawn", "demo", name, "--agent", "external")
	}
	for i := range 12 {
		w.must("send", "demo", "--as", "ann", "--to", "bob", fmt.Sprintf("words %d", i+1))
	}
	w.must("task", "add", "demo", "first")
	w.must("task", "add", "demo", "second")
	w.must("task", "claim", "demo", "1", "--as", "ann")
	w.must("task", "done", "demo", "1", "--as", "ann")
	w.must("task", "claim", "demo", "2", "--as", "bob")
	said := w.must("resume", "demo")
	order(t, said, "✓ team demo", "✓ it is active", "✓ no session leads it", "members: 3 outside",
		"✓ facts: 2, unchanged", "mailbox: 13 messages, 13 undelivered",
		"#4 ", "ann → bob: words 4", "#12 ", "words 12", "cadre → lead: Task 1",
		"1 of 2 tasks done (50 %), 1 in progress", "2 bob: second",
		"team demo continues; you lead it")
	if strings.Contains(said, "#3 ") {
		t.Errorf("more than the last ten messages are shown:\n%s", said)
	}
	order(t, w.must("resume", "demo"), "✓ you lead it") // a second resume is allowed

	w.write("go.mod", "module changed\n")
	if err := os.Remove(filepath.Join(w.dir, "db/schema.sql")); err != nil {
		t.Fatal(err)
	}
	order(t, w.must("resume", "demo"), "! shared facts changed: go.mod, schema", "cadre facts demo --record",
		"continues")
	order(t, w.must("facts", "demo"), "go.mod", "changed", "schema", "gone")
	w.must("facts", "demo", "--record")
	order(t, w.must("probe", "demo"), "✓ facts: 2, unchanged")
	order(t, w.must("facts", "demo"), "go.mod", "as it was", "schema", "not there, as was noted")
	w.refused(w.cadre("reassign", "demo", "2", "ann"), 1,
		"bob works on task 2, and it is not known whether that session is "+
			"alive. To take it from bob: cadre reassign demo 2 ann --force")
	w.write("db/schema.sql", "create table t;\n")
	found := read[struct {
		Facts []struct {
			Name  string
			Stale bool
		}
	}](w, "probe", "demo")
	if len(found.Facts) != 2 || found.Facts[0].Stale || !found.Facts[1].Stale {
		t.Errorf("the facts are %+v", found.Facts)
	}

	if err := os.Remove(filepath.Join(w.dir, "go.mod")); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(filepath.Join(w.dir, "go.mod"), 0o600); err != nil { // opening it for reading blocks
		t.Fatal(err)
	}
	order(t, w.must("probe", "demo"), "! shared facts changed: go.mod, schema", "1 of 2 tasks done")
	order(t, w.must("facts", "demo"), "go.mod", "it is not a regular file", "schema", "changed")
	order(t, w.must("resume", "demo"), "! shared facts changed: go.mod, schema", "continues")
	w.refused(w.cadre("facts", "demo", "--record"), 2, "go.mod cannot be a fact", "it is not a regular file")
}

// killAll kills the process, its watchdog and all its children at the same moment.
func (p *process) killAll(mark string) {
	p.t.Helper()
	p.Process.Signal(syscall.SIGSTOP)
	for _, pid := range append(childrenOf(p.t, p.Process.Pid, "cadre-watchdog"), marked(p.t, mark)...) {
		if pid != p.Process.Pid {
			syscall.Kill(pid, syscall.SIGKILL)
		}
	}
	p.kill()
}

// age makes the last heartbeats of a team older, as if their machine had been off since.
func (w *world) age(by time.Duration) {
	w.t.Helper()
	folder := w.beats()
	all, err := folder.All(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	for _, b := range all {
		b.At -= by.Milliseconds()
		if err := folder.Write(w.t.Context(), b); err != nil {
			w.t.Fatal(err)
		}
	}
}

// TestResumeAfterDeath kills any part of a run in the middle of its work. resume finds that out,
// and continues where the run stopped.
func TestResumeAfterDeath(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		dies  func(w *world, p *process, mark string)
		after func(w *world)
	}{
		{name: "lead", dies: func(_ *world, p *process, _ string) { p.kill() }},
		{name: "lead and watchdog", dies: func(_ *world, p *process, _ string) { p.killHost(true) }},
		{name: "host and children", dies: func(_ *world, p *process, mark string) { p.killAll(mark) }},
		{name: "machine", dies: func(w *world, p *process, mark string) {
			p.killAll(mark)
			w.age(24 * time.Hour)
			if left, _ := filepath.Glob(filepath.Join(w.home, "teams", "demo", "hosts", "*", "*")); len(left) == 0 {
				w.t.Error("the host left no heartbeat; a machine without power would have")
			}
		}},
		{name: "machine that lost the signs of life", dies: func(w *world, p *process, mark string) {
			p.killAll(mark)
			all, err := filepath.Glob(filepath.Join(w.teamDir(), "heartbeats", "*.json"))
			if err != nil || len(all) == 0 {
				w.t.Fatalf("got the heartbeats %v (%v), want at least one", all, err)
			}
			for _, path := range all {
				if err := os.Truncate(path, 0); err != nil {
					w.t.Fatal(err)
				}
			}
		}},
		{name: "machine with a clock that was set back", dies: func(w *world, p *process, mark string) {
			p.killAll(mark)
			w.age(-24 * time.Hour)
			order(w.t, w.must("probe", "demo"), "clock skew: the last heartbeat", "in the future", "order is by seq")
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			mark := mark()
			p := w.start("run", w.write("team.yaml", strings.ReplaceAll(runFile+"liveness: {beat: 200ms}\n",
				"MARK", mark)))
			eventually(t, "the slow task runs, the quick one is done", func() bool {
				return len(marked(t, mark)) > 0 && has(w.home, "teams", "demo") &&
					w.count("demo", "task_completed")["1"] == 1 && slices.Contains(w.lines("ran"), "slow")
			})
			if state := w.state(); state != "active" {
				t.Errorf("the state is %s while it runs", state)
			}
			c.dies(w, p, mark)
			eventually(t, "it is dormant", func() bool { return w.state() == "dormant" })
			order(t, w.must("probe", "demo"), "✓ it is dormant", "! session run-", "has ended", "offline",
				"1 of 3 tasks done (33 %), 1 in progress")
			order(t, w.must("status", "demo"), "demo is dormant", "offline", "No process of the team is running",
				"next: cadre resume demo")
			w.write("go", "")
			said := w.must("resume", "demo")
			order(t, said, "✓ team demo", "! session run-", "has ended", "team demo continues in", "3 of 3 tasks done")
			noneLeft(t, mark)
			if ran := strings.Join(w.lines("ran"), " "); strings.Count(ran, "quick") != 1 ||
				strings.Count(ran, "slow") != 2 || !strings.HasSuffix(ran, "last") {
				t.Errorf("the tasks ran in the order %s", ran)
			}
			for task, n := range w.count("demo", "task_completed") {
				if n != 1 {
					t.Errorf("task %s was completed %d times", task, n)
				}
			}
			if state := w.state(); state != "complete" || !has(w.dir, "demo-report.md") {
				t.Errorf("the state is %s, the report exists: %t", state, has(w.dir, "demo-report.md"))
			}
		})
	}
}

// TestResumeGivesEachItsTask checks that each member continues with its task, even members without
// a session that can be resumed.
func TestResumeGivesEachItsTask(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	mark := mark()
	tasks := make([]team.CreateTask, 5)
	for i := range tasks {
		tasks[i].Run = hangOnce(mark)
	}
	w.shellTeam(len(tasks), tasks...)
	host := w.start("host", "demo")
	eventually(t, "every member works on a task", func() bool { return len(w.lines("ran")) == len(tasks) })
	owners := map[string]string{}
	for i := range tasks {
		id := fmt.Sprint(i + 1)
		owners[id] = w.task(id).Owner
	}
	host.killAll(mark)
	w.must("resume", "demo")
	w.untilCompleted(len(tasks))
	for id, owner := range owners {
		if by := w.task(id).CompletedBy; by != owner {
			t.Errorf("task %s belonged to %s, but %s did it", id, owner, by)
		}
	}
	noneLeft(t, mark)
}

// TestTakeOver checks that resume does not take the lead from a running session, unless the user
// asks for it. The history records the takeover, and the old lead ends.
func TestTakeOver(t *testing.T) {
	t.Parallel()
	t.Run("a run", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		mark := mark()
		p := w.start("run", w.write("team.yaml", strings.ReplaceAll(runFile, "MARK", mark)))
		eventually(t, "the slow task runs", func() bool { return len(marked(t, mark)) > 0 })
		first := w.leadSession()
		r := w.cadre("resume", "demo")
		if r.code != 1 || !strings.Contains(r.err, "leads team demo") ||
			!strings.Contains(r.err,
				"To follow it: cadre log demo --follow; or to take the lead: cadre resume demo --take-over, "+
					"which takes it from that session") {
			t.Errorf("exit status %d: %s", r.code, r.err)
		}
		order(t, r.out, "✓ session "+first+" leads it and is alive", "online")
		second := w.start("resume", "demo", "--take-over")
		if code := p.wait(); code != 1 || !strings.Contains(p.said(), "the lead was taken over by another session") ||
			!strings.Contains(p.said(), "the team continues there. To follow it: cadre log demo --follow") {
			t.Errorf("the first ended with %d: %s", code, p.said())
		}
		w.write("go", "")
		if code := second.wait(); code != 0 {
			t.Errorf("the second ended with %d: %s", code, second.said())
		}
		noneLeft(t, mark)
		if ran := strings.Join(w.lines("ran"), " "); strings.Count(ran, "quick") != 1 ||
			strings.Count(ran, "slow") != 2 {
			t.Errorf("the tasks ran in the order %s", ran)
		}
		w.tookOver(first)
	})
	t.Run("no dead member, by two at once", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		w.must("create", "demo", "--liveness", soon)
		w.must("spawn", "demo", "eve", "--agent", "external")
		lead := w.mcp("mcp", "--team", "demo")
		first := w.leadSession()
		lead.dies()
		faster, err := leader.Claim(t.Context(), filestore.Team(w.teamDir())) // the other resume
		if err != nil {
			t.Fatal(err)
		}
		r := w.cadre("resume", "demo")
		if r.code != 1 || strings.Contains(r.out+r.err, "is alive") {
			t.Errorf("exit status %d, and %s is alive:\n%s%s", r.code, first, r.out, r.err)
		}
		order(t, r.out+r.err, "! session "+first+" led it and has ended; another process is taking the lead",
			"Another process is taking the lead of team demo. To follow it: cadre log demo --follow")
		if err := leader.Attach(t.Context(), leader.Options{Replica: w.replica("demo"),
			Shared: filestore.Team(w.teamDir())}); err != nil {
			t.Fatal(err)
		}
		if r := w.cadre("resume", "demo"); r.code != 1 ||
			!strings.Contains(r.err, "You lead team demo with another command") {
			t.Errorf("exit status %d: %s", r.code, r.err)
		}
		if err := faster.Release(); err != nil {
			t.Fatal(err)
		}
		w.must("resume", "demo")
	})
	t.Run("a session outside", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		w.must("create", "demo", "--liveness", soon)
		w.must("spawn", "demo", "eve", "--agent", "external")
		lead := w.mcp("mcp", "--team", "demo")
		first := w.leadSession()
		if r := w.cadre("resume", "demo"); r.code != 1 ||
			!strings.Contains(r.err, "Session "+first+" leads team demo and is alive") {
			t.Errorf("exit status %d: %s", r.code, r.err)
		}
		order(t, w.must("resume", "demo", "--take-over"), "leads it and is alive", "team demo continues; you lead it")
		if err := lead.wait(); err == nil {
			t.Error("the old lead ended as if nothing had happened")
		}
		w.tookOver(first)
		again := w.mcp("mcp", "--team", "demo") // any session may take the lead from the user
		if text, failed := again.call("TeamStatus", nil); failed || !strings.Contains(text, "eve") {
			t.Errorf("the next lead is told: %s", text)
		}
		again.leave()
	})
	t.Run("a run on another machine", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		mark := mark()
		p := w.start("run", w.write("team.yaml", strings.ReplaceAll(runFile, "MARK", mark)))
		eventually(t, "the slow task runs", func() bool { return len(marked(t, mark)) > 0 })
		first := w.leadSession()
		p.killAll(mark)
		b := heartbeat.Beat{Member: "lead", At: time.Now().UnixMilli(), Session: first, Machine: "elsewhere"}
		if err := w.beats().Write(t.Context(), b); err != nil {
			t.Fatal(err)
		}
		before := len(w.history("demo"))
		if r := w.cadre("resume", "demo"); r.code != 1 ||
			!strings.Contains(r.err, "leads team demo") ||
			strings.Contains(r.out, "continues; you lead") {
			t.Errorf("exit status %d: %s%s", r.code, r.out, r.err)
		}
		// No session changed, and no task was returned to the queue.
		if after := len(w.history("demo")); after != before {
			t.Errorf("the refused command recorded %d events", after-before)
		}
		w.write("go", "")
		order(t, w.must("resume", "demo", "--take-over"), "3 of 3 tasks done")
		noneLeft(t, mark)
		w.tookOver(first)
	})
	t.Run("a session on another machine", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		w.must("create", "demo", "--liveness", soon)
		w.must("spawn", "demo", "eve", "--agent", "external")
		lead := w.mcp("mcp", "--team", "demo")
		first := w.leadSession()
		lead.kill()
		lead.wait()
		elsewhere := func(at time.Time) {
			t.Helper()
			b := heartbeat.Beat{Member: "lead", At: at.UnixMilli(), Session: first, Machine: "elsewhere",
				Count: at.UnixMilli()}
			if err := w.beats().Write(t.Context(), b); err != nil {
				t.Fatal(err)
			}
		}
		refused := func(words ...string) {
			t.Helper()
			r := w.cadre("resume", "demo")
			if r.code != 1 || !strings.Contains(r.err, "leads team demo") ||
				w.leadSession() != first {
				t.Errorf("exit status %d: %s", r.code, r.err)
			}
			order(t, r.out+r.err, words...)
		}
		elsewhere(time.Now().Add(-59 * time.Minute))
		refused("leads it on the machine elsewhere", "59 min ago", "expires after 1 h")
		elsewhere(time.Now().Add(time.Hour)) // a wrong clock does not make the lead look silent
		refused("clock skew", "its age is ignored", "was seen 0 s ago")
		elsewhere(time.Now().Add(-61 * time.Minute))
		order(t, w.must("resume", "demo"), "has ended", "team demo continues")
		w.tookOver(first)
	})
}

func (w *world) leadSession() string {
	w.t.Helper()
	return read[struct{ Lead struct{ Session string } }](w, "probe", "demo").Lead.Session
}

// tookOver checks that the history records exactly one takeover from that session.
func (w *world) tookOver(from string) {
	w.t.Helper()
	n := 0
	for _, e := range w.history("demo") {
		if e.is("lead_attached") && e["takenOver"] == from {
			n++
		}
	}
	if n != 1 {
		w.t.Errorf("the history records %d takeovers from %s", n, from)
	}
}

// TestReassign checks that a task can be reassigned from a teammate that died with its host. A
// running teammate has to be asked, or forced.
func TestReassign(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	mark := mark()
	w.shellTeam(2, team.CreateTask{Owner: "s0", Run: hangOnce(mark)})
	host := w.start("host", "demo")
	eventually(t, "the task runs", func() bool { return len(marked(t, mark)) > 0 })
	w.refused(w.cadre("reassign", "demo", "1", "s1"), 1, "s0 works on task 1 and is online", "--force")
	w.refused(w.cadre("reassign", "demo", "7", "s1"), 2, `no task "7"`)
	w.refused(w.cadre("reassign", "demo", "1", "zork", "--force"), 2, `no member named "zork"`, "s0, s1")
	host.killAll(mark)
	order(t, w.must("probe", "demo"), "s0", "offline", "the host that ran its session has ended", "1 s0: task number 1")
	w.must("reassign", "demo", "1", "s1")
	if task := w.task("1"); task.Owner != "s1" {
		t.Errorf("the task is %s's", task.Owner)
	}
	order(t, w.must("resume", "demo"), "continues")
	w.untilCompleted(1)
	if task := w.task("1"); task.CompletedBy != "s1" {
		t.Errorf("%s did it", task.CompletedBy)
	}
	noneLeft(t, mark)
}
