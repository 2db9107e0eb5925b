package pgjournal

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"cadre/internal/journal"
	"cadre/internal/journal/pgjournal/pgwire"
	"cadre/internal/journal/store"
)

// Options configures a Store. Only Schema has no default.
type Options struct {
	// Schema is the schema with the tables.
	Schema string
	// Timeout bounds each exchange with the server, and the wait for other writers, if the context
	// does not end earlier; 0 means 30 seconds.
	Timeout time.Duration
	// Stall is how long a writer that has the lock may send nothing before the server takes it
	// away; 0 means 5 seconds.
	Stall time.Duration
	// Settle is how long an append whose connection broke during the commit looks for its record; 0
	// means 30 seconds. It must be longer than Stall.
	Settle time.Duration
	// Patience is how long a server that was reached before may be away, such as for a restart or
	// the promotion of its standby; 0 means 12 seconds, which is within a lease.
	Patience time.Duration
	// Lease is how long a lease lasts without being renewed; 0 means 15 seconds.
	Lease time.Duration
	// KeyframeEvery is how many records there are between two keyframes, at least; 0 means 4096.
	KeyframeEvery int64
	// KeyframeBytes is how many bytes the keyframes of a team take, at most; 0 means 64 MiB.
	KeyframeBytes int64
	// Report is called with one sentence about each thing that is not an error, such as a damaged
	// snapshot that was ignored. It may be called from any goroutine.
	Report func(what string)
	// Step is a hook for the crash tests. It is called with the name of each step of an append:
	// lock, locked, commit, sent, committed. A creation has two of them: commit, sent.
	Step func(step string)
}

// Store is a connection to the teams in a schema of a database. Its methods may be called from any
// goroutine.
type Store struct {
	opts   Options
	sql    statements
	config *pgwire.Config
	pool   *pgwire.Pool
	where  string // names the schema to a person

	prefix [8]byte // of the ids that this store makes
	ids    atomic.Uint64

	reached atomic.Bool // the server has answered once

	watch    watch
	notifier notifier
	leases   leases

	mu     sync.Mutex
	shared map[int64]*shared // what handles on one journal have in common, by the number of the team
}

// Connect connects to a schema, whose version must be that of this package. The address is a URL or
// a list of parameters, as PostgreSQL's own programs take it. What it does not say comes from the
// usual places: PG… variables, ~/.pgpass, a service file. It may also have pgx's parameters
// default_query_exec_mode and pool_max_conns; see [pgwire.ParseConfig].
func Connect(ctx context.Context, dsn string, opts Options) (*Store, error) {
	config, err := configure(dsn)
	if err != nil {
		return nil, err
	}
	return connect(ctx, config, opts)
}

func connect(ctx context.Context, config *pgwire.Config, opts Options) (*Store, error) {
	if err := checkSchema(opts.Schema); err != nil {
		return nil, err
	}
	opts.Timeout = orDefault(opts.Timeout, 30*time.Second)
	opts.Stall = orDefault(opts.Stall, 5*time.Second)
	opts.Lease = orDefault(opts.Lease, 15*time.Second)
	opts.Patience = orDefault(opts.Patience, 12*time.Second)
	opts.Settle = orDefault(opts.Settle, 30*time.Second)
	opts.KeyframeEvery = orDefault(opts.KeyframeEvery, 4096)
	opts.KeyframeBytes = orDefault(opts.KeyframeBytes, 64<<20)
	s := &Store{opts: opts, sql: newStatements(opts.Schema), shared: map[int64]*shared{}}
	s.where = fmt.Sprintf("PostgreSQL, database %s, schema %s", config.Server.Database, opts.Schema)
	if _, err := rand.Read(s.prefix[:]); err != nil {
		return nil, err
	}
	s.config, s.pool = config, pgwire.NewPool(config)
	s.watch.start(s)
	s.notifier.start(s)
	s.leases.start(s)
	version := 0
	err := s.ask(ctx, func(ctx context.Context, conn *pgwire.Conn) (err error) {
		version, err = readVersion(ctx, conn, s.sql)
		return err
	})
	if err == nil {
		err = judgeVersion(opts.Schema, version)
	}
	if err != nil {
		s.Close()
		return nil, fmt.Errorf("connect to the teams: %w", s.explain(err))
	}
	return s, nil
}

