package pgjournal

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"cadre/internal/journal/pgjournal/pgwire"
)

// DefaultSchema is the schema of the teams where an address names none.
const DefaultSchema = "cadre"

// Location is an address that was read, with what the environment and the user's files add to it.
type Location struct {
	Schema string // of the teams
	Called string // the place, for people: without user and password

	config *pgwire.Config
}

// Locate reads an address. The schema of the teams is its search_path, which is one name. Beyond
// this machine, the server must prove who it is: sslmode=verify-full, or verify-ca. Errors do not
// show a password.
func Locate(dsn string) (at Location, err error) {
	if scheme, _, is := strings.Cut(dsn, "://"); is && !strings.ContainsAny(scheme, " =") && scheme != "postgres" &&
		scheme != "postgresql" {
		return at, fmt.Errorf("the address of the database begins with %.20s://, and not with postgres://", scheme)
	}
	if at.config, err = configure(dsn); err != nil {
		return at, err
	}
	c := at.config.Server
	if at.Schema = c.RuntimeParams["search_path"]; at.Schema == "" {
		at.Schema = DefaultSchema
	}
	if err := checkSchema(at.Schema); err != nil {
		return at, fmt.Errorf("the search_path of the database's address: %w", err)
	}
	if strings.ContainsAny(at.Schema, ",\"") {
		return at, fmt.Errorf("the search_path of the database's address is %q, but the teams are in one schema", at.Schema)
	}
	name := cmp.Or(c.Database, c.User) // as PostgreSQL's own programs do
	at.Called = fmt.Sprintf("the database %s at %s, schema %s", name, net.JoinHostPort(c.Host, fmt.Sprint(c.Port)),
		at.Schema)
	servers := []*pgconn.FallbackConfig{{Host: c.Host, TLSConfig: c.TLSConfig}}
	for _, s := range append(servers, c.Fallbacks...) {
		if !local(s.Host) && !verified(s.TLSConfig) {
			return at, errUnverified(s.Host)
		}
	}
	return at, nil
}

// Connect connects to the teams, whose tables must have the version of this package. It sets the
// schema of the options.
func (at Location) Connect(ctx context.Context, opts Options) (*Store, error) {
	opts.Schema = at.Schema
	return connect(ctx, at.config, opts)
}

// Migrate is [Migrate] for the location.
func (at Location) Migrate(ctx context.Context) (from, to int, err error) {
	return migrateAt(ctx, at.config, at.Schema, Version())
}

// errUnverified refuses a server that anybody on the network could stand in for.
func errUnverified(host string) error {
	return errors.New("the connection to the database at " + host + " would not be verified: add sslmode=verify-full " +
		"to its address, and sslrootcert=FILE if a certificate authority of your own has signed its certificate")
}

// local reports whether a server is on this machine: a folder with its socket, or loopback.
func local(host string) bool {
	if strings.HasPrefix(host, "/") || strings.HasPrefix(host, "@") || host == "localhost" {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}

// verified reports whether the server's certificate is checked. For verify-ca, pgconn leaves the
// check of the name out and verifies the chain in a function.
func verified(c *tls.Config) bool {
	return c != nil && (!c.InsecureSkipVerify || c.VerifyPeerCertificate != nil || c.VerifyConnection != nil)
}
