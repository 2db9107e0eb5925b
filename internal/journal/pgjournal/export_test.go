package pgjournal

import "context"

// MigrateTo is Migrate to an earlier version.
func MigrateTo(ctx context.Context, dsn, schema string, version int) (from, to int, err error) {
	return migrate(ctx, dsn, schema, version)
}

// Quiet waits until no notification is under way.
func (s *Store) Quiet() { s.notifier.ended.Wait() }

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
