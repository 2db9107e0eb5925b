package pgjournal_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"cadre/internal/journal"
	"cadre/internal/journal/journaltest"
	"cadre/internal/journal/pgjournal"
	"cadre/internal/journal/store"
	"cadre/internal/testkit/postgrestest"
)

// locate reads the address of the schema.
func (w where) locate(t *testing.T) pgjournal.Location {
	t.Helper()
	at, err := pgjournal.Locate(w.with("search_path=" + w.Schema).DSN)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

// TestGrant checks that a role with the granted rights can do everything with teams, and nothing to
// the tables.
func TestGrant(t *testing.T) {
	t.Parallel()
	server := postgrestest.Start(t, postgrestest.Options{NoSync: true})
	at := fresh(t, server)
	server.Admin(t, "CREATE ROLE worker LOGIN")
	if err := at.locate(t).Grant(t.Context(), "worker"); err != nil {
		t.Fatal(err)
	}
	worker := at
	worker.DSN = strings.Replace(at.DSN, "user=tester", "user=worker", 1)
	if worker.DSN == at.DSN {
		t.Fatalf("the address is %s", at.DSN)
	}
	s, j := worker.create(t, pgjournal.Options{})
	add(t, j, 0, "1")
	for range 2 {
		if err := j.SaveSnapshot(t.Context(), func() (int64, []byte) { return 1, []byte("{}") }); err != nil {
			t.Error(err)
		}
	}
	release(t, j.Shared(), store.Lead)
	if err := j.Shared().Put(t.Context(), "key", []byte("value")); err != nil {
		t.Error(err)
	}
	if err := s.Teams().Archive(t.Context(), j.ID()); err != nil {
		t.Error(err)
	}
	if err := s.Remove(t.Context(), j.ID()); err != nil {
		t.Error(err)
	}
	if _, err := journaltest.Add(t.Context(), j, 1, "2"); !errors.Is(err, journal.ErrGone) {
		t.Errorf("removed: %v", err)
	}
	if _, _, err := pgjournal.Migrate(t.Context(), worker.DSN, "another"); err == nil {
		t.Error("it made a schema")
	}
	if err := at.locate(t).Grant(t.Context(), "nobody at all"); err == nil ||
		!strings.Contains(err.Error(), "nobody at all") {
		t.Errorf("a role that does not exist: %v", err)
	}
}

// TestLook checks what a server says of itself.
func TestLook(t *testing.T) {
	t.Parallel()
	server := postgrestest.Start(t, postgrestest.Options{NoSync: true})
	at := fresh(t, server)
	s, err := at.locate(t).Look(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if s.Number < 140000 || s.Fsync || s.SynchronousCommit == "" || s.Needed != "" || s.Recovery || s.RoundTrip <= 0 ||
		s.Schema != pgjournal.Version() ||
		s.Skew.Abs() > time.Minute {
		t.Errorf("it is %+v", s)
	}
}
