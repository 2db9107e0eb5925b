package pgwire

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"slices"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// Conn is a connection. One goroutine at a time may use it.
type Conn struct {
	pg *pgconn.PgConn

	unprepared bool
	prepared   map[string]*pgconn.StatementDescription // by their texts; nil while the server prepares one
	stale      []string                                // names of prepared statements to close

	notifications []*pgconn.Notification // that nobody has waited for yet
	notices       []string               // codes that nobody has asked for yet

	// What the pool knows of it.
	made, used time.Time
	generation int
}

// Connect connects outside of a pool.
func (c *Config) Connect(ctx context.Context) (*Conn, error) {
	conn := &Conn{unprepared: c.Unprepared, prepared: map[string]*pgconn.StatementDescription{}}
	server := c.Server.Copy()
	server.OnNotice = func(_ *pgconn.PgConn, n *pgconn.Notice) {
		if !slices.Contains(conn.notices, n.Code) {
			conn.notices = append(conn.notices, n.Code)
		}
	}
	server.OnNotification = func(_ *pgconn.PgConn, n *pgconn.Notification) {
		conn.notifications = append(conn.notifications, n)
	}
	var err error
	if conn.pg, err = pgconn.ConnectConfig(ctx, server); err != nil {
		return nil, err
	}
	conn.made = time.Now()
	return conn, nil
}

// Close closes the connection, which rolls back its transaction. It tells the server, and waits no
// longer than ctx for that.
func (c *Conn) Close(ctx context.Context) error { return c.pg.Close(ctx) }

// IsClosed reports whether the connection was closed, here or because it broke.
func (c *Conn) IsClosed() bool { return c.pg.IsClosed() }

// InTransaction reports whether a transaction was begun and not ended, a failed one too.
func (c *Conn) InTransaction() bool { return c.pg.TxStatus() != 'I' }

// Noticed reports whether the server has sent a notice or warning with one of these codes since the
// last call, and forgets all that it has sent.
func (c *Conn) Noticed(codes ...string) bool {
	found := slices.ContainsFunc(c.notices, func(code string) bool { return slices.Contains(codes, code) })
	c.notices = nil
	return found
}

// WaitForNotification returns the next notification of a channel that the session listens to.
func (c *Conn) WaitForNotification(ctx context.Context) (*pgconn.Notification, error) {
	for len(c.notifications) == 0 {
		if err := c.pg.WaitForNotification(ctx); err != nil {
			return nil, err
		}
	}
	next := c.notifications[0]
	c.notifications = c.notifications[1:]
	return next, nil
}

// Exec executes a statement and returns what the server says it did, such as COMMIT. Without
// arguments it may be several statements, and is never prepared.
func (c *Conn) Exec(ctx context.Context, sql string, args ...any) (tag string, err error) {
	if len(args) == 0 {
		results := c.pg.Exec(ctx, sql)
		for results.NextResult() {
			one, _ := results.ResultReader().Close() // Close returns its error too
			tag = one.String()
		}
		return tag, results.Close()
	}
	var b Batch
	b.Add(sql, args...)
	err = c.Do(ctx, &b, func(r *Results) (err error) {
		tag, err = r.Exec()
		return err
	})
	return tag, err
}

// Query returns the rows of a statement, which is sent when they are read.
func (c *Conn) Query(ctx context.Context, sql string, args ...any) Rows {
	return Rows{func(do func(*pgconn.ResultReader) error) error {
		var b Batch
		b.Add(sql, args...)
		return c.Do(ctx, &b, func(r *Results) error { return r.read(do) })
	}}
}

// Do sends the statements of a batch and calls read with their results. Results that read leaves
// are read for their errors; a nil read leaves them all. If the batch cannot be sent, read is not
// called. A batch that begins no transaction, and is in none, is a transaction of its own.
func (c *Conn) Do(ctx context.Context, b *Batch, read func(*Results) error) error {
	if err := c.check(b); err != nil {
		return err
	}
	r := &Results{conn: c, queries: b.queries, pipeline: c.pg.StartPipeline(ctx)}
	c.send(r)
	var failed error
	if r.err = r.pipeline.Sync(); r.err == nil && read != nil {
		failed = read(r)
	}
	return r.close(failed)
}

// binaryFormat is the format of all parameters, or of all columns of a result.
var binaryFormat = []int16{1}

// send writes the statements of a batch into the pipeline. Each one that the server must prepare is
// prepared right before its first use, and so after a BEGIN of the batch: preparing takes a
// snapshot, after which BEGIN could not set the isolation level.
func (c *Conn) send(r *Results) {
	r.closing = len(c.stale)
	for _, name := range c.stale {
		r.pipeline.SendDeallocate(name)
	}
	for i := range r.queries {
		q := &r.queries[i]
		known, there := c.prepared[q.sql]
		switch {
		case c.unprepared:
			r.pipeline.SendQueryParams(q.sql, q.values, q.types, binaryFormat, binaryFormat)
			continue
		case known != nil:
			r.pipeline.SendQueryStatement(known, q.values, binaryFormat, binaryFormat)
			continue
		case !there:
			q.prepares = true
			c.prepared[q.sql] = nil
			r.pipeline.SendPrepare(q.name(), q.sql, q.types)
		}
		r.pipeline.SendQueryPrepared(q.name(), q.values, binaryFormat, binaryFormat)
	}
}

// forget lets statements be prepared again when they are used next.
func (c *Conn) forget(queries []query) {
	for i := range queries {
		q := &queries[i]
		if _, there := c.prepared[q.sql]; !there {
			continue
		}
		delete(c.prepared, q.sql)
		if name := q.name(); !slices.Contains(c.stale, name) {
			c.stale = append(c.stale, name)
		}
	}
}

// name returns the name of the prepared statement: a digest of its text and its types.
func (q *query) name() string {
	h := sha256.New()
	h.Write([]byte(q.sql))
	for _, t := range q.types {
		h.Write(binary.BigEndian.AppendUint32(nil, t))
	}
	return "cadre_" + hex.EncodeToString(h.Sum(nil)[:24])
}
