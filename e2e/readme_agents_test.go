package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"cadre/internal/agent/agenttest"
	"cadre/internal/testkit/doctest"
)

// TestReadmeGoal runs the goal of README with the installed agent, and compares its output.
// TestDocumentsRun in cmd/cadre runs the other commands of the documents.
func TestReadmeGoal(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	var goal doctest.Command
	for _, c := range doctest.Commands(string(text)) {
		if strings.HasPrefix(c.Line, `cadre run "`) {
			goal = c
		}
	}
	if !goal.Shows {
		t.Fatal("README does not run a goal, or does not show its output")
	}
	work := []string{"Port the rules", "Port the tests"}
	s := newStudio(t, func(r *agenttest.Request) agenttest.Turn {
		if who(r) != "lead" {
			return complete(r)
		}
		switch planned := called(all(r), "TaskCreate"); {
		case reports(r):
			return agenttest.Say("The parser is ported.")
		case planned < len(work):
			return use(r, "TaskCreate", map[string]any{"subject": work[planned], "description": "of the parser"})
		}
		return agenttest.Say("The teammates work.")
	}, "claude")
	for i, v := range s.env {
		if path, ok := strings.CutPrefix(v, "PATH="); ok {
			s.env[i] = "PATH=" + filepath.Dir(cadre) + ":" + path
		}
	}
	c := exec.CommandContext(t.Context(), "/bin/sh", "-c", goal.Line)
	c.Dir, c.Env = s.dir, s.env
	r := finish(t, c)
	if r.code != 0 {
		t.Fatalf("exit status %d\n%s%s\n%s", r.code, r.out, r.err, s.model.Story())
	}
	if why := goal.Differs(strings.ReplaceAll(r.out+r.err, s.dir, "~/src/parser")); why != "" {
		t.Error(why)
	}
	if report := s.report(r); !strings.Contains(report, "The parser is ported.") {
		t.Errorf("the report is\n%s", report)
	}
}
