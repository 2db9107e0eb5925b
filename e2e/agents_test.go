package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"cadre/internal/agent/agenttest"
)

// studio is a world in which real agents talk to a scripted model.
type studio struct {
	*world
	model *agenttest.Server
}

// newStudio makes one with these programs in PATH, or skips the test where one of them cannot be had.
func newStudio(t *testing.T, script agenttest.Script, names ...string) *studio {
	t.Helper()
	var programs []agenttest.Program
	for _, name := range names {
		programs = append(programs, agenttest.Installed(t, name))
	}
	s := &studio{model: agenttest.NewServer(t, script)}
	w := agenttest.NewWorld(t, s.model, programs...)
	s.world = &world{t: t, root: w.Home, home: filepath.Join(w.Home, ".cadre"), dir: w.Dir, env: w.Env}
	t.Cleanup(func() {
		if left := s.processes(); len(left) > 0 {
			t.Errorf("left running are %v", left)
		}
	})
	s.cleanUpAfter()
	return s
}

// processes are those whose home is the studio's, by what the kernel knows of them.
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

// pids are those of the processes whose command line has the text.
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

// run runs a team to its end and returns what it printed, which the test shows when it fails.
func (s *studio) run(args ...string) result {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
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

// who is the member that a model plays, by what it was told of itself.
func who(r *agenttest.Request) string {
	if m := regexp.MustCompile(`You are ([a-z0-9-]+), (?:the lead of a team|a teammate)`).FindStringSubmatch(r.System); m != nil {
		return m[1]
	}
	for _, m := range r.Messages {
		if found := regexp.MustCompile(`You are ([a-z0-9-]+), (?:the lead of a team|a teammate)`).FindStringSubmatch(m.Text); found != nil {
			return found[1]
		}
	}
	return ""
}

var yours = regexp.MustCompile(`Task (\d+) is yours now`)

// task is the one that the model was told of last, and the calls that it made since.
func task(r *agenttest.Request) (id string, calls []agenttest.Call) {
	for _, m := range r.Messages {
		if m.Role == "user" {
			if all := yours.FindAllStringSubmatch(m.Text, -1); all != nil {
				id, calls = all[len(all)-1][1], nil
			}
		}
		calls = append(calls, m.Calls...)
	}
	return id, calls
}

// called counts the calls of a team tool among them.
func called(calls []agenttest.Call, tool string) (n int) {
	for _, c := range calls {
		if c.Name == tool || strings.HasSuffix(c.Name, "_"+tool) {
			n++
		}
	}
	return n
}

// use calls one of the team's tools, by the name that the agent has for it.
func use(r *agenttest.Request, tool string, input map[string]any) agenttest.Turn {
	return agenttest.Use(r.Tool(tool), input)
}

// complete is what a teammate does that has a task: it completes it, and ends its turn.
func complete(r *agenttest.Request) agenttest.Turn {
	id, calls := task(r)
	if id == "" {
		return agenttest.Say("There is nothing for me to do.")
	}
	if called(calls, "TaskUpdate") == 0 {
		return use(r, "TaskUpdate", map[string]any{"taskId": id, "status": "completed", "result": "result of task " + id + " by " + who(r)})
	}
	return agenttest.Say("Task %s is done.", id)
}

// reports is what a lead does that was asked for its report.
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

// A Claude lead plans, spawns a Claude, a Codex and a Gemini teammate; all work and talk to each other; the report arrives.
func TestMixedTeam(t *testing.T) {
	colleagues := map[string]string{"ann": "bob", "bob": "eve", "eve": "ann"}
	s := newStudio(t, func(r *agenttest.Request) agenttest.Turn {
		me := who(r)
		if me != "lead" {
			id, calls := task(r)
			if id != "" && called(calls, "SendMessage") == 0 {
				return use(r, "SendMessage", map[string]any{"to": colleagues[me], "message": "I am at task " + id + ", says " + me})
			}
			return complete(r)
		}
		var all []agenttest.Call
		for _, m := range r.Messages {
			all = append(all, m.Calls...)
		}
		agents := []string{"claude", "codex", "gemini"}
		names := []string{"ann", "bob", "eve"}
		tasks := []map[string]any{
			{"subject": "Look", "description": "at all", "owner": "ann"},
			{"subject": "Write", "description": "it down", "owner": "bob", "blockedBy": []string{"1"}},
			{"subject": "Test", "description": "it", "owner": "eve", "blockedBy": []string{"1"}},
			{"subject": "Finish", "description": "it", "blockedBy": []string{"2", "3"}},
		}
		switch n, m := called(all, "SpawnTeammate"), called(all, "TaskCreate"); {
		case reports(r):
			return agenttest.Say("# The port\n\nAll four are done; the results are with the tasks.")
		case n < 3:
			return use(r, "SpawnTeammate", map[string]any{"name": names[n], "agent": agents[n], "prompt": "You work on the port."})
		case m < 4:
			return use(r, "TaskCreate", tasks[m])
		}
		return agenttest.Say("I wait.")
	}, "claude", "codex", "gemini")
	r := s.run("port the parser", "--agent", "claude", "--name", "port", "--permission-mode", "bypassPermissions")
	if r.code != 0 {
		t.Fatalf("exit status %d\n%s%s\n%s", r.code, r.out, r.err, s.model.Story())
	}
	report := s.report(r)
	for _, part := range []string{"All four are done", "result of task 1 by ann", "result of task 2 by bob", "result of task 3 by eve", "4 of 4"} {
		if !strings.Contains(report+r.out, part) {
			t.Errorf("the report has no %q:\n%s", part, report)
		}
	}
	for from, to := range colleagues {
		if !slices.ContainsFunc(s.model.Requests(), func(r *agenttest.Request) bool { return who(r) == to && r.Has("says "+from) }) {
			t.Errorf("%s never saw what %s wrote", to, from)
		}
	}
	for _, req := range s.model.Requests() {
		for from := range colleagues {
			for id := 1; id <= 4; id++ {
				if n := req.Count(fmt.Sprintf("I am at task %d, says %s\n</team-message>", id, from)); n > 1 {
					t.Errorf("request %d, of %s, has a message of %s %d times", req.N, who(req), from, n)
				}
			}
		}
	}
	status := read[struct {
		Status string
		Usage  struct{ InputTokens int64 }
	}](s.world, "status", "port")
	if status.Status != "complete" || status.Usage.InputTokens == 0 {
		t.Errorf("the team is %+v", status)
	}
}

var _ = syscall.SIGKILL
var _ sync.Mutex
