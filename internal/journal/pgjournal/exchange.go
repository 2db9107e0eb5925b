package pgjournal

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"cadre/internal/journal"
	"cadre/internal/journal/pgjournal/pgwire"
)

// ask calls do with a connection. do must be harmless when it is done twice; see start.
func (s *Store) ask(ctx context.Context, do func(context.Context, *pgwire.Conn) error) error {
	conn, err := s.start(ctx, do)
	if err == nil {
		s.release(conn)
	}
	return err
}

// start returns a connection on which do succeeded. do may begin a transaction, which the caller
// ends. It must be harmless when it is done more than once: a connection in the pool may be broken,
// and a server that is restarted or replaced by its standby is away for a while. Then do is called
// again with a new connection, until the patience with the server ends.
func (s *Store) start(ctx context.Context, do func(context.Context, *pgwire.Conn) error) (*pgwire.Conn, error) {
	began := time.Now()
	for pause := firstPause; ; pause = min(2*pause, longestPause) {
		conn, away, err := s.try(ctx, do)
		if err == nil || !away || time.Since(began) > s.patience() || ctx.Err() != nil {
			return conn, err
		}
		s.pool.Reset()
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return nil, err
		}
	}
}

// Pauses between two attempts to reach a server: the first one, and the longest.
const (
	firstPause   = time.Millisecond
	longestPause = 250 * time.Millisecond
)

// patience returns how long a server may be away. A server that was never reached may have the
// wrong address, so nobody waits for it.
func (s *Store) patience() time.Duration {
	if s.reached.Load() {
		return s.opts.Patience
	}
	return 0
}

// try calls do once. away reports that the server could not be reached, or that the connection
// broke.
func (s *Store) try(ctx context.Context, do func(context.Context, *pgwire.Conn) error) (conn *pgwire.Conn,
	away bool, err error) {
	ctx, stop := context.WithTimeout(ctx, s.opts.Timeout)
	defer stop()
	conn, err = s.pool.Acquire(ctx)
	if err != nil {
		return nil, unreachable(err), err
	}
	if err := do(ctx, conn); err != nil {
		away = conn.IsClosed() && ctx.Err() == nil
		s.release(conn)
		return nil, away, err
	}
	s.reached.Store(true)
	return conn, false, nil
}

// unreachable reports whether a connection could not be made for a reason that may pass: nobody
// answers, or a server that starts, ends, or has no connection left.
func unreachable(err error) bool {
	if refused, is := errors.AsType[*pgconn.PgError](err); is {
		return refused.Code == "57P03" || refused.Code == "57P01" || refused.Code == "53300"
	}
	_, is := errors.AsType[*pgconn.ConnectError](err)
	return is
}

// release returns a connection to the pool, and ends the transaction that it may be in.
func (s *Store) release(conn *pgwire.Conn) {
	if !conn.IsClosed() && conn.InTransaction() {
		ctx, stop := context.WithTimeout(context.Background(), time.Second)
		defer stop()
		// If this fails, the pool closes the connection, which ends the transaction too.
		_, _ = conn.Exec(ctx, rollback)
	}
	s.pool.Release(conn)
}

// errLost reports that a transaction was rolled back although the caller did not ask for that.
var errLost = errors.New("nothing was written, and the team is unchanged")

// finish sends the last statements of a transaction and its commit. If the connection breaks
// meanwhile, the transaction may be committed or not, whatever the last error was. Then look finds
// out on another connection. It waits for what the transaction has locked, and reports whether its
// changes are there.
//
// The end of ctx does not end a commit: the caller is better served with a definite result.
func (s *Store) finish(ctx context.Context, conn *pgwire.Conn, b *pgwire.Batch,
	look func(context.Context, *pgwire.Conn) (bool, error)) error {
	if b == nil {
		b = &pgwire.Batch{}
	}
	b.Add(commit)
	patient, stop := context.WithTimeout(context.WithoutCancel(ctx), s.opts.Timeout)
	defer stop()
	s.step("commit")
	tag := ""
	err := conn.Do(patient, b, func(r *pgwire.Results) (err error) {
		s.step("sent")
		for i := 0; i < b.Len() && err == nil; i++ {
			tag, err = r.Exec()
		}
		return err
	})
	switch {
	case unreplicated(conn) || conn.IsClosed():
		if err == nil {
			err = errors.New("the server did not wait for its standby")
		}
		return s.settle(ctx, err, look)
	case err != nil: // the server refused a statement, and rolled back
		return fmt.Errorf("%w: %w", errLost, err)
	case tag != commit:
		return fmt.Errorf("%w: the server answered %s", errLost, tag)
	}
	return nil
}

