package filejournal

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"cadre/internal/journal"
	"cadre/internal/sys/crc32c"
	"cadre/internal/sys/regularfile"
)

// savedSnapshot is what a handle knows about the newest snapshot.
type savedSnapshot struct {
	place cursor // its position in the history; zero if there is none
	size  int64  // of its file
	bad   bool   // the file is damaged, and any new snapshot may replace it
}

// snapshotHead holds the fields of state.json before the data.
type snapshotHead struct {
	seq   int64
	first int64 // first seq of the segment that has the record seq, or that begins after it
	at    int64 // offset of the record in the segment, 0 if the segment begins after it
	line  int64 // line of the record
	// These fields bind it to one history. A snapshot of an older version has neither, and bound is
	// false.
	journal int64 // checksum of the journal's id
	record  int64 // checksum of the line of the record seq; 0 if it lies before a segment or in a hole
	bound   bool
}

// headOf returns the head of a snapshot after the record seq, which the cursor is right behind.
func headOf(seq int64, at cursor, id string) snapshotHead {
	return snapshotHead{seq: seq, first: at.first, at: at.at, line: int64(at.line), journal: binding(id),
		record: int64(at.sum), bound: true}
}

func appendSnapshot(dst []byte, h snapshotHead, data []byte) []byte {
	rest := appendInt(nil, "seq", h.seq)
	rest = appendInt(rest, "segment", h.first)
	rest = appendInt(rest, "at", h.at)
	rest = appendInt(rest, "line", h.line)
	rest = appendInt(rest, "journal", h.journal)
	rest = appendInt(rest, "record", h.record)
	return appendLine(dst, keySnapshot, version, rest, dataField, data)
}

// maxSnapshot is the size limit of a snapshot, in bytes.
const maxSnapshot = 8 << 30

// headSize is more than the maximum length of a state.json before its data.
const headSize = 256

// readSnapshot reads state.json, which is a single line. bad describes its defect. newer is its
// version if this package does not know that version.
func readSnapshot(d Disk, path string) (h snapshotHead, data string, newer int64, bad string, err error) {
	f, err := d.Open(path, os.O_RDONLY)
	if special, ok := errors.AsType[*regularfile.Error](err); ok && !special.Mode.IsDir() {
		return h, "", 0, err.Error(), nil
	}
	if err != nil {
		return h, "", 0, "", err
	}
	defer f.Close()
	size, err := f.Size()
	if err != nil {
		return h, "", 0, "", err
	}
	if size > maxSnapshot {
		return h, "", 0, "it is larger than any snapshot", nil
	}
	var head [headSize]byte
	n, err := pread(f, head[:], 0)
	if err != nil {
		return h, "", 0, "", err
	}
	o, bad := parseOpening(head[:n])
	if bad != "" {
		return h, "", 0, bad, nil
	}
	rest, bad, err := readRest(f, size, o, head[:o.field])
	switch {
	case err != nil || bad != "":
		return h, "", 0, bad, err
	case string(o.key) != keySnapshot:
		return h, "", 0, "it is not a snapshot", nil
	case o.n > version:
		return h, "", o.n, "", nil
	}
	h, rest, ok := parseSnapshotHead(rest)
	if ok {
		data, ok = strings.CutPrefix(rest, dataOpen)
	}
	if !ok {
		return h, "", 0, "it does not have the fields of a snapshot", nil
	}
	return h, data, 0, "", nil
}

// readRest reads the line after its opening and verifies the checksum. This is by far the largest
// read of a command, and touching memory for the first time costs more than reading. So it copies
// the file in pieces through the checksum into the string that is kept.
func readRest(f File, size int64, o opening, before []byte) (rest, bad string, err error) {
	var text strings.Builder
	text.Grow(int(size) - o.body)
	sum := crc32c.New()
	sum.Write(before)
	line := io.NewSectionReader(f, int64(o.body), size-int64(len("\n"))-int64(o.body))
	if _, err := io.Copy(io.MultiWriter(&text, sum), line); err != nil {
		return "", "", err
	}
	var end [1]byte
	if _, err := pread(f, end[:], size-int64(len(end))); err != nil {
		return "", "", err
	}
	rest, ok := strings.CutSuffix(text.String(), "}")
	switch {
	case !ok || end[0] != '\n':
		return "", badShape, nil
	case sum.Sum32() != o.sum:
		return "", badSum, nil
	}
	return rest, "", nil
}

func parseSnapshotHead(rest string) (h snapshotHead, after string, ok bool) {
	for _, field := range []struct {
		name string
		to   *int64
	}{{"seq", &h.seq}, {"segment", &h.first}, {"at", &h.at}, {"line", &h.line}} {
		if *field.to, rest, ok = cutInt(rest, field.name); !ok {
			return h, "", false
		}
	}
	if strings.HasPrefix(rest, dataOpen) {
		return h, rest, true
	}
	var ok2 bool
	h.journal, rest, ok = cutInt(rest, "journal")
	h.record, rest, ok2 = cutInt(rest, "record")
	h.bound = true
	return h, rest, ok && ok2
}

