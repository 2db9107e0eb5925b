package pgwire_test

import (
	"errors"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"cadre/internal/journal/pgjournal/pgwire"
)

// TestParseConfig reads addresses, and compares with the official client what is in them and the
// errors.
func TestParseConfig(t *testing.T) {
	t.Parallel()
	for _, address := range []string{
		"host=h",
		"postgres://u:secret@h/d?pool_max_conns=3&default_query_exec_mode=exec",
		"host=h password=secret pool_max_conns=3 pool_max_conn_lifetime=5s pool_max_conn_idle_time=7m",
		"host=h default_query_exec_mode=cache_statement application_name=a",
		"host=h default_query_exec_mode=simple_protocol",
		"host=h pool_min_conns=1 pool_min_idle_conns=1 pool_health_check_period=1s pool_max_conn_lifetime_jitter=1s " +
			"pool_ping_timeout=1s statement_cache_capacity=5 description_cache_capacity=5",
		"host=h password=secret pool_max_conns=x",
		"host=h password=secret pool_max_conns=0",
		"host=h password=secret pool_max_conn_lifetime=5",
		"host=h password=secret pool_max_conn_idle_time=",
		"host=h password=secret default_query_exec_mode=fast",
		"postgres://u:secret@h:port/",
		"host=h password='secret",
	} {
		ours, err := pgwire.ParseConfig(address)
		theirs, want := pgxpool.ParseConfig(address)
		if want != nil {
			if err == nil || err.Error() != want.Error() || strings.Contains(err.Error(), "secret") {
				t.Errorf("%s: %v, want %v", address, err, want)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", address, err)
			continue
		}
		if ours.MaxConns != int(theirs.MaxConns) || ours.MaxAge != theirs.MaxConnLifetime ||
			ours.MaxIdle != theirs.MaxConnIdleTime ||
			!maps.Equal(ours.Server.RuntimeParams, theirs.ConnConfig.RuntimeParams) {
			t.Errorf("%s is %+v", address, ours)
		}
		prepares := theirs.ConnConfig.DefaultQueryExecMode == pgx.QueryExecModeCacheStatement
		if prepares == ours.Unprepared {
			t.Errorf("%s: unprepared is %t", address, ours.Unprepared)
		}
	}
}

// TestConnectFails checks that errors do not show a password.
func TestConnectFails(t *testing.T) {
	t.Parallel()
	c, err := pgwire.ParseConfig("host=/nowhere user=u password=secret")
	if err != nil {
		t.Fatal(err)
	}
	_, alone := c.Connect(t.Context())
	p := newPool(t, c)
	_, pooled := p.Acquire(within(t, 10*time.Second))
	for _, err := range []error{alone, pooled} {
		if err == nil || strings.Contains(err.Error(), "secret") || errors.Is(err, t.Context().Err()) {
			t.Errorf("got %v", err)
		}
	}
}
