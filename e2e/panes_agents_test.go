package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"cadre/internal/agent/agenttest"
)

// TestAgentsInPanes runs eight members in panes: Claude Code, Codex and Gemini CLI, two each, a
// shell, and a Claude Code at a terminal of its own, whose pane is that terminal. One agent is
// killed in the middle of its turn. The team finishes, and its panes go.
func TestAgentsInPanes(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it starts seven agents; not with -short")
	}
	kinds := map[string]string{"ann": "claude", "amy": "claude", "ben": "codex", "bob": "codex", "cat": "gemini",
		"cyd": "gemini", "tom": "claude"}
	var s *studio
	s = newStudio(t, func(r *agenttest.Request) agenttest.Turn {
		me := who(r)
		id, calls := task(r)
		if id == "" || me == "" {
			return agenttest.Say("I wait, says %s.", me)
		}
		if called(calls, "TaskUpdate") == 0 && (len(calls) == 0 || !has(s.dir, "go")) { // codex waits for 30 seconds
			return shells[kinds[me]](fmt.Sprintf("touch began-%s; until test -e go; do sleep 0.2; done", me))
		}
		return complete(r)
	}, "claude", "codex", "gemini")
	s.atHome()
	file := "name: eight\npermissions: {mode: bypassPermissions}\nmembers:\n  - {name: sue, agent: shell}\n"
	tasks := "tasks:\n  - {id: of-sue, owner: sue, run: 'touch began-sue; until test -e go; do sleep 0.2; done'}\n"
	names := []string{"sue"}
	for _, name := range []string{"ann", "amy", "ben", "bob", "cat", "cyd"} {
		names = append(names, name)
		file += fmt.Sprintf("  - {name: %s, agent: %s}\n", name, kinds[name])
		tasks += fmt.Sprintf("  - {id: of-%s, owner: %[1]s, description: take your time}\n", name)
	}
	s.file(file + tasks)
	p := s.terminal("sh")
	p.enter(cadre + " run team.yaml; echo status $?")
	began := func(name string) { p.wait(name+" works", func() bool { return has(s.dir, "began-"+name) }) }
	for _, name := range names {
		began(name)
	}
	s.must("spawn", "eight", "tom", "--agent", "claude-tmux", "--permission-mode", "bypassPermissions")
	s.must("task", "add", "eight", "take your time", "--owner", "tom")
	began("tom")
	names = append(names, "tom")
	p.story = func() string {
		return p.do("list-panes", "-a", "-F", "#{pane_id} #{pane_dead} #{@cadre-member} #{pane_current_command}")
	}
	p.wait("eight members have panes", func() bool { return len(p.panes()) == 8 })
	p.story = s.model.Story
	for name, pane := range p.panes() {
		p.wait("the pane of "+name+" shows its work", func() bool {
			return strings.Contains(strings.ReplaceAll(p.do("capture-pane", "-p", "-S", "-", "-t", pane), "\n", ""),
				"began-"+name)
		})
	}
	own := p.do("capture-pane", "-p", "-t", p.panes()["tom"])
	if !strings.Contains(own, "❯") || strings.Contains(own, "a line that you type goes to") {
		t.Errorf("the pane of tom is not its own terminal:\n%s", own)
	}
	killed := ""
	for _, pid := range s.agentPids("codex") {
		data, _ := os.ReadFile(filepath.Join("/proc", fmt.Sprint(pid), "environ"))
		if strings.Contains(string(data), "CADRE_MEMBER_NAME=bob\x00") {
			killed = "bob"
			syscall.Kill(pid, syscall.SIGKILL)
		}
	}
	if killed == "" {
		t.Fatal("the process of bob is not found")
	}
	p.wait("the pane of bob says that its session ended", func() bool {
		return strings.Contains(p.do("capture-pane", "-p", "-S", "-", "-t", p.panes()["bob"]), "✗ the session ended")
	})
	s.write("go", "")
	p.shows("8 of 8 tasks done")
	p.shows("status 0")
	p.wait("the panes go with their members", func() bool { return len(p.panes()) == 0 })
	done := map[string]string{}
	for _, task := range read[[]struct{ Owner, Status, Result string }](s.world, "task", "list", "eight") {
		done[task.Owner] = task.Status + ": " + task.Result
	}
	for _, name := range names {
		if got := done[name]; !strings.HasPrefix(got, "completed: ") || name != "sue" &&
			!strings.HasSuffix(got, " by "+name) {
			t.Errorf("the task of %s is %s", name, got)
		}
	}
}
