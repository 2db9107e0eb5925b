package pgjournal_test

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"cadre/internal/journal"
	"cadre/internal/journal/journaltest"
	"cadre/internal/journal/pgjournal"
	"cadre/internal/testkit/postgrestest"
)

// pooler starts PgBouncer before the database and returns the schema as it is reached through it.
func pooler(t *testing.T, at where, mode string) where {
	t.Helper()
	program, err := exec.LookPath("pgbouncer")
	if err != nil {
		t.Skip("PgBouncer is not installed")
	}
	config, err := pgx.ParseConfig(at.DSN)
	if err != nil {
		t.Fatal(err)
	}
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := free.Addr().(*net.TCPAddr).Port
	free.Close()
	dir, err := os.MkdirTemp("/tmp", "cadre-pool-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	ini := filepath.Join(dir, "ini")
	password := ""
	if config.Password != "" {
		password = " password='" + config.Password + "'"
	}
	text := fmt.Sprintf("[databases]\n%s = host=%s port=%d user=%s%s\n[pgbouncer]\nlisten_addr = 127.0.0.1\n"+
		"listen_port = %d\nunix_socket_dir =\nauth_type = any\npool_mode = %s\ndefault_pool_size = 20\n",
		config.Database, config.Host, config.Port, config.User, password, port, mode)
	if err := os.WriteFile(ini, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, ini)
	if os.Getuid() == 0 { // it refuses to run as root
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: postgrestest.Credential(t)}
	}
	var log bytes.Buffer
	cmd.Stderr = &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if t.Failed() {
			t.Log(log.String())
		}
	})
	through := at.through("127.0.0.1", port)
	for range 200 {
		var conn *pgconn.PgConn
		if conn, err = pgconn.Connect(context.Background(), through.DSN); err == nil {
			conn.Close(context.Background())
			return through
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Fatalf("the pooler does not answer: %v", err)
	return where{}
}

// TestPoolerOfSessions runs the contract behind a pooler in session mode.
func TestPoolerOfSessions(t *testing.T) {
	t.Parallel()
	direct := fresh(t, postgrestest.Shared(t))
	at := pooler(t, direct, "session")
	_, j := at.create(t, pgjournal.Options{})
	writer := open(t, at.store(t, pgjournal.Options{}))
	for n := range int64(3) {
		if took := waited(t, j, writer, n, pgjournal.PollHeard/10); took > pgjournal.PollHeard/4 {
			t.Errorf("a record was seen after %s", took)
		}
	}
}

// TestPoolerOfTransactions checks that a pooler in transaction mode works with one parameter, and
// that the error without it says so.
func TestPoolerOfTransactions(t *testing.T) {
	t.Parallel()
	direct := fresh(t, postgrestest.Shared(t))
	through := pooler(t, direct, "transaction")
	t.Run("with the parameter", func(t *testing.T) {
		if testing.Short() {
			t.Skip("the whole contract once more; not with -short")
		}
		journaltest.Run(t, func(t testing.TB) func() journal.Journal {
			at := fresh(t, postgrestest.Shared(t))
			at.DSN = through.with("default_query_exec_mode=exec").DSN
			at.create(t, pgjournal.Options{})
			return func() journal.Journal { return open(t, at.store(t, pgjournal.Options{})) }
		})
	})
	t.Run("a stalled writer", func(t *testing.T) {
		at := fresh(t, postgrestest.Shared(t))
		at.DSN = through.with("default_query_exec_mode=exec").DSN
		_, j := at.create(t, pgjournal.Options{Stall: 300 * time.Millisecond})
		_, err := j.Append(t.Context(), 0, func(journal.Record) error { return nil }, func() ([]byte, error) {
			time.Sleep(600 * time.Millisecond)
			return []byte(`"late"`), nil
		})
		if err == nil || !strings.Contains(err.Error(), "nothing was written") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("without it", func(t *testing.T) {
		var said error
		for range 20 { // a session that has the statement already is needed
			s, err := pgjournal.Connect(t.Context(), through.DSN, pgjournal.Options{Schema: direct.Schema})
			if err != nil {
				said = err
				break
			}
			defer s.Close()
			if _, said = s.Teams().List(t.Context()); said != nil {
				break
			}
		}
		if said == nil || !strings.Contains(said.Error(), "default_query_exec_mode=exec") {
			t.Errorf("got %v", said)
		}
	})
}
