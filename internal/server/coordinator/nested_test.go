package coordinator

import (
	"encoding/json"
	"testing"

	"cadre/internal/team"
)

// TestANestedTeamSaysWhereItIs: the metadata of a nested team name its parent. The protocol has no
// fields for it.
func TestANestedTeamSaysWhereItIs(t *testing.T) {
	s := &team.State{}
	d, err := team.Decide(s, team.Command{ID: "1", Actor: team.User, Body: &team.CreateTeam{TeamID: "c1", Name: "c",
		Dir: "/w", Depth: 1, Parent: team.Parent{Team: "up-1", Name: "up", Member: "sub", Task: "3"},
		Metadata: map[string]json.RawMessage{"own": json.RawMessage(`1`)}}})
	if err != nil {
		t.Fatal(err)
	}
	s.Apply(d.Record)
	of := teamOf(s)
	if got := string(of.Metadata[nestedKey]); string(of.Metadata["own"]) != "1" ||
		got != `{"parentTeamId":"up-1","parentMemberId":"sub","parentTaskId":"3","depth":1}` {
		t.Errorf("the metadata are %s", of.Metadata)
	}
	if _, kept := s.Team().Metadata[nestedKey]; kept {
		t.Error("the metadata of the team itself were changed")
	}
}
