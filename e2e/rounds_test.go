package e2e

import (
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"cadre/internal/host"
	"cadre/internal/journal/store/filestore"
	"cadre/internal/layout"
	"cadre/internal/team"
	"cadre/internal/testkit/soak"
)

var (
	roundsFlag = flag.Int("rounds", 0, "play so many rounds of TestRounds, however long they take; 0 for as many as "+
		"fit into a normal test run")
	seedFlag = flag.Uint64("seed", 0, "the seed of the first round of TestRounds; 0 for a new one")
)

const (
	roundsTime = 20 * time.Second // in a normal test run
	shorter    = time.Second
)

// TestRounds kills one process of a working team of six: its lead, its host, a watchdog, an agent,
// or a child of a task. Then it resumes the team. In every fourth round it kills resume too, and
// calls it again. The team must finish: every task is completed once, every message is delivered
// once, and no process is left. The test repeats that with other teams and other victims for a
// while, or for a given number of rounds:
//
//	make rounds ROUNDS=500
func TestRounds(t *testing.T) {
	soak.Long(t)
	if !has("/proc/self/environ") {
		t.Skip("the test finds the processes of a team by their environments, in /proc")
	}
	seed, enough := *seedFlag, roundsTime
	if seed == 0 {
		seed = uint64(time.Now().UnixNano()) % 1_000_000
	}
	if testing.Short() {
		enough = shorter
	}
	t.Logf("the first seed is %d", seed)
	var next atomic.Int64
	killed := make([]atomic.Int64, len(victims))
	var twice atomic.Int64
	t.Cleanup(func() {
		total := int64(0)
		var list []string
		for i, kind := range victims {
			total += killed[i].Load()
			list = append(list, fmt.Sprintf("%s %d", kind, killed[i].Load()))
		}
		t.Logf("%d rounds; killed were: %s, and then resume %d times", total, strings.Join(list, ", "), twice.Load())
	})
	began := time.Now()
	for worker := range 2 {
		t.Run(fmt.Sprint("worker ", worker), func(t *testing.T) {
			t.Parallel()
			for !t.Failed() {
				n := next.Add(1) - 1
				if *roundsFlag > 0 && n >= int64(*roundsFlag) || *roundsFlag == 0 && n > 0 &&
					time.Since(began) > enough {
					return
				}
				seed := seed + uint64(n)
				t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
					r := newRound(t, seed)
					for r.play() == "" { // the team finished before the kill
						r = newRound(t, r.seed+1_000_000)
					}
					killed[slices.Index(victims, r.killed)].Add(1)
					if r.again {
						twice.Add(1)
					}
				})
			}
		})
	}
}

// victims lists the kinds of processes of a team.
var victims = []string{"run", "lead", "host", "watchdog", "agent", "tools", "command"}

// round is the life of one team.
type round struct {
	*world
	dice      *rand.Rand
	seed      uint64
	members   []string
	byHand    bool // an outside session leads it, with a host in the background; otherwise a run does
	tasks     int
	main      []*process // the run, or the host
	lead      *client
	watchdogs []int  // all that were seen
	killed    string // the kind of the killed process
	again     bool   // resume was killed too
}

func newRound(t *testing.T, seed uint64) *round {
	r := &round{world: newWorld(t), dice: rand.New(rand.NewPCG(seed, 500)), seed: seed,
		members: []string{"s1", "s2", "s3", "s4", "a1", "a2"}}
	r.byHand = r.dice.IntN(2) == 0
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("seed %d, by hand: %t", seed, r.byHand)
			for _, p := range r.main {
				t.Logf("%s said:\n%s", strings.Join(p.Args[1:], " "), p.said())
			}
			log, _ := os.ReadFile(filepath.Join(r.teamDir(), "host.log"))
			t.Logf("the host in the background printed:\n%s", log)
			if has(r.teamDir()) {
				t.Logf("%s", r.cadre("log", "demo").out)
			}
		}
	})
	return r
}

// actorCommand returns the command of the agent that plays the member.
func (r *round) actorCommand(member string) string {
	self, err := os.Executable()
	if err != nil {
		r.t.Fatal(err)
	}
	words := append([]string{self, filepath.Join(r.root, "histories", member)}, r.colleagues(member)...)
	return "acp:'" + strings.Join(words, "' '") + "'"
}

