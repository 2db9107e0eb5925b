package upkeep_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"cadre/internal/engine/upkeep"
	"cadre/internal/host"
	"cadre/internal/journal/store/filestore"
	"cadre/internal/layout"
	"cadre/internal/replica"
	"cadre/internal/team"
)

// TestRemoveWaitsForProcesses: the folder of a team stays while one of its processes is running,
// because that works in the folder.
func TestRemoveWaitsForProcesses(t *testing.T) {
	home := layout.Home{Root: t.TempDir()}
	if err := home.Create("demo", []team.Command{{ID: replica.NewID(), Actor: team.User, At: replica.Now(),
		Body: &team.CreateTeam{TeamID: "demo-1", Name: "demo", Dir: t.TempDir()}}}); err != nil {
		t.Fatal(err)
	}
	opened := func() upkeep.Team {
		j, dir, err := home.Open("demo", func(what string) { t.Error(what) })
		if err != nil {
			t.Fatal(err)
		}
		rep, err := replica.Open(t.Context(), j, replica.Options{})
		if err != nil {
			t.Fatal(err)
		}
		return upkeep.Team{
			Replica: rep, Dir: dir, Actor: team.User,
			Log:  func(what string) { t.Log(what) },
			Warn: func(err error) { t.Log(err) },
		}
	}
	of := opened()
	procs, _, err := host.Enroll(t.Context(), filestore.Team(of.Dir), filepath.Join(of.Dir, "hosts"), "h1")
	if err != nil {
		t.Fatal(err)
	}
	how := upkeep.Removal{Home: home}
	const patience = 20 * time.Second
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	removed := make(chan error, 1)
	go func() {
		_, err := upkeep.Remove(ctx, of, how)
		removed <- err
	}()
	journal := opened()
	defer journal.Close()
	for seq := int64(0); ; seq = journal.Seq() {
		if journal.Team().CleanedUp {
			break
		}
		if err := journal.Wait(ctx, seq); err != nil {
			t.Fatal(err)
		}
	}
	was := journal.Team()
	cancel()
	if err := <-removed; !errors.As(err, new(*upkeep.LingeringError)) {
		t.Errorf("the team is removed while a host of it lives: %v", err)
	}
	if _, err := os.Stat(of.Dir); err != nil {
		t.Fatalf("its folder is gone: %v", err)
	}
	if err := procs.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := upkeep.Clear(t.Context(), of, was, nil, how); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(of.Dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("its folder is still there: %v", err)
	}
}
