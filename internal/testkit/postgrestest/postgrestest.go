package postgrestest

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"cadre/internal/testkit/soak"
)

// Variable is the environment variable with the address of a database for the tests, as parameters:
// host=… port=… user=… dbname=… Its role needs the right to create schemas there.
const Variable = "CADRE_TEST_POSTGRES"

const (
	superuser = "cadre"
	role      = "tester" // what tests connect as
	patience  = time.Minute
)

// Options configures a server. The zero value is a server that syncs.
type Options struct {
	// NoSync lets the server skip every sync.
	NoSync bool
	// Settings are lines for postgresql.conf.
	Settings []string
}

// Server is a running PostgreSQL.
type Server struct {
	dsn string // as the role of the tests

	// The rest is only set for a server that this package started.
	bin    string
	as     *account
	dir    string // with the socket and the log; its data is below it
	mu     sync.Mutex
	pid    int
	exited chan struct{}
}

// shared is the server of the package's tests.
var shared struct {
	once   sync.Once
	server *Server
	err    error
}

// template is a data folder that servers begin as a copy of.
var template struct {
	once sync.Once
	dir  string
	err  error
}

// Shared returns the server for all tests of a package, which the first call starts. Call [Stop] in
// TestMain. With -short the test is skipped.
func Shared(t testing.TB) *Server {
	t.Helper()
	soak.Long(t)
	shared.once.Do(func() {
		if dsn := os.Getenv(Variable); strings.Contains(dsn, "://") {
			// Tests add parameters to it.
			shared.err = fmt.Errorf("%s is a URL: write host=… port=… user=… dbname=…", Variable)
			return
		} else if dsn != "" {
			shared.server = &Server{dsn: dsn}
			return
		}
		shared.server, shared.err = start(Options{})
	})
	check(t, shared.err)
	return shared.server
}

// Start starts a server for one test, which ends with it. With -short the test is skipped.
func Start(t testing.TB, opts Options) *Server {
	t.Helper()
	soak.Long(t)
	s, err := start(opts)
	check(t, err)
	t.Cleanup(s.remove)
	return s
}

// missing is the reason why there is no server.
type missing struct{ error }

func check(t testing.TB, err error) {
	t.Helper()
	if _, is := errors.AsType[missing](err); is {
		t.Skip(err)
	} else if err != nil {
		t.Fatal(err)
	}
}

// Stop stops the shared server and removes what the package left. Call it after the tests.
func Stop() {
	if shared.server != nil {
		shared.server.remove()
	}
	if template.dir != "" {
		_ = os.RemoveAll(template.dir)
	}
}

func start(opts Options) (*Server, error) {
	bin, err := binaries()
	if err != nil {
		return nil, missing{err}
	}
	as, err := serverAccount()
	if err != nil {
		return nil, missing{err}
	}
	template.once.Do(func() { template.err = initialize(bin, as) })
	if template.err != nil {
		return nil, template.err
	}
	dir, err := as.folder()
	if err != nil {
		return nil, err
	}
	s := &Server{bin: bin, as: as, dir: dir}
	s.dsn = fmt.Sprintf("host=%s user=%s dbname=postgres sslmode=disable", dir, role)
	if err := s.fill(opts); err != nil {
		s.remove()
		return nil, err
	}
	return s, nil
}

// initialize makes the template.
func initialize(bin string, as *account) (err error) {
	sweep()
	if template.dir, err = as.folder(); err != nil {
		return err
	}
	return run(as.command(template.dir, filepath.Join(bin, "initdb"), "-D", filepath.Join(template.dir, "data"),
		"-U", superuser, "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync", "--no-instructions"))
}

