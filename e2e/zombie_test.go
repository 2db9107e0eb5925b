package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"cadre/internal/agent/agenttest"
	"cadre/internal/journal/store/filestore"
	"cadre/internal/liveness/heartbeat"
	"cadre/internal/team"
)

// dies kills the program that speaks MCP, and waits until it is gone.
func (p *client) dies() {
	p.t.Helper()
	if err := p.kill(); err != nil {
		p.t.Fatal(err)
	}
	p.wait()
}

func (w *world) teamDir() string { return filepath.Join(w.home, "teams", "demo") }

func (w *world) beats() heartbeat.Beats { return heartbeat.In(filestore.Team(w.teamDir())) }

// lost waits until the team has lost its lead.
func (w *world) lost() {
	w.t.Helper()
	w.until("the lead is lost", func(s *team.State) bool { return s.Team().LeadLost != 0 })
}

// lives returns the member's life and status in probe.
func (w *world) lives(member string) (life, status string) {
	w.t.Helper()
	for _, m := range read[struct {
		Members []struct{ Name, Life, Status string }
	}](w, "probe", "demo").Members {
		if m.Name == member {
			return m.Life, m.Status
		}
	}
	return "", ""
}

// TestTeammateWithoutALead kills a lead that is an outside session in the middle of the work. Its
// teammate finishes its task and starts no other. The next lead gets its messages, once.
func TestTeammateWithoutALead(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.must("create", "demo", "--liveness", soon)
	w.must("spawn", "demo", "ann")
	lead := w.mcp("mcp", "--team", "demo")
	w.must("task", "add", "demo", "slow", "--run", "echo slow >>ran; until test -e go; do sleep 0.02; done")
	w.must("task", "add", "demo", "next", "--run", "echo next >>ran")
	eventually(t, "the first task runs", func() bool { return len(w.lines("ran")) == 1 })
	lead.dies()
	w.lost()
	eventually(t, "the teammate's heartbeat says that it is a zombie", func() bool {
		b, there, err := w.beats().Of(t.Context(), "ann")
		return err == nil && there && b.Status == "zombie" && b.Task == "1"
	})
	if life, status := w.lives("ann"); life != "online" || status != "zombie" {
		t.Errorf("ann is %s, %s", life, status)
	}
	eventually(t, "its work is saved", func() bool { return has(w.teamDir(), "ann_checkpoint.json") })
	w.write("go", "")
	w.untilCompleted(1)
	b, _, _ := w.beats().Of(t.Context(), "ann")
	eventually(t, "it has looked on for a while", func() bool {
		now, _,
			_ := w.beats().Of(t.Context(), "ann")
		return now.Count >= b.Count+5
	})
	if task := w.task("2"); task.Status != team.Pending {
		t.Errorf("without a lead the next task is %s", task.Status)
	}
	order(t, w.must("probe", "demo"), "led it and is lost since", "1 online")
	order(t, w.must("resume", "demo"), "led it and is lost since", "held until there is a lead",
		"team demo continues; you lead it")
	w.untilCompleted(2)
	eventually(t, "it has said so", func() bool {
		return strings.Contains(w.must("inbox", "demo", "lead", "--peek"), "Task 2 (next) is done")
	})
	again := w.mcp("mcp", "--team", "demo")
	text, failed := again.call("TaskList", nil)
	if failed || strings.Count(text, "Task 1 (slow) is done") != 1 ||
		strings.Count(text, "Task 2 (next) is done") != 1 {
		t.Errorf("the next lead is told, failed %t: %s", failed, text)
	}
	if text, _ := again.call("TaskList", nil); strings.Contains(text, "its command took") {
		t.Errorf("a second read returns: %s", text)
	}
	again.leave()
	eventually(t, "nothing is saved any more", func() bool { return !has(w.teamDir(), "ann_checkpoint.json") })
}

