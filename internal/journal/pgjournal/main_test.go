package pgjournal_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"go.uber.org/goleak"

	"cadre/internal/journal"
	"cadre/internal/journal/journaltest"
	"cadre/internal/journal/pgjournal"
	"cadre/internal/journal/store"
	"cadre/internal/journal/store/storetest"
	"cadre/internal/testkit/postgrestest"
	"cadre/internal/testkit/soak"
)

func TestMain(m *testing.M) {
	if env := os.Getenv(roleVar); env != "" {
		var t task
		if err := json.Unmarshal([]byte(env), &t); err != nil {
			panic(err)
		}
		if err := t.run(); err != nil {
			fmt.Println("error:", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	soak.Beside(6)
	code := m.Run()
	postgrestest.Stop()
	if code == 0 {
		if err := goleak.Find(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

// team is the team of every test, and teamID its id.
const (
	team   = "demo"
	teamID = "demo-1"
)

// entry returns a team of no project.
func entry(name, id string) store.Entry { return store.Entry{ID: id, Name: name} }

// where is a schema of a test.
type where struct{ DSN, Schema string }

// fresh returns a migrated schema without teams.
func fresh(t testing.TB, server *postgrestest.Server) where {
	t.Helper()
	at := where{}
	at.DSN, at.Schema = server.Schema(t)
	if _, _, err := pgjournal.Migrate(context.Background(), at.DSN, at.Schema); err != nil {
		t.Fatal(err)
	}
	return at
}

// through returns the schema as it is reached at another address, where nobody speaks TLS.
func (w where) through(host string, port int) where {
	w.DSN += fmt.Sprintf(" host=%s port=%d sslmode=disable", host, port)
	return w
}

// with returns the schema with one more parameter in the address.
func (w where) with(parameter string) where {
	w.DSN += " " + parameter
	return w
}

// store returns a connection that is closed at the end of the test. Each stands for a process.
func (w where) store(t testing.TB, opts pgjournal.Options) *pgjournal.Store {
	t.Helper()
	opts.Schema = w.Schema
	s, err := pgjournal.Connect(context.Background(), w.DSN, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// open returns a handle that is closed at the end of the test.
func open(t testing.TB, s *pgjournal.Store) *pgjournal.Journal {
	t.Helper()
	j, err := s.Open(context.Background(), teamID)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { j.Close() })
	return j
}

// create creates the team with records and returns a handle on its journal.
func (w where) create(t testing.TB, opts pgjournal.Options, records ...string) (*pgjournal.Store, *pgjournal.Journal) {
	t.Helper()
	s := w.store(t, opts)
	var data [][]byte
	for _, r := range records {
		data = append(data, []byte(r))
	}
	if err := s.Create(context.Background(), entry(team, teamID), data); err != nil {
		t.Fatal(err)
	}
	return s, open(t, s)
}

// sql runs statements in the schema, past the package.
func (w where) sql(t testing.TB, statements ...string) {
	t.Helper()
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, w.DSN+" client_encoding=UTF8")
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	for _, sql := range append([]string{"SET search_path TO " + w.Schema}, statements...) {
		if _, err := conn.Exec(ctx, sql); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
}

// add appends a record for a caller that knows the whole history.
func add(t testing.TB, j journal.Journal, after int64, data string) int64 {
	t.Helper()
	ctx, stop := context.WithTimeout(context.Background(), 10*time.Second)
	defer stop()
	seq, err := journaltest.Add(ctx, j, after, data)
	if err != nil {
		t.Fatal(err)
	}
	return seq
}

// count returns how many records have a text.
func count(t testing.TB, j journal.Journal, text string) (n int) {
	t.Helper()
	for _, data := range journaltest.All(t, j, 0) {
		if strings.Contains(data, text) {
			n++
		}
	}
	return n
}

// processes opens each handle in a store of its own.
func processes(parameters string, opts pgjournal.Options) journaltest.Open {
	return func(t testing.TB) func() journal.Journal {
		at := fresh(t, postgrestest.Shared(t)).with(parameters)
		at.create(t, opts)
		return func() journal.Journal { return open(t, at.store(t, opts)) }
	}
}

// oneProcess opens all handles in one store.
func oneProcess(t testing.TB) func() journal.Journal {
	s, _ := fresh(t, postgrestest.Shared(t)).create(t, pgjournal.Options{})
	return func() journal.Journal { return open(t, s) }
}

func TestContract(t *testing.T) {
	t.Parallel()
	t.Run("processes", func(t *testing.T) {
		t.Parallel()
		storetest.Run(t, handles(""))
	})
	t.Run("one process", func(t *testing.T) {
		t.Parallel()
		journaltest.Run(t, oneProcess)
	})
	t.Run("without prepared statements", func(t *testing.T) {
		t.Parallel()
		if _, err := exec.LookPath("pgbouncer"); err == nil && !soak.Wanted() || testing.Short() {
			t.Skip("TestPoolerOfTransactions does the same behind a pooler; not with -short")
		}
		storetest.Run(t, handles("default_query_exec_mode=exec"))
	})
}

func BenchmarkContract(b *testing.B) { journaltest.Benchmark(b, processes("", pgjournal.Options{})) }
