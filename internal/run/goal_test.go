package run_test

import (
	"errors"
	"path/filepath"
	"testing"

	"cadre/internal/engine"
	"cadre/internal/layout"
	"cadre/internal/run"
	"cadre/internal/run/teamfile"
	"cadre/internal/team"
)

// TestGoal: a goal becomes a team file, led by the named agent or by the agent that leads its team
// already. An impossible goal is refused before anything is created.
func TestGoal(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	e := &engine.Engine{Home: layout.Home{Root: filepath.Join(root, "home"), Claude: filepath.Join(root, "claude")}}
	agent := team.ACP + "/bin/cat"
	whole := run.Goal{Text: "Fix it.", Dir: root, Name: "fix", Agent: agent, Model: "large", Members: 2,
		MaxTeammates: 3,
		Delegate:     true, Permissions: teamfile.Permissions{Mode: "plan"}, Budget: teamfile.Budget{Tokens: 9},
		Handover: 70,
		Checks:   []team.Check{{Name: "vet", Command: "go vet"}}}
	f, err := whole.File(t.Context(), e)
	if err != nil {
		t.Fatal(err)
	}
	if f.Name != "fix" || f.Goal != "Fix it." || f.Leader.Agent != agent || f.Leader.Model != "large" || !f.Delegate ||
		len(f.Members) != 2 || f.Members[1].Name != "mate-2" || f.Members[1].Agent != agent || f.MaxTeammates != 3 ||
		f.Handover != 70 || f.Permissions.Mode != "plan" || f.Budget.Tokens != 9 || len(f.Checks) != 1 ||
		f.Checks[0].Run != "go vet" {
		t.Errorf("it is %+v", f)
	}
	if err := e.Create("fix", []team.Command{engine.Command(team.User, &team.CreateTeam{TeamID: "fix-1", Name: "fix",
		Dir: root, Goal: "Fix it.", LeadAgent: agent})}); err != nil {
		t.Fatal(err)
	}
	again := run.Goal{Text: "Fix it.", Dir: root, Name: "fix"}
	if f, err := again.File(t.Context(), e); err != nil || f.Leader.Agent != agent {
		t.Errorf("a team that is there is led by %+v, %v", f, err)
	}
	for name, change := range map[string]func(*run.Goal){
		"no goal":            func(g *run.Goal) { g.Text = " \n" },
		"too many":           func(g *run.Goal) { g.Members = teamfile.MaxMembers + 1 },
		"fewer than none":    func(g *run.Goal) { g.Members = -1 },
		"more than may be":   func(g *run.Goal) { g.MaxTeammates = 1 },
		"a shell that leads": func(g *run.Goal) { g.Agent = team.Shell },
		"nobody that leads":  func(g *run.Goal) { g.Agent = team.External },
		"no such agent":      func(g *run.Goal) { g.Agent = "wizard" },
		"not installed":      func(g *run.Goal) { g.Agent = team.ACP + "/nowhere/agent" },
	} {
		g := whole
		change(&g)
		if f, err := g.File(t.Context(), e); team.CodeOf(err) != team.Invalid || f != nil {
			t.Errorf("%s: %v", name, errors.Join(err))
		}
	}
}