// fill makes the data of a server and starts it for the first time.
func (s *Server) fill(opts Options) error {
	if err := run(s.as.command(s.dir, "cp", "-R", "-p", filepath.Join(template.dir, "data"), s.dir)); err != nil {
		return err
	}
	settings := append([]string{"listen_addresses = ''", "unix_socket_directories = '" + s.dir + "'",
		"shared_buffers = 32MB", "log_min_messages = fatal", "max_connections = 200"}, opts.Settings...)
	if opts.NoSync {
		settings = append(settings, "fsync = off")
	}
	f, err := os.OpenFile(filepath.Join(s.data(), "postgresql.conf"), os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(strings.Join(settings, "\n") + "\n")
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := s.launch(); err != nil {
		return err
	}
	return s.admin("CREATE ROLE "+role+" LOGIN", "GRANT CREATE ON DATABASE postgres TO "+role)
}

func (s *Server) data() string { return filepath.Join(s.dir, "data") }

// launch starts the server and returns when it answers.
func (s *Server) launch() error {
	ctx, stop := context.WithTimeout(context.Background(), patience)
	defer stop()
	for {
		exited, err := s.spawn()
		if err != nil {
			return err
		}
		err = s.await(ctx, exited)
		if err == nil || ctx.Err() != nil {
			return err
		}
		// A server that was killed leaves processes which use its memory for a moment.
		time.Sleep(20 * time.Millisecond)
	}
}

// spawn starts the process of the server.
func (s *Server) spawn() (exited chan struct{}, err error) {
	log, err := os.OpenFile(filepath.Join(s.dir, "log"), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	cmd := s.as.command(s.dir, filepath.Join(s.bin, "postgres"), "-D", s.data())
	cmd.Stdout, cmd.Stderr = log, log
	endWithUs(cmd.SysProcAttr)
	started := make(chan error)
	exited = make(chan struct{})
	go runToEnd(cmd, started, exited)
	if err := <-started; err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pid, s.exited = cmd.Process.Pid, exited
	return exited, nil
}

// runToEnd runs a command on a thread of its own, because the command ends with its thread.
func runToEnd(cmd *exec.Cmd, started chan<- error, exited chan<- struct{}) {
	runtime.LockOSThread()
	err := cmd.Start()
	started <- err
	if err == nil {
		_ = cmd.Wait()
	}
	close(exited)
}

// await returns when the server answers, or with its log when it has exited.
func (s *Server) await(ctx context.Context, exited <-chan struct{}) error {
	for {
		err := s.admin("SELECT 1")
		if err == nil {
			return nil
		}
		select {
		case <-exited:
			log, _ := os.ReadFile(filepath.Join(s.dir, "log"))
			return fmt.Errorf("the server exited: %s", log)
		case <-ctx.Done():
			return fmt.Errorf("the server does not answer: %w", err)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// admin runs statements as the superuser.
func (s *Server) admin(statements ...string) error {
	ctx, stop := context.WithTimeout(context.Background(), patience)
	defer stop()
	conn, err := pgx.Connect(ctx, fmt.Sprintf("host=%s user=%s dbname=postgres sslmode=disable", s.dir, superuser))
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	for _, sql := range statements {
		if _, err := conn.Exec(ctx, sql); err != nil {
			return fmt.Errorf("%s: %w", sql, err)
		}
	}
	return nil
}

// Admin runs statements as the superuser of a server that this package started.
func (s *Server) Admin(t testing.TB, statements ...string) {
	t.Helper()
	if err := s.admin(statements...); err != nil {
		t.Fatal(err)
	}
}

// aCommit is a transaction that writes, and changes nothing.
const aCommit = "SELECT pg_logical_emit_message(true, 'a commit', '')"

// RequireStandby makes commits wait for a standby, which there never is. It returns when they do:
// the processes of a server read a setting one after another.
func (s *Server) RequireStandby(t testing.TB) {
	t.Helper()
	s.Admin(t, "ALTER SYSTEM SET synchronous_standby_names = 'nobody'", "SELECT pg_reload_conf()")
	const waits = "SELECT 1 / count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep'" // an error if none does
	ctx, stop := context.WithTimeout(t.Context(), patience)
	defer stop()
	for ctx.Err() == nil {
		committed := make(chan error, 1)
		go func() { committed <- s.admin(aCommit) }()
		for open := true; open; {
			if s.admin(waits) == nil {
				return // RequireNoStandby lets the commit go
			}
			select {
			case <-committed:
				open = false
			case <-time.After(5 * time.Millisecond):
			}
		}
	}
	t.Fatal("no commit waits for a standby")
}

// RequireNoStandby ends that. It returns when no commit waits any more.
func (s *Server) RequireNoStandby(t testing.TB) {
	t.Helper()
	s.Admin(t, "ALTER SYSTEM RESET synchronous_standby_names", "SELECT pg_reload_conf()", aCommit)
}

// Credential returns the user that servers run as where the tests run as root, for other programs
// that refuse root.
func Credential(t testing.TB) *syscall.Credential {
	t.Helper()
	as, err := serverAccount()
	if err != nil {
		t.Skip(err)
	}
	return &syscall.Credential{Uid: uint32(as.uid), Gid: uint32(as.gid)}
}

// Schema returns the address of the database and the name of a schema that does not exist, for one
// test. It is removed with everything in it when the test ends.
func (s *Server) Schema(t testing.TB) (dsn, schema string) {
	t.Helper()
	random := make([]byte, 6)
	rand.Read(random)
	schema = "test_" + hex.EncodeToString(random)
	t.Cleanup(func() {
		ctx, stop := context.WithTimeout(context.Background(), patience)
		defer stop()
		conn, err := pgx.Connect(ctx, s.dsn)
		if err != nil {
			t.Logf("the schema %s remains: %v", schema, err)
			return
		}
		defer conn.Close(ctx)
		// NOTICEs say what goes with it.
		if _, err := conn.Exec(ctx, "DROP SCHEMA IF EXISTS "+schema+" CASCADE"); err != nil {
			t.Errorf("remove the schema: %v", err)
		}
	})
	return s.dsn, schema
}

// Kill kills the server with all its processes, at once, as a failure of the machine would.
func (s *Server) Kill(t testing.TB) {
	t.Helper()
	if s.dir == "" {
		t.Fatal("this server is not the test's to kill: use Start")
	}
	s.kill()
}

func (s *Server) kill() {
	s.mu.Lock()
	pid, exited := s.pid, s.exited
	s.mu.Unlock()
	if pid == 0 {
		return
	}
	select {
	case <-exited:
		return
	default:
	}
	of := children(pid)
	_ = syscall.Kill(-pid, syscall.SIGKILL) // it first, because it would replace those that die
	for _, child := range of {
		_ = syscall.Kill(child, syscall.SIGKILL)
	}
	<-exited
}

// Restart starts a server again that was killed, and returns when it answers.
func (s *Server) Restart(t testing.TB) {
	t.Helper()
	if err := s.launch(); err != nil {
		t.Fatal(err)
	}
}

// remove ends the server and removes its folder.
func (s *Server) remove() {
	if s.dir == "" {
		return
	}
	s.kill()
	for range 100 { // processes that were killed may still write
		if os.RemoveAll(s.dir) == nil {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
}
