package pgwire_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"cadre/internal/journal/pgjournal/pgwire"
)

// inBothModes runs a test with prepared statements and without.
func inBothModes(t *testing.T, test func(t *testing.T, c *pgwire.Config)) {
	for name, parameters := range map[string]string{"prepared": "", "unprepared": unprepared} {
		t.Run(name, func(t *testing.T) { test(t, config(t, parameters)) })
	}
}

// TestBatch sends statements together, one text twice, and reads their results in order, or some of
// them.
func TestBatch(t *testing.T) {
	inBothModes(t, func(t *testing.T, c *pgwire.Config) {
		conn := connect(t, c)
		official(t, c, "CREATE TABLE one (n bigint)")
		for round := range 3 {
			var b pgwire.Batch
			b.Add("BEGIN ISOLATION LEVEL SERIALIZABLE")
			b.Add("INSERT INTO one VALUES ($1)", round)
			b.Add("SELECT n FROM one ORDER BY n")
			b.Add("INSERT INTO one VALUES ($1)", int64(100))
			b.Add("SELECT count(*), 'rest' FROM one")
			b.Add("ROLLBACK")
			var tag string
			var all []int64
			n := 0
			err := conn.Do(t.Context(), &b, func(r *pgwire.Results) (err error) {
				if _, err := r.Exec(); err != nil {
					return err
				}
				if tag, err = r.Exec(); err != nil {
					return err
				}
				if all, err = pgwire.Collect(r.Rows(), scanNumber); err != nil {
					return err
				}
				if _, err = r.Exec(); err != nil {
					return err
				}
				return r.Rows().Scan(&n, nil)
			})
			if err != nil || tag != "INSERT 0 1" || !slices.Equal(all, []int64{int64(round)}) || n != 2 ||
				conn.InTransaction() {
				t.Errorf("round %d: %s, %d, %d, %v", round, tag, all, n, err)
			}
		}
	})
}

func scanNumber(r pgwire.Row) (n int64, err error) {
	err = r.Scan(&n)
	return n, err
}

// TestBatchFails checks that an error ends a batch, and that the connection can be used afterwards.
func TestBatchFails(t *testing.T) {
	inBothModes(t, func(t *testing.T, c *pgwire.Config) {
		conn := connect(t, c)
		official(t, c, "CREATE TABLE one (n bigint PRIMARY KEY)")
		own := errors.New("own")
		for _, test := range []struct {
			name string
			read func(r *pgwire.Results) error
			own  bool
		}{
			{"nothing is read", nil, false},
			{"the error is read", func(r *pgwire.Results) error {
				_, first := r.Exec()
				_, err := r.Exec()
				_, again := r.Exec()
				if first != nil || err == nil || !errors.Is(again, err) {
					t.Errorf("got %v, %v, %v", first, err, again)
				}
				return err
			}, false},
			{"the reader fails before", func(r *pgwire.Results) error { return own }, true},
		} {
			var b pgwire.Batch
			b.Add("INSERT INTO one VALUES ($1)", 1)
			b.Add("INSERT INTO one VALUES ($1)", 1)
			b.Add("INSERT INTO one VALUES ($1)", 2)
			err := conn.Do(t.Context(), &b, test.read)
			refused, is := errors.AsType[*pgconn.PgError](err)
			if !is || refused.Code != "23505" || errors.Is(err, own) != test.own ||
				strings.Count(err.Error(), "23505") != 1 {
				t.Errorf("%s: %v", test.name, err)
			}
			n := 1
			if err := conn.Query(t.Context(), "SELECT count(*) FROM one").Scan(&n); err != nil || n != 0 {
				t.Errorf("%s: then there are %d, %v", test.name, n, err)
			}
		}
	})
}