// TestLeadThatWasStopped checks a lead that was stopped, but not killed. It is lost, and takes the
// lead again by itself.
func TestLeadThatWasStopped(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.must("create", "demo", "--liveness", soon)
	w.must("spawn", "demo", "ann")
	session := w.mcp("mcp", "--team", "demo")
	b, _, err := w.beats().Of(t.Context(), "lead")
	if err != nil || b.Pid == 0 {
		t.Fatalf("got the lead's heartbeat %+v (%v), want one with a pid", b, err)
	}
	if err := syscall.Kill(b.Pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	w.lost()
	if err := syscall.Kill(b.Pid, syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	w.until("it leads again", func(s *team.State) bool {
		return s.Team().LeadLost == 0 &&
			s.Team().LeadSession == b.Session
	})
	session.leave()
}

// TestClocksThatAreWrong checks that a wrong clock is reported and decides nothing. The order is by
// seq.
func TestClocksThatAreWrong(t *testing.T) {
	t.Parallel()
	for name, off := range map[string]time.Duration{"ahead": time.Hour, "behind": -time.Hour} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.must("create", "demo", "--liveness", soon)
			w.must("spawn", "demo", "ann")
			lead := w.mcp("mcp", "--team", "demo")
			b, _, err := w.beats().Of(t.Context(), "lead")
			if err != nil || b.Pid == 0 {
				t.Fatalf("got the lead's heartbeat %+v (%v), want one with a pid", b, err)
			}
			lead.dies()
			// The lead continues on a machine whose clock is wrong.
			b.Machine = "elsewhere"
			beat := func() {
				b.At, b.Count = time.Now().Add(off).UnixMilli(), b.Count+1
				if err := w.beats().Write(t.Context(), b); err != nil {
					t.Fatal(err)
				}
			}
			first := int64(0)
			eventually(t, "the teammate's host has checked twenty times", func() bool {
				beat()
				now, there, err := w.beats().Of(t.Context(), "ann")
				if err != nil {
					t.Fatal(err)
				}
				if there && first == 0 {
					first = now.Count
				}
				return there && now.Count >= first+20
			})
			for _, e := range w.history("demo") {
				if e.is("lead_lost") {
					t.Error("the lead was lost although it sent heartbeats")
				}
			}
			eventually(t, "the host says that a clock is wrong", func() bool {
				beat()
				log, _ := os.ReadFile(filepath.Join(w.teamDir(), "host.log"))
				return strings.Contains(string(log), "clock skew: the last heartbeat of lead")
			})
			w.lost() // the lead has fallen silent by the host's own clock
		})
	}
	t.Run("a team from the future", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		w.shellTeamAt(time.Now().Add(time.Hour), 1, team.CreateTask{Run: "echo $CADRE_TASK_ID >>ran"})
		for i := range 3 {
			w.must("send", "demo", "--as", "lead", "--to", "s0", fmt.Sprintf("words %d", i+1))
		}
		order(t, w.must("resume", "demo"), "! clock skew: the team was created", "in the future", "order is by seq",
			"words 1", "words 2", "words 3", "continues")
		w.untilCompleted(1)
	})
}

