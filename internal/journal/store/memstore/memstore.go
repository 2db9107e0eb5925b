// Package memstore keeps what the processes of a team share in memory, for tests and for programs
// that embed cadre without a disk.
//
// # Authority
//
// A [Store] is one team. Every user of it stands for a process.
//
// # Guarantees
//
// Those of package store hold, except that durability ends with the process. A lease does not
// expire and cannot be lost.
package memstore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"cadre/internal/journal"
	"cadre/internal/journal/store"
)

// Store is what one team shares. It implements [store.Team]. The zero Store is empty and ready for
// use.
type Store struct {
	mu     sync.Mutex
	held   map[string]*lease
	values map[string][]byte
	set    chan struct{} // closed when values are set; nil while nobody waits
	gone   bool          // the team was removed
}

// remove makes the leases and values gone, for all who use them.
func (s *Store) remove() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held, s.values, s.gone = nil, nil, true
}

var _ store.Team = (*Store)(nil)

type lease struct {
	s    *Store
	name string
}

func (*lease) Lost() <-chan struct{} { return nil }
func (*lease) Until() time.Time      { return time.Time{} }
func (*lease) Fence() int64          { return 0 }

func (l *lease) Release() error {
	l.s.mu.Lock()
	defer l.s.mu.Unlock()
	if l.s.held[l.name] == l {
		delete(l.s.held, l.name)
	}
	return nil
}

// Acquire implements [store.Leases].
func (s *Store) Acquire(_ context.Context, name string) (store.Lease, error) {
	if err := store.CheckName(name); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.gone {
		return nil, journal.ErrGone
	}
	if s.held[name] != nil {
		return nil, fmt.Errorf("the lease %s is %w", name, store.ErrHeld)
	}
	if s.held == nil {
		s.held = map[string]*lease{}
	}
	l := &lease{s, name}
	s.held[name] = l
	return l, nil
}

// Held implements [store.Leases].
func (s *Store) Held(_ context.Context, name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.held[name] != nil
}

// Holder implements [store.Leases].
func (s *Store) Holder(ctx context.Context, name string) (store.Holder, bool, error) {
	if !s.Held(ctx, name) {
		return store.Holder{}, false, nil
	}
	return store.Holder{Pid: os.Getpid()}, true, nil
}

// AllHeld implements [store.Leases].
func (s *Store) AllHeld(_ context.Context, prefix string) (held []string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(s.held)) {
		if strings.HasPrefix(name, prefix) {
			held = append(held, name)
		}
	}
	return held, nil
}

// Get implements [store.Values].
func (s *Store) Get(_ context.Context, key string) ([]byte, error) {
	if err := store.CheckKey(key); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	data, there := s.values[key]
	if !there {
		return nil, fmt.Errorf("the value %s: %w", key, fs.ErrNotExist)
	}
	return bytes.Clone(data), nil
}

// Has implements [store.Values].
func (s *Store) Has(_ context.Context, key string) (bool, error) {
	if err := store.CheckKey(key); err != nil {
		return false, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	_, there := s.values[key]
	return there, nil
}

// All implements [store.Values].
func (s *Store) All(_ context.Context, folder string) (all []store.Value, err error) {
	if err := store.CheckKey(folder); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, key := range slices.Sorted(maps.Keys(s.values)) {
		if name, in := strings.CutPrefix(key, folder+"/"); in && !strings.Contains(name, "/") {
			all = append(all, store.Value{Key: key, Data: bytes.Clone(s.values[key])})
		}
	}
	return all, nil
}

// Put implements [store.Values].
func (s *Store) Put(ctx context.Context, key string, data []byte) error {
	return s.Replace(ctx, store.Value{Key: key, Data: data})
}

// PutOnce implements [store.Values].
func (s *Store) PutOnce(ctx context.Context, key string, data []byte) ([]byte, error) {
	if there, err := s.Get(ctx, key); !errors.Is(err, fs.ErrNotExist) {
		return there, err
	}
	if err := s.Put(ctx, key, data); err != nil {
		return nil, err
	}
	return s.Get(ctx, key)
}

// Replace implements [store.Values].
func (s *Store) Replace(_ context.Context, values ...store.Value) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.gone {
		return journal.ErrGone
	}
	if s.values == nil {
		s.values = map[string][]byte{}
	}
	if s.set != nil {
		defer close(s.set)
		s.set = nil
	}
	for _, v := range values {
		if err := store.CheckValue(v); err != nil {
			return err
		}
		s.values[v.Key] = bytes.Clone(v.Data)
	}
	return nil
}

// Await implements [store.Values].
func (s *Store) Await(ctx context.Context, key string) error {
	if err := store.CheckKey(key); err != nil {
		return err
	}
	for {
		s.mu.Lock()
		_, there := s.values[key]
		if s.set == nil {
			s.set = make(chan struct{})
		}
		set := s.set
		s.mu.Unlock()
		if there {
			return nil
		}
		select {
		case <-set:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// Delete implements [store.Values].
func (s *Store) Delete(_ context.Context, key string) error {
	if err := store.CheckKey(key); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.values, key)
	return nil
}
