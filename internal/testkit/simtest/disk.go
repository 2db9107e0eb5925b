package simtest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"time"

	"cadre/internal/journal"
)

// disk holds the team's journal: the lines as every process sees them, and how many of them would
// survive a loss of power.
type disk struct {
	w        *world
	lines    [][]byte
	torn     int    // bytes of an unfinished line behind the last complete one
	half     []byte // the line that is being written
	synced   int    // lines that are on the disk itself
	snapshot journal.Snapshot
	writer   *thread // the thread that holds the writers' lock
	freed    bell
	grown    bell
	more     chan struct{} // closed when another line arrives; nil while no thread waits
	full     time.Duration // no line fits until then
	faulty   time.Duration // no sync succeeds until then
}

var (
	errFull = errors.New("no space left on device")
	errSync = errors.New("input/output error")
	errLink = errors.New("the journal cannot be reached")
)

// letGo releases the lock of a killed thread, as the kernel does.
func (d *disk) letGo(t *thread) {
	if d.writer == t {
		d.writer, d.half = nil, nil
		d.freed.ring()
	}
}

// losePower discards unsynced lines, except those that the kernel happened to have written, and
// keeps part of one line.
func (d *disk) losePower(keep, torn int) {
	kept := min(len(d.lines), d.synced+keep)
	if lost := len(d.lines) - kept; lost > 0 {
		d.w.logf("the disk lost %d records that were not synced", lost)
	}
	d.lines = d.lines[:kept:kept]
	d.synced = kept
	d.torn, d.half, d.writer = torn, nil, nil
	if d.snapshot.Seq > int64(kept) { // a snapshot is saved only after its records are synced
		d.snapshot = journal.Snapshot{}
	}
	d.w.judge.cutTo(kept)
}

// grow wakes the threads that wait for another line.
func (d *disk) grow() {
	d.grown.ring()
	if more := d.more; more != nil {
		d.more = nil
		d.w.later(func() { close(more) })
	}
}

// grows returns a channel that is closed when another line arrives.
func (d *disk) grows() <-chan struct{} {
	if d.more == nil {
		d.more = make(chan struct{})
	}
	return d.more
}

// shown reports whether there is a line after seq after.
func (d *disk) shown(after int64) bool {
	return int64(len(d.lines)) > after ||
		d.w.bug("half-read") && d.half != nil && int64(len(d.lines)) == after
}

// handle is a process's handle on the journal. It is a [journal.Journal] with the conflict rule and
// the waits of the real ones. Where a real journal waits, handle pauses the calling thread.
type handle struct {
	d     *disk
	of    *process
	stale error // a record of this handle may not be durable, so no other may follow it
	known int   // lines that this handle knows to be durable
}

var _ journal.Journal = (*handle)(nil)

func (d *disk) open(p *process) *handle { return &handle{d: d, of: p} }

// step pauses the calling thread, and longer while the process cannot reach the disk.
func (h *handle) step() error {
	t := h.d.w.running
	t.step()
	for h.of.cut > h.d.w.now {
		if t.rng.IntN(3) == 0 {
			t.sleep(time.Duration(t.rng.IntN(int(h.of.cut - h.d.w.now))))
			return errLink
		}
		t.sleep(h.of.cut - h.d.w.now)
	}
	return nil
}

func (h *handle) Snapshot(context.Context) (journal.Snapshot, error) {
	return h.d.snapshot, h.step()
}

func (h *handle) Read(_ context.Context, after int64) iter.Seq2[journal.Record, error] {
	return func(yield func(journal.Record, error) bool) {
		if after >= int64(len(h.d.lines)) && h.of.cut <= h.d.w.now && h.d.half == nil {
			return // reading existing lines takes no time
		}
		if err := h.step(); err != nil {
			yield(journal.Record{}, err)
			return
		}
		for seq := after + 1; seq <= int64(len(h.d.lines)); seq++ {
			if !yield(journal.Record{Seq: seq, Data: h.d.lines[seq-1]}, nil) {
				return
			}
		}
		if h.d.half != nil && h.d.w.bug("half-read") && after <= int64(len(h.d.lines)) {
			yield(journal.Record{Seq: int64(len(h.d.lines)) + 1, Data: h.d.half}, nil)
		}
	}
}

func (h *handle) Append(_ context.Context, after int64, catchUp func(journal.Record) error,
	decide func() ([]byte, error)) (int64, error) {
	if h.stale != nil {
		return 0, h.stale
	}
	end, wrote, err := h.write(after, catchUp, decide)
	if err != nil {
		return 0, err
	}
	if !wrote && h.d.w.bug("repeat-unsynced") {
		return end, nil
	}
	if err := h.sync(int(end)); err != nil {
		h.stale = fmt.Errorf("%w: %w", journal.ErrReopen, err)
		return 0, fmt.Errorf("%w: %w", journal.ErrUncertain, err)
	}
	return end, nil
}

