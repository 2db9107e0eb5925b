package filejournal

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"cadre/internal/journal"
)

// syncPatience is how long an append waits for the syncs of others before it makes its own: a
// process that was stopped with the sync lock in its hand shall not hold up the rest.
const syncPatience = time.Second

// commit returns when the record at end, which is in seg, is durable. It is called without the
// write lock, so that others write while this one syncs; then one of those syncs for all of them.
func (j *Journal) commit(ctx context.Context, seg *segment, end cursor) error {
	if end.seq <= j.floor.Load() {
		return nil
	}
	j.step("sync")
	mine, err := j.awaitTurn(ctx, end.seq)
	if err != nil {
		// The marker stays behind the truth, which it may.
		durable, _ := j.marker.read()
		return j.uncertain(j.secure(seg, durable, end.seq))
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
	if err := j.secure(seg, durable, upTo); err != nil {
		return j.uncertain(err)
	}
	j.step("synced")
	if err := j.marker.write(upTo); err != nil {
		// The record is durable all the same.
		j.report("%s: %v", j.marker.f.Name(), err)
	}
	if !ok {
		j.keepMarker()
	}
	j.raiseFloor(upTo)
	j.step("marked")
	return nil
}

// awaitTurn waits, whatever ctx says, until the record seq is durable, or it is this call's turn to
// sync, with the sync lock in its hand: the record is written, and the caller is better served with
// the truth about it than with a prompt end. All processes that wait for a sync go on at once when
// it ends, not one after the other, because most of them have nothing left to do; one of the others
// makes the next sync, which is then for all of them.
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

// writtenEnd returns the seq of the last whole record in the segment, at least that of end. It is
// in the file before the sync that the caller makes next, so the sync covers it.
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

// secure makes the history up to the record upTo durable, whoever wrote it. It is in seg, and the
// records up to durable are known to be so.
//
// A sync is for what its opening of the file has seen happen. Of what was there before, others may
// have been told that it could not be written; the system then takes it for written and says yes to
// whoever opens the file later. So the first sync of a segment writes anew what nobody has vouched
// for.
func (j *Journal) secure(seg *segment, durable, upTo int64) error {
	if durable < seg.First {
		// Nor is its name: whoever made the segment may have died before he synced the folder.
		if err := j.disk.SyncFolder(j.dir); err != nil {
			return err
		}
	}
	if durable < upTo && !seg.trusted.Load() {
		if err := j.rewrite(seg, durable, upTo); err != nil {
			return err
		}
	}
	if err := j.sync(seg.f); err != nil {
		return err
	}
	seg.trusted.Store(true)
	return nil
}

// rewrite writes records of a segment once more: the same bytes in the same places, where nobody
// changes them, so it needs no lock.
func (j *Journal) rewrite(seg *segment, after, to int64) error {
	j.mu.Lock()
	from := j.places.before(after)
	seg.refs++
	j.mu.Unlock()
	if from.first != seg.First {
		from = seg.origin()
	}
	w := j.newWalk(seg, from)
	defer w.close()
	for line := []byte(nil); w.cur.seq < to; {
		off := w.cur.off
		rec, ok, err := w.next()
		if err == nil && !ok {
			err = fmt.Errorf("%s: record %d is not there any more", seg.path, w.cur.seq+1)
		}
		if err != nil {
			return err
		}
		line = appendRecord(line[:0], rec.Seq, rec.Data)
		if _, err := seg.f.WriteAt(line, off); err != nil {
			return err
		}
	}
	return nil
}

// keepMarker makes the marker durable. After a loss of power nothing depends on it but how much can
// be told from a torn tail if it is damaged, so a failure is only reported.
func (j *Journal) keepMarker() {
	if err := j.marker.f.SyncData(); err != nil {
		j.report("%s: %v", j.marker.f.Name(), err)
	}
}

// sync makes a file durable. After a sync that failed the system may have dropped what it could not
// write and say yes to the next one, so the handle trusts none after it.
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
