package filejournal

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"cadre/internal/journal"
)

// syncPatience is how long an append waits for the syncs of others before it syncs by itself. A
// process that was suspended while it held the sync lock must not delay the others.
const syncPatience = time.Second

// commit returns when the record at end, which is in seg, is durable. It is called without the
// write lock, so others can write while this call syncs. The next sync then covers all of them.
func (j *Journal) commit(ctx context.Context, seg *segment, end cursor) error {
	if end.seq <= j.floor.Load() {
		return nil
	}
	j.step("sync")
	mine, err := j.awaitTurn(ctx, end.seq)
	if err != nil {
		// The marker stays behind, which is allowed.
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
		// The record is durable in any case.
		j.report("%s: %v", j.marker.f.Name(), err)
	}
	if !ok {
		j.keepMarker()
	}
	j.raiseFloor(upTo)
	j.step("marked")
	return nil
}

// awaitTurn waits until the record seq is durable, or until this call has the sync lock and must
// sync. It ignores the end of ctx: the record is written, and the caller is better served with a
// definite result than with a prompt return.
//
// All processes that wait for a sync wake up together when it ends, not one after the other,
// because most of them have nothing left to do. One of the rest makes the next sync for all of
// them.
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
		yield() // to processes that check the marker, or to the next one that syncs
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

// writtenEnd returns the seq of the last complete record in the segment, at least end.seq. The
// record is in the file before the caller's next sync, so that sync covers it.
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

// secure makes the history up to the record upTo durable, whichever process wrote it. The record is
// in seg, and the records up to durable are known to be durable.
//
// fsync reports only write-back errors that occurred after this descriptor was opened. An earlier
// error may have been reported to other descriptors. The system then treats the data as written,
// and later descriptors see no error. So the first sync of a segment rewrites the records that no
// handle has reported as durable.
func (j *Journal) secure(seg *segment, durable, upTo int64) error {
	if durable < seg.First {
		// The segment's name may not be durable either: its creator may have died before it synced
		// the folder.
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

// rewrite writes records of a segment again: the same bytes to the same places. Those never change,
// so it needs no lock.
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
			err = fmt.Errorf("%s: record %d has disappeared", seg.path, w.cur.seq+1)
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

// keepMarker makes the marker durable. After a power loss a durable marker only helps to tell a
// torn tail from a damaged one, so a failure is only reported.
func (j *Journal) keepMarker() {
	if err := j.marker.f.SyncData(); err != nil {
		j.report("%s: %v", j.marker.f.Name(), err)
	}
}

// sync makes a file durable. After a failed sync the system may have dropped the unwritten data and
// report success for the next sync. So the handle refuses all syncs after a failed one.
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
