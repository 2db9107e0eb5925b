package relay

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"cadre/internal/journal/store"
)

// Team is what the processes of a team share, at a server. It implements [store.Team].
type Team struct{ client }

var _ store.Team = Team{}

// Shared returns what the processes of the team share besides its journal.
func (j *Journal) Shared() Team { return Team{j.client} }

// lease is a lease at a server, which has it as long as the connection lasts.
type lease struct {
	x      *exchange
	fence  int64
	until  atomic.Int64 // nanoseconds since 1970; 0 for no end
	lost   chan struct{}
	over   chan struct{} // closed when the connection has ended
	once   sync.Once
	losing sync.Once
	given  atomic.Bool // it was released
}

// Acquire implements [store.Leases].
func (t Team) Acquire(ctx context.Context, name string) (store.Lease, error) {
	x, err := t.begin(ctx, request{Call: callAcquire, Name: name})
	if err != nil {
		return nil, err
	}
	k, content, err := x.next()
	if err == nil && k != isValue {
		err = unexpected(k)
	}
	var is held
	if err == nil {
		err = json.Unmarshal(content, &is)
	}
	if err != nil || !x.stop() {
		x.close()
		return nil, because(ctx, errors.Join(err, ctx.Err()))
	}
	l := &lease{x: x, fence: is.Fence, lost: make(chan struct{}), over: make(chan struct{})}
	l.until.Store(is.Until)
	go l.follow()
	if is.Until != 0 {
		go l.expire()
	}
	return l, nil
}

// expire closes lost when the time of the lease has passed: a server that is stopped says nothing.
func (l *lease) expire() {
	for {
		until := l.until.Load()
		select {
		case <-l.over:
			return
		case <-time.After(time.Until(time.Unix(0, until))):
		}
		if l.until.Load() == until {
			l.lose()
			return
		}
	}
}

// lose closes lost.
func (l *lease) lose() {
	l.losing.Do(func() {
		l.until.Store(1)
		close(l.lost)
	})
}

// follow hears until when the lease is held, and of its end.
func (l *lease) follow() {
	defer close(l.over)
	for {
		k, content, err := l.x.next()
		var until int64
		if err == nil && k == isUntil && json.Unmarshal(content, &until) == nil {
			if l.until.Load() != 1 {
				l.until.Store(until)
			}
			continue
		}
		if !l.given.Load() && l.until.Load() != 0 {
			l.lose()
		}
		return
	}
}

// Lost is nil for a lease that does not expire: it is free when the server has ended, as a lease of
// this machine is.
func (l *lease) Lost() <-chan struct{} {
	if l.until.Load() == 0 {
		return nil
	}
	return l.lost
}

func (l *lease) Until() time.Time {
	if until := l.until.Load(); until != 0 {
		return time.Unix(0, until)
	}
	return time.Time{}
}

func (l *lease) Fence() int64 { return l.fence }

// releaseTime bounds the wait for the server's end of a lease.
const releaseTime = 5 * time.Second

func (l *lease) Release() error {
	l.once.Do(func() {
		l.given.Store(true)
		// The server closes the connection when the lease is released.
		l.x.conn.SetDeadline(time.Now().Add(releaseTime))
		_ = writeFrame(l.x.conn, isNothing)
		<-l.over
		l.x.close()
	})
	return nil
}

// Held implements [store.Leases].
func (t Team) Held(ctx context.Context, name string) bool {
	var is held
	err := t.ask(ctx, request{Call: callHeld, Name: name}, &is)
	return err != nil || is.Is
}

// Holder implements [store.Leases].
func (t Team) Holder(ctx context.Context, name string) (h store.Holder, ok bool, err error) {
	var is held
	err = t.ask(ctx, request{Call: callHolder, Name: name}, &is)
	return store.Holder{Machine: is.Machine, Pid: is.Pid}, is.Is, err
}

// AllHeld implements [store.Leases].
func (t Team) AllHeld(ctx context.Context, prefix string) ([]string, error) {
	var is held
	err := t.ask(ctx, request{Call: callAllHeld, Name: prefix}, &is)
	return is.Names, err
}

// Get implements [store.Values].
func (t Team) Get(ctx context.Context, key string) ([]byte, error) {
	return t.data(ctx, request{Call: callGet, Name: key})
}

// Has implements [store.Values].
func (t Team) Has(ctx context.Context, key string) (has bool, err error) {
	err = t.ask(ctx, request{Call: callHas, Name: key}, &has)
	return has, err
}

// All implements [store.Values].
func (t Team) All(ctx context.Context, folder string) (all []store.Value, err error) {
	var values []value
	err = t.ask(ctx, request{Call: callAll, Name: folder}, &values)
	for _, v := range values {
		one := store.Value{Key: v.Key, Data: v.Data}
		if v.Err != "" {
			one.Err = errors.New(v.Err)
		}
		all = append(all, one)
	}
	return all, err
}

// Put implements [store.Values].
func (t Team) Put(ctx context.Context, key string, data []byte) error {
	return t.ask(ctx, request{Call: callPut, Name: key, Data: data}, &struct{}{})
}

// PutOnce implements [store.Values].
func (t Team) PutOnce(ctx context.Context, key string, data []byte) ([]byte, error) {
	return t.data(ctx, request{Call: callPutOnce, Name: key, Data: data})
}

// Replace implements [store.Values].
func (t Team) Replace(ctx context.Context, values ...store.Value) error {
	r := request{Call: callReplace}
	for _, v := range values {
		r.Values = append(r.Values, value{Key: v.Key, Data: v.Data})
	}
	return t.ask(ctx, r, &struct{}{})
}

// Delete implements [store.Values].
func (t Team) Delete(ctx context.Context, key string) error {
	return t.ask(ctx, request{Call: callDelete, Name: key}, &struct{}{})
}

// Await implements [store.Values]. It does not outlive the server.
func (t Team) Await(ctx context.Context, key string) error {
	if err := store.CheckKey(key); err != nil {
		return err
	}
	err := t.ask(ctx, request{Call: callAwait, Name: key}, &struct{}{})
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}
