package memstore_test

import (
	"testing"

	"cadre/internal/journal/memjournal"
	"cadre/internal/journal/store"
	"cadre/internal/journal/store/memstore"
	"cadre/internal/journal/store/storetest"
)

func TestContract(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(testing.TB) func() storetest.Handle {
		records, shared := memjournal.New("demo"), &memstore.Store{}
		return func() storetest.Handle { return storetest.Handle{Journal: records.Open(), Team: shared} }
	})
}

// TestTeams checks the list of teams against its contract.
func TestTeams(t *testing.T) {
	t.Parallel()
	storetest.RunTeams(t, func(testing.TB) storetest.Place {
		teams := &memstore.Teams{}
		return storetest.Place{Open: func() store.Teams { return teams }, Project: "/one", Other: "/two"}
	})
}
