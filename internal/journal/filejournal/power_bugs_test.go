package filejournal_test

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"cadre/internal/journal/filejournal"
)

// lie is a simulated bug between a journal and its disk: the disk receives something else than the
// journal requested.
type lie struct {
	name string
	wrap func(filejournal.Disk) filejournal.Disk // called for each process
	when when
}

// when selects the histories in which a bug is active.
type when int

const (
	always   when = iota
	founding      // in the process that creates the journal
	later         // in all other processes
	bySector      // in all, with records that fill a sector, so that the rest of one can follow another
)

func (l lie) to(d filejournal.Disk) filejournal.Disk {
	if l.wrap == nil {
		return d
	}
	return l.wrap(d)
}

// bugs are mistakes that a journal could make. TestPowerFindsBugs finds each of them.
var bugs = []lie{
	{"a record is acknowledged before the sync", files(segments, bentFile{sync: skip}), always},
	{"the marker is written before the sync", func(d filejournal.Disk) filejournal.Disk {
		return bentDisk{Disk: d, which: segments, file: bentFile{sync: func(f filejournal.File) error {
			markFirst(d, f)
			return f.SyncData()
		}}}
	}, always},
	{"the marker is ahead by one", files(named("durable"),
		bentFile{write: func(f filejournal.File, b []byte, off int64) (int, error) {
			return f.WriteAt(filejournal.FormatMarker("", filejournal.ParseMarker(b)+1), off)
		}}), always},
	{"a new journal's folders are not synced", folders(func(filejournal.Disk, string, string) error { return nil }),
		founding},
	{"a folder is not synced after a rename", folders(func(filejournal.Disk, string, string) error { return nil }),
		later},
	{"the snapshot's folder is not synced", folders(func(d filejournal.Disk, dir, _ string) error {
		if dir == teamDir {
			return nil
		}
		return d.SyncFolder(dir)
	}), later},
	{"only a segment's creator syncs its name", folders(func(d filejournal.Disk, dir, before string) error {
		if before != "rename" {
			return nil
		}
		return d.SyncFolder(dir)
	}), later},
	{"the seal is not synced before there is a successor",
		files(segments, bentFile{sync: func(f filejournal.File) error {
			if strings.HasPrefix(lastLine(f), `{"seal"`) {
				return nil
			}
			return f.SyncData()
		}}), always},
	{"a torn tail is not cut", files(segments, bentFile{truncate: func(filejournal.File, int64) error { return nil }}),
		always},
	{"a cut is not synced before something is written there",
		files(segments, bentFile{truncate: func(f filejournal.File, size int64) error {
			return f.Truncate(size)
		}, skipAfterTruncate: true}), bySector},
	{"a snapshot is renamed before its content is synced", files(named("state.json.tmp"),
		bentFile{sync: skip}), always},
	{"a segment is renamed before its content is synced", files(named(".jsonl.tmp"), bentFile{sync: skip}), always},
	{"a sync that failed is ignored", files(segments, bentFile{sync: func(f filejournal.File) error {
		_ = f.SyncData()
		return nil
	}}), always},
	{"a sync that failed is tried again", files(segments, bentFile{sync: func(f filejournal.File) error {
		if f.SyncData() == nil {
			return nil
		}
		return f.SyncData()
	}}), always},
	{"records of others are synced and not rewritten",
		files(segments, bentFile{write: func(f filejournal.File, b []byte, off int64) (int, error) {
			there := make([]byte, len(b))
			if n, _ := f.ReadAt(there, off); n == len(b) && bytes.Equal(there, b) {
				return n, nil
			}
			return f.WriteAt(b, off)
		}}), always},
	{"a write that was cut short is taken for whole",
		files(segments, bentFile{write: func(f filejournal.File, b []byte, off int64) (int, error) {
			_, _ = f.WriteAt(b, off)
			return len(b), nil
		}}), always},
	{"writers do not exclude each other", files(named("/lock"),
		bentFile{flock: func(filejournal.File, int) error { return nil }}), always},
}

// harmless are bugs that a journal must tolerate: an old marker covers too few records, but that is
// all.
var harmless = []lie{
	{"the marker is never synced", files(named("durable"), bentFile{sync: skip}), always},
	{"the marker is never written", files(named("durable"),
		bentFile{write: func(_ filejournal.File, b []byte, _ int64) (int, error) { return len(b), nil }}), always},
	{"syncs do not exclude each other, and the marker goes back",
		files(named("durable"), bentFile{flock: func(filejournal.File, int) error { return nil }}), always},
}

