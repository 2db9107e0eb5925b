package pgwire

import (
	"fmt"
	"runtime"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// Config says how to connect. [ParseConfig] makes one.
type Config struct {
	// Server is the server, the role, the database, and what a session begins with.
	Server *pgconn.Config
	// MaxConns is how many connections a pool has at most.
	MaxConns int
	// MaxAge is the age at which a pool closes a connection; 0 means never.
	MaxAge time.Duration
	// MaxIdle is how long a pool keeps a connection that nobody uses.
	MaxIdle time.Duration
	// Unprepared means that no statement is prepared, which poolers in transaction mode need.
	Unprepared bool
}

// ignored lists parameters of pgx and its pool that have no effect here. The server does not know
// them.
var ignored = []string{"pool_min_conns", "pool_min_idle_conns", "pool_max_conn_lifetime_jitter",
	"pool_health_check_period", "pool_ping_timeout", "statement_cache_capacity", "description_cache_capacity"}

// ParseConfig reads an address: a URL or a list of parameters, as PostgreSQL's own programs take
// it. It may also have these parameters of pgx and its pool:
//
//   - default_query_exec_mode: cache_statement prepares statements and is the default, exec does
//     not. The other values of pgx mean exec.
//   - pool_max_conns: the default is the number of processors, and at least 4.
//   - pool_max_conn_lifetime and pool_max_conn_idle_time: lengths of time; the defaults are 1h and
//     30m.
//
// Their other parameters have no effect. Errors do not show a password.
func ParseConfig(address string) (*Config, error) {
	server, err := pgconn.ParseConfig(address)
	if err != nil {
		return nil, err
	}
	c := &Config{Server: server, MaxConns: max(4, runtime.NumCPU()), MaxAge: time.Hour, MaxIdle: 30 * time.Minute}
	for _, name := range ignored {
		delete(server.RuntimeParams, name)
	}
	for _, p := range []struct {
		name string
		read func(text string) (wrong string, err error)
	}{
		{"default_query_exec_mode", c.readMode},
		{"pool_max_conns", c.readMaxConns},
		{"pool_max_conn_lifetime", readDuration(&c.MaxAge)},
		{"pool_max_conn_idle_time", readDuration(&c.MaxIdle)},
	} {
		text, there := server.RuntimeParams[p.name]
		if !there {
			continue
		}
		delete(server.RuntimeParams, p.name)
		if wrong, err := p.read(text); wrong != "" {
			return nil, pgconn.NewParseConfigError(address, fmt.Sprintf(wrong, p.name), err)
		}
	}
	return c, nil
}

func (c *Config) readMode(text string) (wrong string, err error) {
	switch text {
	case "cache_statement":
	case "exec", "cache_describe", "describe_exec", "simple_protocol":
		c.Unprepared = true
	default:
		return "invalid %s", fmt.Errorf("unknown value %q", text)
	}
	return "", nil
}

func (c *Config) readMaxConns(text string) (wrong string, err error) {
	n, err := strconv.ParseInt(text, 10, 32)
	switch {
	case err != nil:
		return "cannot parse %s", err
	case n < 1:
		return "%s too small", nil
	}
	c.MaxConns = int(n)
	return "", nil
}

func readDuration(into *time.Duration) func(string) (string, error) {
	return func(text string) (wrong string, err error) {
		d, err := time.ParseDuration(text)
		if err != nil {
			return "cannot parse %s", err
		}
		*into = d
		return "", nil
	}
}
