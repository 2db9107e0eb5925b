package pgjournal

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"cadre/internal/journal"
	"cadre/internal/journal/pgjournal/pgwire"
	"cadre/internal/journal/store"
)

// Teams is the list of the teams in a schema. It implements [store.Teams].
type Teams struct{ s *Store }

var _ store.Teams = Teams{}

// Teams returns the list of the teams.
func (s *Store) Teams() Teams { return Teams{s} }

// Create implements [store.Teams]. See [Store.Create].
func (t Teams) Create(ctx context.Context, e store.Entry, records [][]byte) error {
	return t.s.Create(ctx, e, records)
}

// Open implements [store.Teams].
func (t Teams) Open(ctx context.Context, id string) (store.Opened, error) {
	j, err := t.s.Open(ctx, id)
	if err != nil {
		return store.Opened{}, err
	}
	return store.Opened{Entry: j.entry, Journal: j, Shared: j.Shared()}, nil
}

// List implements [store.Teams].
func (t Teams) List(ctx context.Context) (all []store.Entry, err error) {
	err = t.s.ask(ctx, func(ctx context.Context, conn *pgwire.Conn) error {
		all, err = pgwire.Collect(conn.Query(ctx, t.s.sql.teams), func(r pgwire.Row) (e store.Entry, err error) {
			err = r.Scan(&e.ID, &e.Name, &e.Project, &e.Archived)
			return e, err
		})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list the teams: %w", t.s.explain(err))
	}
	return slices.DeleteFunc(all, func(e store.Entry) bool { return e.ID == commonID }), nil
}

// Archive implements [store.Teams]. It waits for an append in progress. Open handles stay usable.
func (t Teams) Archive(ctx context.Context, id string) error {
	number := int64(0)
	// The statement may be sent twice, which changes nothing more.
	err := t.s.ask(ctx, func(ctx context.Context, conn *pgwire.Conn) error {
		return t.s.change(ctx, conn, t.s.durable(), &number, t.s.sql.archive, id)
	})
	if errors.Is(err, pgwire.ErrNoRows) {
		err = journal.ErrNotFound
	}
	if err != nil {
		return fmt.Errorf("archive team %s: %w", id, t.s.explain(err))
	}
	return nil
}

// Remove implements [store.Teams]. See [Store.Remove].
func (t Teams) Remove(ctx context.Context, id string) error { return t.s.Remove(ctx, id) }

// commonID is the id, and the name, of the row that has what all teams share. It is no name of a
// team.
const commonID = "@common"

// Common implements [store.Teams]. The first call makes the row.
func (t Teams) Common(ctx context.Context) (store.Team, error) {
	j, err := t.s.Open(ctx, commonID)
	if errors.Is(err, journal.ErrNotFound) {
		err = t.s.Create(ctx, store.Entry{ID: commonID, Name: commonID}, nil)
		if err == nil || errors.Is(err, journal.ErrExists) {
			j, err = t.s.Open(ctx, commonID)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("open what all teams share: %w", err)
	}
	return j.Shared(), j.Close()
}
