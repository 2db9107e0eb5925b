package attention

import (
	"path/filepath"
	"testing"

	"cadre/internal/journal"
	"cadre/internal/layout"
	"cadre/internal/replica"
	"cadre/internal/team"
)

// TestSharedReplica: beside a reader of a team, a follower works on the replica of that reader,
// which can read on when the follower is closed.
func TestSharedReplica(t *testing.T) {
	home := layout.Home{Root: filepath.Join(t.TempDir(), "cadre")}
	err := home.Create("demo", []team.Command{{ID: replica.NewID(), Actor: team.User, At: replica.Now(),
		Body: &team.CreateTeam{TeamID: replica.NewID(), Name: "demo", Dir: t.TempDir()}}})
	if err != nil {
		t.Fatal(err)
	}
	var shared replica.Shared
	dir, err := home.Folder("demo")
	if err != nil {
		t.Fatal(err)
	}
	rep, err := shared.Open(t.Context(), dir, nil, func(report func(string)) (journal.Journal, error) {
		return home.OpenFolder(dir, report)
	})
	if err != nil {
		t.Fatal(err)
	}
	defer rep.Close()
	f := &Follower{Home: home, Shared: &shared, Log: func(text string) { t.Log(text) }}
	if found, err := f.Teams(t.Context()); err != nil || len(found) != 1 {
		t.Fatalf("%+v, %v", found, err)
	}
	if f.teams["demo"].replica != rep {
		t.Error("the follower has a replica of its own")
	}
	f.Close()
	if err := rep.Refresh(t.Context()); err != nil {
		t.Errorf("after the follower: %v", err)
	}
}
