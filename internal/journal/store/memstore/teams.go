package memstore

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"

	"cadre/internal/journal"
	"cadre/internal/journal/memjournal"
	"cadre/internal/journal/store"
)

// Teams are teams in memory. It implements [store.Teams]. The zero Teams is empty and ready for
// use.
type Teams struct {
	mu     sync.Mutex
	all    map[string]*kept // by id
	common Store
}

var _ store.Teams = (*Teams)(nil)

type kept struct {
	store.Entry
	journal *memjournal.Store
	shared  *Store
}

// Create implements [store.Teams].
func (t *Teams) Create(_ context.Context, e store.Entry, records [][]byte) error {
	if err := store.CheckEntry(e); err != nil {
		return err
	}
	for i, r := range records {
		if !json.Valid(r) {
			return fmt.Errorf("create team %s: record %d is not JSON", e.ID, i+1)
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, k := range t.all {
		if k.ID == e.ID || k.Name == e.Name && k.Project == e.Project && !k.Archived {
			return fmt.Errorf("create team %s: %w: %s", e.ID, journal.ErrExists, k.ID)
		}
	}
	if t.all == nil {
		t.all = map[string]*kept{}
	}
	t.all[e.ID] = &kept{e, memjournal.New(e.Name, records...), &Store{}}
	return nil
}

// find returns the team with that id. The caller has the lock.
func (t *Teams) find(id string) (*kept, error) {
	k := t.all[id]
	if k == nil {
		return nil, fmt.Errorf("%w: team %s", journal.ErrNotFound, id)
	}
	return k, nil
}

// Open implements [store.Teams].
func (t *Teams) Open(_ context.Context, id string) (store.Opened, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	k, err := t.find(id)
	if err != nil {
		return store.Opened{}, err
	}
	return store.Opened{Entry: k.Entry, Journal: k.journal.Open(), Shared: k.shared}, nil
}

// List implements [store.Teams].
func (t *Teams) List(context.Context) (all []store.Entry, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, k := range t.all {
		all = append(all, k.Entry)
	}
	slices.SortFunc(all, func(a, b store.Entry) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID))
	})
	return all, nil
}

// Archive implements [store.Teams].
func (t *Teams) Archive(_ context.Context, id string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	k, err := t.find(id)
	if err == nil {
		k.Archived = true
	}
	return err
}

// Remove implements [store.Teams].
func (t *Teams) Remove(_ context.Context, id string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	k, err := t.find(id)
	if err == nil {
		k.journal.Remove()
		k.shared.remove()
		delete(t.all, id)
	}
	return err
}

// Common implements [store.Teams].
func (t *Teams) Common(context.Context) (store.Team, error) { return &t.common, nil }
