package pgjournal

import (
	"context"
	"time"

	"cadre/internal/journal/store"
)

// MigrateTo is Migrate to an earlier version.
func MigrateTo(ctx context.Context, dsn, schema string, version int) (from, to int, err error) {
	return migrate(ctx, dsn, schema, version)
}

// Quiet waits until no notification is under way.
func (s *Store) Quiet() { s.notifier.ended.Wait() }

// EndLeases ends the renewing of leases, as the first step of Close.
func (s *Store) EndLeases() { s.leases.stop() }

// Suspend makes the wall clock show that the machine of the holder was suspended for a time.
func Suspend(held store.Lease, long time.Duration) {
	l := held.(*lease)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.wall = l.wall.Add(-long)
}

// EncodeHolder returns this process as the row of a lease has it.
func EncodeHolder(machine string, err error) (string, error) { return encodeHolder(machine, err) }

// PollUnheard and LockedBytes are limits that tests compare with.
const (
	PollUnheard = pollUnheard
	PollHeard   = pollHeard
	LockedBytes = lockedBytes
)

// Kept is a snapshot in the table, for the choice of those to keep.
type Kept = saved

// NewKept returns one.
func NewKept(seq, size int64) Kept { return saved{seq: seq, size: size} }

// Seq returns the record of a kept snapshot.
func (s saved) Seq() int64 { return s.seq }

// Replaced and Thin choose the snapshots to remove.
func (o Options) Replaced(kept []Kept) []int64 { return o.replaced(kept) }

// Thin chooses the keyframes to remove.
func (o Options) Thin(kept []Kept) []int64 { return o.thin(kept) }

// Room reports whether there is room for a keyframe.
func (o Options) Room(kept []Kept, seq, size int64) bool { return o.room(kept, seq, size) }