func (r *round) colleagues(member string) []string {
	return slices.DeleteFunc(slices.Clone(r.members), func(m string) bool { return m == member })
}

// work returns a shell task that sends a colleague a message with unique words.
func (r *round) work() team.CreateTask {
	to := r.dice.Perm(len(r.members))
	return team.CreateTask{Retries: 5, Run: fmt.Sprintf("to=%s; test $to != $CADRE_MEMBER_NAME || to=%s; %s send "+
		"demo --to $to \"word of task $CADRE_TASK_ID $$ $(date +%%N)\" && sleep 0.0%d && echo done",
		r.members[to[0]], r.members[to[1]], cadre, r.dice.IntN(8))}
}

func (r *round) begin() {
	var tasks []team.CreateTask
	for i := range 8 {
		task := r.work()
		if i > 3 && r.dice.IntN(2) == 0 {
			task.BlockedBy = []string{fmt.Sprint(1 + r.dice.IntN(i))}
		}
		task.Role = "shell"
		tasks = append(tasks, task)
	}
	for i := range 4 {
		tasks = append(tasks, team.CreateTask{Retries: 5, Owner: r.members[4+i%2]})
	}
	r.tasks = len(tasks)
	if !r.byHand {
		var b strings.Builder
		b.WriteString("name: demo\nliveness: {beat: 200ms, leadLost: 2s}\nmembers:\n")
		for _, m := range r.members {
			if m[0] == 's' {
				fmt.Fprintf(&b, "  - {name: %s, role: shell}\n", m)
			} else {
				fmt.Fprintf(&b, "  - {name: %s, agent: %q, env: {%s: actor}}\n", m, r.actorCommand(m), helperMode)
			}
		}
		b.WriteString("tasks:\n")
		for i, task := range tasks {
			fmt.Fprintf(&b, "  - {id: t%d, retries: %d, run: %q, owner: %q, role: %q, blockedBy: [%s]}\n", i+1,
				task.Retries, task.Run, task.Owner, task.Role, prefixed("t", task.BlockedBy))
		}
		r.main = append(r.main, r.start("run", r.write("team.yaml", b.String())))
		eventually(r.t, "there is a team", func() bool { return has(r.home, "teams", "demo") || r.main[0].over() })
		return
	}
	commands := founding(time.Now(), &team.CreateTeam{Name: "demo", Dir: r.dir, PermissionMode: "bypassPermissions",
		Timing: team.Timing{Beat: 200 * time.Millisecond, LeadLost: 2 * time.Second}})
	for _, m := range r.members {
		body := &team.SpawnMember{Name: m, Agent: team.Shell, Role: "shell"}
		if m[0] == 'a' {
			body.Agent, body.Role, body.Env = r.actorCommand(m), "", []string{helperMode + "=actor"}
		}
		commands = append(commands, command(time.Now(), body))
	}
	for i := range tasks {
		tasks[i].Subject = fmt.Sprintf("task number %d", i+1)
		commands = append(commands, command(time.Now(), &tasks[i]))
	}
	if err := (layout.Home{Root: r.home}).Create("demo", commands); err != nil {
		r.t.Fatal(err)
	}
	r.lead = r.mcp("mcp", "--team", "demo")
	r.main = append(r.main, r.start("host", "demo"))
}

func prefixed(prefix string, words []string) string {
	all := make([]string, len(words))
	for i, w := range words {
		all[i] = prefix + w
	}
	return strings.Join(all, ", ")
}