// settle finds out whether the changes of a lost transaction are there.
func (s *Store) settle(ctx context.Context, lost error, look func(context.Context, *pgwire.Conn) (bool, error)) error {
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), s.opts.Settle)
	defer stop()
	for pause := 10 * time.Millisecond; ; pause = min(2*pause, time.Second) {
		there, err := s.look(ctx, look)
		switch {
		case err == nil && there:
			return nil
		case err == nil:
			return fmt.Errorf("%w: %w: %v", errLost, journal.ErrLost, lost)
		case errors.Is(err, journal.ErrGone):
			return err
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			// Neither error is wrapped: a caller could take its own deadline for the reason.
			return fmt.Errorf("%w: the connection was lost (%v), and the database could not be asked (%v)",
				journal.ErrUncertain, lost, err)
		}
	}
}

// look calls look in a transaction on a new connection. The commit waits for the standbys, if there
// are some to wait for, so that what was found is as durable as the caller's own commit would be.
func (s *Store) look(ctx context.Context, look func(context.Context, *pgwire.Conn) (bool, error)) (bool, error) {
	conn, err := s.config.Connect(ctx)
	if err != nil {
		return false, err
	}
	defer s.hangUp(conn)
	if _, err := conn.Exec(ctx, begin); err != nil {
		return false, err
	}
	if _, err := conn.Exec(ctx, "SELECT "+guard, s.stall()); err != nil {
		return false, err
	}
	there, err := look(ctx, conn)
	if err != nil {
		return false, err
	}
	tag, err := conn.Exec(ctx, commit)
	if err != nil {
		return false, err
	}
	if unreplicated(conn) || tag != commit {
		return false, fmt.Errorf("the server answered %s, and did not wait for its standby", tag)
	}
	return there, nil
}

// unreplicated reports whether a commit succeeded without the confirmation of a standby that it had
// to wait for. The server only warns of that.
func unreplicated(conn *pgwire.Conn) bool {
	return conn.Noticed("57014", "57P01") // the wait was cancelled, or the session ended
}

// hangUp closes a connection outside the pool. It does nothing for nil.
func (s *Store) hangUp(conn *pgwire.Conn) {
	if conn == nil {
		return
	}
	ctx, stop := context.WithTimeout(context.Background(), time.Second)
	defer stop()
	_ = conn.Close(ctx)
}

// lockTeam locks the row of a team, in a transaction, and returns the end of its history.
func (s *Store) lockTeam(ctx context.Context, conn *pgwire.Conn, number int64) (h head, err error) {
	err = scanHead(conn.Query(ctx, s.sql.lock, s.stall(), number), &h, nil, nil)
	return h, err
}

// scanHead reads a row with the end of a history. more are further columns.
func scanHead(r pgwire.Rows, h *head, more ...any) error {
	err := r.Scan(append([]any{&h.last, &h.ends, &h.digest, &h.version}, more...)...)
	if errors.Is(err, pgwire.ErrNoRows) {
		return journal.ErrGone
	}
	return err
}

// explain adds to an error of the server what a person can do about it.
func (s *Store) explain(err error) error {
	refused, is := errors.AsType[*pgconn.PgError](err)
	if !is {
		return err
	}
	switch refused.Code {
	case "42P05", "26000": // duplicate, or unknown, prepared statement
		return fmt.Errorf("a pooler in transaction mode is before the database: use its session mode, or add "+
			"default_query_exec_mode=exec to the address: %w", err)
	case "25006": // read-only transaction
		return fmt.Errorf("the journal can be read but not written, because the database is a standby or read-only: %w",
			err)
	case "42P01", "42703": // undefined table or column: the schema may have changed meanwhile
		ctx, stop := context.WithTimeout(context.Background(), time.Second)
		defer stop()
		version := 0
		asked := s.ask(ctx, func(ctx context.Context, conn *pgwire.Conn) (err error) {
			version, err = readVersion(ctx, conn, s.sql)
			return err
		})
		if old := judgeVersion(s.opts.Schema, version); asked == nil && old != nil {
			return fmt.Errorf("%w: %w", old, err)
		}
	}
	return err
}

// Hopeless reports whether an error of a database does not pass by itself: no such role, password,
// database or right.
func Hopeless(err error) bool {
	refused, is := errors.AsType[*pgconn.PgError](err)
	if !is {
		return false
	}
	class := refused.Code[:min(2, len(refused.Code))]
	return class == "28" || class == "3D" || refused.Code == "42501" || refused.Code == "42704"
}
