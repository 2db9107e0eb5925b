package upkeep_test

import (
	"path/filepath"
	"testing"

	"cadre/internal/engine/upkeep"
	"cadre/internal/layout"
	"cadre/internal/team"
)

// TestReassignAFailedTask: a failed task is tried again by the member that gets it, and a member
// that does not exist gets none.
func TestReassignAFailedTask(t *testing.T) {
	home, project := layout.Home{Root: filepath.Join(t.TempDir(), "cadre")}, t.TempDir()
	of := opened(t, home, &team.CreateTeam{TeamID: "demo-1", Name: "demo", Dir: project},
		&team.SpawnMember{Name: "ann", Agent: team.External}, &team.SpawnMember{Name: "bob", Agent: team.External},
		&team.CreateTask{Subject: "Lex", Name: "lexer", Owner: "ann"})
	do := func(body team.Body) {
		if _, err := of.Do(t.Context(), team.Command{Actor: "ann", Body: body}); err != nil {
			t.Fatal(err)
		}
	}
	do(&team.ClaimTask{Task: "1"})
	var held team.Task
	of.View(func(s *team.State) { held, _ = s.Task("1") })
	do(&team.FailTask{Task: "1", Fence: held.Fence, Reason: "no grammar"})

	if _, err := upkeep.Reassign(t.Context(), of, upkeep.Reassignment{Task: "1", To: "zork"}); team.CodeOf(err) !=
		team.NotFound {
		t.Errorf("a member that does not exist gets the task: %v", err)
	}
	task, err := upkeep.Reassign(t.Context(), of, upkeep.Reassignment{Task: "1", To: "bob"})
	if err != nil || task.Owner != "bob" || task.OutOfRetries() || task.Failures != 0 {
		t.Errorf("the failed task is %+v, %v", task, err)
	}
	of.View(func(s *team.State) {
		if !s.HasWork("bob") {
			t.Error("bob has nothing to do")
		}
	})
}
