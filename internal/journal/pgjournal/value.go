package pgjournal

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"cadre/internal/journal/pgjournal/pgwire"
	"cadre/internal/journal/store"
)

// Get implements [store.Values].
func (t Shared) Get(ctx context.Context, key string) (data []byte, err error) {
	if err := store.CheckKey(key); err != nil {
		return nil, err
	}
	err = t.s.ask(ctx, func(ctx context.Context, conn *pgwire.Conn) error {
		return conn.Query(ctx, t.s.sql.value, t.number, key).Scan(&data)
	})
	if errors.Is(err, pgwire.ErrNoRows) {
		return nil, fmt.Errorf("the value %s of team %s: %w", key, t.team, fs.ErrNotExist)
	}
	return data, t.explain("read the value "+key, err)
}

// Has implements [store.Values].
func (t Shared) Has(ctx context.Context, key string) (there bool, err error) {
	if err := store.CheckKey(key); err != nil {
		return false, err
	}
	err = t.s.ask(ctx, func(ctx context.Context, conn *pgwire.Conn) error {
		return conn.Query(ctx, t.s.sql.hasValue, t.number, key).Scan(&there)
	})
	return there, t.explain("look for the value "+key, err)
}

// All implements [store.Values].
func (t Shared) All(ctx context.Context, folder string) (all []store.Value, err error) {
	if err := store.CheckKey(folder); err != nil {
		return nil, err
	}
	err = t.s.ask(ctx, func(ctx context.Context, conn *pgwire.Conn) error {
		// In the order of bytes, 0 follows the slash.
		rows := conn.Query(ctx, t.s.sql.values, t.number, folder+"/", folder+"0")
		all, err = pgwire.Collect(rows, func(r pgwire.Row) (v store.Value, err error) {
			err = r.Scan(&v.Key, &v.Data)
			return v, err
		})
		return err
	})
	return all, t.explain("read the values in "+folder, err)
}

// Put implements [store.Values].
func (t Shared) Put(ctx context.Context, key string, data []byte) error {
	return t.set(ctx, t.s.durable(), store.Value{Key: key, Data: data})
}

// PutOnce implements [store.Values].
func (t Shared) PutOnce(ctx context.Context, key string, data []byte) ([]byte, error) {
	if err := store.CheckValue(store.Value{Key: key, Data: data}); err != nil {
		return nil, err
	}
	inserted := 0
	// The statement may be sent twice: the second one finds the value of the first.
	err := t.s.ask(ctx, func(ctx context.Context, conn *pgwire.Conn) error {
		return t.s.change(ctx, conn, t.inserts(t.s.durable()), &inserted, t.s.sql.putValueOnce, t.number, key,
			append([]byte{}, data...), Version())
	})
	if err == nil && inserted == 0 {
		err = t.unchanged(ctx)
	}
	if err != nil {
		return nil, t.explain("write the value "+key, err)
	}
	return t.Get(ctx, key)
}

// Replace implements [store.Values]. The values are set in one statement, and their commit does not
// wait for the disk.
func (t Shared) Replace(ctx context.Context, values ...store.Value) error {
	if len(values) == 0 {
		return nil
	}
	return t.set(ctx, passing, values...)
}

func (t Shared) set(ctx context.Context, settings setting, values ...store.Value) error {
	// Rows are locked in the order of their keys, so that two statements do not wait for each
	// other.
	values = slices.Clone(values)
	slices.SortStableFunc(values, func(a, b store.Value) int { return cmp.Compare(a.Key, b.Key) })
	var keys []string
	var data [][]byte
	for i, v := range values {
		if err := store.CheckValue(v); err != nil {
			return err
		}
		if i+1 < len(values) && values[i+1].Key == v.Key { // the last one counts
			continue
		}
		keys, data = append(keys, v.Key), append(data, append([]byte{}, v.Data...))
	}
	number := int64(0)
	// The statement may be sent twice, which sets the same values again.
	err := t.s.ask(ctx, func(ctx context.Context, conn *pgwire.Conn) error {
		return t.s.change(ctx, conn, t.inserts(settings), &number, t.s.sql.setValues, t.number, keys, data, Version())
	})
	if err == nil && number == 0 {
		err = t.unchanged(ctx)
	}
	return t.explain("write values", err)
}

// Delete implements [store.Values].
func (t Shared) Delete(ctx context.Context, key string) error {
	if err := store.CheckKey(key); err != nil {
		return err
	}
	version := 0
	err := t.s.ask(ctx, func(ctx context.Context, conn *pgwire.Conn) error {
		return t.s.change(ctx, conn, t.s.durable(), &version, t.s.sql.dropValue, t.number, key, Version())
	})
	if err == nil {
		err = judgeVersion(t.s.opts.Schema, version)
	}
	return t.explain("remove the value "+key, err)
}

// awaitLook is how often [Shared.Await] reads the rows.
const awaitLook = time.Second

// Await implements [store.Values].
func (t Shared) Await(ctx context.Context, key string) error {
	if err := store.CheckKey(key); err != nil {
		return err
	}
	for {
		if there, err := t.Has(ctx, key); there && err == nil {
			return nil
		}
		if ctx.Err() == nil {
			select {
			case <-time.After(awaitLook):
				continue
			case <-ctx.Done():
			}
		}
		return context.Cause(ctx)
	}
}
