package e2e

import (
	"context"
	"hash/crc32"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/semaphore"

	"cadre/internal/agent/agenttest"
	"cadre/internal/testkit/soak"
)

// studio is a world in which real agents talk to a scripted model.
type studio struct {
	*world
	model *agenttest.Server
}

// seats bounds the kinds of agent programs that the tests run beside each other. Such a program
// keeps a processor busy for seconds when it starts. Too many of them make each other late.
var (
	seats    = semaphore.NewWeighted(allSeats)
	allSeats = int64(2 * runtime.NumCPU())
)

// sit waits for that many seats, and gives them back after the test.
func sit(t *testing.T, n int) {
	t.Helper()
	taken := min(int64(n), allSeats)
	if err := seats.Acquire(t.Context(), taken); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { seats.Release(taken) })
}

// newStudio creates a studio with these programs in PATH. It skips the test if it cannot get one of
// them.
func newStudio(t *testing.T, script agenttest.Script, names ...string) *studio {
	t.Helper()
	var programs []agenttest.Program
	for _, name := range names {
		programs = append(programs, agenttest.Installed(t, name))
	}
	sit(t, len(names))
	s := &studio{model: agenttest.NewServer(t, script)}
	w := agenttest.NewWorld(t, s.model, programs...)
	s.world = &world{t: t, root: w.Home, home: filepath.Join(w.Home, ".cadre"), dir: w.Dir, env: w.Env}
	t.Cleanup(func() {
		left := s.processes()
		// A host ends a moment after its team.
		for deadline := time.Now().Add(patience); len(left) > 0 &&
			time.Now().Before(deadline); left = s.processes() {
			<-time.After(20 * time.Millisecond)
		}
		if len(left) > 0 {
			t.Errorf("processes left: %v", left)
		}
	})
	s.cleanUpAfter()
	return s
}

// processes returns the processes whose home is in the studio, by their environment in the kernel.
func (s *studio) processes() (all []string) {
	entries, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, path := range entries {
		data, err := os.ReadFile(path)
		if err != nil || !strings.Contains("\x00"+string(data), "\x00HOME="+s.root+"\x00") {
			continue
		}
		line, _ := os.ReadFile(filepath.Join(filepath.Dir(path), "cmdline"))
		all = append(all, filepath.Base(filepath.Dir(path))+" "+strings.ReplaceAll(string(line), "\x00", " "))
	}
	return all
}

// pids returns the pids of the processes whose command line has the text.
func (s *studio) pids(text string) (all []int) {
	for _, p := range s.processes() {
		if pid, rest, _ := strings.Cut(p, " "); strings.Contains(rest, text) {
			n, _ := strconv.Atoi(pid)
			all = append(all, n)
		}
	}
	return all
}

// file writes a team file.
func (s *studio) file(text string) string {
	s.t.Helper()
	path := filepath.Join(s.dir, "team.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		s.t.Fatal(err)
	}
	return path
}

// run runs a team to its end and returns its output. The test shows the output when it fails.
func (s *studio) run(args ...string) result {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*patience)
	defer cancel()
	c := exec.CommandContext(ctx, cadre, append([]string{"run"}, args...)...)
	c.Dir, c.Env = s.dir, s.env
	r := finish(s.t, c)
	s.t.Cleanup(func() {
		if s.t.Failed() {
			s.t.Logf("%s%s\n%s", r.out, r.err, s.model.Story())
		}
	})
	return r
}

// who returns the member that a model plays, from its instructions.
func who(r *agenttest.Request) string {
	if m := regexp.MustCompile(`You are ([a-z0-9-]+), (?:the lead of a team|a teammate)`).FindStringSubmatch(
		r.System); m != nil {
		return m[1]
	}
	for _, m := range r.Messages {
		if found := regexp.MustCompile(`You are ([a-z0-9-]+), (?:the lead of a team|a teammate)`).FindStringSubmatch(
			m.Text); found != nil {
			return found[1]
		}
	}
	return ""
}

var yours = regexp.MustCompile(`Task (\S+) is yours now`)

// task returns the task that the model was told of last, and its calls since then.
func task(r *agenttest.Request) (id string, calls []agenttest.Call) {
	for _, m := range r.Messages {
		if m.Role != "assistant" { // Claude Code shows mail that comes while it works as system messages
			if all := yours.FindAllStringSubmatch(m.Text, -1); all != nil {
				id, calls = all[len(all)-1][1], nil
			}
		}
		calls = append(calls, m.Calls...)
	}
	return id, calls
}

// called counts the calls of a team tool in calls.
func called(calls []agenttest.Call, tool string) (n int) {
	for _, c := range calls {
		if c.Name == tool || strings.HasSuffix(c.Name, "_"+tool) {
			n++
		}
	}
	return n
}

