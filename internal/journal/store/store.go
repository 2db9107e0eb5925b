// Package store defines the contract of what the processes of a team share besides its history.
// The history is a [journal.Journal].
//
// # Authority
//
// A [Team] keeps two things. A lease is the right of one process at a time to do something for the
// team: to lead it, to act as one of its members, to consolidate it. A value is a small text under
// a key, which is replaced as a whole: a heartbeat, the unfinished work of a member, what a person
// saw. The contract does not interpret values, and does not know who may take a lease.
//
// What only makes sense on one machine is not in the contract: worktrees, sockets, child processes,
// projections for other programs. docs/architecture/store.md lists each.
//
// # Leases
//
//	        Acquire                          Release, or its process ends
//	free ────────────▶ held ──────────────────────────────────────────────▶ free
//	                    │  not renewed in time
//	                    └─────────────────────▶ lost ── Acquire of another ▶ held by another
//
// On one machine the kernel ends a lease with its process. Such a lease does not expire, and is
// never lost. Between machines nobody knows whether a silent process has ended. There a lease is
// held for a limited time by the clock of the store, and its holder renews it. A holder that cannot
// renew has lost the lease before another process can get it, with two exceptions. A machine that
// was suspended takes up to a second to close Lost when it wakes up. A database whose standby was
// promoted may have forgotten the last renewals.
//
// # Guarantees
//
//   - A lease has one holder at a time, among all processes that share the team, with the
//     exceptions above.
//   - A lease is free once its holder has ended: at once, or after the time for which it was held.
//   - A reader sees a value as one writer wrote it, never a part.
//   - A value that was put is durable. A value that was only replaced may be lost with the machine.
package store

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// Team is what the processes of one team share besides its journal. Its methods may be called from
// any goroutine.
type Team interface {
	Leases
	Values
}

// Leases are the leases of a team, by their names.
type Leases interface {
	// Acquire takes a lease for this process. It does not wait: the error is [ErrHeld] if another
	// holder has the lease. Two holders in one process exclude each other as two processes do. The
	// lease is not bound to ctx.
	Acquire(ctx context.Context, name string) (Lease, error)
	// Held reports whether a process has the lease. If that cannot be found out, it returns true:
	// to take a running process for dead would lose work, while the reverse only costs a second
	// look.
	Held(ctx context.Context, name string) bool
	// Holder returns the process that has the lease. ok is false if none has it, or if the holder
	// is not known.
	Holder(ctx context.Context, name string) (h Holder, ok bool, err error)
	// AllHeld returns the names of the held leases that begin with the prefix, in their order.
	AllHeld(ctx context.Context, prefix string) ([]string, error)
}

// Lease is a lease that this process has.
type Lease interface {
	// Lost is closed when the lease was lost. From then on the process must not act as the holder.
	// A process whose machine was suspended must look at Until before it acts, because Lost may be
	// late. It is nil for a lease that cannot be lost.
	Lost() <-chan struct{}
	// Until returns the time until which no other process can get the lease, by the clock of this
	// process. It moves on while the lease is renewed, and is in the past when the lease was lost.
	// It is zero for a lease that does not expire.
	Until() time.Time
	// Fence returns a number that is greater than that of every earlier holder. What a former
	// holder still says can be refused by it. It is 0 for a lease that cannot be lost, because its
	// former holders have ended.
	Fence() int64
	// Release gives the lease up. It may be called more than once, and for a lost lease.
	Release() error
}

// Holder is a process that has a lease.
type Holder struct {
	Machine string `json:"machine,omitempty"` // name of its computer; "" for this one
	Pid     int    `json:"pid"`
}

// Names of leases.
const (
	Lead          = "lead"        // leads the team
	Consolidation = "consolidate" // merges, checks and commits
	Abort         = "abort"       // ends the team, and the teams in it
	Relocation    = "move"        // moves the team between files and a database
)

// HostPrefix begins the names of the leases of hosts.
const HostPrefix = "host-"

// Host returns the name of the lease of the host with that id. A host has it while it runs.
func Host(id string) string { return HostPrefix + id }

// Presence returns the name of the lease of an external session that acts as the member. With two
// such sessions, each would get only a part of the member's mail.
func Presence(member string) string { return "present-" + member }

// Value is what a key stands for.
type Value struct {
	Key  string
	Data []byte
	// Err says why a value that is there cannot be read; nil for a value that could be. Only
	// [Values.All] sets it.
	Err error
}

// MaxValue is the size limit of a value, in bytes.
const MaxValue = 64 << 20