// binding returns the value of the field "journal" in snapshots of the journal with that id.
func binding(id string) int64 { return int64(crc32c.Checksum([]byte(id))) }

// foreign returns the reason why a snapshot belongs to another journal, or "" if its head shows
// none.
func (h snapshotHead) foreign(id string) string {
	if h.bound && h.journal != binding(id) {
		return "it is a snapshot of another team"
	}
	return ""
}

// another returns the reason why a snapshot at that position belongs to another history, or "".
func (h snapshotHead) another(at cursor) string {
	if h.record != 0 && at.sum != 0 && h.record != int64(at.sum) {
		return fmt.Sprintf("it is the state after a record %d that differs from the journal's", h.seq)
	}
	return ""
}

// Snapshot implements [journal.Journal].
func (j *Journal) Snapshot(ctx context.Context) (journal.Snapshot, error) {
	if err := j.enter(); err != nil {
		return journal.Snapshot{}, err
	}
	defer j.leave()
	if err := j.ended(ctx); err != nil {
		return journal.Snapshot{}, err
	}
	path := filepath.Join(j.root, snapshotName)
	h, data, v, bad, err := readSnapshot(j.disk, path)
	if regularfile.Is(err) { // no snapshot can replace it
		return journal.Snapshot{}, damagedFile(j.team, path, err)
	}
	if errors.Is(err, fs.ErrNotExist) {
		j.setSaved(savedSnapshot{})
		return journal.Snapshot{}, nil
	}
	if err != nil {
		return journal.Snapshot{}, err
	}
	if v > 0 {
		return journal.Snapshot{}, newer(path, v)
	}
	var place cursor
	if bad == "" {
		bad = h.foreign(j.id)
	}
	if bad == "" && !h.bound {
		if essential, err := j.holed(); err != nil {
			return journal.Snapshot{}, err
		} else if !essential {
			j.setSaved(savedSnapshot{bad: true})
			return journal.Snapshot{}, nil
		}
	}
	if bad == "" {
		if place, err = j.find(h); err != nil {
			return journal.Snapshot{}, err
		}
		bad = h.another(place)
	}
	if bad != "" {
		j.report("%s: the snapshot is ignored, and the history read instead: %s", path, bad)
		j.setSaved(savedSnapshot{bad: true})
		return journal.Snapshot{}, nil
	}
	j.remember(place)
	j.setSaved(savedSnapshot{place: place, size: int64(len(data))})
	return journal.Snapshot{Seq: h.seq, Data: data}, nil
}

// holed reports whether the history has a hole, so that it cannot be read without a snapshot.
func (j *Journal) holed() (bool, error) {
	firsts, err := listSegments(j.disk, j.dir)
	if err != nil {
		return false, j.missing(err)
	}
	for _, first := range firsts {
		seg, err := j.segment(first)
		if err != nil {
			return false, err
		}
		holed := seg.Hole != nil
		j.release(seg)
		if holed {
			return true, nil
		}
	}
	return false, nil
}

func (j *Journal) setSaved(s savedSnapshot) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.saved.bad = s.bad
	if s.place.seq > j.saved.place.seq {
		j.savedAt(s.place, s.size)
	}
}

// savedAt records the position and the size of a snapshot. The caller holds mu.
func (j *Journal) savedAt(place cursor, size int64) {
	j.saved.place, j.saved.size = place, size
	j.unsaved = j.newest.off
	if place.first == j.newest.first {
		j.unsaved -= place.off
	}
}

// find returns a snapshot's position in the history. It tries the position in the snapshot first
// and searches otherwise. A snapshot only covers durable records, so one that is ahead of the
// history proves damage.
func (j *Journal) find(h snapshotHead) (cursor, error) {
	if seg, err := j.segment(h.first); err == nil {
		w := j.newWalk(seg, seg.origin())
		defer w.close()
		if w.cur.seq == h.seq {
			return w.cur, nil
		}
		origin := w.cur
		if h.at >= seg.start && h.line > 1 {
			w.cur = cursor{first: h.first, off: h.at, line: int(h.line) - 1, seq: h.seq - 1}
			if _, ok, err := w.next(); ok && err == nil {
				return w.cur, nil
			}
		}
		w.cur = origin
	}
	w, err := j.walkTo(h.seq)
	if err != nil {
		return cursor{}, err
	}
	defer w.close()
	return w.cur, nil
}

// segment returns a reference to a segment. It opens the segment unless it is the active one.
func (j *Journal) segment(first int64) (*segment, error) {
	j.mu.Lock()
	if active := j.active; active.First == first {
		active.refs++
		j.mu.Unlock()
		return active, nil
	}
	j.mu.Unlock()
	return j.openSegment(first)
}

