package filejournal

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"

	"cadre/internal/journal"
	"cadre/internal/sys/regularfile"
)

// Options configures a handle. The zero value suits every use but tests.
type Options struct {
	// SegmentSize is the length in bytes at which a segment is full; 0 means 16 MiB.
	SegmentSize int64
	// KeyframeEvery is how many records there are between two keyframes, at least; 0 means 4096.
	KeyframeEvery int64
	// KeyframeBytes is how many bytes all keyframes take, at most; 0 means 64 MiB.
	KeyframeBytes int64
	// Disk holds the files; nil means the operating system's.
	Disk Disk
	// Report is called with one sentence about each repair that is not an error: a torn tail that
	// was cut, a damaged snapshot that was ignored. It may be called from any goroutine.
	Report func(what string)
	// Step is a hook for the crash tests. It is called with the name of each step: of an append
	// (lock, locked, half written, written, unlocked, sync, synced, marked), of a rotation (sealed,
	// seal synced, <file> unsynced, <file> unnamed, rotated), of a snapshot (snapshot locked,
	// keyframe kept, <file> unsynced, <file> unnamed, snapshot saved), and after a torn tail was
	// cut (cut). If it is set, a line is written in two halves.
	Step func(step string)
}

const defaultSegmentSize = 16 << 20

// Names inside the folders.
const (
	journalFolder    = "journal"
	lockName         = "lock"
	markerName       = "durable"
	snapshotLockName = "snapshot.lock"
	snapshotName     = "state.json"
)

// Journal is a handle on the journal in a team's folder. It implements [journal.Journal].
type Journal struct {
	opts Options
	disk Disk
	root string // the team's folder
	dir  string // its journal
	team string // the team's name, which is the folder's
	id   string // journal id of the marker and the segments; "" until one of them is read

	writes    *fileLock    // held to catch up, decide and write
	lockID    FileID       // identity of the file that writes locks
	marker    marker       // its file is locked by syncs
	syncs     *fileLock    // held to sync and to write the marker
	snapshots *fileLock    // held to replace the snapshot
	writable  error        // why this handle cannot append, nil if it can
	floor     atomic.Int64 // records up to here are durable, as far as this handle knows
	watch     watch

	closed chan struct{}

	mu      sync.Mutex
	users   int // running calls; the files are closed when the handle is closed and the last call has ended
	shut    bool
	active  *segment // the newest segment this handle has seen
	places  places
	newest  cursor // the furthest place this handle has seen
	unsaved int64  // approximate bytes of history seen since the snapshot
	saved   savedSnapshot
	broken  error // error of the failed sync
}

var _ journal.Journal = (*Journal)(nil)

// Create creates the journal of a team in its folder dir, with the given first records. It is
// durable when Create returns. Every file contains the id, which must be unique among journals.
// Create makes dir if it does not exist. To make a team appear atomically, create it in another
// folder and rename that. If there is a journal already, Create returns [journal.ErrExists].
func Create(dir, id string, records [][]byte, opts Options) error {
	if len(formatMarker(id, 0)) > maxMarker {
		return fmt.Errorf("the id %.32q… of a journal is too long", id)
	}
	folder := filepath.Join(dir, journalFolder)
	disk := opts.disk()
	if err := makeFolder(disk, dir); err != nil {
		return err
	}
	if err := disk.Mkdir(folder); errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%w: %s", journal.ErrExists, folder)
	} else if err != nil {
		return err
	}
	for _, name := range []string{lockName, snapshotLockName} {
		f, err := disk.Open(filepath.Join(folder, name), os.O_WRONLY|os.O_CREATE)
		if err != nil {
			return err
		}
		f.Close()
	}
	if err := writeHistory(disk, folder, header{Team: id, First: 1}, records, opts.segmentSize()); err != nil {
		return err
	}
	err := replaceFile(disk, folder, markerName, func(w io.Writer) error {
		_, err := w.Write(formatMarker(id, int64(len(records))))
		return err
	}, nil)
	return errors.Join(err, disk.SyncFolder(dir))
}

