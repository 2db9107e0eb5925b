package pgjournal

import (
	"context"
	"crypto/sha256"
	"embed"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"sync"

	"github.com/jackc/pgx/v5/pgconn"

	"cadre/internal/journal"
	"cadre/internal/journal/pgjournal/pgwire"
)

// migrations holds the steps from one version of the schema to the next. Their names begin with the
// version that they lead to. A step that was released never changes.
//
//go:embed migrations/*.sql
var migrations embed.FS

// ErrNoTables marks a schema that does not exist, or has no tables of cadre. It is also [ErrOlder].
var ErrNoTables = errors.New("there are no tables of cadre")

// ErrOlder marks a schema that [Migrate] must bring to this version first. A schema that does not
// exist has version 0.
var ErrOlder = errors.New("the schema must be migrated first")

// steps returns the texts of the migrations. The first one leads to version 1.
func steps() ([]string, error) {
	names, err := fs.Glob(migrations, "migrations/*.sql") // in order
	if err != nil {
		return nil, err
	}
	var texts []string
	for _, name := range names {
		text, err := migrations.ReadFile(name)
		if err != nil {
			return nil, err
		}
		texts = append(texts, string(text))
	}
	return texts, nil
}

// Version returns the version of the schema that this package needs.
func Version() int { return known() }

var known = sync.OnceValue(func() int {
	names, _ := fs.Glob(migrations, "migrations/*.sql")
	return len(names)
})

// Migrate brings a schema to this version, and creates it if it does not exist. It returns the
// version before and after. It is one transaction: other processes see the schema before it or
// after it, and several may migrate at once. Migrate refuses a newer schema with
// [journal.ErrNewer].
func Migrate(ctx context.Context, dsn, schema string) (from, to int, err error) {
	return migrate(ctx, dsn, schema, Version())
}

func migrate(ctx context.Context, dsn, schema string, to int) (from, now int, err error) {
	config, err := configure(dsn)
	if err != nil {
		return 0, 0, err
	}
	return migrateAt(ctx, config, schema, to)
}

func migrateAt(ctx context.Context, config *pgwire.Config, schema string, to int) (from, now int, err error) {
	if err := checkSchema(schema); err != nil {
		return 0, 0, err
	}
	conn, err := config.Connect(ctx)
	if err != nil {
		return 0, 0, fmt.Errorf("migrate the schema %s: %w", schema, err)
	}
	defer conn.Close(context.WithoutCancel(ctx))
	if _, err = conn.Exec(ctx, begin); err == nil {
		from, err = migrateIn(ctx, conn, schema, to)
	}
	if err == nil {
		var tag string
		if tag, err = conn.Exec(ctx, commit); err == nil && tag != commit {
			err = fmt.Errorf("the server answered %s", tag)
		}
	}
	if err != nil { // closing the connection rolls back
		return from, from, fmt.Errorf("migrate the schema %s: %w", schema, err)
	}
	return from, max(from, to), nil
}

// migrateIn migrates in a transaction of the connection.
func migrateIn(ctx context.Context, conn *pgwire.Conn, schema string, to int) (from int, err error) {
	texts, err := steps()
	if err != nil {
		return 0, err
	}
	if _, err := conn.Exec(ctx, takeAdvisoryLock, lockKey("migrate", schema)); err != nil {
		return 0, err
	}
	if err := prepareSchema(ctx, conn, schema); err != nil {
		return 0, err
	}
	if from, err = readVersion(ctx, conn, newStatements(schema)); err != nil {
		return 0, err
	}
	switch {
	case from > len(texts):
		return from, newer(schema, from)
	case from >= to:
		return from, nil
	case from > 0: // wait for the appends in progress; those that come later see the new version
		if _, err := conn.Exec(ctx, "LOCK TABLE team, record IN ACCESS EXCLUSIVE MODE"); err != nil {
			return from, err
		}
	}
	for version := from + 1; version <= to; version++ {
		if _, err := conn.Exec(ctx, texts[version-1]); err != nil {
			return from, fmt.Errorf("to version %d: %w", version, err)
		}
		if _, err := conn.Exec(ctx, "INSERT INTO migration (version) VALUES ($1)", version); err != nil {
			return from, err
		}
	}
	return from, nil
}