// walkTo returns a walk positioned right after the record seq.
func (j *Journal) walkTo(seq int64) (*walk, error) {
	w, err := j.walkFrom(seq)
	if err != nil {
		return nil, err
	}
	for w.cur.seq < seq {
		_, ok, err := w.next()
		if err == nil && !ok {
			if ok, err = w.readersEnd(); err == nil && !ok {
				err = w.seg.damage(0, "it ends with record %d, but there is a snapshot of the state after record %d",
					w.cur.seq, seq)
			}
		}
		if err != nil {
			w.close()
			return nil, err
		}
	}
	return w, nil
}

// SnapshotDue implements [journal.Journal]. A snapshot is due when reading the history after the
// last one takes about as long as reading the snapshot. Writing snapshots, which takes longer, must
// stay a small part of all writing.
func (j *Journal) SnapshotDue(size int) bool {
	if j.enter() != nil {
		return false
	}
	defer j.leave()
	if j.writable != nil || !j.behind(size) {
		return false
	}
	// That was only this handle's view. Another process may have saved a snapshot since.
	if h, size, ok := j.readHead(); ok {
		j.mu.Lock()
		if !j.saved.bad && h.seq > j.saved.place.seq {
			j.savedAt(cursor{first: h.first, off: h.at, line: int(h.line), seq: h.seq}, size)
		}
		j.mu.Unlock()
	}
	return j.behind(size)
}

// snapshotEvery is the minimum history between two snapshots, in bytes: some two hundred records,
// which take about as long to read as the files take to open.
const snapshotEvery = 64 << 10

func (j *Journal) behind(size int) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.unsaved >= max(snapshotEvery, max(int64(size), j.saved.size)/8)
}

// readHead reads the head of state.json and its size, without verifying the checksum. This suffices
// to decide that no new snapshot is due.
func (j *Journal) readHead() (h snapshotHead, size int64, ok bool) {
	f, err := j.disk.Open(filepath.Join(j.root, snapshotName), os.O_RDONLY)
	if err != nil {
		return h, 0, false
	}
	defer f.Close()
	if size, err = f.Size(); err != nil {
		return h, 0, false
	}
	var head [headSize]byte
	n, _ := pread(f, head[:], 0)
	_, rest, ok := strings.Cut(string(head[:n]), crcOpen)
	if !ok || len(rest) < 9 {
		return h, 0, false
	}
	h, _, ok = parseSnapshotHead(rest[9:])
	return h, size, ok && h.bound && h.foreign(j.id) == ""
}

// saves takes the lock for a snapshot or a keyframe. done releases it; it is nil after an error,
// and if another process saves now.
func (j *Journal) saves(ctx context.Context) (done func(), err error) {
	if err := j.enter(); err != nil {
		return nil, err
	}
	defer func() {
		if done == nil {
			j.leave()
		}
	}()
	if err := j.canAppend(); err != nil {
		return nil, err
	}
	if err := j.ended(ctx); err != nil {
		return nil, err
	}
	if ok, err := j.snapshots.tryLock(); err != nil || !ok {
		return nil, err
	}
	return func() {
		j.snapshots.unlock()
		j.leave()
	}, nil
}

// SaveSnapshot implements [journal.Journal].
func (j *Journal) SaveSnapshot(ctx context.Context, take func() (int64, []byte)) error {
	done, err := j.saves(ctx)
	if done == nil {
		return err
	}
	defer done()
	j.step("snapshot locked")
	if err := j.gone(); err != nil {
		return err
	}
	seq, data := take()
	j.mu.Lock()
	bad := j.saved.bad
	j.mu.Unlock()
	old, size, ok := j.readHead()
	ok = ok && !bad
	if seq == 0 || ok && old.seq >= seq {
		return nil
	}
	w, err := j.walkTo(seq)
	if err != nil {
		return fmt.Errorf("save a snapshot: %w", err)
	}
	defer w.close()
	if err := j.commit(ctx, w.seg, w.cur); err != nil {
		return err
	}
	if bytes.IndexByte(data, '\n') >= 0 {
		var b bytes.Buffer
		if err := json.Compact(&b, data); err != nil {
			return fmt.Errorf("save a snapshot: %w", err)
		}
		data = b.Bytes()
	}
	if ok {
		j.keepSnapshot(old, size)
	}
	h := headOf(seq, w.cur, j.id)
	err = replaceFile(j.disk, j.root, snapshotName, func(out io.Writer) error {
		_, err := out.Write(appendSnapshot(make([]byte, 0, len(data)+256), h, data))
		return err
	}, j.opts.Step)
	if err != nil {
		return fmt.Errorf("save a snapshot: %w", err)
	}
	j.step("snapshot saved")
	j.remember(w.cur)
	j.setSaved(savedSnapshot{place: w.cur, size: int64(len(data))})
	return nil
}
