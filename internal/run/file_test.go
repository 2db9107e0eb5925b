package run_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"cadre/internal/agent/drivers"
	"cadre/internal/engine"
	"cadre/internal/run"
	"cadre/internal/team"
)

// TestTeamFilesTakeEveryAgent: a team file takes the agents that cadre spawn takes, and lets those
// lead that can lead a goal.
func TestTeamFilesTakeEveryAgent(t *testing.T) {
	for _, agent := range drivers.Words() {
		if err := engine.CheckAgent(agent); err != nil {
			t.Error(err)
		}
		of, does := "", "run: 'true'"
		if agent == team.NestedTeam { // it runs no command
			of, does = ", goal: g", "description: d"
		}
		if _, err := run.ParseFile("team.yaml", fmt.Appendf(nil,
			"name: demo\nmembers: [{name: ann, agent: '%s'%s}]\nmaxDepth: 1\ntasks: [{id: one, %s}]\n", agent, of,
			does)); err != nil &&
			agent != team.External {
			t.Errorf("a member with the agent %s: %v", agent, err)
		}
		_, err := run.ParseFile("team.yaml", fmt.Appendf(nil, "name: demo\ngoal: g\nlead: {agent: '%s'}\n", agent))
		if leads := slices.Contains(drivers.Leading(), agent); leads != (err == nil) {
			t.Errorf("%s can lead: %t; a team file says %v", agent, leads, err)
		}
		if _, err := new(engine.Engine).Leading(t.Context(), agent); !slices.Contains(drivers.Leading(), agent) &&
			team.CodeOf(err) != team.Invalid {
			t.Errorf("%s leads a goal: %v", agent, err)
		}
	}
	if _, err := new(engine.Engine).Leading(t.Context(), "clod"); err == nil ||
		!strings.HasSuffix(err.Error(), "can lead: "+strings.Join(drivers.Leading(), ", ")) {
		t.Errorf("an unknown agent leads a goal: %v", err)
	}
}