// write is the part of an append that excludes other writers.
func (h *handle) write(after int64, catchUp func(journal.Record) error,
	decide func() ([]byte, error)) (end int64, wrote bool, err error) {
	d, t := h.d, h.d.w.running
	if err := h.step(); err != nil {
		return 0, false, err
	}
	if !d.w.bug("no-lock") {
		for d.writer != nil {
			t.await(never, &d.freed)
		}
		d.writer = t
		defer d.letGo(t)
	}
	t.step()
	if d.torn > 0 && !d.w.bug("torn-kept") {
		d.w.logf("%s cuts the torn line", h.of.name)
		d.torn = 0
	}
	for seq := after + 1; seq <= int64(len(d.lines)); seq++ {
		if err := catchUp(journal.Record{Seq: seq, Data: d.lines[seq-1]}); err != nil {
			return 0, false, err
		}
	}
	if d.w.bug("no-lock") {
		t.step()
	}
	data, err := decide()
	if err != nil || len(data) == 0 {
		return int64(len(d.lines)), false, err
	}
	if !json.Valid(data) {
		return 0, false, errors.New("a record has to be one JSON value")
	}
	data = bytes.Clone(data)
	if d.w.bug("no-lock") {
		t.step()
	}
	if d.full > d.w.now {
		return 0, false, fmt.Errorf("the record was not written: %w", errFull)
	}
	if t.rng.IntN(4) == 0 {
		if err := h.half(data); err != nil {
			return 0, false, err
		}
	}
	if d.torn > 0 { // the torn line was not cut, so this line becomes its end
		data = append([]byte(`{"torn`), data...)
		d.torn = 0
	}
	d.lines = append(d.lines, data)
	d.w.judge.record(data)
	d.grow()
	end = int64(len(d.lines))
	d.w.strike(nil)
	t.step()
	return end, true, nil
}

// half begins to write a line that is not written at once, and leaves time to read its first part.
// Its error says that the disk was full before its end.
func (h *handle) half(data []byte) error {
	d, t := h.d, h.d.w.running
	before := d.torn
	d.torn, d.half = before+1+t.rng.IntN(len(data)), data
	if d.w.bug("half-read") {
		d.grow()
	}
	t.step()
	t.sleep(time.Duration(t.rng.IntN(3000)) * time.Microsecond)
	if t.rng.IntN(16) == 0 { // a slow disk
		t.sleep(time.Duration(t.rng.IntN(40)) * time.Millisecond)
	}
	d.torn, d.half = before, nil
	if d.full > d.w.now {
		d.torn++
		return fmt.Errorf("the record was not written whole: %w", errFull)
	}
	return nil
}

// sync makes the first upTo lines durable.
func (h *handle) sync(upTo int) error {
	d, t := h.d, h.d.w.running
	if d.synced >= upTo {
		return nil
	}
	if d.w.bug("early-ack") {
		return nil
	}
	t.step()
	there := len(d.lines)
	t.step()
	if t.rng.IntN(8) == 0 { // a slow disk
		t.sleep(time.Duration(t.rng.IntN(30)) * time.Millisecond)
	}
	if d.faulty > d.w.now && !d.w.bug("sync-ignored") {
		return errSync
	}
	if d.faulty <= d.w.now {
		d.synced = max(d.synced, there)
	}
	if h.of.cut > d.w.now { // the line is durable, but the reply is lost
		t.sleep(min(h.of.cut-d.w.now, 2*time.Second))
		return errLink
	}
	t.step()
	return nil
}

func (h *handle) Wait(_ context.Context, after int64) error {
	for !h.d.shown(after) {
		h.d.w.running.await(never, &h.d.grown)
	}
	return h.step()
}

func (h *handle) SnapshotDue(int) bool {
	return len(h.d.lines)-int(h.d.snapshot.Seq) >= 24
}

func (h *handle) SaveSnapshot(_ context.Context, take func() (int64, []byte)) error {
	seq, data := take()
	if err := h.step(); err != nil {
		return err
	}
	if h.d.full > h.d.w.now {
		return errFull
	}
	if seq > h.d.snapshot.Seq && seq <= int64(h.d.synced) {
		h.d.snapshot = journal.Snapshot{Seq: seq, Data: string(data)}
	}
	return nil
}

// Keyframes, Keyframe and SaveKeyframe keep nothing: no process of the simulation asks for an
// earlier state.
func (h *handle) Keyframes(context.Context) ([]int64, error) { return nil, h.step() }

func (h *handle) Keyframe(context.Context, int64) (journal.Snapshot, error) {
	return journal.Snapshot{}, h.step()
}

func (h *handle) SaveKeyframe(context.Context, journal.Snapshot) error { return h.step() }

func (h *handle) Close() error { return nil }