// TestRows reads rows that are not there, too few and too many.
func TestRows(t *testing.T) {
	inBothModes(t, func(t *testing.T, c *pgwire.Config) {
		conn := connect(t, c)
		const some = "SELECT generate_series(1, $1)::bigint"
		n := int64(7)
		if err := conn.Query(t.Context(), some, 0).Scan(&n); !errors.Is(err, pgwire.ErrNoRows) || n != 7 {
			t.Errorf("no row: %d, %v", n, err)
		}
		if err := conn.Query(t.Context(), some, 5).Scan(&n); err != nil || n != 1 {
			t.Errorf("the first of five rows: %d, %v", n, err)
		}
		all, err := pgwire.Collect(conn.Query(t.Context(), some, 0), scanNumber)
		if all == nil || len(all) > 0 || err != nil {
			t.Errorf("none: %v, %v", all, err)
		}
		own := errors.New("own")
		err = conn.Query(t.Context(), some, 100000).Each(func(r pgwire.Row) error {
			if err := r.Scan(&n); err != nil || n == 3 {
				return own
			}
			return nil
		})
		if !errors.Is(err, own) || n != 3 {
			t.Errorf("it ended after %d: %v", n, err)
		}
		const fails = "SELECT (6 / (3 - n))::bigint FROM generate_series(1, 5) n"
		all, err = pgwire.Collect(conn.Query(t.Context(), fails), scanNumber)
		if err == nil || errors.Is(err, pgwire.ErrNoRows) || all != nil {
			t.Errorf("an error after some rows: %d, %v", all, err)
		}
		err = conn.Query(t.Context(), "SELECT 1 / $1::bigint", 0).Scan(&n)
		if err == nil || errors.Is(err, pgwire.ErrNoRows) {
			t.Errorf("an error before any row: %v", err)
		}
	})
}

