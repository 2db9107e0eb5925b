package pgjournal_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"cadre/internal/journal"
	"cadre/internal/journal/journaltest"
	"cadre/internal/journal/pgjournal"
	"cadre/internal/testkit/postgrestest"
)

// damaged returns the damage that an error says, or fails the test.
func damaged(t *testing.T, what string, err error) *journal.DamageError {
	t.Helper()
	damage, is := errors.AsType[*journal.DamageError](err)
	if !is {
		t.Errorf("%s: %v", what, err)
		return &journal.DamageError{}
	}
	if damage.Team != team || !strings.Contains(err.Error(), fmt.Sprintf("team %s, record %d", team, damage.Seq)) {
		t.Errorf("%s: %v", what, err)
	}
	return damage
}

// readAll reads a journal up to its end or an error.
func readAll(t *testing.T, j *pgjournal.Journal, after int64) (err error) {
	t.Helper()
	for _, one := range j.Read(t.Context(), after) {
		err = one
	}
	return err
}

// TestDamage changes rows behind our back, and lets a handle that was open and a new one find it.
func TestDamage(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name   string
		sql    string
		seq    int64 // found by a reader from the start
		at     int64 // found by an append that knows this record
		append int64 // found by that append
	}{
		{"data changed", "UPDATE record SET data = '\"5\"' WHERE seq = 5", 5, 4, 5},
		{"data and digest changed",
			"UPDATE record SET data = '\"x\"', digest = sha256('x'), ends = ends WHERE seq = 5", 5, 4, 5},
		{"the last one changed", "UPDATE record SET data = '99' WHERE seq = 10", 10, 9, 10},
		{"a record removed", "DELETE FROM record WHERE seq = 5", 5, 4, 5},
		{"the first one removed", "DELETE FROM record WHERE seq = 1", 1, 0, 1},
		{"the last one removed", "DELETE FROM record WHERE seq = 10", 10, 10, 10},
		{"all removed", "DELETE FROM record", 1, 10, 10},
		{"two swapped", "UPDATE record SET seq = CASE seq WHEN 4 THEN 500 ELSE 4 END WHERE seq IN (4, 5);" +
			"UPDATE record SET seq = 5 WHERE seq = 500", 4, 3, 4},
		{"the team's row is behind", "UPDATE team SET last = 9, ends = (SELECT ends FROM record WHERE seq = 9), " +
			"digest = (SELECT digest FROM record WHERE seq = 8)", 9, 9, 9},
		{"the team's row has another digest", "UPDATE team SET digest = sha256('x')", 10, 10, 10},
		{"another journal's records", "UPDATE team SET journal = 'other'", 1, 0, 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			at := fresh(t, postgrestest.Shared(t))
			var records []string
			for n := range 10 {
				records = append(records, fmt.Sprint(n+10))
			}
			_, j := at.create(t, pgjournal.Options{}, records...)
			journaltest.All(t, j, 0)
			at.sql(t, strings.Split(test.sql, ";")...)
			new := open(t, at.store(t, pgjournal.Options{}))
			if got := damaged(t, "read", readAll(t, new, 0)).Seq; got != test.seq {
				t.Errorf("a new reader finds damage at %d, want %d", got, test.seq)
			}
			_, err := journaltest.Add(t.Context(), open(t, at.store(t, pgjournal.Options{})), test.at, "1")
			if got := damaged(t, "append", err).Seq; got != test.append {
				t.Errorf("an append after %d finds damage at %d, want %d", test.at, got, test.append)
			}
		})
	}
}

// TestDamageFarAway checks that damage is found beyond the first page.
func TestDamageFarAway(t *testing.T) {
	t.Parallel()
	var records []string
	for n := range 2500 {
		records = append(records, fmt.Sprint(n))
	}
	at := fresh(t, postgrestest.Shared(t))
	_, j := at.create(t, pgjournal.Options{}, records...)
	at.sql(t, "DELETE FROM record WHERE seq = 1026")
	if got := damaged(t, "read", readAll(t, j, 0)).Seq; got != 1026 {
		t.Errorf("damage at %d", got)
	}
	at.sql(t, "DELETE FROM record WHERE seq BETWEEN 1025 AND 2499")
	_, err := journaltest.Add(t.Context(), open(t, at.store(t, pgjournal.Options{})), 0, "1")
	if got := damaged(t, "append", err).Seq; got != 1025 {
		t.Errorf("damage at %d", got)
	}
}

// TestOlderCopy restores an older state of the database, and lets it go on. A process that has seen
// the history further refuses both.
func TestOlderCopy(t *testing.T) {
	t.Parallel()
	at := fresh(t, postgrestest.Shared(t))
	s, j := at.create(t, pgjournal.Options{}, "1", "2", "3")
	at.sql(t, "CREATE TABLE old_team AS SELECT * FROM team", "CREATE TABLE old_record AS SELECT * FROM record")
	add(t, j, 3, "4")
	add(t, j, 4, "5")
	waiting := open(t, s)
	journaltest.All(t, waiting, 0)
	at.sql(t, "DELETE FROM record", "INSERT INTO record SELECT * FROM old_record",
		"UPDATE team SET (last, ends, digest) = (SELECT last, ends, digest FROM old_team)")
	if got := damaged(t, "read", readAll(t, j, 5)).Seq; got != 4 {
		t.Errorf("a reader finds the older copy at %d", got)
	}
	_, err := journaltest.Add(t.Context(), j, 5, "6")
	damaged(t, "append", err)
	fork := open(t, at.store(t, pgjournal.Options{}))
	for n := int64(3); n < 7; n++ {
		add(t, fork, n, `"fork"`)
	}
	for after, want := range map[int64]int64{5: 5, 4: 4, 0: 5} { // it remembers some places, not all
		if got := damaged(t, "read", readAll(t, j, after)).Seq; got != want {
			t.Errorf("a reader after %d finds the fork at %d, want %d", after, got, want)
		}
	}
	_, err = journaltest.Add(t.Context(), j, 5, "6")
	damaged(t, "append", err)
	if got := journaltest.All(t, fork, 0); len(got) != 7 {
		t.Errorf("the fork has %q", got)
	}
}
