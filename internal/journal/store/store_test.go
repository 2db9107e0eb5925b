package store_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"cadre/internal/journal/store"
	"cadre/internal/journal/store/memstore"
)

// counting counts the attempts to take a lease, and the looks at it.
type counting struct {
	*memstore.Store
	attempts, looks int
}

func (c *counting) Acquire(ctx context.Context, name string) (store.Lease, error) {
	c.attempts++
	return c.Store.Acquire(ctx, name)
}

func (c *counting) Held(ctx context.Context, name string) bool {
	c.looks++
	return c.Store.Held(ctx, name)
}

// TestWaitOnlyLooks checks that a waiter tries to take a lease only when it is free, and looks
// about once a second.
func TestWaitOnlyLooks(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		team := &counting{Store: &memstore.Store{}}
		lease, err := team.Store.Acquire(t.Context(), store.Lead)
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		time.AfterFunc(time.Minute, func() { lease.Release() })
		next, err := store.Wait(t.Context(), team, store.Lead)
		if err != nil {
			t.Fatal(err)
		}
		defer next.Release()
		if took := time.Since(began); took > time.Minute+time.Second || team.attempts != 2 || team.looks > 66 {
			t.Errorf("after %s, %d attempts and %d looks", took, team.attempts, team.looks)
		}
		ctx, stop := context.WithTimeout(t.Context(), time.Minute)
		defer stop()
		if _, err := store.Wait(ctx, team, store.Lead); !errors.Is(err, store.ErrHeld) || team.attempts != 3 {
			t.Errorf("%v, after %d attempts", err, team.attempts-2)
		}
	})
}