// play plays the round. It returns the kind of the killed process, or "" if all had already ended.
func (r *round) play() string {
	r.begin()
	target := 6 + r.dice.Int64N(130)
	r.awaitState(r.main[0], "demo", func(s *team.State) bool {
		return s.Seq() >= target || s.Count(team.Completed) >= r.tasks-1
	})
	pid := r.killOne()
	if pid == 0 {
		return ""
	}
	r.t.Cleanup(func() {
		if r.t.Failed() {
			r.t.Logf("killed the %s, at about record %d, and then resume: %t", r.killed, target, r.again)
		}
	})
	if pid == r.main[0].Process.Pid {
		<-r.main[0].gone
	}
	began := time.Now()
	if r.again = r.dice.IntN(4) == 0; r.again {
		p := r.start("resume", "demo")
		select {
		case <-p.gone:
		case <-time.After(time.Duration(r.dice.IntN(250)) * time.Millisecond):
			r.processes()
			p.kill()
		}
	}
	r.resume()
	resumed := time.Now()
	r.finish()
	r.t.Logf("killed the %s, at about record %d, and then resume: %t; by hand: %t; resumed after %s, at its end "+
		"after %s", r.killed, target, r.again, r.byHand,
		resumed.Sub(began).Round(time.Millisecond), time.Since(resumed).Round(time.Millisecond))
	return r.killed
}

// processes returns the processes of the team, by kind.
func (r *round) processes() map[string][]int {
	watchdogs, all := watchdogsByHost(r.t), map[string][]int{}
	entries, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, path := range entries {
		env, err := os.ReadFile(path)
		if err != nil || !strings.Contains("\x00"+string(env), "\x00CADRE_HOME="+r.home+"\x00") {
			continue
		}
		line, _ := os.ReadFile(filepath.Join(filepath.Dir(path), "cmdline"))
		args := strings.Split(strings.TrimSuffix(string(line), "\x00"), "\x00")
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		kind := "command"
		switch {
		case args[0] == cadre && len(args) > 1 && (args[1] == "run" || args[1] == "host") &&
			pid == r.main[0].Process.Pid: // not a child of it that is about to exec
			kind = args[1]
		case args[0] == cadre && slices.Contains(args, "--socket"):
			kind = "tools"
		case args[0] == cadre && len(args) > 1 && args[1] == "mcp":
			kind = "lead"
		case len(args) > 1 && strings.HasPrefix(args[1], filepath.Join(r.root, "histories")):
			kind = "agent"
		}
		all[kind] = append(all[kind], pid)
	}
	for _, pids := range all {
		for _, host := range pids { // a watchdog has no environment
			all["watchdog"] = append(all["watchdog"], watchdogs[host]...)
		}
	}
	for _, pid := range r.watchdogs { // of a host that is dead by now
		line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		if strings.Contains(string(line), "cadre-watchdog") && !slices.Contains(all["watchdog"], pid) {
			all["watchdog"] = append(all["watchdog"], pid)
		}
	}
	r.watchdogs = all["watchdog"]
	maps.DeleteFunc(all, func(_ string, pids []int) bool { return len(pids) == 0 })
	return all
}

// watchdogsByHost returns the running watchdogs of all teams, by the process that holds them.
func watchdogsByHost(t *testing.T) map[int][]int {
	t.Helper()
	out, err := exec.Command("ps", "-A", "-o", "pid=,ppid=,args=").Output()
	if err != nil {
		t.Error(err)
	}
	all := map[int][]int{}
	for line := range strings.Lines(string(out)) {
		if fields := strings.Fields(line); strings.Contains(line, "cadre-watchdog") {
			pid, _ := strconv.Atoi(fields[0])
			host, _ := strconv.Atoi(fields[1])
			all[host] = append(all[host], pid)
		}
	}
	return all
}

// killOne kills a process of the team and notes its kind. It returns the pid, or 0 if no process is
// left.
func (r *round) killOne() (pid int) {
	r.t.Helper()
	for range 100 {
		all := r.processes()
		kinds := slices.Sorted(maps.Keys(all))
		if len(kinds) == 0 {
			return 0
		}
		r.killed = kinds[r.dice.IntN(len(kinds))]
		if pid = all[r.killed][r.dice.IntN(len(all[r.killed]))]; syscall.Kill(pid, syscall.SIGKILL) == nil {
			return pid
		}
	}
	r.t.Fatal("no victim was left")
	return 0
}