func orDefault[T int64 | time.Duration](option, standard T) T {
	if option > 0 {
		return option
	}
	return standard
}

// configure reads an address. Its errors do not show a password.
func configure(dsn string) (*pgwire.Config, error) {
	config, err := pgwire.ParseConfig(dsn)
	if err != nil {
		return nil, fmt.Errorf("the address of the database: %w", err)
	}
	c := config.Server
	if c.ConnectTimeout == 0 {
		c.ConnectTimeout = 10 * time.Second
	}
	for name, value := range map[string]string{"application_name": "cadre", "client_encoding": "UTF8"} {
		if c.RuntimeParams[name] == "" {
			c.RuntimeParams[name] = value
		}
	}
	return config, nil
}

// Close closes the connections, after what other processes wait for was sent. Every handle must be
// closed first, and calls in progress are waited for. Leases that were not released are lost.
func (s *Store) Close() {
	s.leases.stop()
	s.watch.stop()
	s.notifier.stop()
	s.pool.Close()
}

// Create makes a team with the given first records. It is durable when Create returns. The chain of
// the digests begins with the team's id. The error is [journal.ErrExists] as for [store.Teams].
func (s *Store) Create(ctx context.Context, e store.Entry, records [][]byte) error {
	err := store.CheckEntry(e)
	if err == nil {
		err = s.create(ctx, e, records)
	}
	if err != nil {
		return fmt.Errorf("create team %s: %w", e.Name, s.explain(err))
	}
	return nil
}

func (s *Store) create(ctx context.Context, e store.Entry, records [][]byte) error {
	end := place{digest: origin(e.ID), known: true}
	for i, data := range records {
		if err := checkData(data); err != nil {
			return fmt.Errorf("record %d: %w", i+1, err)
		}
		end = end.then(data)
	}
	made := s.newID()
	key := lockKey("create", s.opts.Schema, e.ID)
	conn, err := s.start(ctx, func(ctx context.Context, conn *pgwire.Conn) error {
		var b pgwire.Batch
		b.Add(begin)
		b.Add("SELECT "+guard, s.stall())
		b.Add(takeAdvisoryLock, key) // settling waits for it
		return conn.Do(ctx, &b, nil)
	})
	if err != nil {
		return err
	}
	defer s.release(conn)
	ctx, stop := context.WithTimeout(ctx, s.opts.Timeout)
	defer stop()
	var number int64
	err = conn.Query(ctx, s.sql.create, e.ID, e.Name, e.Project, made, end.seq, end.ends, end.digest[:]).Scan(&number)
	if refused, is := errors.AsType[*pgconn.PgError](err); is && refused.Code == "23505" {
		return journal.ErrExists
	} else if err != nil {
		return err
	}
	if err := s.insertAll(ctx, conn, number, e.ID, records); err != nil {
		return err
	}
	return s.finish(ctx, conn, nil, func(ctx context.Context, conn *pgwire.Conn) (bool, error) {
		if _, err := conn.Exec(ctx, takeAdvisoryLock, key); err != nil {
			return false, err
		}
		var stored []byte
		err := conn.Query(ctx, s.sql.made, e.ID).Scan(&stored)
		if errors.Is(err, pgwire.ErrNoRows) {
			return false, nil
		}
		return string(stored) == string(made), err
	})
}

