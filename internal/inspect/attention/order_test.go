package attention

import (
	"testing"

	"cadre/internal/team"
)

// TestDeadlinesFirst: the team with the nearest deadline comes first, and the others stay sorted by
// name.
func TestDeadlinesFirst(t *testing.T) {
	asks := func(at team.Time, of string) team.Item {
		return team.Item{Kind: team.ItemPermission, WaitsFor: of, Deadline: at}
	}
	stale := team.Item{Kind: team.ItemTaskFailed, WaitsFor: team.ForUser}
	got := ""
	for _, i := range Waiting([]Found{{Folder: "a", Items: []team.Item{stale}}, {Folder: "b"},
		{Folder: "c", Items: []team.Item{asks(20, team.ForUser), stale}}, {Folder: "d", Items: []team.Item{asks(5, "lead")}},
		{Folder: "e", Items: []team.Item{asks(10, team.ForUser)}}}) {
		got += i.Team
	}
	if want := "eccad"; got != want {
		t.Errorf("the teams of the items are %s, want %s", got, want)
	}
}
