package pgjournal

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// Grant gives a role the rights that a process needs which works with the teams: it reads and
// writes rows, and changes no table. The location's role owns the schema. The other one must exist.
func (at Location) Grant(ctx context.Context, role string) error {
	in, to := quote(at.Schema), quote(role)
	statements := []string{
		"GRANT USAGE ON SCHEMA " + in + " TO " + to,
		"GRANT SELECT ON " + in + ".migration TO " + to,
	}
	for _, table := range []string{"team", "record", "snapshot", "lease", "value"} {
		statements = append(statements, fmt.Sprintf("GRANT SELECT, INSERT, UPDATE, DELETE ON %s.%s TO %s", in, table, to))
	}
	statements = append(statements, "GRANT USAGE ON ALL SEQUENCES IN SCHEMA "+in+" TO "+to)
	err := at.with(ctx, func(ctx context.Context, conn *pgconn.PgConn) error {
		_, err := conn.Exec(ctx, "BEGIN; "+strings.Join(statements, "; ")+"; COMMIT").ReadAll()
		return err
	})
	if err != nil {
		return fmt.Errorf("grant the role %s what it needs in the schema %s: %w", role, at.Schema, err)
	}
	return nil
}

// Server is what a server says of itself.
type Server struct {
	Version           string        // such as "15.7 (Debian 15.7-0+deb12u1)"
	Number            int           // such as 150007
	Fsync             bool          // what is committed survives a loss of power
	FullPageWrites    bool          // and so do the pages that are written meanwhile
	SynchronousCommit string        // such as "on" or "remote_apply"
	Standbys          int           // standbys that follow now, -1 where the role may not see them
	Needed            string        // the standbys that a commit waits for; "" for none
	Recovery          bool          // the server is a standby itself
	Skew              time.Duration // how far its clock is ahead of ours, to half the round trip
	RoundTrip         time.Duration // the shortest of some
	Schema            int           // version of the schema; 0 if it has no tables of cadre
}

// Look asks a server about itself.
func (at Location) Look(ctx context.Context) (s Server, err error) {
	err = at.with(ctx, func(ctx context.Context, conn *pgconn.PgConn) error {
		if err := s.settings(ctx, conn); err != nil {
			return err
		}
		if err := s.schema(ctx, conn, at.Schema); err != nil {
			return err
		}
		return s.measure(ctx, conn)
	})
	if err != nil {
		return s, fmt.Errorf("look at the database: %w", err)
	}
	return s, nil
}

// settings reads what the server is set to.
func (s *Server) settings(ctx context.Context, conn *pgconn.PgConn) error {
	const sql = `SELECT current_setting('server_version'), current_setting('server_version_num'),
		current_setting('fsync'), current_setting('full_page_writes'), current_setting('synchronous_commit'),
		current_setting('synchronous_standby_names'), pg_is_in_recovery(),
		CASE WHEN pg_has_role('pg_monitor', 'USAGE') THEN (SELECT count(*) FROM pg_stat_replication) ELSE -1 END`
	row, err := oneRow(ctx, conn, sql)
	if err != nil {
		return err
	}
	s.Version, s.Fsync, s.FullPageWrites = row[0], row[2] == "on", row[3] == "on"
	s.SynchronousCommit, s.Needed, s.Recovery = row[4], row[5], row[6] == "t"
	s.Number, _ = strconv.Atoi(row[1])
	s.Standbys, _ = strconv.Atoi(row[7])
	return nil
}

// schema reads the version of the tables.
func (s *Server) schema(ctx context.Context, conn *pgconn.PgConn, schema string) error {
	table := quote(schema) + ".migration"
	row, err := oneRow(ctx, conn, "SELECT to_regclass('"+strings.ReplaceAll(table, "'", "''")+"') IS NOT NULL")
	if err != nil || row[0] != "t" {
		return err
	}
	row, err = oneRow(ctx, conn, "SELECT coalesce(max(version), 0) FROM "+table)
	if err == nil {
		s.Schema, err = strconv.Atoi(row[0])
	}
	return err
}

// roundTrips is how many round trips are measured.
const roundTrips = 5

// measure finds the shortest round trip, and how far the server's clock is ahead.
func (s *Server) measure(ctx context.Context, conn *pgconn.PgConn) error {
	for n := range roundTrips {
		began := time.Now()
		row, err := oneRow(ctx, conn, "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint")
		took := time.Since(began)
		if err != nil {
			return err
		}
		if n > 0 && took >= s.RoundTrip {
			continue
		}
		now, err := strconv.ParseInt(row[0], 10, 64)
		if err != nil {
			return err
		}
		s.RoundTrip = took
		s.Skew = time.UnixMicro(now).Sub(began.Add(took / 2)).Round(time.Millisecond)
	}
	return nil
}

// oneRow returns the row that a statement answers with, as texts.
func oneRow(ctx context.Context, conn *pgconn.PgConn, sql string) (row []string, err error) {
	results, err := conn.Exec(ctx, sql).ReadAll()
	if err != nil {
		return nil, err
	}
	if len(results) != 1 || len(results[0].Rows) != 1 {
		return nil, fmt.Errorf("the answer to %.40s has not one row", sql)
	}
	for _, value := range results[0].Rows[0] {
		row = append(row, string(value))
	}
	return row, nil
}

// administerTime bounds what an administrator does but a migration.
const administerTime = time.Minute

// with opens a connection of its own for an administrator.
func (at Location) with(ctx context.Context, do func(context.Context, *pgconn.PgConn) error) error {
	ctx, cancel := context.WithTimeout(ctx, administerTime)
	defer cancel()
	conn, err := pgconn.ConnectConfig(ctx, at.config.Server.Copy())
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	return do(ctx, conn)
}