// prepareSchema makes the schema and its table of versions, and makes the schema the one of names
// without a schema, up to the end of the transaction.
func prepareSchema(ctx context.Context, conn *pgwire.Conn, schema string) error {
	var exists bool
	err := conn.Query(ctx, "SELECT EXISTS (SELECT FROM pg_namespace WHERE nspname = $1)", schema).Scan(&exists)
	if err != nil {
		return err
	}
	if !exists { // CREATE SCHEMA IF NOT EXISTS needs a right on the database even if it does nothing
		if _, err := conn.Exec(ctx, "CREATE SCHEMA "+quote(schema)); err != nil {
			return err
		}
	}
	if _, err := conn.Exec(ctx, "SET LOCAL search_path TO "+quote(schema)); err != nil {
		return err
	}
	_, err = conn.Exec(ctx, `CREATE TABLE IF NOT EXISTS migration (
		version integer PRIMARY KEY,
		applied timestamptz NOT NULL DEFAULT now())`)
	return err
}

// readVersion returns the version of the schema, 0 if it does not exist.
func readVersion(ctx context.Context, conn *pgwire.Conn, sql statements) (version int, err error) {
	err = conn.Query(ctx, sql.version).Scan(&version)
	if refused, is := errors.AsType[*pgconn.PgError](err); is && (refused.Code == "42P01" || refused.Code == "3F000") {
		return 0, nil
	}
	return version, err
}

// judgeVersion returns an error unless this package knows the version of the schema.
func judgeVersion(schema string, version int) error {
	switch want := Version(); {
	case version > want:
		return newer(schema, version)
	case version == 0:
		return fmt.Errorf("%w: %w in the schema %s", ErrOlder, ErrNoTables, schema)
	case version < want:
		return fmt.Errorf("%w: the schema %s has version %d, and this version of cadre needs %d", ErrOlder, schema,
			version, want)
	}
	return nil
}

func newer(schema string, version int) error {
	return fmt.Errorf("%w: the schema %s has version %d, and this one knows %d", journal.ErrNewer, schema, version,
		Version())
}

// checkSchema refuses a name that cannot be that of a schema.
func checkSchema(schema string) error {
	// The name is also a part of the name of a channel, which PostgreSQL cuts at 63 bytes.
	const most = 63 - len(channelPrefix)
	switch {
	case schema == "":
		return errors.New("name the schema that the teams are in")
	case len(schema) > most || strings.ContainsRune(schema, 0) || strings.HasPrefix(schema, "pg_"):
		return fmt.Errorf("%.80q cannot be the name of the schema: it may have up to %d bytes, and must not begin "+
			"with pg_", schema, most)
	}
	return nil
}

