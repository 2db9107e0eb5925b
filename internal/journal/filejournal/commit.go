package filejournal

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"cadre/internal/journal"
)

// syncPatience is how long an append waits for the syncs of others before it makes its own: a process that was stopped
// with the sync lock in its hand shall not hold up the rest.
const syncPatience = time.Second

// commit returns when the record at end, which is in seg, is durable. It is called without the write lock, so that others
// write while this one syncs; then one of those syncs for all of them.
func (j *Journal) commit(ctx context.Context, seg *segment, end cursor) error {
	if end.seq <= j.floor.Load() {
		return nil
	}
	j.step("sync")
	mine, err := j.awaitTurn(ctx, end.seq)
	if err != nil {
		// The marker stays behind the truth, which it may.
		return j.uncertain(j.sync(seg.f))
	}
	if !mine {
		return nil
	}
	defer j.syncs.unlock()
	durable, ok := j.marker.read()
	if ok {
		j.raiseFloor(durable)
		if durable >= end.seq {
			return nil
		}
	}
	upTo := seg.writtenEnd(end)
	if err := j.sync(seg.f); err != nil {
		return j.uncertain(err)
	}
	j.step("synced")
	if err := j.marker.write(upTo); err != nil {
		// The record is durable all the same.
		j.report("%s: %v", j.marker.f.Name(), err)
	}
	j.raiseFloor(upTo)
	j.step("marked")
	return nil
}

// awaitTurn waits, whatever ctx says, until the record seq is durable, or it is this call's turn to sync, with the sync lock in its hand: the
// record is written, and the caller is better served with the truth about it than with a prompt end. All processes that wait for a
// sync go on at once when it ends, not one after the other, because most of them have nothing left to do; one of the others makes the next
// sync, which is then for all of them.
func (j *Journal) awaitTurn(ctx context.Context, seq int64) (mine bool, err error) {
	patient, stop := context.WithTimeout(context.WithoutCancel(ctx), syncPatience)
	defer stop()
	if err := j.syncs.enter(patient); err != nil {
		return false, err
	}
	for seq > j.floor.Load() {
		if ok, err := j.syncs.try(unix.LOCK_EX); ok || err != nil {
			if err != nil {
				j.syncs.leave()
			}
			return ok, err
		}
		if err := j.syncs.await(patient); err != nil {
			return false, err
		}
		if durable, ok := j.marker.read(); ok {
			j.raiseFloor(durable)
		}
		yield() // to those who are just looking, or to whoever syncs next
	}
	j.syncs.leave()
	return false, nil
}

func (j *Journal) raiseFloor(seq int64) {
	for {
		old := j.floor.Load()
		if seq <= old || j.floor.CompareAndSwap(old, seq) {
			return
		}
	}
}

// writtenEnd returns the seq of the last whole record in the segment, at least that of end. It is in the file before the sync
// that the caller makes next, so the sync covers it.
func (s *segment) writtenEnd(end cursor) int64 {
	size, err := s.size()
	if err != nil || size <= end.off {
		return end.seq
	}
	buf := buffers.Get().(*[]byte)
	defer buffers.Put(buf)
	n, err := pread(s.f, *buf, end.off)
	if err != nil {
		return end.seq
	}
	last := bytes.LastIndexByte((*buf)[:n], '\n')
	if last < 0 {
		return end.seq
	}
	line := (*buf)[bytes.LastIndexByte((*buf)[:last], '\n')+1 : last]
	f, bad := parseLine(line)
	if bad == "" && (string(f.key) == keyRecord || string(f.key) == keySeal) {
		return max(f.n, end.seq)
	}
	return end.seq
}

// sync makes a file durable. After a sync that failed the system may have dropped what it could not write and say yes to the
// next one, so the handle trusts none after it.
func (j *Journal) sync(f File) error {
	j.mu.Lock()
	broken := j.broken
	j.mu.Unlock()
	if broken != nil {
		return broken
	}
	if err := f.SyncData(); err != nil {
		err = fmt.Errorf("sync %s: %w", f.Name(), err)
		j.mu.Lock()
		j.broken = err
		j.mu.Unlock()
		return err
	}
	return nil
}

func (j *Journal) uncertain(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w: %w", journal.ErrUncertain, err)
}
