package pgjournal_test

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"cadre/internal/journal"
	"cadre/internal/journal/journaltest"
	"cadre/internal/journal/pgjournal"
	"cadre/internal/journal/store"
	"cadre/internal/journal/store/storetest"
	"cadre/internal/testkit/postgrestest"
)

// TestTeams checks the list of teams against its contract.
func TestTeams(t *testing.T) {
	t.Parallel()
	for name, parameters := range map[string]string{"": "",
		"without prepared statements": "default_query_exec_mode=exec"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			storetest.RunTeams(t, func(t testing.TB) storetest.Place {
				at := fresh(t, postgrestest.Shared(t)).with(parameters)
				return storetest.Place{Project: "/one", Other: "/\u00fcber",
					Open: func() store.Teams { return at.store(t, pgjournal.Options{}).Teams() }}
			})
		})
	}
}

// TestAnyNames checks that the list takes any names and ids, in the order of their bytes.
func TestAnyNames(t *testing.T) {
	t.Parallel()
	s := fresh(t, postgrestest.Shared(t)).store(t, pgjournal.Options{})
	var want []store.Entry
	for i, name := range []string{"Z", "a", "b'; --", "Ü"} {
		want = append(want, entry(name, name+"-id"))
		if err := s.Create(t.Context(), want[i], slices.Repeat([][]byte{[]byte("1")}, i)); err != nil {
			t.Fatal(err)
		}
	}
	if teams, err := s.Teams().List(t.Context()); err != nil || !slices.Equal(teams, want) {
		t.Errorf("the teams are %v, %v", teams, err)
	}
	j, err := s.Open(t.Context(), "b'; ---id")
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	if j.ID() != "b'; ---id" {
		t.Errorf("the id is %s", j.ID())
	}
}

// TestCreateMany creates a team with more records than go into one statement.
func TestCreateMany(t *testing.T) {
	t.Parallel()
	var records []string
	for n := range 3000 {
		records = append(records, fmt.Sprint(n))
	}
	at := fresh(t, postgrestest.Shared(t))
	_, j := at.create(t, pgjournal.Options{}, records...)
	if got := journaltest.All(t, j, 0); !slices.Equal(got, records) {
		t.Errorf("%d records, want %d", len(got), len(records))
	}
	seen := int64(0)
	if _, err := open(t, at.store(t, pgjournal.Options{})).Append(t.Context(), 1000, func(r journal.Record) error {
		seen++
		return nil
	}, func() ([]byte, error) { return nil, nil }); err != nil || seen != 2000 {
		t.Errorf("an append was shown %d records, %v", seen, err)
	}
}

// TestCreateRaces creates a team from many sides. One of them has created it.
func TestCreateRaces(t *testing.T) {
	t.Parallel()
	at := fresh(t, postgrestest.Shared(t))
	var won atomic.Int64
	var wg sync.WaitGroup
	for i := range 6 {
		s := at.store(t, pgjournal.Options{})
		wg.Go(func() {
			switch err := s.Create(t.Context(), entry(team, fmt.Sprint("id", i)), [][]byte{fmt.Append(nil, i)}); {
			case err == nil:
				won.Add(1)
			case !errors.Is(err, journal.ErrExists):
				t.Error(err)
			}
		})
	}
	wg.Wait()
	s := at.store(t, pgjournal.Options{})
	teams, err := s.Teams().List(t.Context())
	if err != nil || len(teams) != 1 {
		t.Fatalf("the teams are %v, %v", teams, err)
	}
	j, err := s.Open(t.Context(), teams[0].ID)
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	if got := journaltest.All(t, j, 0); won.Load() != 1 || len(got) != 1 || "id"+got[0] != j.ID() {
		t.Errorf("%d have created %s with %q", won.Load(), j.ID(), got)
	}
}

// TestRemove removes a team while a handle is open, and creates another one with its name.
func TestRemove(t *testing.T) {
	t.Parallel()
	at := fresh(t, postgrestest.Shared(t))
	s, j := at.create(t, pgjournal.Options{}, "1", "2")
	other := open(t, at.store(t, pgjournal.Options{}))
	if err := j.SaveSnapshot(t.Context(), journal.Snapshot{Seq: 2, Data: "{}"}.Taken); err != nil {
		t.Fatal(err)
	}
	if err := s.Remove(t.Context(), teamID); err != nil {
		t.Fatal(err)
	}
	at.sql(t, `DO $$ BEGIN ASSERT NOT EXISTS (SELECT FROM team) AND NOT EXISTS (SELECT FROM record)
		AND NOT EXISTS (SELECT FROM snapshot); END $$`)
	if err := s.Create(t.Context(), entry(team, "another"), [][]byte{[]byte("3")}); err != nil {
		t.Fatal(err)
	}
	for _, old := range []*pgjournal.Journal{j, other} {
		_, appending := journaltest.Add(t.Context(), old, 2, "4")
		var reading error
		for _, reading = range old.Read(t.Context(), 0) {
		}
		_, snapshot := old.Snapshot(t.Context())
		for call, err := range map[string]error{"append": appending, "read": reading, "snapshot": snapshot,
			"wait": old.Wait(t.Context(), 2),
			"save": old.SaveSnapshot(t.Context(), journal.Snapshot{Seq: 1, Data: "1"}.Taken)} {
			if !errors.Is(err, journal.ErrGone) {
				t.Errorf("%s: %v", call, err)
			}
		}
	}
	next, err := s.Open(t.Context(), "another")
	if err != nil {
		t.Fatal(err)
	}
	defer next.Close()
	if got := journaltest.All(t, next, 0); !slices.Equal(got, []string{"3"}) {
		t.Errorf("the new team has %q", got)
	}
}

