package replica

import (
	"context"
	"errors"
	"os"
	"sync"
)

// Shared keeps one replica of each team for all readers in a process, so that memory has the state
// of the team once. The zero Shared is empty and ready for use. Any goroutine may use it.
type Shared struct {
	// Log gets messages of the replicas that are worth knowing but are not errors; nil drops them.
	// It must not change after the first use.
	Log func(string)

	mu    sync.Mutex
	teams map[string]*shared // by their folders
}

// shared is the replica of one team. Shared.mu guards users.
type shared struct {
	info  os.FileInfo // of the folder, to notice another team of that name
	users int

	opening sync.Mutex
	rep     *Replica // nil until it is open
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
	for {
		one, err := p.join(dir)
		if err != nil {
			return nil, err
		}
		first, err := one.load(ctx, p.log, open, func() error { return p.leave(dir, one) })
		if err == nil {
			return one.rep, nil
		}
		p.forget(dir, one)
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
		one = &shared{info: info}
		p.teams[dir] = one
	}
	one.users++
	return one, nil
}

// load opens the replica, or refreshes the open one. It reports whether it was the first to try.
func (one *shared) load(ctx context.Context, log func(string), open func(func(string)) (Journal, error),
	leave func() error) (first bool, err error) {
	one.opening.Lock()
	defer one.opening.Unlock()
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
	return one.rep.close()
}

// forget makes the next reader open the team again. Present readers keep the replica.
func (p *Shared) forget(dir string, one *shared) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.teams[dir] == one {
		delete(p.teams, dir)
	}
}

func (p *Shared) log(text string) {
	if p.Log != nil {
		p.Log(text)
	}
}
