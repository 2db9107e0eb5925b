package layout_test

import (
	"testing"

	"cadre/internal/journal/store"
	"cadre/internal/journal/store/storetest"
	"cadre/internal/layout"
	"cadre/internal/team"
)

// TestTeams checks the home's list of teams against its contract.
func TestTeams(t *testing.T) {
	t.Parallel()
	storetest.RunTeams(t, func(t testing.TB) storetest.Place {
		h := layout.Home{Root: t.TempDir()}
		return storetest.Place{Open: func() store.Teams { return h.Teams() }, Project: t.TempDir(), Other: t.TempDir(),
			Begin: func(e store.Entry) [][]byte {
				_, records, err := team.Begin([]team.Command{{ID: "c", Actor: team.User, At: 1,
					Body: &team.CreateTeam{TeamID: e.ID, Name: e.Name, Dir: e.Project}}})
				if err != nil {
					t.Fatal(err)
				}
				return records
			}}
	})
}
