package e2e

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"cadre/internal/agent/agenttest"
	"cadre/internal/host"
	"cadre/internal/journal/store/filestore"
	"cadre/internal/team"
)

// goesDown simulates a power failure: it kills everything that runs in the world, including the
// tools of agents. A killed host may be missing in the process list and still hold its locks, while
// one of its threads waits for the disk.
func (s *studio) goesDown() {
	for len(s.processes()) > 0 {
		for _, p := range s.processes() {
			pid, _, _ := strings.Cut(p, " ")
			if n, err := strconv.Atoi(pid); err == nil {
				syscall.Kill(n, syscall.SIGKILL)
			}
		}
	}
	eventually(s.t, "no killed host has its lock", func() bool {
		teams, _ := filepath.Glob(filepath.Join(s.home, "teams", "*"))
		return !slices.ContainsFunc(teams, func(dir string) bool {
			return host.Hosted(s.t.Context(), filestore.Team(dir))
		})
	})
}

// TestResumeOfAgents simulates a power failure while a team of agents works: the lead, its
// teammates, and what their tools run. One command resumes all of them with the agents' own resume.
// Each has its history, its task and its mail.
func TestResumeOfAgents(t *testing.T) {
	t.Parallel()
	agents := map[string]string{"ann": "claude", "bob": "codex"}
	s := newStudio(t, func(r *agenttest.Request) agenttest.Turn {
		me := who(r)
		if me == "lead" {
			calls := all(r)
			names := []string{"ann", "bob"}
			switch n, m := called(calls, "SpawnTeammate"), called(calls, "TaskCreate"); {
			case reports(r):
				return agenttest.Say("# The port\n\nBoth are done.")
			case n < 2:
				return use(r, "SpawnTeammate", map[string]any{"name": names[n], "agent": agents[names[n]],
					"prompt": "You work on the port."})
			case m < 2:
				return use(r, "TaskCreate", map[string]any{"subject": "Part of " + names[m], "description": "do it",
					"owner": names[m]})
			}
			return agenttest.Say("I wait.")
		}
		told := 0
		for _, m := range r.Messages {
			if m.Role == "user" {
				told += len(yours.FindAllString(m.Text, -1))
			}
		}
		if _, calls := task(r); told == 1 && len(calls) == 0 {
			return shells[agents[me]]("touch began-" + me + "; sleep 1000")
		}
		return complete(r)
	}, "claude", "codex")
	s.start("run", "port the parser", "--agent", "claude", "--name", "demo", "--permission-mode", "bypassPermissions")
	s.waitFor("both members are at work", func() bool { return has(s.dir, "began-ann") && has(s.dir, "began-bob") })
	s.must("send", "demo", "--to", "bob", "the port is 4711")
	s.must("send", "demo", "--to", "lead", "mind the tests")
	s.goesDown()
	s.waitFor("it is dormant", func() bool { return s.state() == "dormant" })
	before := len(s.model.Requests())
	r := s.cadre("resume", "demo")
	if r.code != 0 {
		t.Fatalf("exit status %d\n%s%s\n%s", r.code, r.out, r.err, s.model.Story())
	}
	order(t, r.out, "✓ team demo", "! session run-", "has ended", "3 offline", "0 of 2 tasks done (0 %), 2 in progress",
		"team demo continues", "2 of 2 tasks done")
	for id, who := range map[string]string{"1": "ann", "2": "bob"} {
		if done := s.task(id); done.Status != team.Completed || done.CompletedBy != who ||
			s.count("demo", "task_completed")[id] != 1 {
			t.Errorf("task %s is %s, by %s, completed %d times", id, done.Status, done.CompletedBy,
				s.count("demo", "task_completed")[id])
		}
	}
	for me, words := range map[string]string{"bob": "the port is 4711", "lead": "mind the tests"} {
		s.deliveredOnce(words)
		most := 0
		for _, req := range s.model.Requests() {
			if who(req) == me {
				most = max(most, strings.Count(string(req.Raw), words))
			}
		}
		if most != 1 {
			t.Errorf("%s has its message %d times:\n%s", me, most, s.model.Story())
		}
	}
	for i, me := range []string{"ann", "bob", "lead"} {
		words := fmt.Sprintf("Task %d is yours now", i+1) // what it knew before
		if me == "lead" {
			words = "port the parser"
		}
		back := s.model.Requests()[before:]
		first := slices.IndexFunc(back, func(req *agenttest.Request) bool { return who(req) == me })
		if first < 0 || !strings.Contains(string(back[first].Raw), words) || len(back[first].Messages) < 3 {
			t.Errorf("%s started over:\n%s", me, s.model.Story())
		}
	}
}
