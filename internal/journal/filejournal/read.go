package filejournal

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"path/filepath"
	"slices"
	"sync"

	"cadre/internal/journal"
)

// cursor is a position in the history: right after the record seq.
type cursor struct {
	first int64 // first seq of the segment
	off   int64 // offset of the next line
	line  int   // number of lines before it; the next one is line+1
	seq   int64
	at    int64  // offset of the record seq; 0 if it is not in this segment
	sum   uint32 // checksum of its line; 0 if it is not in this segment
}

// Read implements [journal.Journal].
func (j *Journal) Read(ctx context.Context, after int64) iter.Seq2[journal.Record, error] {
	return func(yield func(journal.Record, error) bool) {
		if err := j.enter(); err != nil {
			yield(journal.Record{}, err)
			return
		}
		defer j.leave()
		w, err := j.walkFrom(after)
		if err != nil {
			yield(journal.Record{}, err)
			return
		}
		defer w.close()
		for {
			if err := j.ended(ctx); err != nil {
				yield(journal.Record{}, err)
				return
			}
			rec, ok, err := w.next()
			if err == nil && !ok {
				ok, err = w.readersEnd()
				if err == nil && ok {
					continue
				}
			}
			if err != nil {
				yield(journal.Record{}, err)
				return
			}
			if !ok {
				return
			}
			if rec.Seq > after && !yield(rec, nil) {
				return
			}
		}
	}
}

// Starts returns the seqs after which [Journal.Read] begins without reading what is before: those
// before the segments, in order. The first of them is 0.
func (j *Journal) Starts(ctx context.Context) ([]int64, error) {
	if err := j.enter(); err != nil {
		return nil, err
	}
	defer j.leave()
	if err := j.ended(ctx); err != nil {
		return nil, err
	}
	firsts, err := listSegments(j.disk, j.dir)
	if err != nil {
		return nil, j.missing(err)
	}
	starts := []int64{0} // a segment that is missing is reported by Read
	for _, first := range firsts {
		if first > 1 {
			starts = append(starts, first-1)
		}
	}
	return starts, nil
}

// walk iterates over the history record by record, from one segment to the next.
type walk struct {
	j   *Journal
	seg *segment
	cur cursor

	buf    *[]byte // from the pool
	lo, hi int     // (*buf)[lo:hi] is the file from cur.off on
	eof    bool    // the last read ended at the end of the file

	milestone bool // the marker is synced after the record written with this walk

	// The state after next has returned false.
	sealed  bool   // there is a seal after the last record, and no successor
	bad     string // the defect of a complete line after the last record
	partial bool   // there are bytes without a newline after the last record
	known   int64  // seq known to be acknowledged before the last look at the file
}

var buffers = sync.Pool{New: func() any { b := make([]byte, 64<<10); return &b }}

// keepBuffer is the maximum size of a buffer that returns to the pool. A larger one, needed for a
// huge record, is dropped.
const keepBuffer = 1 << 20

// walkFrom starts a walk at the record after seq after, or at an earlier one if that position is
// unknown.
func (j *Journal) walkFrom(after int64) (*walk, error) {
	after = max(after, 0)
	seg, cur, err := j.locate(after)
	if err != nil {
		return nil, err
	}
	w := j.newWalk(seg, cur)
	if cur.seq > after {
		err := w.holeError()
		w.close()
		return nil, err
	}
	return w, nil
}

// newWalk starts a walk at a position. It takes ownership of a reference to the segment.
func (j *Journal) newWalk(seg *segment, cur cursor) *walk {
	return &walk{j: j, seg: seg, cur: cur, buf: buffers.Get().(*[]byte)}
}

// locate returns the nearest known position at or before seq after, with a reference to its
// segment.
func (j *Journal) locate(after int64) (*segment, cursor, error) {
	j.mu.Lock()
	best := j.places.before(after)
	active := j.active
	if active.before() <= after && best.first != active.First {
		best = active.origin()
	}
	if best.first == active.First {
		active.refs++
		j.mu.Unlock()
		return active, best, nil
	}
	j.mu.Unlock()
	if best.first != 0 && best.seq == after {
		seg, err := j.open(best.first)
		return seg, best, err
	}
	firsts, err := listSegments(j.disk, j.dir)
	if err != nil {
		return nil, cursor{}, j.missing(err)
	}
	n, _ := slices.BinarySearch(firsts, after+2)
	if n == 0 {
		return nil, cursor{}, &journal.DamageError{Team: j.team, Segment: filepath.Join(j.dir, segmentName(1)),
			Reason: "the segment is missing"}
	}
	seg, err := j.open(firsts[n-1])
	if err != nil {
		return nil, cursor{}, err
	}
	if best.first == seg.First {
		return seg, best, nil
	}
	return seg, seg.origin(), nil
}

// open returns a reference to a segment that is not the active one.
func (j *Journal) open(first int64) (*segment, error) {
	seg, err := j.openSegment(first)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, j.missing(err)
	}
	return seg, err
}

// missing returns the error that the absence of a file means.
func (j *Journal) missing(err error) error {
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if gone := j.gone(); gone != nil {
		return gone
	}
	return fmt.Errorf("a file of the journal is missing: %w", err)
}