// TestRoundTrips checks that a batch is one write: with statements that are new to the connection,
// with known ones, and after an error.
func TestRoundTrips(t *testing.T) {
	inBothModes(t, func(t *testing.T, c *pgwire.Config) {
		c, n := counting(c)
		conn := connect(t, c)
		for round, ok := range []bool{true, true, false, true, true} {
			var b pgwire.Batch
			b.Add("BEGIN")
			b.Add("SELECT $1::bigint", 1)
			b.Add("SELECT 1 / $1::bigint", map[bool]int{true: 1, false: 0}[ok])
			b.Add("COMMIT")
			before := n.writes.Load()
			err := conn.Do(t.Context(), &b, nil)
			if writes := n.writes.Load() - before; writes != 1 || (err == nil) != ok {
				t.Errorf("round %d: %d writes, %v", round, writes, err)
			}
			if _, err := conn.Exec(t.Context(), "ROLLBACK"); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// TestPrepared checks which statements a connection has prepared on the server.
func TestPrepared(t *testing.T) {
	c := config(t, "")
	conn := connect(t, c)
	const (
		add    = "SELECT $1::bigint + $2::bigint"
		listed = "SELECT statement FROM pg_prepared_statements ORDER BY statement"
	)
	check := func(what string, want ...string) {
		t.Helper()
		slices.Sort(want)
		got, err := pgwire.Collect(conn.Query(t.Context(), listed), func(r pgwire.Row) (text string, err error) {
			err = r.Scan(&text)
			return text, err
		})
		if err != nil || !slices.Equal(got, want) || !slices.Equal(conn.Prepared(), want) {
			t.Errorf("%s: the server has %q, the connection %q, want %q: %v", what, got, conn.Prepared(), want, err)
		}
	}
	if _, err := conn.Exec(t.Context(), "BEGIN; ROLLBACK"); err != nil {
		t.Fatal(err)
	}
	check("nothing without arguments", listed)
	sum := 0
	for n := range 3 {
		if err := conn.Query(t.Context(), add, n, n).Scan(&sum); err != nil || sum != 2*n {
			t.Errorf("%d, %v", sum, err)
		}
	}
	check("three times", add, listed)
	err := conn.Query(t.Context(), add, "1", "2").Scan(&sum)
	if _, asked := errors.AsType[*pgconn.PgError](err); err == nil || asked {
		t.Errorf("arguments of another type: %v", err)
	}
	if err := conn.Query(t.Context(), "SELEC", 1).Scan(&sum); err == nil {
		t.Error("no error")
	}
	check("one that cannot be prepared", add, listed)
	if err := conn.Query(t.Context(), add, int64(1)<<62, int64(1)<<62).Scan(&sum); err == nil {
		t.Error("no error")
	}
	check("one that failed", listed)
	ended, end := context.WithCancel(t.Context())
	end()
	for range 3 {
		if err := conn.Query(ended, add, 1, 1).Scan(&sum); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
	}
	if err := conn.Query(t.Context(), add, 1, 1).Scan(&sum); err != nil || sum != 2 {
		t.Errorf("it does not recover: %d, %v", sum, err)
	}
	check("after a context that had ended", add, listed)
}

// TestUnprepared checks that nothing is prepared in the other mode.
func TestUnprepared(t *testing.T) {
	conn := connect(t, config(t, unprepared))
	const counted = "SELECT count(*) + $1::bigint FROM pg_prepared_statements"
	for n := range 3 {
		got := 0
		if err := conn.Query(t.Context(), counted, n).Scan(&got); err != nil || got != n {
			t.Errorf("got %d, %v", got, err)
		}
	}
}

// TestChangedTable changes a table behind prepared statements. One of them fails, and works again.
func TestChangedTable(t *testing.T) {
	c := config(t, "")
	conn := connect(t, c)
	official(t, c, "CREATE TABLE one (n bigint)", "INSERT INTO one VALUES (1)")
	const read = "SELECT n FROM one WHERE $1 > 0"
	n := 0
	if err := conn.Query(t.Context(), read, 1).Scan(&n); err != nil {
		t.Fatal(err)
	}
	official(t, c, "ALTER TABLE one ALTER COLUMN n TYPE integer")
	err := conn.Query(t.Context(), read, 1).Scan(&n)
	if refused, is := errors.AsType[*pgconn.PgError](err); !is || refused.Code != "0A000" {
		t.Errorf("got %v", err)
	}
	if err := conn.Query(t.Context(), read, 1).Scan(&n); err != nil || n != 1 {
		t.Errorf("got %d, %v", n, err)
	}
}

// TestNameOfStatement checks that two connections give a statement one name, and statements that
// differ in their types alone two names.
func TestNameOfStatement(t *testing.T) {
	c := config(t, "")
	const named = "SELECT name FROM pg_prepared_statements WHERE $1 IS NOT NULL"
	name := func(arg any) (name string) {
		t.Helper()
		if err := connect(t, c).Query(t.Context(), named, arg).Scan(&name); err != nil {
			t.Fatal(err)
		}
		return name
	}
	if name(1) != name(2) || name(1) == name("1") || len(name(1)) > 63 {
		t.Errorf("the names are %s, %s, %s", name(1), name(2), name("1"))
	}
}

// TestContextEnds ends a context while the server works. The connection is closed, and the server
// ends its work.
func TestContextEnds(t *testing.T) {
	inBothModes(t, func(t *testing.T, c *pgwire.Config) {
		conn := connect(t, c)
		ctx, stop := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer stop()
		began := time.Now()
		_, err := conn.Exec(ctx, "SELECT pg_sleep($1::bigint)", 60)
		if !errors.Is(err, context.DeadlineExceeded) || time.Since(began) > 10*time.Second || !conn.IsClosed() {
			t.Errorf("after %s: %v, closed: %t", time.Since(began), err, conn.IsClosed())
		}
		other := connect(t, c)
		for busy := true; busy; time.Sleep(5 * time.Millisecond) {
			err := other.Query(within(t, 10*time.Second), "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE pid = $1)",
				int64(conn.PID())).Scan(&busy)
			if err != nil {
				t.Fatal(err)
			}
		}
	})
}

// TestNotices checks that the codes of notices are kept until they are asked for.
func TestNotices(t *testing.T) {
	const warns = "DO $$ BEGIN RAISE WARNING 'a' USING ERRCODE = '57014'; RAISE NOTICE 'b'; END $$"
	conn := connect(t, config(t, ""))
	for range 2 {
		if _, err := conn.Exec(t.Context(), warns); err != nil {
			t.Fatal(err)
		}
		if !conn.Noticed("57P01", "57014") || conn.Noticed("57014") {
			t.Error("it was not noticed once")
		}
	}
	if _, err := conn.Exec(t.Context(), "DO $$ BEGIN RAISE NOTICE 'b'; END $$"); err != nil || conn.Noticed("57014") {
		t.Errorf("another notice: %v", err)
	}
}

// TestNotifications checks that notifications arrive in order: those that came during a statement,
// and those that are waited for.
func TestNotifications(t *testing.T) {
	c := config(t, "")
	conn := connect(t, c)
	const both = "LISTEN pgwire_test; NOTIFY pgwire_test, '1'; NOTIFY pgwire_test, '2'"
	if _, err := conn.Exec(t.Context(), both); err != nil {
		t.Fatal(err)
	}
	other := connect(t, c)
	var sent sync.WaitGroup
	defer sent.Wait()
	sent.Go(func() {
		if _, err := other.Exec(t.Context(), "SELECT pg_notify($1, $2)", "pgwire_test", "3"); err != nil {
			t.Error(err)
		}
	})
	for _, want := range []string{"1", "2", "3"} {
		if n, err := conn.WaitForNotification(within(t, 10*time.Second)); err != nil || n.Payload != want {
			t.Errorf("got %v, %v, want %s", n, err, want)
		}
	}
	if n, err := conn.WaitForNotification(within(t, 20*time.Millisecond)); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, %v", n, err)
	}
}