// Values are the values of a team. A key is a path of one to three names, such as "looked.json" or
// "heartbeats/ann.json". Everything before the last slash is its folder, which need not be made.
// After an error a value may be the old or the new one.
type Values interface {
	// Get returns the value of a key. Without a value the error is [io/fs.ErrNotExist].
	Get(ctx context.Context, key string) ([]byte, error)
	// Has reports whether a key has a value, which it does not read.
	Has(ctx context.Context, key string) (bool, error)
	// All returns the values in a folder, in the order of their keys. A value that cannot be read
	// is no error; its Err says why.
	All(ctx context.Context, folder string) ([]Value, error)
	// Put sets the value of a key. It is durable when Put returns. One process at a time puts a
	// value of a key.
	Put(ctx context.Context, key string, data []byte) error
	// PutOnce is Put for a key without a value. It leaves a value that the key has, and returns the
	// value that the key has then.
	PutOnce(ctx context.Context, key string, data []byte) ([]byte, error)
	// Replace sets values, which may be lost with the machine. It costs less than Put, and less for
	// several values than as many calls. Any number of processes may replace a value at a time.
	Replace(ctx context.Context, values ...Value) error
	// Delete removes the value of a key, if there is one.
	Delete(ctx context.Context, key string) error
	// Await waits until a key has a value, and returns nil then: at once on one machine, and in a
	// database about a second later. If ctx ends first, it returns the cause. It also waits while
	// the store cannot be reached.
	Await(ctx context.Context, key string) error
}

// CompletedKey is the key of the record of a consolidated team, which is put once.
const CompletedKey = "COMPLETED"

// PausedKey is the key of the value that says that a person paused the team. No machine with labels
// runs its members until the team is resumed. The value is empty.
const PausedKey = "paused"

// PauseKey returns the key of the value that asks the host with that id to pause. The value is
// empty.
func PauseKey(host string) string { return "hosts/" + host + "/pause" }

// ErrHeld reports that another holder has a lease. What a removed team shares cannot be changed:
// the error is then [journal.ErrGone].
var ErrHeld = errors.New("held by a running process")

// Pauses between two looks of [Wait]: the first one, and the longest.
const (
	firstPause   = 50 * time.Millisecond
	longestPause = time.Second
)

// Wait takes a lease as [Leases.Acquire] does, and waits for its holder until ctx ends. Then the
// error also wraps the cause of ctx. While it waits it only looks, because an attempt may cost a
// durable transaction.
func Wait(ctx context.Context, t Leases, name string) (Lease, error) {
	held := error(nil)
	for pause := firstPause; ; pause = min(2*pause, longestPause) {
		if held == nil || !t.Held(ctx, name) {
			lease, err := t.Acquire(ctx, name)
			switch {
			case errors.Is(err, ErrHeld):
				held = err
			case err == nil || held == nil || ctx.Err() == nil:
				return lease, err
			}
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return nil, fmt.Errorf("%w: %w", held, context.Cause(ctx))
		}
	}
}

// ErrLost reports that a lease was lost. Its former holder must not act any more.
var ErrLost = errors.New("another process may have taken over, because this one could not renew its lease in time")

// While returns a context that ends with [ErrLost] when the lease is lost. stop must be called.
func While(ctx context.Context, l Lease) (while context.Context, stop func()) {
	while, cancel := context.WithCancelCause(ctx)
	if l.Lost() == nil {
		return while, func() { cancel(nil) }
	}
	over := make(chan struct{})
	go func() {
		defer close(over)
		select {
		case <-l.Lost():
			cancel(ErrLost)
		case <-while.Done():
		}
	}()
	return while, func() { cancel(nil); <-over }
}

// CheckKey refuses a key that is not one to three names.
func CheckKey(key string) error {
	const most = 3
	names := strings.SplitN(key, "/", most+1)
	for _, name := range names {
		if len(names) > most || name == "" || name[0] == '.' || strings.ContainsAny(name, "\\\x00") {
			return fmt.Errorf("%q cannot be the key of a value", key)
		}
	}
	return nil
}

// CheckValue refuses a value with a wrong key, or with more than [MaxValue] bytes.
func CheckValue(v Value) error {
	if err := CheckKey(v.Key); err != nil {
		return err
	}
	if len(v.Data) > MaxValue {
		return fmt.Errorf("the value %s of %d bytes is too long; the limit is %d", v.Key, len(v.Data), MaxValue)
	}
	return nil
}

// CheckName refuses a name that cannot be that of a lease.
func CheckName(name string) error {
	if err := CheckKey(name); err != nil || strings.Contains(name, "/") {
		return fmt.Errorf("%q cannot be the name of a lease", name)
	}
	return nil
}