// TestPowerFindsBugs plays histories with each of the bugs, until one history detects it.
func TestPowerFindsBugs(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("some bugs take thousands of histories")
	}
	const most = 20_000
	for _, bug := range bugs {
		t.Run(bug.name, func(t *testing.T) {
			for seed := uint64(1); seed <= most; seed++ {
				if h := play(t, seed, bug); h.wrong != nil {
					t.Logf("by history %d: %v", seed, h.wrong)
					return
				}
			}
			t.Errorf("not found in %d histories", most)
		})
	}
}

// TestPowerOldMarker has the power loss leave the oldest possible marker. It is not reported as
// damage, and nothing is lost.
func TestPowerOldMarker(t *testing.T) {
	t.Parallel()
	histories := uint64(200)
	if testing.Short() {
		histories = 40
	}
	for _, lie := range harmless {
		t.Run(lie.name, func(t *testing.T) {
			for seed := range histories {
				if h := play(t, seed, lie); h.wrong != nil {
					report(t, h, seed, lie)
					return
				}
			}
		})
	}
}

// bentDisk is a disk with one bug.
type bentDisk struct {
	filejournal.Disk
	which      func(path string) bool
	file       bentFile
	syncFolder func(d filejournal.Disk, dir, before string) error
	before     *string // the last operation
}

func files(which func(string) bool, f bentFile) func(filejournal.Disk) filejournal.Disk {
	return func(d filejournal.Disk) filejournal.Disk { return bentDisk{Disk: d, which: which, file: f} }
}

func folders(sync func(d filejournal.Disk, dir, before string) error) func(filejournal.Disk) filejournal.Disk {
	return func(d filejournal.Disk) filejournal.Disk {
		return bentDisk{Disk: d, syncFolder: sync, before: new(string), which: func(string) bool { return false }}
	}
}

func segments(path string) bool { return strings.HasSuffix(path, ".jsonl") }

func named(end string) func(string) bool {
	return func(path string) bool { return strings.HasSuffix(path, end) }
}

func (b bentDisk) Open(path string, flags int) (filejournal.File, error) {
	f, err := b.Disk.Open(path, flags)
	if err != nil || !b.which(path) {
		return f, err
	}
	bent := b.file
	bent.File = f
	return &bent, nil
}

func (b bentDisk) Rename(from, to string) error {
	err := b.Disk.Rename(from, to)
	if b.before != nil {
		*b.before = "rename"
	}
	return err
}

func (b bentDisk) SyncFolder(dir string) error {
	if b.syncFolder == nil {
		return b.Disk.SyncFolder(dir)
	}
	defer func() { *b.before = "" }()
	return b.syncFolder(b.Disk, dir, *b.before)
}

// bentFile is a file with one bug.
type bentFile struct {
	filejournal.File
	sync              func(filejournal.File) error
	truncate          func(filejournal.File, int64) error
	write             func(filejournal.File, []byte, int64) (int, error)
	flock             func(filejournal.File, int) error
	skipAfterTruncate bool
	truncated         bool
}

func skip(filejournal.File) error { return nil }

func (b *bentFile) SyncData() error {
	if b.skipAfterTruncate && b.truncated {
		b.truncated = false
		return nil
	}
	if b.sync == nil {
		return b.File.SyncData()
	}
	return b.sync(b.File)
}

func (b *bentFile) Sync() error { return b.SyncData() }

func (b *bentFile) Truncate(size int64) error {
	b.truncated = true
	if b.truncate == nil {
		return b.File.Truncate(size)
	}
	return b.truncate(b.File, size)
}

func (b *bentFile) WriteAt(p []byte, off int64) (int, error) {
	b.truncated = false
	if b.write == nil {
		return b.File.WriteAt(p, off)
	}
	return b.write(b.File, p, off)
}

func (b *bentFile) Flock(how int) error {
	if b.flock == nil || how == unix.LOCK_UN {
		return b.File.Flock(how)
	}
	return b.flock(b.File, how)
}

// lastLine returns the last complete line of a file.
func lastLine(f filejournal.File) string {
	size, _ := f.Size()
	b := make([]byte, size)
	n, _ := f.ReadAt(b, 0)
	whole := b[:bytes.LastIndexByte(b[:n], '\n')+1]
	whole = bytes.TrimSuffix(whole, []byte("\n"))
	return string(whole[bytes.LastIndexByte(whole, '\n')+1:])
}

// markFirst writes the marker for the content of a segment.
func markFirst(d filejournal.Disk, segment filejournal.File) {
	key, n, _, bad := filejournal.ParseParts([]byte(lastLine(segment)))
	if bad != "" || key == filejournal.KeyHeader {
		return
	}
	m, err := d.Open(filepath.Join(filepath.Dir(segment.Name()), "durable"), unix.O_RDWR)
	if err != nil {
		return
	}
	defer m.Close()
	_, _ = m.WriteAt(filejournal.FormatMarker("", n), 0)
}
