package replica

import (
	"context"
	"errors"
	"os"
	"sync"
	"sync/atomic"
)

// Shared keeps one replica of each team for all its users in a process, so that memory has the
// state of the team once. Readers have that replica. An actor has a handle of its own on the same
// state, with its own options. The zero Shared is empty and ready for use. Any goroutine may use
// it.
type Shared struct {
	to atomic.Pointer[func(string)] // see LogTo

	mu    sync.Mutex
	teams map[string]*shared // by their folders
}

// shared is the replica of one team. Shared.mu guards users.
type shared struct {
	info  os.FileInfo // of the folder, to notice another team of that name
	users int

	opening chan struct{} // has room for the one that opens or refreshes rep
	rep     *Replica      // of the readers; nil until it is open
}

// Open returns the replica of the team in that folder, up to date. It calls open for the team's
// journal if no reader has the team open, and also if the open replica cannot be refreshed. Each
// reader closes the replica once, and the last one closes the journal. A nil Shared opens a replica
// for this reader alone, with that log.
func (p *Shared) Open(ctx context.Context, dir string, log func(string),
	open func(report func(string)) (Journal, error)) (*Replica, error) {
	if p == nil {
		j, err := open(log)
		if err != nil {
			return nil, err
		}
		return Open(ctx, j, Options{Log: log})
	}
	one, err := p.use(ctx, dir, open, nil)
	if err != nil {
		return nil, err
	}
	return one.rep, nil
}

// Act returns a handle for an actor on the replica of the team in that folder, up to date. It calls
// open as Open does, and also if the open journal takes no more records.
func (p *Shared) Act(ctx context.Context, dir string, opts Options, open func(report func(string)) (Journal, error)) (
	*Replica, error) {
	var handle *Replica
	one, err := p.use(ctx, dir, open, func(one *shared) error {
		handle = &Replica{opts: opts.orDefaults(), copied: one.rep.copied}
		if err := handle.Sync(ctx); Broken(err) {
			return err
		}
		return nil // anything else that is wrong fails a command
	})
	if err != nil {
		return nil, err
	}
	handle.leave = func() error { return p.leave(dir, one) }
	return handle, nil
}

// use returns the entry of the folder with its replica open, for one more user. It opens another
// replica if the open one cannot be refreshed, or check refuses it; nil checks nothing.
func (p *Shared) use(ctx context.Context, dir string, open func(func(string)) (Journal, error),
	check func(*shared) error) (
	*shared, error) {
	for {
		one, err := p.join(dir)
		if err != nil {
			return nil, err
		}
		first, err := one.load(ctx, p.log, open, func() error { return p.leave(dir, one) })
		if err == nil && check != nil {
			err = check(one)
		}
		if err == nil {
			return one, nil
		}
		if ctx.Err() == nil { // otherwise nothing is wrong with the replica
			p.forget(dir, one)
		}
		err = errors.Join(err, p.leave(dir, one))
		if first || ctx.Err() != nil {
			return nil, err
		}
	}
}

// join returns the entry of the folder, with the caller as one of its users.
func (p *Shared) join(dir string) (*shared, error) {
	info, err := os.Stat(dir)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	one := p.teams[dir]
	if one == nil || !os.SameFile(one.info, info) {
		if p.teams == nil {
			p.teams = map[string]*shared{}
		}
		one = &shared{info: info, opening: make(chan struct{}, 1)}
		p.teams[dir] = one
	}
	one.users++
	return one, nil
}

// load opens the replica, or refreshes the open one. It reports whether it was the first to try. It
// waits for another reader that does the same, but not after ctx ends.
func (one *shared) load(ctx context.Context, log func(string), open func(func(string)) (Journal, error),
	leave func() error) (first bool, err error) {
	select {
	case one.opening <- struct{}{}:
	case <-ctx.Done():
		return false, ctx.Err()
	}
	defer func() { <-one.opening }()
	if one.rep != nil {
		return false, one.rep.Refresh(ctx)
	}
	j, err := open(log)
	if err != nil {
		return true, err
	}
	rep, err := Open(ctx, j, Options{Log: log})
	if err != nil {
		return true, err
	}
	rep.leave = leave
	one.rep = rep
	return true, nil
}

// leave takes away a user of the entry. The last one closes the journal.
func (p *Shared) leave(dir string, one *shared) error {
	p.mu.Lock()
	one.users--
	last := one.users == 0
	if last && p.teams[dir] == one {
		delete(p.teams, dir)
	}
	p.mu.Unlock()
	if !last || one.rep == nil {
		return nil
	}
	return one.rep.current().Close()
}

// forget makes the next reader open the team again. Present readers keep the replica.
func (p *Shared) forget(dir string, one *shared) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.teams[dir] == one {
		delete(p.teams, dir)
	}
}

// LogTo sets the log for messages of the replicas that are worth knowing but are not errors. It
// also applies to replicas that are open. nil drops the messages, which is the default.
func (p *Shared) LogTo(log func(string)) { p.to.Store(&log) }

func (p *Shared) log(text string) {
	if log := p.to.Load(); log != nil && *log != nil {
		(*log)(text)
	}
}
