package pgwire

import (
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5/pgconn"
)

// ErrNoRows reports that a statement returned no row where one was to be scanned.
var ErrNoRows = errors.New("no rows in result set")

// Batch is a list of statements that are sent together. The zero value is an empty one. It is for
// one use.
type Batch struct {
	queries []query
	err     error // of the first argument that could not be encoded
}

// query is a statement with its parameters.
type query struct {
	sql      string
	values   [][]byte
	types    []uint32
	prepares bool // the server prepares it in this batch
}

// Add adds a statement, in which $1 stands for the first argument. Arguments may be int, int64,
// string, []byte, []int64, []string and [][]byte. A nil slice is NULL. Slices must not be changed
// before the batch is sent.
func (b *Batch) Add(sql string, args ...any) {
	q := query{sql: sql}
	if len(args) > 0 {
		q.values, q.types = make([][]byte, len(args)), make([]uint32, len(args))
	}
	for i, arg := range args {
		var err error
		if q.types[i], q.values[i], err = encode(arg); err != nil && b.err == nil {
			b.err = fmt.Errorf("argument %d of %s: %w", i+1, sql, err)
		}
	}
	b.queries = append(b.queries, q)
}

// Len returns the number of statements.
func (b *Batch) Len() int { return len(b.queries) }

// check returns an error for arguments that must not be sent: for a prepared statement, the server
// would take the bytes of one type for those of another.
func (c *Conn) check(b *Batch) error {
	for i := range b.queries {
		q := &b.queries[i]
		if known := c.prepared[q.sql]; known != nil && !slices.Equal(known.ParamOIDs, q.types) {
			return fmt.Errorf("the types of the arguments of %s were other ones before", q.sql)
		}
	}
	return b.err
}

// Results has the results of the statements of a batch, in order.
type Results struct {
	conn     *Conn
	pipeline *pgconn.Pipeline
	queries  []query
	at       int   // the next one
	closing  int   // statements of which the server has yet to say that they are closed
	err      error // after which there is nothing more to read
}

// Exec reads the result of the next statement and returns what the server says it did. It ignores
// rows.
func (r *Results) Exec() (tag string, err error) {
	err = r.read(func(result *pgconn.ResultReader) error {
		one, err := result.Close()
		tag = one.String()
		return err
	})
	return tag, err
}

// Rows returns the rows of the next statement, which must be read before those of the one after it.
func (r *Results) Rows() Rows { return Rows{r.read} }

// read calls do with the result of the next statement. The server's error is the one that counts.
func (r *Results) read(do func(*pgconn.ResultReader) error) error {
	result, err := r.next()
	if err != nil {
		r.err = err
		return err
	}
	err = do(result)
	if _, failed := result.Close(); failed != nil {
		r.err = failed
		return failed
	}
	return err
}

// next returns the result of the next statement.
func (r *Results) next() (*pgconn.ResultReader, error) {
	if r.err != nil {
		return nil, r.err
	}
	if r.at == len(r.queries) {
		return nil, errors.New("the batch has no more statements")
	}
	for ; r.closing > 0; r.closing-- {
		if _, err := r.pipeline.GetResults(); err != nil {
			return nil, err
		}
		r.conn.stale = r.conn.stale[1:]
	}
	q := &r.queries[r.at]
	r.at++
	if q.prepares {
		got, err := r.pipeline.GetResults()
		if err != nil {
			return nil, err
		}
		described, is := got.(*pgconn.StatementDescription)
		if !is {
			return nil, fmt.Errorf("the answer to a prepared statement is %T", got)
		}
		described.Name, described.SQL = q.name(), q.sql
		r.conn.prepared[q.sql] = described
	}
	got, err := r.pipeline.GetResults()
	if err != nil {
		return nil, err
	}
	result, is := got.(*pgconn.ResultReader)
	if !is {
		return nil, fmt.Errorf("the answer to a statement is %T", got)
	}
	return result, nil
}

// close reads what is left, and makes the connection ready for the next batch. failed is the error
// of the reader.
func (r *Results) close(failed error) error {
	for r.err == nil && r.at < len(r.queries) {
		_, _ = r.Exec() // its error is r.err
	}
	if err := r.pipeline.Close(); r.err == nil {
		r.err = err
	}
	if r.err == nil {
		return failed
	}
	r.conn.forget(r.queries)
	switch {
	case failed == nil:
		return r.err
	case errors.Is(failed, r.err): // the reader has returned it
		return failed
	}
	return errors.Join(failed, r.err)
}
