package postgrestest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	code := m.Run()
	Stop()
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// query runs a statement as the tests do, and returns its one value.
func query(t *testing.T, dsn, sql string) (value string) {
	t.Helper()
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	if err := conn.QueryRow(ctx, sql).Scan(&value); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return value
}

// TestKill kills a server and starts it again. What was committed is there, and no process of the
// killed server remains.
func TestKill(t *testing.T) {
	s := Start(t, Options{Settings: []string{"work_mem = 7MB"}})
	dsn, schema := s.Schema(t)
	if got := query(t, dsn, "SHOW fsync") + query(t, dsn, "SHOW work_mem"); got != "on7MB" {
		t.Errorf("the settings are %s", got)
	}
	if got := query(t, dsn, "SELECT rolsuper::text FROM pg_roles WHERE rolname = current_user"); got != "false" {
		t.Errorf("the tests act as a superuser: %s", got)
	}
	for n := range 3 {
		s.Admin(t, fmt.Sprintf("CREATE TABLE n%d ()", n))
		before := children(s.pid)
		s.Kill(t)
		s.Restart(t)
		for _, pid := range before {
			if parent, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid)); err == nil && alive(pid) {
				t.Errorf("process %d (%s) of the killed server runs", pid, parent)
			}
		}
	}
	if got := query(t, dsn, "SELECT count(*)::text FROM pg_class WHERE relname ~ '^n[0-9]$'"); got != "3" {
		t.Errorf("%s of 3 tables are there", got)
	}
	s.Admin(t, "CREATE SCHEMA "+schema+" AUTHORIZATION "+role)
}

// alive reports whether a process runs. One that has ended and that nobody waited for does not.
func alive(pid int) bool {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	var id int
	var name, state string
	if _, err := fmt.Sscan(string(text), &id, &name, &state); err != nil {
		return false
	}
	return state != "Z" && state != "X"
}

func TestNoSync(t *testing.T) {
	dsn, _ := Start(t, Options{NoSync: true}).Schema(t)
	if got := query(t, dsn, "SHOW fsync"); got != "off" {
		t.Errorf("fsync is %s", got)
	}
}

// TestSweep checks that the folder of a process that has ended is removed, and no other.
func TestSweep(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	ended := exec.Command("true")
	if err := ended.Run(); err != nil {
		t.Fatal(err)
	}
	folder := func(pid int) string {
		dir := filepath.Join(parent(), fmt.Sprintf("%s%d-1", prefix, pid))
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		return dir
	}
	old, own := folder(ended.Process.Pid), folder(syscall.Getpid())
	defer os.RemoveAll(own)
	sweep()
	if _, err := os.Stat(old); err == nil {
		t.Error("the folder of a process that has ended is there")
	}
	if _, err := os.Stat(own); err != nil {
		t.Error("our own folder is gone")
	}
}