// insertAll inserts the first records of a team, some at a time.
func (s *Store) insertAll(ctx context.Context, conn *pgwire.Conn, number int64, id string, records [][]byte) error {
	at := place{digest: origin(id), known: true}
	for len(records) > 0 {
		var seqs, ends []int64
		var ids, digests, all [][]byte
		for size := 0; len(records) > 0 && len(all) < pageRecords && size < pageBytes; records = records[1:] {
			data := records[0]
			at = at.then(data)
			d := at.digest
			seqs, ends = append(seqs, at.seq), append(ends, at.ends)
			ids, digests, all = append(ids, s.newID()), append(digests, d[:]), append(all, data)
			size += len(data)
		}
		if _, err := conn.Exec(ctx, s.sql.insertMany, number, seqs, ids, ends, digests, all); err != nil {
			return err
		}
	}
	return nil
}

// Remove removes the team with that id. Handles on its journal return [journal.ErrGone] from then
// on. It returns [journal.ErrNotFound] if there is no such team.
func (s *Store) Remove(ctx context.Context, id string) error {
	if err := s.remove(ctx, id); err != nil {
		return fmt.Errorf("remove team %s: %w", id, s.explain(err))
	}
	return nil
}

func (s *Store) remove(ctx context.Context, id string) error {
	var number int64
	conn, err := s.start(ctx, func(ctx context.Context, conn *pgwire.Conn) error {
		if _, err := conn.Exec(ctx, begin); err != nil {
			return err
		}
		return conn.Query(ctx, s.sql.number, s.stall(), id).Scan(&number, nil, nil)
	})
	if errors.Is(err, pgwire.ErrNoRows) {
		return journal.ErrNotFound
	} else if err != nil {
		return err
	}
	defer s.release(conn)
	ctx, stop := context.WithTimeout(ctx, s.opts.Timeout)
	defer stop()
	// Whoever saves a snapshot, takes a lease or sets a value has one of these locks, and looks at
	// the row of the team when it has it.
	for _, key := range []int64{s.snapshotKey(number), s.sharedKey(number)} {
		if _, err := conn.Exec(ctx, takeAdvisoryLock, key); err != nil {
			return err
		}
	}
	for _, sql := range []string{s.sql.dropRecords, s.sql.dropSnapshots, s.sql.dropLeases, s.sql.dropValues,
		s.sql.dropTeam} {
		if _, err := conn.Exec(ctx, sql, number); err != nil {
			return err
		}
	}
	err = s.finish(ctx, conn, nil, func(ctx context.Context, conn *pgwire.Conn) (bool, error) {
		_, err := s.lockTeam(ctx, conn, number)
		return errors.Is(err, journal.ErrGone), ignore(err, journal.ErrGone)
	})
	if err == nil {
		s.committed(number, 0, false)
	}
	return err
}

// ignore returns err unless it is that one.
func ignore(err, that error) error {
	if errors.Is(err, that) {
		return nil
	}
	return err
}

// maxData is the size limit of a record, in bytes.
const maxData = 64 << 20

func checkData(data []byte) error {
	if len(data) > maxData {
		return fmt.Errorf("a record of %d bytes is too long; the limit is %d", len(data), maxData)
	}
	if !json.Valid(data) {
		return errors.New("a record must be one JSON value")
	}
	return nil
}

// newID returns an id that no other append has. The ids of a store follow each other, so that they
// are near each other in the index.
func (s *Store) newID() []byte {
	return binary.BigEndian.AppendUint64(s.prefix[:len(s.prefix):len(s.prefix)], s.ids.Add(1))
}

// stall returns the argument for the guard of a transaction.
func (s *Store) stall() string { return milliseconds(s.opts.Stall) }

// milliseconds formats a length of time for a setting of the server.
func milliseconds(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }

func (s *Store) snapshotKey(number int64) int64 {
	return lockKey("snapshot", s.opts.Schema, strconv.FormatInt(number, 10))
}

func (s *Store) sharedKey(number int64) int64 {
	return lockKey("shared", s.opts.Schema, strconv.FormatInt(number, 10))
}

func (s *Store) report(format string, args ...any) {
	if s.opts.Report != nil {
		s.opts.Report(fmt.Sprintf(format, args...))
	}
}

func (s *Store) step(name string) {
	if s.opts.Step != nil {
		s.opts.Step(name)
	}
}
