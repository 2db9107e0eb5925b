package pgwire_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"go.uber.org/goleak"

	"cadre/internal/journal/pgjournal/pgwire"
	"cadre/internal/testkit/postgrestest"
)

func TestMain(m *testing.M) {
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

// unprepared is the parameter for poolers in transaction mode.
const unprepared = " default_query_exec_mode=exec"

// config returns the configuration for a schema of the test, which is the first one of the search
// path.
func config(t testing.TB, parameters string) *pgwire.Config {
	t.Helper()
	dsn, schema := postgrestest.Shared(t).Schema(t)
	c, err := pgwire.ParseConfig(dsn + parameters)
	if err != nil {
		t.Fatal(err)
	}
	c.Server.RuntimeParams["search_path"] = schema
	official(t, c, "CREATE SCHEMA "+schema)
	return c
}

// official runs statements with the official client.
func official(t testing.TB, c *pgwire.Config, statements ...string) {
	t.Helper()
	conn := officialConn(t, c)
	for _, sql := range statements {
		if _, err := conn.Exec(context.Background(), sql); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
}

func officialConn(t testing.TB, c *pgwire.Config) *pgx.Conn {
	t.Helper()
	config, err := pgx.ParseConfig("")
	if err != nil {
		t.Fatal(err)
	}
	config.Config = *c.Server.Copy()
	conn, err := pgx.ConnectConfig(context.Background(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close(context.Background()) })
	return conn
}

func connect(t testing.TB, c *pgwire.Config) *pgwire.Conn {
	t.Helper()
	conn, err := c.Connect(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close(context.Background()) })
	return conn
}

func newPool(t testing.TB, c *pgwire.Config) *pgwire.Pool {
	t.Helper()
	p := pgwire.NewPool(c)
	t.Cleanup(p.Close)
	return p
}

func acquire(t testing.TB, p *pgwire.Pool) *pgwire.Conn {
	t.Helper()
	conn, err := p.Acquire(within(t, 10*time.Second))
	if err != nil {
		t.Fatal(err)
	}
	return conn
}

func within(t testing.TB, long time.Duration) context.Context {
	ctx, stop := context.WithTimeout(context.Background(), long)
	t.Cleanup(stop)
	return ctx
}

// network counts what connections do.
type network struct {
	dials, writes atomic.Int64
	slow          func() // called before a connection is made; may be nil

	mu        sync.Mutex
	open, max int
}

// counting returns a configuration whose connections are counted. Those that only ask the server to
// cancel a statement are not.
func counting(c *pgwire.Config) (*pgwire.Config, *network) {
	n := &network{}
	counting := *c
	counting.Server = c.Server.Copy()
	counting.Server.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
		n.dials.Add(1)
		if n.slow != nil {
			n.slow()
		}
		conn, err := c.Server.DialFunc(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return &counted{Conn: conn, of: n}, nil
	}
	return &counting, n
}

func (n *network) add(change int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.open += change
	n.max = max(n.max, n.open)
}

// opened returns how many connections are open now, and how many were open at once.
func (n *network) opened() (open, most int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.open, n.max
}

type counted struct {
	net.Conn
	of          *network
	began, ends sync.Once
	counts      bool
}

func (c *counted) Write(b []byte) (int, error) {
	c.of.writes.Add(1)
	c.began.Do(func() {
		const cancelRequest = 80877102
		if c.counts = binary.BigEndian.Uint32(b[4:]) != cancelRequest; c.counts {
			c.of.add(1)
		}
	})
	return c.Conn.Write(b)
}

func (c *counted) Close() error {
	c.ends.Do(func() {
		if c.counts {
			c.of.add(-1)
		}
	})
	return c.Conn.Close()
}