// writeHistory writes records into as many segments as needed.
func writeHistory(d Disk, folder string, h header, records [][]byte, limit int64) error {
	var line []byte
	for seq := h.First; ; {
		more := false
		err := writeSegment(d, folder, h, func(w io.Writer) error {
			for size := int64(0); seq <= int64(len(records)); seq++ {
				if size >= limit {
					more = true
					_, err := w.Write(appendLine(line[:0], keySeal, seq-1))
					return err
				}
				data, err := oneLine(records[seq-1])
				if err != nil {
					return fmt.Errorf("record %d: %w", seq, err)
				}
				line = appendRecord(line[:0], seq, data)
				if _, err := w.Write(line); err != nil {
					return err
				}
				size += int64(len(line))
			}
			return nil
		})
		if err != nil || !more {
			return err
		}
		h.First = seq
	}
}

func (o Options) disk() Disk {
	if o.Disk != nil {
		return o.Disk
	}
	return OS
}

func (o Options) segmentSize() int64 { return positive(o.SegmentSize, defaultSegmentSize) }

// positive returns the option, or the default for one that is not set.
func positive(option, standard int64) int64 {
	if option > 0 {
		return option
	}
	return standard
}

// Open returns a handle on the journal in the team's folder dir, or [journal.ErrNotFound]. In a
// folder that cannot be written the handle can read, and Append returns the reason.
func Open(dir string, opts Options) (*Journal, error) {
	j := newHandle(dir, opts)
	if err := j.openFiles(); err != nil {
		j.closeFiles()
		return nil, err
	}
	return j, nil
}

func newHandle(dir string, opts Options) *Journal {
	folder := filepath.Join(dir, journalFolder)
	return &Journal{opts: opts, disk: opts.disk(), root: dir, dir: folder, team: filepath.Base(dir),
		closed: make(chan struct{}), watch: watch{dir: folder}}
}

func (j *Journal) openFiles() error {
	if err := j.openLocks(); err != nil {
		return err
	}
	// Read the marker first. The records up to its seq are then in the segments.
	if said, err := j.marker.load(); err == nil || err == errUnbound {
		j.floor.Store(said.seq)
		j.id = said.journal // from here on, a segment of another journal is damage
	}
	firsts, err := listSegments(j.disk, j.dir)
	if err != nil {
		return err
	}
	if len(firsts) == 0 {
		return &journal.DamageError{Team: j.team, Segment: j.dir, Reason: "the journal has no segment"}
	}
	j.active, err = j.openSegment(firsts[len(firsts)-1])
	if err != nil {
		return err
	}
	j.id = j.active.Team
	j.marker.id = j.id
	return nil
}

// ID returns the id that the journal was created with.
func (j *Journal) ID() string { return j.id }

// openLocks opens the lock files and the marker.
func (j *Journal) openLocks() error {
	if _, err := j.disk.ID(j.dir); isMissing(err) {
		return fmt.Errorf("%w: %s", journal.ErrNotFound, j.dir)
	} else if err != nil {
		return err
	}
	lock, err := j.openHelper(lockName)
	if err != nil {
		return err
	}
	j.writes = newFileLock(j, lock, "waited to append")
	if lock != nil {
		if j.lockID, err = lock.ID(); err != nil {
			return err
		}
	}
	if j.marker.f, err = j.openHelper(markerName); err != nil {
		return err
	}
	j.syncs = newFileLock(j, j.marker.f, "waited to sync")
	snap, err := j.openHelper(snapshotLockName)
	if err != nil {
		return err
	}
	j.snapshots = newFileLock(j, snap, "waited to save a snapshot")
	return nil
}

