package attention

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"cadre/internal/journal/store"
	"cadre/internal/journal/store/memstore"
	"cadre/internal/layout"
	"cadre/internal/replica"
	"cadre/internal/team"
)

// TestWatchInAPlace checks that a record of a team without a journal in a folder is noticed at
// once, and not only at the next look.
func TestWatchInAPlace(t *testing.T) {
	place := &memstore.Teams{}
	home := layout.Home{Root: filepath.Join(t.TempDir(), "cadre"), Place: layout.NewPlace("the place", filepath.Base,
		func(context.Context) (store.Teams, func(), error) { return place, func() {}, nil })}
	err := home.Create("demo", []team.Command{{ID: replica.NewID(), Actor: team.User, At: replica.Now(),
		Body: &team.CreateTeam{TeamID: "demo-" + strings.ToLower(replica.NewID()), Name: "demo", Dir: t.TempDir()}}})
	if err != nil {
		t.Fatal(err)
	}
	j, _, err := home.Open("demo", nil)
	if err != nil {
		t.Fatal(err)
	}
	rep, err := replica.Open(t.Context(), j, replica.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer rep.Close()
	f := &Follower{Home: home, Pace: time.Hour, Log: func(text string) { t.Log(text) }}
	defer f.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	looks := 0
	err = f.Watch(ctx, func(found []Found) (done bool) {
		if looks++; looks == 2 { // the team is open now, and heard
			create := &team.CreateTask{Subject: "new", Owner: team.DefaultLead}
			if _, err := rep.Do(ctx, team.Command{Actor: team.User, Body: create}); err != nil {
				t.Error(err)
			}
		}
		return ForUser(Waiting(found))
	})
	if err != nil {
		t.Errorf("after %d looks: %v", looks, err)
	}
}
