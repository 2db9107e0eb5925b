package pgjournal_test

import (
	"errors"
	"strings"
	"sync"
	"testing"

	"cadre/internal/journal"
	"cadre/internal/journal/journaltest"
	"cadre/internal/journal/pgjournal"
	"cadre/internal/testkit/postgrestest"
)

// TestMigrate brings a schema of each earlier version, with a team in it, to this one.
func TestMigrate(t *testing.T) {
	t.Parallel()
	for version := range pgjournal.Version() {
		dsn, schema := postgrestest.Shared(t).Schema(t)
		at := where{dsn, schema}
		if version > 0 {
			if from, to, err := pgjournal.MigrateTo(t.Context(), dsn, schema, version); from != 0 || to != version ||
				err != nil {
				t.Fatalf("to version %d: from %d to %d, %v", version, from, to, err)
			}
			at.sql(t, "INSERT INTO team (name, journal, made, last, ends, digest) VALUES ('demo', 'demo-1', '', 0, 0, "+
				`sha256('cadre journal demo-1'))`)
		}
		_, err := pgjournal.Connect(t.Context(), dsn, pgjournal.Options{Schema: schema})
		if !errors.Is(err, pgjournal.ErrOlder) {
			t.Errorf("version %d is not refused: %v", version, err)
		}
		var wg sync.WaitGroup
		for range 4 { // several at once
			wg.Go(func() {
				if _, to, err := pgjournal.Migrate(t.Context(), dsn, schema); to != pgjournal.Version() || err != nil {
					t.Errorf("from version %d to %d: %v", version, to, err)
				}
			})
		}
		wg.Wait()
		if from, to, err := pgjournal.Migrate(t.Context(), dsn, schema); from != to || err != nil {
			t.Errorf("again: from %d to %d, %v", from, to, err)
		}
		s := at.store(t, pgjournal.Options{})
		if version > 0 {
			add(t, open(t, s), 0, "1")
		}
	}
}

// TestNewerSchema checks that a newer schema is refused, also by a store that was connected before.
func TestNewerSchema(t *testing.T) {
	t.Parallel()
	at := fresh(t, postgrestest.Shared(t))
	_, j := at.create(t, pgjournal.Options{}, "1")
	at.sql(t, "INSERT INTO migration (version) VALUES (99)")
	_, connect := pgjournal.Connect(t.Context(), at.DSN, pgjournal.Options{Schema: at.Schema})
	_, appending := journaltest.Add(t.Context(), j, 1, "2")
	_, snapshot := j.Snapshot(t.Context())
	var reading error
	for _, reading = range j.Read(t.Context(), 0) {
	}
	_, _, migrating := pgjournal.Migrate(t.Context(), at.DSN, at.Schema)
	for call, err := range map[string]error{"connect": connect, "append": appending, "read": reading,
		"snapshot": snapshot, "migrate": migrating, "wait": j.Wait(t.Context(), 0),
		"save": j.SaveSnapshot(t.Context(), journal.Snapshot{Seq: 1, Data: "1"}.Taken)} {
		if !errors.Is(err, journal.ErrNewer) || !strings.Contains(err.Error(), "99") {
			t.Errorf("%s: %v", call, err)
		}
	}
	at.sql(t, "DELETE FROM migration WHERE version = 99")
	if got := journaltest.All(t, j, 0); len(got) != 1 {
		t.Errorf("the records are %q", got)
	}
}

func TestSchemaNames(t *testing.T) {
	t.Parallel()
	for _, schema := range []string{"", "pg_teams", "a\x00b", strings.Repeat("x", 58)} {
		if _, _, err := pgjournal.Migrate(t.Context(), "host=/nowhere", schema); err == nil ||
			!strings.Contains(err.Error(), "schema") {
			t.Errorf("%q: %v", schema, err)
		}
	}
	dsn, schema := postgrestest.Shared(t).Schema(t)
	odd := schema + `"; DROP TABLE team; -- é`
	if _, _, err := pgjournal.Migrate(t.Context(), dsn, odd); err != nil {
		t.Fatal(err)
	}
	at := where{dsn, odd}
	_, j := at.create(t, pgjournal.Options{}, "1")
	other := open(t, at.store(t, pgjournal.Options{}))
	if took := waited(t, other, j, 1, pgjournal.PollHeard/10); took > pgjournal.PollHeard/4 {
		t.Errorf("a record was seen after %s", took)
	}
	where{dsn, "public"}.sql(t, `DROP SCHEMA "`+strings.ReplaceAll(odd, `"`, `""`)+`" CASCADE`)
}

// TestNothingIsThere checks the errors of what does not exist.
func TestNothingIsThere(t *testing.T) {
	t.Parallel()
	at := fresh(t, postgrestest.Shared(t))
	s := at.store(t, pgjournal.Options{})
	if _, err := s.Open(t.Context(), teamID); !errors.Is(err, journal.ErrNotFound) {
		t.Errorf("open: %v", err)
	}
	if err := s.Remove(t.Context(), teamID); !errors.Is(err, journal.ErrNotFound) {
		t.Errorf("remove: %v", err)
	}
	_, err := pgjournal.Connect(t.Context(), "host=/nowhere user=u password=secret", pgjournal.Options{Schema: "cadre"})
	if err == nil || strings.Contains(err.Error(), "secret") {
		t.Errorf("connect: %v", err)
	}
	_, err = pgjournal.Connect(t.Context(), "postgres://u:secret@h:port/", pgjournal.Options{Schema: "cadre"})
	if err == nil || strings.Contains(err.Error(), "secret") {
		t.Errorf("connect: %v", err)
	}
}