// openHelper opens a lock file or the marker, and creates it if it does not exist. If the folder
// cannot be written, the handle is read-only, and the file may be nil.
func (j *Journal) openHelper(name string) (File, error) {
	path := filepath.Join(j.dir, name)
	f, err := j.disk.Open(path, os.O_RDWR|os.O_CREATE)
	if regularfile.Is(err) {
		return nil, damagedFile(j.team, path, err)
	}
	if !errors.Is(err, fs.ErrPermission) && !isReadOnly(err) {
		return f, err
	}
	if j.writable == nil {
		j.writable = fmt.Errorf("the journal can be read but not written: %w", err)
	}
	f, err = j.disk.Open(path, os.O_RDONLY)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return f, err
}

func damagedFile(team, path string, err error) error {
	return &journal.DamageError{Team: team, Segment: path, Reason: err.Error()}
}

func isReadOnly(err error) bool { return errors.Is(err, syscall.EROFS) }
func isMissing(err error) bool  { return errors.Is(err, fs.ErrNotExist) }
func isThere(err error) bool    { return errors.Is(err, fs.ErrExist) }

// Close implements [journal.Journal].
func (j *Journal) Close() error {
	j.mu.Lock()
	if j.shut {
		j.mu.Unlock()
		return nil
	}
	j.shut = true
	j.mu.Unlock()
	close(j.closed)
	j.watch.stop()
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.users == 0 {
		j.closeFiles()
	}
	return nil
}

// enter begins a call; leave ends it.
func (j *Journal) enter() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.shut {
		return fmt.Errorf("the journal of %s: %w", j.team, os.ErrClosed)
	}
	j.users++
	return nil
}

// hold keeps the files open after the current call, until leave is called once more.
func (j *Journal) hold() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.users++
}

func (j *Journal) leave() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.users--
	if j.shut && j.users == 0 {
		j.closeFiles()
	}
}

func (j *Journal) closeFiles() {
	for _, l := range []*fileLock{j.writes, j.syncs, j.snapshots} {
		if l != nil && l.f != nil {
			l.f.Close()
		}
	}
	if j.active != nil {
		j.active.f.Close()
	}
}

// ended returns the reason why a call must end now, or nil.
func (j *Journal) ended(ctx context.Context) error {
	select {
	case <-j.closed:
		return fmt.Errorf("the journal of %s: %w", j.team, os.ErrClosed)
	default:
		return ctx.Err()
	}
}

// adopt takes ownership of a newly opened segment and returns a reference for the caller. A segment
// newer than the active one replaces it.
func (j *Journal) adopt(seg *segment) *segment {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.shut || seg.First <= j.active.First {
		return seg
	}
	j.unref(j.active)
	j.active = seg
	seg.refs++
	return seg
}

func (j *Journal) release(seg *segment) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.unref(seg)
}

func (j *Journal) unref(seg *segment) {
	if seg.refs--; seg.refs == 0 {
		seg.f.Close()
	}
}

func (j *Journal) remember(c cursor) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.places.add(c)
	if c.seq > j.newest.seq || c.first > j.newest.first {
		j.unsaved += c.off
		if c.first == j.newest.first {
			j.unsaved -= j.newest.off
		}
		j.newest = c
	}
}

// gone returns [journal.ErrGone] if the journal at the path is not the one this handle has open.
// The lock file is kept open, so its inode number cannot be reused.
func (j *Journal) gone() error {
	id, err := j.disk.ID(filepath.Join(j.dir, lockName))
	if isMissing(err) || errors.Is(err, syscall.ENOTDIR) || (err == nil && id != j.lockID) {
		return fmt.Errorf("%w: %s", journal.ErrGone, j.dir)
	}
	return err
}

func (j *Journal) report(format string, args ...any) {
	if j.opts.Report != nil {
		j.opts.Report(fmt.Sprintf(format, args...))
	}
}

func (j *Journal) step(name string) {
	if j.opts.Step != nil {
		j.opts.Step(name)
	}
}