// TestPartition cuts off one of two hosts: its process runs, but is unreachable. Mail for its
// member is marked as undelivered, is sent again and arrives once. Its task is reassigned, and is
// completed once, although both members do it.
func TestPartition(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.must("create", "demo", "--liveness", "beat=200ms,offline=1500ms,undelivered=1s,leadLost=1h")
	w.must("spawn", "demo", "s0")
	w.must("task", "add", "demo", "work", "--owner", "s0", "--run", "echo $CADRE_MEMBER_NAME >>ran; until test -e "+
		"go; do sleep 0.02; done; echo by $CADRE_MEMBER_NAME")
	eventually(t, "it runs", func() bool { return len(w.lines("ran")) == 1 })
	b, there, err := w.beats().Of(t.Context(), "s0")
	if err != nil || !there {
		t.Fatalf("s0 has a heartbeat: %t (%v), want one", there, err)
	}
	if err := syscall.Kill(b.Pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	back := func() { syscall.Kill(b.Pid, syscall.SIGCONT) }
	t.Cleanup(back)
	w.start("host", "demo")
	w.must("spawn", "demo", "s1")
	w.must("send", "demo", "--as", "lead", "--to", "s0", "what is your status?")
	var note string
	w.until("the lead is told that it is not delivered", func(s *team.State) bool {
		for _, m := range s.Inbox("lead") {
			if strings.Contains(m.Body, "Not delivered to s0") {
				note = m.Body
			}
		}
		return note != ""
	})
	order(t, note, "Not delivered to s0 for 1 s: #", "from lead", "Send them again", "give its tasks to another member",
		"or wait")
	eventually(t, "it is offline", func() bool { life, _ := w.lives("s0"); return life == "offline" })
	order(t, w.must("probe", "demo"), "s0", "offline", "silent for", "1 late: cadre resend")
	order(t, w.must("resend", "demo", "s0"), "1 message sent to s0 again")
	w.must("reassign", "demo", "1", "s1")
	eventually(t, "the other member works on it", func() bool { return slices.Contains(w.lines("ran"), "s1") })
	w.write("go", "")
	w.untilCompleted(1)
	back()
	w.until("the message is delivered", func(s *team.State) bool {
		m, _ := s.Member("s0")
		return len(m.Inbox) == 0 &&
			len(m.Late) == 0
	})
	if task := w.task("1"); task.CompletedBy != "s1" || task.Result != "by s1\n" {
		t.Errorf("the task was completed by %s: %s", task.CompletedBy, task.Result)
	}
	if n := w.count("demo", "task_completed")["1"]; n != 1 {
		t.Errorf("the task was completed %d times", n)
	}
	w.deliveredOnce("what is your status?")
	w.refused(w.cadre("resend", "demo", "s0"), 1, "no message for s0 is late")
}

// deliveredOnce checks that the message with these words was sent once, and delivered once.
func (w *world) deliveredOnce(words string) {
	w.t.Helper()
	sent, given := map[float64]bool{}, 0
	for _, e := range w.history("demo") {
		if e.is("message_sent") && e["body"] == words {
			sent[e["seq"].(float64)] = true
		}
	}
	for _, e := range w.history("demo") {
		if e.is("messages_delivered") {
			for _, seq := range e["seqs"].([]any) {
				if sent[seq.(float64)] {
					given++
				}
			}
		}
	}
	if len(sent) != 1 || given != 1 {
		w.t.Errorf("%q was sent %d times and delivered %d times", words, len(sent), given)
	}
}

// savedWork is the file that a teammate without a lead leaves.
type savedWork struct {
	Member string   `json:"teammate_id"`
	Task   string   `json:"task_claimed"`
	At     int64    `json:"timestamp_utc_ms"`
	Commit string   `json:"last_good_state"`
	Edits  string   `json:"file_edits"`
	Files  []string `json:"files"`
	Output string   `json:"last_output"`
}

func (w *world) saved(member string) (s savedWork, there bool) {
	w.t.Helper()
	data, err := os.ReadFile(filepath.Join(w.teamDir(), member+"_checkpoint.json"))
	if err != nil {
		return s, false
	}
	if err := json.Unmarshal(data, &s); err != nil {
		w.t.Fatal(err)
	}
	return s, true
}

// half is a turn that makes an agent half done when its lead dies. It changes files, says a word,
// and runs a command that ends when the test allows it.
func half(agent string) agenttest.Turn {
	turn := shells[agent]("echo 'half of it' > work.txt; echo more >> README.md; touch began; until test -e go; do " +
		"sleep 0.05; done")
	turn.Text = "I have half of it."
	return turn
}

// orphans creates a team in a repository and kills its lead. By then its teammate ann, a member
// with that agent, is in the middle of its task.
func orphans(t *testing.T, agent, liveness string, script agenttest.Script, agents ...string) *studio {
	t.Helper()
	s := newStudio(t, func(r *agenttest.Request) agenttest.Turn {
		if id, calls := task(r); who(r) == "ann" && id == "1" && len(calls) == 0 {
			return half(agent)
		}
		return script(r)
	}, append(agents, agent)...)
	s.repository()
	s.must("create", "demo", "--permission-mode", "bypassPermissions", "--liveness", liveness)
	s.must("spawn", "demo", "ann", "--agent", agent)
	s.must("spawn", "demo", "eve", "--agent", "external")
	lead := s.mcp("mcp", "--team", "demo")
	s.must("task", "add", "demo", "Write it", "--owner", "ann")
	s.waitFor("ann works on the task", func() bool { return has(s.dir, "began") })
	lead.dies()
	s.lost()
	t.Cleanup(func() {
		if t.Failed() {
			log, _ := os.ReadFile(filepath.Join(s.teamDir(), "host.log"))
			t.Logf("%s\n%s", log, s.model.Story())
		}
	})
	return s
}

// TestZombie checks an agent without a lead. It continues with its task, its work is saved
// regularly, and mail waits. When there is a lead again, the mail is delivered, and the saved work
// is in the history.
func TestZombie(t *testing.T) {
	t.Parallel()
	for _, agent := range []string{"claude", "codex"} {
		t.Run(agent, func(t *testing.T) {
			s := orphans(t, agent, "beat=300ms,checkpoint=300ms,leadLost=2s", complete)
			var first savedWork
			s.waitFor("its work is saved", func() (there bool) { first, there = s.saved("ann"); return there })
			head := s.gitSays("rev-parse", "HEAD")
			if first.Member != "ann" || first.Task != "1" || first.Commit != head ||
				first.Output != "I have half of it." ||
				!slices.Contains(first.Files, "work.txt") || !slices.Contains(first.Files, "README.md") {
				t.Errorf("the saved work is %+v", first)
			}
			order(t, first.Edits, "README.md", "+more", "work.txt", "+half of it")
			s.waitFor("it is saved again", func() bool { now, _ := s.saved("ann"); return now.At > first.At })
			s.must("send", "demo", "--as", "eve", "--to", "ann", "the port is 4711")
			order(t, s.must("probe", "demo"), "ann", "online", "zombie", "saved work waits",
				"1 held until there is a lead")
			if status := s.gitSays("status", "--porcelain"); !strings.Contains(status, "?? work.txt") ||
				strings.Contains(status, "A  ") {
				t.Errorf("saving touched the index:\n%s", status)
			}
			before := len(s.model.Requests())
			order(t, s.must("resume", "demo"), "is lost since", "saved work waits", "team demo continues")
			s.waitFor("the saved work is in the history", func() bool {
				_, there := s.saved("ann")
				return !there && s.count("demo", "work_saved")["1"] > 0
			})
			s.write("go", "")
			s.waitFor("the task is completed", func() bool { return s.task("1").Status == team.Completed })
			has := 0
			for i, r := range s.model.Requests() {
				n := strings.Count(string(r.Raw), "the port is 4711")
				if has = max(has, n); n > 0 && i < before || n > 1 {
					t.Errorf("request %d of %d before there was a lead has the message %d times", i, before, n)
				}
			}
			if has == 0 {
				s.waitFor("the held message is in its context", func() bool {
					return slices.ContainsFunc(s.model.Requests(), func(r *agenttest.Request) bool {
						return strings.Count(string(r.Raw), "the port is 4711") == 1
					})
				})
			}
			if n := s.count("demo", "task_completed")["1"]; n != 1 {
				t.Errorf("the task was completed %d times", n)
			}
		})
	}
}

// TestZombieRests checks a zombie that waits too long for a lead. It returns its task with the work
// so far, and stops. The next owner of the task is shown that work.
func TestZombieRests(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ agent, heir string }{{"codex", "claude"}, {"claude", "codex"}} {
		t.Run(c.agent+" to "+c.heir, func(t *testing.T) {
			s := orphans(t, c.agent, "beat=300ms,checkpoint=300ms,leadLost=2s,zombie=5s", complete, c.heir)
			s.must("spawn", "demo", "bob", "--agent", c.heir)
			s.waitFor("the task is on the list", func() bool { return s.task("1").Status == team.Pending })
			s.waitFor("no session is left", func() bool { return len(s.processes()) == 0 })
			s.waitFor("it is dormant", func() bool { return s.state() == "dormant" })
			if life, _ := s.lives("ann"); life != "paused" {
				t.Errorf("ann is %s", life)
			}
			kept := s.task("1").Saved
			if kept == nil || kept.Member != "ann" || kept.Output != "I have half of it." ||
				kept.Commit != s.gitSays("rev-parse", "HEAD") || has(s.teamDir(), "ann_checkpoint.json") {
				t.Fatalf("the task has the saved work %+v", kept)
			}
			order(t, kept.Diff, "+more", "+half of it")
			order(t, s.must("log", "demo"), "there has been no lead for 5 s")
			order(t, s.must("reassign", "demo", "1", "bob"), "task 1 is bob's now, with what ann had done of it")
			order(t, s.must("resume", "demo"), "paused", "team demo continues")
			s.waitFor("the task is completed", func() bool { return s.task("1").Status == team.Completed })
			if by := s.task("1").CompletedBy; by != "bob" {
				t.Errorf("%s did it", by)
			}
			i := slices.IndexFunc(s.model.Requests(), func(r *agenttest.Request) bool {
				return who(r) == "bob" &&
					yours.MatchString(string(r.Raw))
			})
			if i < 0 {
				t.Fatal("bob got no message about the task")
			}
			var told string
			for _, m := range s.model.Requests()[i].Messages {
				if strings.Contains(m.Text, "Task 1 is yours now") {
					told = m.Text
				}
			}
			order(t, told, "Task 1 is yours now: \"Write it\"", "ann started it and could not continue",
				"against the commit "+kept.Commit, "+half of it", "I have half of it.")
			for _, m := range []string{"ann", "bob"} {
				s.until(m+" is back", func(st *team.State) bool {
					now, _ := st.Member(m)
					return now.Host != "" &&
						now.Status == team.Idle
				})
			}
		})
	}
}

