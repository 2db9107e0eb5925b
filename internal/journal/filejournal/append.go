package filejournal

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"cadre/internal/journal"
)

// Append implements [journal.Journal].
func (j *Journal) Append(ctx context.Context, after int64, catchUp func(journal.Record) error,
	decide func() ([]byte, error)) (int64, error) {
	if err := j.enter(); err != nil {
		return 0, err
	}
	defer j.leave()
	if err := j.canAppend(); err != nil {
		return 0, err
	}
	w, err := j.write(ctx, after, catchUp, decide)
	if w != nil {
		defer w.close()
	}
	if err != nil {
		return 0, err
	}
	if err := j.commit(ctx, w.seg, w.cur); err != nil {
		return 0, err
	}
	if w.milestone {
		j.keepMarker()
	}
	return w.cur.seq, nil
}

func (j *Journal) canAppend() error {
	if j.writable != nil {
		return j.writable
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.broken != nil {
		return fmt.Errorf("nothing was written, because an earlier record could not be made durable; %w: %w",
			journal.ErrReopen, j.broken)
	}
	return nil
}

// write is the part of an append that excludes other writers. It returns a walk positioned after
// the record that must become durable: the new one, or the last one if decide wrote none.
func (j *Journal) write(ctx context.Context, after int64, catchUp func(journal.Record) error,
	decide func() ([]byte, error)) (w *walk, err error) {
	j.step("lock")
	if err := j.writes.lock(ctx); err != nil {
		return nil, err
	}
	defer func() {
		j.writes.unlock()
		j.step("unlocked")
	}()
	j.step("locked")
	if err := j.gone(); err != nil {
		return nil, err
	}
	w, err = j.walkFrom(after)
	if err != nil {
		return nil, err
	}
	if err := w.catchUp(ctx, after, catchUp); err != nil {
		return w, err
	}
	data, err := decide()
	if err != nil || len(data) == 0 {
		return w, err
	}
	if data, err = oneLine(data); err != nil {
		return w, err
	}
	// An empty segment and its successor would have the same name.
	if w.cur.off >= j.opts.segmentSize() && w.cur.seq >= w.seg.First {
		if err := w.makeSuccessor(ctx); err != nil {
			return w, fmt.Errorf("the record was not written, and the team is unchanged: %w", err)
		}
	}
	line := appendRecord(make([]byte, 0, len(data)+64), w.cur.seq+1, data)
	if err := w.put(line); errors.Is(err, journal.ErrUncertain) {
		return w, err
	} else if err != nil {
		return w, fmt.Errorf("the record was not written, and the team is unchanged: %w", err)
	}
	w.milestone = w.cur.off/markerEvery != (w.cur.off+int64(len(line)))/markerEvery
	o, _ := parseOpening(line)
	w.take(len(line), w.cur.seq+1, o.sum)
	w.dropBuffer()
	j.step("written")
	return w, nil
}

// oneLine returns data as a single line.
func oneLine(data []byte) ([]byte, error) {
	if len(data) > maxData {
		return nil, fmt.Errorf("a record of %d bytes is too long; the limit is %d", len(data), maxData)
	}
	if !json.Valid(data) {
		return nil, errors.New("a record must be one JSON value")
	}
	if bytes.IndexByte(data, '\n') < 0 {
		return data, nil
	}
	var b bytes.Buffer
	err := json.Compact(&b, data)
	return b.Bytes(), err
}

// catchUp walks to the end of the history, calls show for the records after seq after, and cuts a
// torn line at the end.
func (w *walk) catchUp(ctx context.Context, after int64, show func(journal.Record) error) error {
	if size, err := w.seg.size(); err != nil {
		return err
	} else if size < w.cur.off {
		return w.seg.damage(w.cur.line, "the file is truncated at byte %d; it had at least %d", size, w.cur.off)
	} else if size == w.cur.off {
		w.eof = true
	}
	for {
		rec, ok, err := w.next()
		if err != nil {
			return err
		}
		if ok && rec.Seq > after {
			if err := show(rec); err != nil {
				return err
			}
		}
		if err := w.j.ended(ctx); err != nil {
			return err
		}
		if ok {
			continue
		}
		switch {
		case w.sealed:
			err = w.makeSuccessor(ctx)
		case w.partial || w.bad != "":
			err = w.cutTorn(ctx)
		default:
			if err := w.expect(max(after, w.j.floor.Load())); err != nil {
				return err
			}
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// stableMarker reads the marker under the sync lock, so that no process writes it meanwhile.
func (j *Journal) stableMarker(ctx context.Context) (int64, bool, error) {
	if err := j.syncs.lock(ctx); err != nil {
		return 0, false, err
	}
	defer j.syncs.unlock()
	seq, ok := j.marker.read()
	return seq, ok, nil
}

// makeSuccessor creates the next segment after a full one, and moves the walk into it. The full
// segment is sealed and synced first, whichever process filled it. It is not synced after that.
func (w *walk) makeSuccessor(ctx context.Context) error {
	durable, ok, err := w.j.stableMarker(ctx)
	if err != nil {
		return err
	}
	if ok && w.cur.seq < durable {
		return &journal.DamageError{Team: w.j.team, Segment: filepath.Join(w.j.dir, segmentName(w.cur.seq+1)),
			Reason: "the segment is missing"}
	}
	if err := w.put(appendLine(nil, keySeal, w.cur.seq)); err != nil {
		return err
	}
	w.dropBuffer()
	w.j.step("sealed")
	if err := w.j.secure(w.seg, durable, w.cur.seq); err != nil {
		return err
	}
	w.j.step("seal synced")
	// After a power loss the marker is as old as its last sync, so sync it while that is cheap.
	if err := w.j.sync(w.j.marker.f); err != nil {
		return err
	}
	err = replaceFile(w.j.disk, w.j.dir, segmentName(w.cur.seq+1), func(out io.Writer) error {
		_, err := out.Write(appendHeader(nil, header{Team: w.seg.Team, First: w.cur.seq + 1}))
		return err
	}, w.j.opts.Step)
	if err != nil {
		return err
	}
	w.j.step("rotated")
	seg, err := w.j.openSegment(w.cur.seq + 1)
	if err != nil {
		return err
	}
	w.enter(seg)
	return nil
}

// put writes a line at the cursor, completely or not at all.
func (w *walk) put(line []byte) error {
	f, off := w.seg.f, w.cur.off
	rest := line
	if w.j.opts.Step != nil {
		half := len(line) / 2
		if _, err := f.WriteAt(line[:half], off); err != nil {
			return w.takeBack(err)
		}
		w.j.step("half written")
		rest, off = line[half:], off+int64(half)
	}
	if _, err := f.WriteAt(rest, off); err != nil {
		return w.takeBack(err)
	}
	return nil
}

// takeBack cuts off the remains of a failed write. If that fails, the next writer cuts them off,
// because they are not a complete line. The sync comes before any write to the same place: after a
// power loss, what is written there could otherwise complete the remains.
func (w *walk) takeBack(err error) error {
	if cut := w.seg.f.Truncate(w.cur.off); cut != nil {
		w.j.report("%s: a write failed, and the next writer will remove its remains: %v", w.seg.path, cut)
		return err
	}
	return errors.Join(err, w.j.uncertain(w.j.sync(w.seg.f)))
}