// next returns the next record. Its data is valid until the next call. ok is false at the end of
// the readable history.
func (w *walk) next() (rec journal.Record, ok bool, err error) {
	for {
		line, whole, err := w.peek()
		if err != nil || !whole {
			return rec, false, err
		}
		f, bad := parseLine(line)
		switch {
		case bad != "":
		case string(f.key) == keySeal && f.n == w.cur.seq && f.n >= w.seg.First:
			if err := w.enterSuccessor(); err != nil || w.sealed {
				return rec, false, err
			}
			continue
		case string(f.key) != keyRecord:
			bad = fmt.Sprintf("unexpected line %q", f.key)
		case f.n != w.cur.seq+1:
			bad = fmt.Sprintf("it has seq %d, expected %d", f.n, w.cur.seq+1)
		default:
			data, ok := f.data()
			if ok {
				w.take(len(line)+1, f.n, f.sum)
				return journal.Record{Seq: f.n, Data: data}, true, nil
			}
			bad = "it has no data"
		}
		w.bad = bad
		return rec, false, nil
	}
}

// take moves the cursor past the record seq, whose line has n bytes and the given checksum.
func (w *walk) take(n int, seq int64, sum uint32) {
	w.lo += n
	w.cur.at = w.cur.off
	w.cur.off += int64(n)
	w.cur.line++
	w.cur.seq, w.cur.sum = seq, sum
}

// peek returns the line at the cursor without its newline. whole is false if there is no complete
// line; w.partial then says whether there is the beginning of one.
func (w *walk) peek() (line []byte, whole bool, err error) {
	w.bad, w.partial, w.sealed = "", false, false
	searched := 0
	for {
		buf := *w.buf
		if i := bytes.IndexByte(buf[w.lo+searched:w.hi], '\n'); i >= 0 {
			return buf[w.lo : w.lo+searched+i], true, nil
		}
		searched = w.hi - w.lo
		if searched > maxLine {
			w.bad = "the line has no end"
			return nil, false, nil
		}
		if w.eof {
			w.partial = searched > 0
			return nil, false, nil
		}
		switch {
		case w.lo > 0:
			copy(buf, buf[w.lo:w.hi])
			w.lo, w.hi = 0, searched
		case w.hi == len(buf):
			buf = append(buf, make([]byte, len(buf))...)
			*w.buf = buf
		}
		n, err := pread(w.seg.f, buf[w.hi:], w.cur.off+int64(searched))
		if err != nil {
			return nil, false, err
		}
		w.eof = n < len(buf)-w.hi
		w.hi += n
	}
}

// dropBuffer discards the read-ahead buffer.
func (w *walk) dropBuffer() {
	w.lo, w.hi, w.eof = 0, 0, false
}

// enterSuccessor moves a walk at a seal to the next segment, or sets sealed if there is none.
func (w *walk) enterSuccessor() error {
	seg, err := w.j.openSegment(w.cur.seq + 1)
	if errors.Is(err, fs.ErrNotExist) {
		w.sealed = true
		return nil
	}
	if err != nil {
		return err
	}
	if seg.before() > w.cur.seq {
		w.enter(seg)
		return w.holeError()
	}
	w.enter(seg)
	return nil
}

func (w *walk) enter(seg *segment) {
	w.j.remember(w.cur)
	w.j.release(w.seg)
	w.seg, w.cur = w.j.adopt(seg), seg.origin()
	w.dropBuffer()
}

func (w *walk) holeError() error {
	return w.seg.damage(1, "the records %v were lost to earlier damage. Only the snapshot has their effect, so the "+
		"history cannot be read across them", *w.seg.Hole)
}

// readersEnd decides what the end of the readable history means for a reader. A bad or incomplete
// line is usually a write in progress. A bad or missing line is damage only if the record was
// acknowledged before the walk read that far. Records acknowledged during the read prove nothing.
// So the walk reads once more, and compares the result with what was acknowledged before.
func (w *walk) readersEnd() (again bool, err error) {
	clean := w.bad == "" && !w.partial
	if w.cur.seq < w.known {
		if clean {
			return false, w.expect(w.known)
		}
		return false, w.badLine()
	}
	durable := w.j.floor.Load()
	if !clean {
		seq, ok := w.j.marker.read()
		if !ok && !w.partial {
			seq = w.cur.seq + 1 // without a marker, only a truncated line counts as torn
		}
		durable = max(durable, seq)
	}
	if w.cur.seq >= durable {
		return false, nil
	}
	w.known = durable
	w.dropBuffer()
	return true, nil
}

// expect returns an error if the history ends before the record durable, which was acknowledged.
func (w *walk) expect(durable int64) error {
	if w.cur.seq >= durable {
		return nil
	}
	return w.seg.damage(0, "it ends with record %d, and the records up to %d were acknowledged", w.cur.seq, durable)
}

func (w *walk) badLine() error {
	bad := w.bad
	if w.partial {
		bad = "the line is truncated"
	}
	return w.seg.damage(w.cur.line+1, "record %d cannot be read: %s", w.cur.seq+1, bad)
}

func (w *walk) close() {
	w.j.remember(w.cur)
	w.j.release(w.seg)
	if len(*w.buf) <= keepBuffer {
		buffers.Put(w.buf)
	}
}