// TestZombieThatWaits checks that a teammate that waits for its lead with a task returns the task
// after a while.
func TestZombieThatWaits(t *testing.T) {
	t.Parallel()
	s := newStudio(t, func(r *agenttest.Request) agenttest.Turn {
		plans := 0
		for _, m := range r.Messages {
			plans += called(m.Calls, "SubmitPlan")
		}
		if id, _ := task(r); id != "" && plans == 0 {
			return use(r, "SubmitPlan", map[string]any{"plan": "Just write."})
		}
		return agenttest.Say("I wait for the approval.")
	}, "claude")
	s.must("create", "demo", "--permission-mode", "bypassPermissions", "--liveness",
		"beat=300ms,checkpoint=300ms,leadLost=2s,blocked=2s")
	s.must("spawn", "demo", "ann", "--agent", "claude", "--plan-approval")
	lead := s.mcp("mcp", "--team", "demo")
	s.must("task", "add", "demo", "Write it", "--owner", "ann")
	s.until("ann waits for the approval of its plan", func(st *team.State) bool {
		m, _ := st.Member("ann")
		return m.Plan.State == "submitted" && m.Status == team.Idle && len(st.Held("ann")) == 1
	})
	lead.dies()
	s.lost()
	s.until("its task is in the queue", func(st *team.State) bool {
		task,
			_ := st.Task("1")
		return task.Status == team.Pending
	})
	order(t, s.must("log", "demo"), "the lead is lost", "it was blocked for 2 s without a lead")
	if life, status := s.lives("ann"); life != "online" || status != "zombie" {
		t.Errorf("ann is %s, %s", life, status)
	}
	s.must("resume", "demo")
	s.until("its task is its own again", func(st *team.State) bool { return len(st.Held("ann")) == 1 })
}