// TestRemoveRaces removes a team while others append and save snapshots. Nothing of it remains.
func TestRemoveRaces(t *testing.T) {
	t.Parallel()
	at := fresh(t, postgrestest.Shared(t))
	s, _ := at.create(t, pgjournal.Options{})
	var wg sync.WaitGroup
	var appended atomic.Int64
	for range 3 {
		j := open(t, at.store(t, pgjournal.Options{}))
		wg.Go(func() {
			last := int64(0)
			for {
				seq, err := j.Append(t.Context(), last, func(journal.Record) error { return nil },
					func() ([]byte, error) { return []byte("1"), nil })
				if err == nil {
					appended.Add(1)
					last = seq
					err = j.SaveSnapshot(t.Context(), journal.Snapshot{Seq: seq, Data: "{}"}.Taken)
				}
				if errors.Is(err, journal.ErrGone) {
					return
				} else if err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	for appended.Load() < 30 && !t.Failed() {
		time.Sleep(time.Millisecond)
	}
	if err := s.Remove(t.Context(), teamID); err != nil {
		t.Error(err)
	}
	wg.Wait()
	at.sql(t, `DO $$ BEGIN ASSERT NOT EXISTS (SELECT FROM team) AND NOT EXISTS (SELECT FROM record)
		AND NOT EXISTS (SELECT FROM snapshot); END $$`)
}

// TestRemoveWaits removes a team while a snapshot of it is being saved.
func TestRemoveWaits(t *testing.T) {
	t.Parallel()
	at := fresh(t, postgrestest.Shared(t))
	s, j := at.create(t, pgjournal.Options{}, "1")
	removed := make(chan error, 1)
	err := j.SaveSnapshot(t.Context(), func() (int64, []byte) {
		go func() { removed <- s.Remove(t.Context(), teamID) }()
		select {
		case err := <-removed:
			t.Errorf("the team was removed meanwhile: %v", err)
		case <-time.After(200 * time.Millisecond):
		}
		return 1, []byte("{}")
	})
	if err != nil {
		t.Error(err)
	}
	if err := <-removed; err != nil {
		t.Error(err)
	}
	at.sql(t, `DO $$ BEGIN ASSERT NOT EXISTS (SELECT FROM snapshot); END $$`)
}

// TestNoIsolationByDefault checks that the defaults of a role or database do not change what an
// append sees.
func TestNoIsolationByDefault(t *testing.T) {
	t.Parallel()
	at := fresh(t, postgrestest.Shared(t))
	at.create(t, pgjournal.Options{})
	strict := at.with("default_transaction_isolation=serializable")
	var wg sync.WaitGroup
	for w := range 4 {
		j := open(t, strict.store(t, pgjournal.Options{}))
		wg.Go(func() {
			if err := appendDecided(j, fmt.Sprint(w), 10); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	checkDecided(t, open(t, at.store(t, pgjournal.Options{})), 4, 10)
}

// TestCloseIsHeard checks that closing a handle ends a wait for the lock soon, not when the server
// has had enough.
func TestCloseIsHeard(t *testing.T) {
	t.Parallel()
	at := fresh(t, postgrestest.Shared(t))
	_, j := at.create(t, pgjournal.Options{})
	waiting := open(t, at.store(t, pgjournal.Options{}))
	_, err := j.Append(t.Context(), 0, func(journal.Record) error { return nil }, func() ([]byte, error) {
		ended := make(chan error)
		go func() { _, err := journaltest.Add(t.Context(), waiting, 0, "1"); ended <- err }()
		time.Sleep(50 * time.Millisecond)
		began := time.Now()
		waiting.Close()
		if err := <-ended; !errors.Is(err, os.ErrClosed) || time.Since(began) > time.Second {
			t.Errorf("after %s: %v", time.Since(began), err)
		}
		return []byte("2"), nil
	})
	if err != nil {
		t.Error(err)
	}
}

// TestReadOnly checks that a database that cannot be written can be read, and says why not.
func TestReadOnly(t *testing.T) {
	t.Parallel()
	at := fresh(t, postgrestest.Shared(t))
	at.create(t, pgjournal.Options{}, "1")
	j := open(t, at.with("default_transaction_read_only=on").store(t, pgjournal.Options{}))
	if got := journaltest.All(t, j, 0); len(got) != 1 {
		t.Errorf("the records are %q", got)
	}
	if _, err := journaltest.Add(t.Context(), j, 1, "2"); err == nil || !strings.Contains(err.Error(), "standby") {
		t.Errorf("append: %v", err)
	}
}
