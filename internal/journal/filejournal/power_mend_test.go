package filejournal_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"cadre/internal/journal"
	"cadre/internal/journal/filejournal"
	"cadre/internal/journal/filejournal/disktest"
	"cadre/internal/journal/journaltest"
)

// spoiled is a journal on a simulated disk with one acknowledged but unreadable record.
type spoiled struct {
	disk     *disktest.Disk
	last     int64 // the last acknowledged record
	snapshot int64
	bad      int64
	line     []byte // the rest of its line
}

func newSpoiled(t *testing.T, seed uint64) *spoiled {
	chance := rand.New(rand.NewPCG(seed, 1))
	s := &spoiled{disk: disktest.New(), last: 1 + chance.Int64N(8)}
	s.snapshot = chance.Int64N(s.last + 1)
	s.bad = 1 + chance.Int64N(s.last)
	p := s.disk.Process("writer")
	opts := filejournal.Options{Disk: p, SegmentSize: 150 + chance.Int64N(400)}
	if err := filejournal.Create(teamDir, "team", nil, opts); err != nil {
		t.Fatal(err)
	}
	j, err := filejournal.Open(teamDir, opts)
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	for seq := range s.last {
		if _, err := journaltest.Add(t.Context(), j, seq, fmt.Sprintf(`"r%d"`, seq+1)); err != nil {
			t.Fatal(err)
		}
	}
	if s.snapshot > 0 {
		if err := j.SaveSnapshot(t.Context(), journal.Snapshot{Seq: s.snapshot,
			Data: fmt.Sprintf("%d", s.snapshot)}.Taken); err != nil {
			t.Fatal(err)
		}
	}
	if chance.IntN(2) == 1 { // one more record, whose writer dies before syncing it
		s.disk.Before = func(op *disktest.Op) disktest.Fault {
			if op.Kind == disktest.Sync {
				p.Kill()
			}
			return disktest.Fault{}
		}
		if _, err := journaltest.Add(t.Context(), j, s.last, `"unsynced"`); !errors.Is(err, disktest.ErrKilled) {
			t.Fatal(err)
		}
		s.disk.Before = nil
	}
	word := fmt.Appendf(nil, `"r%d"`, s.bad)
	for path, b := range s.files(t) {
		if at := bytes.Index(b, word); at >= 0 && filepath.Ext(path) == ".jsonl" {
			s.disk.Spoil(path, int64(at+1))
			s.line = bytes.Clone(b[at:])[:len(word)]
			s.line[1] ^= 1
		}
	}
	return s
}

// files returns the files in the journal's folder.
func (s *spoiled) files(t *testing.T) map[string][]byte {
	all := map[string][]byte{}
	dir := filepath.Join(teamDir, "journal")
	names, err := s.disk.Process("lister").List(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if all[filepath.Join(dir, name)], err = s.disk.Read(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// check checks that the mended journal lost no more than necessary, and that the unreadable bytes
// are still in some file.
func (s *spoiled) check(t *testing.T, least int64) error {
	p := s.disk.Process("checker")
	h, err := filejournal.CheckOn(p, teamDir)
	if err != nil {
		return err
	}
	if len(h.Problems) > 0 {
		return fmt.Errorf("it is still damaged: %v", h.Problems)
	}
	if h.Last < least {
		return fmt.Errorf("it ends with record %d, and the mend said %d", h.Last, least)
	}
	j, err := filejournal.Open(teamDir, filejournal.Options{Disk: p})
	if err != nil {
		return err
	}
	defer j.Close()
	snapshot, err := j.Snapshot(t.Context())
	if err != nil {
		return err
	}
	if snapshot.Seq != s.snapshot {
		return fmt.Errorf("the snapshot is that of %d, not %d", snapshot.Seq, s.snapshot)
	}
	want, seq := s.bad-1, int64(0) // without a snapshot of its effect, the history ends before the bad record
	if s.snapshot >= s.bad {
		want, seq = s.last, s.snapshot
	}
	for r, err := range j.Read(t.Context(), seq) {
		if err != nil {
			return err
		}
		if seq++; r.Seq != seq || (seq <= s.last && string(r.Data) != fmt.Sprintf(`"r%d"`, seq)) {
			return fmt.Errorf("record %d is %s", r.Seq, r.Data)
		}
	}
	if seq < want {
		return fmt.Errorf("it ends with record %d, and there was no need to lose any before %d", seq, want)
	}
	if n, err := journaltest.Add(context.Background(), j, seq, `"more"`); err != nil || n != seq+1 {
		return fmt.Errorf("append: %d, %w", n, err)
	}
	for _, b := range s.files(t) {
		if bytes.Contains(b, s.line) {
			return nil
		}
	}
	return errors.New("what could not be read is not there any more")
}

// TestPowerMend loses the power at each step of a mend, and then mends again.
func TestPowerMend(t *testing.T) {
	t.Parallel()
	seeds := uint64(100)
	if testing.Short() {
		seeds = 20
	}
	if bug, err := mendAll(t, seeds, lie{}); err != nil {
		t.Errorf("%s: %v", bug, err)
	}
}

// mendBugs are mistakes that a mend could make.
var mendBugs = []lie{
	{"it syncs no folder", folders(func(filejournal.Disk, string, string) error { return nil }), always},
	{"it does not sync what it writes", files(named(".tmp"), bentFile{sync: skip}), always},
	{"it does not sync unchanged files", files(segments, bentFile{sync: skip}), always},
	{"it gives a name away before the other is safe", folders(func(d filejournal.Disk, dir, before string) error {
		if before != "rename" {
			return nil
		}
		return d.SyncFolder(dir)
	}), always},
}

func TestPowerMendFindsBugs(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("some bugs take many histories")
	}
	for _, bug := range mendBugs {
		if at, err := mendAll(t, 300, bug); err == nil {
			t.Errorf("%s: not found", bug.name)
		} else {
			t.Logf("%s: %s: %v", bug.name, at, err)
		}
	}
}

// mendAll mends many journals, each with a power loss at each step.
func mendAll(t *testing.T, seeds uint64, lie lie) (at string, err error) {
	for seed := range seeds {
		for step, more := 1, true; more; step++ {
			s := newSpoiled(t, seed)
			done := 0
			s.disk.Before = func(op *disktest.Op) disktest.Fault {
				if op.Kind.Changes() {
					if done++; done == step {
						s.disk.Off()
					}
				}
				return disktest.Fault{}
			}
			m, err := filejournal.MendOn(t.Context(), lie.to(s.disk.Process("mender")), teamDir)
			least := m.Last
			if more = errors.Is(err, disktest.ErrOff); more {
				err, least = nil, 0
			}
			if err == nil {
				s.disk = s.disk.LosePower(rand.New(rand.NewPCG(seed, uint64(step))).IntN)
				if more {
					_, err = filejournal.MendOn(t.Context(), lie.to(s.disk.Process("second mender")), teamDir)
				}
			}
			if err == nil {
				err = s.check(t, least)
			}
			if err != nil {
				return fmt.Sprintf("seed %d, a loss of power at step %d: record %d of %d, snapshot %d", seed, step,
					s.bad, s.last, s.snapshot), err
			}
		}
	}
	return "", nil
}