func quote(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

// lockKey returns the key of an advisory lock. What must not happen at the same time has one key.
// If two keys are equal by chance, two things wait for each other that need not.
func lockKey(what ...string) int64 {
	sum := sha256.Sum256([]byte("cadre\x00" + strings.Join(what, "\x00")))
	return int64(binary.BigEndian.Uint64(sum[:]))
}

// Statements without a table.
const (
	// begin starts a transaction in which each statement sees what was committed before it,
	// whatever the default of the role or the database is.
	begin    = "BEGIN ISOLATION LEVEL READ COMMITTED"
	commit   = "COMMIT"
	rollback = "ROLLBACK"

	takeAdvisoryLock = "SELECT pg_advisory_xact_lock($1)"
	tryAdvisoryLock  = "SELECT pg_try_advisory_xact_lock($1)"

	// guard makes a transaction durable at its commit, whatever the default is, and lets the server
	// end it when the client stalls. It is for one transaction, because behind a pooler in
	// transaction mode the next one runs in another session.
	guard = `set_config('idle_in_transaction_session_timeout', $1, true),
		set_config('synchronous_commit', CASE current_setting('synchronous_commit') WHEN 'off' THEN 'on'
			ELSE current_setting('synchronous_commit') END, true)`
)

// statements holds the statements for the tables of one schema.
type statements struct {
	version, teams, create, open, read, lock, page, insert, insertMany, find, made, lasts string
	record, archive, number, dropRecords, dropSnapshots, dropTeam                         string
	notify, snapshots, snapshot, newest, keepSnapshot, dropSnapshot, at                   string
	sharedStatements
}

// newStatements writes the name of the schema into each statement, because a search path would be a
// state of the session.
func newStatements(schema string) statements {
	in := func(sql string) string { return strings.ReplaceAll(sql, "@", quote(schema)+".") }
	const head = "last, ends, digest, (SELECT coalesce(max(version), 0) FROM @migration)"
	return statements{
		version: in("SELECT coalesce(max(version), 0) FROM @migration"),
		teams:   in("SELECT id, name, project, archived FROM @team ORDER BY name, id"),
		create: in(`INSERT INTO @team (id, name, project, journal, made, last, ends, digest)
			VALUES ($1, $2, $3, $1, $4, $5, $6, $7) RETURNING number`),
		open:    in("SELECT number, journal, name, project, archived FROM @team WHERE id = $1"),
		made:    in("SELECT made FROM @team WHERE id = $1 FOR UPDATE"),
		archive: in("UPDATE @team SET archived = true WHERE id = $1 RETURNING number"),

		read: in("SELECT " + head + " FROM @team WHERE number = $1"),
		lock: in("SELECT " + head + ", " + guard + " FROM @team WHERE number = $2 FOR UPDATE"),
		// The record $2 comes without its data, for its digest. After it come at most $3 records,
		// up to the one that ends at byte $4 of the history; those up to $5 come however long they
		// are.
		page: in(`SELECT seq, ends, digest, CASE WHEN seq > $2 THEN data END FROM @record
			WHERE team = $1 AND seq >= $2 AND seq <= $2 + $3 AND (seq <= $5 OR ends <= $4) ORDER BY seq`),
		record: in("SELECT ends, digest FROM @record WHERE team = $1 AND seq = $2"),
		insert: in(`WITH one AS (
				INSERT INTO @record (team, seq, ends, digest, id, data) VALUES ($1, $2, $3, $4, $5, $6)
			) UPDATE @team SET last = $2, ends = $3, digest = $4 WHERE number = $1`),
		insertMany: in(`INSERT INTO @record (team, seq, id, ends, digest, data)
			SELECT $1, * FROM unnest($2::bigint[], $3::bytea[], $4::bigint[], $5::bytea[], $6::bytea[])`),
		find:  in("SELECT EXISTS (SELECT FROM @record WHERE team = $1 AND id = $2)"),
		at:    in("SELECT ends, digest FROM @record WHERE team = $1 AND seq = $2"),
		lasts: in("SELECT number, last FROM @team WHERE number = ANY($1)"),
		notify: in(`SELECT pg_notify($1, p.number || ' ' || p.last)
			FROM unnest($2::bigint[], $3::bigint[]) AS p (number, last)
			WHERE NOT EXISTS (SELECT FROM @team t WHERE t.number = p.number AND t.last > p.last)`),

		number:        in("SELECT number, " + guard + " FROM @team WHERE id = $2 FOR UPDATE"),
		dropRecords:   in("DELETE FROM @record WHERE team = $1"),
		dropSnapshots: in("DELETE FROM @snapshot WHERE team = $1"),
		dropTeam:      in("DELETE FROM @team WHERE number = $1"),

		snapshots: in("SELECT seq, ends, size FROM @snapshot WHERE team = $1 ORDER BY seq"),
		newest:    in("SELECT seq, ends, size FROM @snapshot WHERE team = $1 ORDER BY seq DESC LIMIT 1"),
		snapshot: in(`SELECT s.seq, s.ends, s.record, s.sum, s.data, r.digest FROM @snapshot s
			LEFT JOIN @record r ON r.team = s.team AND r.seq = s.seq
			WHERE s.team = $1 AND s.seq BETWEEN $2 AND $3 ORDER BY s.seq DESC LIMIT 1`),
		keepSnapshot: in(`INSERT INTO @snapshot (team, seq, ends, size, record, sum, data)
			VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT (team, seq) DO UPDATE
			SET ends = excluded.ends, size = excluded.size, record = excluded.record, sum = excluded.sum,
			data = excluded.data`),
		dropSnapshot:     in("DELETE FROM @snapshot WHERE team = $1 AND seq = $2"),
		sharedStatements: newSharedStatements(in),
	}
}

// sharedStatements are those for leases and values.
type sharedStatements struct {
	acquire, renew, release, holder, allHeld        string
	value, values, setValues, dropValue, dropValues string
	dropLeases, hasValue, putValueOnce              string
}

// newSharedStatements returns them. in writes the name of the schema into a statement.
func newSharedStatements(in func(string) string) sharedStatements {
	return sharedStatements{
		// The clock is read when the row is locked. Nothing is inserted for a team that was
		// removed, because [Shared.inserts] has taken the lock for which a removal waits.
		acquire: in(`INSERT INTO @lease AS l (team, name, token, holder, fence, until)
			SELECT number, $2, $3, $4, 1, clock_timestamp() + $5::bigint * interval '1 millisecond'
			FROM @team WHERE number = $1 AND (SELECT max(version) FROM @migration) = $6
			ON CONFLICT (team, name) DO UPDATE
			SET token = excluded.token, holder = excluded.holder, fence = l.fence + 1, until = excluded.until
			WHERE l.until <= clock_timestamp() OR l.token = excluded.token RETURNING fence`),
		renew: in(`WITH renewed AS (
				UPDATE @lease l SET until = clock_timestamp() + $4::bigint * interval '1 millisecond'
				FROM unnest($1::bigint[], $2::text[], $3::bytea[]) AS p (team, name, token)
				WHERE l.team = p.team AND l.name = p.name AND l.token = p.token AND l.until > clock_timestamp()
					AND (SELECT max(version) FROM @migration) = $5
				RETURNING l.token
			) SELECT coalesce(array_agg(token), '{}') FROM renewed`),
		release: in("UPDATE @lease SET until = '-infinity' WHERE team = $1 AND name = $2 AND token = $3"),
		holder:  in("SELECT holder FROM @lease WHERE team = $1 AND name = $2 AND until > clock_timestamp()"),
		allHeld: in(`SELECT name FROM @lease WHERE team = $1 AND starts_with(name, $2) AND until > clock_timestamp()
			ORDER BY name`),
		dropLeases: in("DELETE FROM @lease WHERE team = $1"),

		value: in("SELECT data FROM @value WHERE team = $1 AND key = $2"),
		values: in(`SELECT key, data FROM @value WHERE team = $1 AND key > $2 AND key < $3
			AND strpos(substr(key, length($2) + 1), '/') = 0 ORDER BY key`),
		setValues: in(`WITH new AS (
				INSERT INTO @value (team, key, data) SELECT t.number, p.key, p.data
				FROM @team t, unnest($2::text[], $3::bytea[]) AS p (key, data)
				WHERE t.number = $1 AND (SELECT max(version) FROM @migration) = $4
				ON CONFLICT (team, key) DO UPDATE SET data = excluded.data RETURNING 1
			) SELECT count(*) FROM new`),
		putValueOnce: in(`WITH new AS (
				INSERT INTO @value (team, key, data) SELECT number, $2, $3
				FROM @team WHERE number = $1 AND (SELECT max(version) FROM @migration) = $4
				ON CONFLICT (team, key) DO NOTHING RETURNING 1
			) SELECT count(*) FROM new`),
		hasValue: in("SELECT EXISTS (SELECT FROM @value WHERE team = $1 AND key = $2)"),
		// It returns the version, and deletes nothing if it is another one.
		dropValue: in(`WITH dropped AS (
				DELETE FROM @value WHERE team = $1 AND key = $2 AND (SELECT max(version) FROM @migration) = $3
			) SELECT coalesce(max(version), 0) FROM @migration`),
		dropValues: in("DELETE FROM @value WHERE team = $1"),
	}
}