// resume calls cadre resume, as a user would who notices the damage.
func (r *round) resume() {
	r.t.Helper()
	for began := time.Now(); ; {
		said := r.watched("resume", "demo")
		switch {
		case said.code == 0:
			return
		case said.code == 2 && (strings.Contains(said.err, "team demo is complete") ||
			strings.Contains(said.err, "has ended meanwhile")):
			return
		// the lead is alive
		case said.code == 1 && (strings.Contains(said.err, "leads team ") || strings.Contains(said.err, "lead team ")):
			if !r.main[0].over() {
				return
			}
			// A child that was just starting may have held the lock of the dead host for some
			// milliseconds. A host that is alive for longer is the one that the first resume
			// started.
			if r.again && r.byHand && time.Since(began) > 500*time.Millisecond &&
				host.Hosted(r.t.Context(), filestore.Team(r.teamDir())) {
				return
			}
			if time.Since(began) > patience {
				r.t.Fatalf("the host is dead, but resume says that it is alive:\n%s%s", said.out, said.err)
			}
		default:
			r.t.Fatalf("resume ended with %d:\n%s%s", said.code, said.out, said.err)
		}
	}
}

// watched runs cadre, and notes the watchdogs of its children meanwhile.
func (r *round) watched(args ...string) result {
	r.t.Helper()
	over, seen := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(seen)
		for {
			select {
			case <-over:
				return
			case <-time.After(100 * time.Millisecond):
				r.processes()
			}
		}
	}()
	said := r.cadre(args...)
	close(over)
	<-seen
	return said
}

// finish runs the team to its end, and checks the promises.
func (r *round) finish() {
	r.t.Helper()
	if r.byHand {
		r.until("all tasks are done and all mail is read", func(s *team.State) bool {
			if s.Count(team.Completed) != r.tasks {
				return false
			}
			for _, m := range s.Members() {
				if m.Name != "lead" && (m.Status != team.Idle || len(m.Inbox) > 0) {
					return false
				}
			}
			return true
		})
	} else if !r.main[0].over() {
		r.main[0].wait()
	}
	rep := r.replica("demo")
	sent, given, completed := map[int64]team.Message{}, map[int64]int{}, map[string]int{}
	for record, err := range rep.Read(r.t.Context(), 0) {
		if err != nil {
			r.t.Fatal(err)
		}
		for _, e := range record.Events {
			switch e := e.(type) {
			case *team.MessageSent:
				if strings.HasPrefix(e.Message.Body, "word of task") {
					sent[e.Message.Seq] = e.Message
				}
			case *team.MessagesDelivered:
				for _, seq := range e.Seqs {
					given[seq]++
				}
			case *team.TaskCompleted:
				completed[e.Task]++
			}
		}
	}
	for seq, n := range given {
		if n != 1 {
			r.t.Errorf("message %d was delivered %d times", seq, n)
		}
	}
	for i := range r.tasks {
		if n := completed[fmt.Sprint(i+1)]; n != 1 {
			r.t.Errorf("task %d was completed %d times", i+1, n)
		}
	}
	if len(sent) < r.tasks {
		r.t.Errorf("only %d messages were sent", len(sent))
	}
	heardBy := map[string]string{}
	for _, m := range r.members[4:] {
		all, err := histories(filepath.Join(r.root, "histories", m))
		if err != nil {
			r.t.Fatal(err)
		}
		for _, h := range all {
			heardBy[m] += h.Text + "\n"
		}
	}
	for seq, m := range sent {
		if given[seq] == 0 {
			r.t.Errorf("message %d from %s to %s was never delivered", seq, m.From, m.To)
		}
		if text, acts := heardBy[m.To]; acts && strings.Count(text, m.Body+"\n") != 1 {
			r.t.Errorf("message %d from %s is %d times in the histories of %s", seq, m.From,
				strings.Count(text, m.Body+"\n"), m.To)
		}
	}
	if r.byHand {
		r.processes() // a watchdog is only visible while its host runs
		r.must("abort", "demo", "--yes")
		r.lead.stdin.Close()
		r.lead.wait()
	} else if state := r.state(); state != "complete" {
		r.t.Errorf("the team is %s", state)
	}
	left := r.processes()
	for deadline := time.Now().Add(patience); len(left) > 0 && time.Now().Before(deadline); left = r.processes() {
		<-time.After(5 * time.Millisecond)
	}
	if len(left) > 0 {
		r.t.Errorf("processes left: %v", left)
	}
}
