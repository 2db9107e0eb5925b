package e2e

import (
	"slices"
	"strings"
	"testing"

	"cadre/internal/agent/agenttest"
)

// approveAll says yes to each of the questions as it comes.
func (l *lodge) approveAll(questions ...string) {
	l.t.Helper()
	for len(questions) > 0 {
		asked := -1
		l.screen.wait("the lead does not ask "+strings.Join(questions, ", nor "), func() bool {
			now := l.screen.do("capture-pane", "-p", "-J", "-t", "%0")
			for i, question := range questions {
				if strings.Contains(now, question) {
					asked = i
				}
			}
			return asked >= 0
		})
		l.approve(questions[asked])
		questions = append(questions[:asked:asked], questions[asked+1:]...)
	}
}

// commands counts the commands that a model had run.
func commands(calls []agenttest.Call) (n int) {
	for _, c := range calls {
		switch c.Name {
		case "exec_command", "run_shell_command", "bash", "Bash":
			n++
		}
	}
	return n
}

// TestClaudeLeadsGeminiAndOpenCode checks a person's Claude Code that spawns a Gemini CLI and an
// opencode with cadre. Each claims its task, and asks for a command at the lead's screen. It
// completes the task, answers a message of the lead, and ends after a shutdown request.
func TestClaudeLeadsGeminiAndOpenCode(t *testing.T) {
	t.Parallel()
	agents := map[string]string{"gemini-1": "gemini", "opencode-1": "opencode"}
	tasks := map[string]string{"gemini-1": "1", "opencode-1": "2"}
	l := newLodge(t, "claude", func(r *agenttest.Request) agenttest.Turn {
		calls, me := all(r), who(r)
		if agents[me] != "" {
			switch {
			case r.Has("The lead needs you no more") && called(calls, "RespondToShutdown") == 0:
				return use(r, "RespondToShutdown", map[string]any{"approve": true})
			case called(calls, "TaskClaim") == 0:
				return use(r, "TaskClaim", map[string]any{"taskId": tasks[me]})
			case commands(calls) == 0:
				return shells[agents[me]]("touch made-by-" + me)
			case called(calls, "TaskUpdate") == 0:
				return use(r, "TaskUpdate", map[string]any{"taskId": tasks[me], "status": "completed",
					"result": "made by " + me})
			case r.Has("which one exactly") && called(calls, "SendMessage") == 0:
				return use(r, "SendMessage", map[string]any{"to": "team-lead",
					"message": "Exactly made-by-" + me + "."})
			}
			return agenttest.Say("I made it, says %s.", me)
		}
		var sent []string
		for _, c := range calls {
			if c.Name == "SendMessage" {
				to, _ := c.Input["to"].(string)
				sent = append(sent, to)
			}
		}
		told := func(name string) int { return strings.Count(strings.Join(sent, " ")+" ", name+" ") }
		switch n, m := called(calls, "TaskCreate"), called(calls, "Agent"); {
		case n < 2:
			return agenttest.Use("TaskCreate", map[string]any{"subject": "Make a file",
				"description": "in the project"})
		case m < 2:
			name := []string{"gemini-1", "opencode-1"}[m]
			return agenttest.Use("Agent", map[string]any{"description": "makes a file", "prompt": "You make a file.",
				"name": name, "subagent_type": "general-purpose"})
		}
		for name := range agents {
			switch {
			case r.Has("I made it, says "+name) && told(name) == 0:
				return agenttest.Use("SendMessage", map[string]any{"to": name, "message": "which one exactly?",
					"summary": "which one"})
			case r.Has("Exactly made-by-"+name) && told(name) == 1:
				return agenttest.Use("SendMessage",
					map[string]any{"to": name, "message": map[string]any{"type": "shutdown_request",
						"reason": "The lead needs you no more"}})
			}
		}
		return agenttest.Say("I wait.")
	}, []string{"--permission-mode", "default"}, "gemini", "opencode")
	l.screen.enter("make two files")
	l.approveAll("gemini asks to use Bash", "opencode asks to use Bash")
	l.waitFor("the teammates are gone", func() bool {
		return strings.Join(l.members(), " ") == "team-lead" &&
			len(l.agentPids("gemini"))+len(l.agentPids("opencode")) == 0
	})
	for name, id := range tasks {
		// The lead's program removes tasks when all are done.
		done := func(r *agenttest.Request) bool { return r.Has("Task #" + id + " completed") }
		if !slices.ContainsFunc(l.of(name), done) {
			t.Errorf("%s did not complete task %s", name, id)
		}
		if !has(l.dir, "made-by-"+name) {
			t.Errorf("the approved command of %s did not run", name)
		}
	}
}
