package layout_test

import (
	"context"
	"path/filepath"
	"testing"

	"cadre/internal/journal/store"
	"cadre/internal/journal/store/memstore"
	"cadre/internal/journal/store/storetest"
	"cadre/internal/layout"
	"cadre/internal/team"
)

// TestTeams checks the home's list of teams against its contract.
func TestTeams(t *testing.T) {
	t.Parallel()
	storetest.RunTeams(t, func(t testing.TB) storetest.Place { return placeOf(t, layout.Home{Root: t.TempDir()}) })
}

// TestTeamsOfAPlace is TestTeams for a home whose teams live in a place.
func TestTeamsOfAPlace(t *testing.T) {
	t.Parallel()
	storetest.RunTeams(t, func(t testing.TB) storetest.Place {
		place := &memstore.Teams{}
		return placeOf(t, layout.Home{Root: t.TempDir(), Place: layout.NewPlace("the place", filepath.Clean,
			func(context.Context) (store.Teams, func(), error) { return place, func() {}, nil })})
	})
}

func placeOf(t testing.TB, h layout.Home) storetest.Place {
	return storetest.Place{Open: func() store.Teams { return h.Teams() }, Project: t.TempDir(), Other: t.TempDir(),
		Begin: func(e store.Entry) [][]byte {
			_, records, err := team.Begin([]team.Command{{ID: "c", Actor: team.User, At: 1,
				Body: &team.CreateTeam{TeamID: e.ID, Name: e.Name, Dir: e.Project}}})
			if err != nil {
				t.Fatal(err)
			}
			return records
		}}
}