// unanswered returns the requests of a kind, such as plan-1@ann, that the model was told of and did
// not answer with the tool. The model learns of a request wherever mail can be: in a prompt, behind
// a tool result, or while it works.
func unanswered(r *agenttest.Request, kind *regexp.Regexp, tool string) (open []string) {
	var answered []any
	for _, m := range r.Messages {
		for _, c := range m.Calls {
			if c.Name == r.Tool(tool) {
				answered = append(answered, c.Input["requestId"])
			}
		}
		told := m.Text
		for _, result := range m.Results {
			told += "\n" + result.Text
		}
		for _, id := range kind.FindAllString(told, -1) {
			if !slices.Contains(open, id) {
				open = append(open, id)
			}
		}
	}
	return slices.DeleteFunc(open, func(id string) bool { return slices.Contains(answered, any(id)) })
}

// use calls one of the team's tools, by the name that the agent has for it.
func use(r *agenttest.Request, tool string, input map[string]any) agenttest.Turn {
	return agenttest.Use(r.Tool(tool), input)
}

// sampled skips one of Gemini CLI and opencode, which share a driver and take ten times as long to
// start as the others. Each test that goes through all agents takes one of the two, and make soak
// takes both.
func sampled(t *testing.T, agent string) {
	t.Helper()
	other := map[string]string{"gemini": "opencode", "opencode": "gemini"}[agent]
	test, _, _ := strings.Cut(t.Name(), "/")
	if even := crc32.ChecksumIEEE([]byte(test))%2 == 0; other != "" && !soak.Wanted() && even == (agent == "gemini") {
		t.Skip("in this test " + other + " stands for it; make soak takes both")
	}
}

// shells maps each agent to the call that runs a command.
var shells = map[string]func(command string) agenttest.Turn{
	"claude": func(c string) agenttest.Turn {
		return agenttest.Use("Bash", map[string]any{"command": c, "description": "wait"})
	},
	"codex": func(c string) agenttest.Turn {
		return agenttest.Use("exec_command", map[string]any{"cmd": c, "yield_time_ms": 30000})
	},
	"gemini": func(c string) agenttest.Turn {
		return agenttest.Use("run_shell_command", map[string]any{"command": c, "description": "wait"})
	},
	"opencode": func(c string) agenttest.Turn {
		return agenttest.Use("bash", map[string]any{"command": c, "description": "wait"})
	},
}

// complete is the next turn of a teammate that has a task: it completes the task, and then ends the
// turn.
func complete(r *agenttest.Request) agenttest.Turn {
	id, calls := task(r)
	if id == "" {
		return agenttest.Say("There is nothing for me to do.")
	}
	if called(calls, "TaskUpdate") == 0 {
		return use(r, "TaskUpdate", map[string]any{"taskId": id, "status": "completed",
			"result": "result of task " + id + " by " + who(r)})
	}
	return agenttest.Say("Task %s is done.", id)
}

// reports reports whether the lead was asked for its report.
func reports(r *agenttest.Request) bool {
	return strings.Contains(r.LastUser(), "the final report on the goal")
}

func (s *studio) report(r result) string {
	s.t.Helper()
	m := regexp.MustCompile(`report: (.*)`).FindStringSubmatch(r.out)
	if m == nil {
		s.t.Fatalf("there is no report: exit status %d\n%s%s\n%s", r.code, r.out, r.err, s.model.Story())
	}
	text, err := os.ReadFile(m[1])
	if err != nil {
		s.t.Fatal(err)
	}
	return string(text)
}

// agentPids returns the pids of the agent's own programs, without the children of its tools.
func (s *studio) agentPids(name string) []int { return s.pids("/" + name) }

// there waits until the team exists.
func (s *studio) there(team string) {
	s.t.Helper()
	s.waitFor("there is a team "+team, func() bool { return s.cadre("status", team).code == 0 })
}

// waitFor waits until the condition holds.
func (s *studio) waitFor(what string, holds func() bool) {
	s.t.Helper()
	for began := time.Now(); !holds(); pause(began) {
		if time.Since(began) > patience {
			s.t.Fatalf("still not: %s\n%s", what, s.model.Story())
		}
	}
}

// all returns the calls that the model made in its session.
func all(r *agenttest.Request) (calls []agenttest.Call) {
	for _, m := range r.Messages {
		calls = append(calls, m.Calls...)
	}
	return calls
}

// of returns the requests of a member.
func (s *studio) of(member string) (requests []*agenttest.Request) {
	for _, r := range s.model.Requests() {
		if who(r) == member {
			requests = append(requests, r)
		}
	}
	return requests
}

// ended fails the test unless the run ended with that exit status.
func (s *studio) ended(r result, code int) {
	s.t.Helper()
	if r.code != code {
		s.t.Fatalf("exit status %d, want %d\n%s%s\n%s", r.code, code, r.out, r.err, s.model.Story())
	}
}

// text returns the trimmed content of a file in the project, or "" if there is none.
func (s *studio) text(name string) string {
	data, _ := os.ReadFile(filepath.Join(s.dir, name))
	return strings.TrimSpace(string(data))
}