// TestLateMessage checks a message for an agent whose model is in a long answer. The message is
// late, is sent again, and is in the context once.
func TestLateMessage(t *testing.T) {
	t.Parallel()
	for _, agent := range []string{"claude", "codex"} {
		t.Run(agent, func(t *testing.T) {
			var s *studio
			s = newStudio(t, func(r *agenttest.Request) agenttest.Turn {
				if id, calls := task(r); id != "" && len(calls) == 0 && !has(s.dir, "go") {
					turn := shells[agent]("true")
					turn.Wait = func(ctx context.Context) {
						for ctx.Err() == nil && !has(s.dir, "go") {
							select {
							case <-ctx.Done():
							case <-time.After(20 * time.Millisecond):
							}
						}
					}
					return turn
				}
				return complete(r)
			}, agent)
			s.must("create", "demo", "--permission-mode", "bypassPermissions", "--liveness",
				"beat=300ms,undelivered=1s")
			s.must("spawn", "demo", "ann", "--agent", agent)
			s.must("spawn", "demo", "eve", "--agent", "external")
			s.must("task", "add", "demo", "Write it", "--owner", "ann")
			s.model.WaitFor(t, "ann's model is at it", func(r *agenttest.Request) bool {
				id,
					_ := task(r)
				return id == "1"
			})
			s.must("send", "demo", "--as", "eve", "--to", "ann", "the port is 4711")
			late := func() { // the lead knows
				t.Helper()
				s.until("the message is late", func(st *team.State) bool {
					m,
						_ := st.Member("ann")
					return len(m.Late) == 1
				})
			}
			late()
			order(t, s.must("inbox", "demo", "lead"), "Not delivered to ann for 1 s: #", "from eve",
				"Send them again")
			order(t, s.must("resend", "demo", "ann"), "1 message sent to ann again")
			late() // late a second time
			s.must("resend", "demo", "ann")
			s.write("go", "")
			s.waitFor("the task is completed", func() bool { return s.task("1").Status == team.Completed })
			s.until("it is delivered", func(st *team.State) bool {
				m, _ := st.Member("ann")
				return len(m.Inbox) == 0 && len(m.Late) == 0 && m.Status == team.Idle
			})
			s.deliveredOnce("the port is 4711")
			most := 0
			for _, r := range s.model.Requests() {
				most = max(most, strings.Count(string(r.Raw), "the port is 4711"))
			}
			if most != 1 {
				t.Errorf("the message is %d times in the context:\n%s", most, s.model.Story())
			}
			s.refused(s.cadre("resend", "demo", "ann"), 1, "no message for ann is late")
		})
	}
}
