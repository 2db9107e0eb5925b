package filejournal

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"cadre/internal/sys/regularfile"
)

// ErrSwapped reports files of another journal in a team's folder.
var ErrSwapped = errors.New("the files belong to different journals; nothing was changed")

// Mended is the result of [Mend].
type Mended struct {
	Last int64 // the last record of the mended journal
	// Hole is the range of records removed from the history, nil for none. The snapshot includes
	// their effect, so the state has lost nothing.
	Hole  *Range
	Lost  *Range   // records at the end whose effect is lost as well
	Aside []string // the originals of changed and dropped files
}

// Mend repairs a damaged journal, so that it opens and appends again. It deletes nothing: the
// original of each changed file is renamed to <name>.damaged-<n>, so people can still recover data
// from it.
//
// It keeps as much as possible. Without a snapshot beyond the damage, it keeps the history up to
// the first unreadable record. With such a snapshot, the state needs no record up to the
// snapshot's. The history then consists of the records up to the damage, a hole up to the snapshot,
// and the readable records after it. The header of the segment after the hole records it. A reader
// that starts from the snapshot loses nothing; a reader that would have to cross the hole gets an
// error.
//
// Handles that were open meanwhile get [journal.ErrGone]. An interrupted mend leaves a journal that
// is still damaged and can be mended again. A journal without problems is not changed.
//
// If the marker and the segments belong to different journals, it is unknown which of them belong
// to the team. Mend then changes nothing and returns [ErrSwapped].
func Mend(ctx context.Context, dir string) (Mended, error) {
	return mend(ctx, OS, dir)
}

func mend(ctx context.Context, d Disk, dir string) (Mended, error) {
	if s, err := survey(d, dir); err != nil { // before any change, and again under the locks
		return Mended{}, err
	} else if s.health.Swapped != "" {
		return Mended{}, fmt.Errorf("%w: %s", ErrSwapped, s.health.Swapped)
	}
	j := newHandle(dir, Options{Disk: d})
	defer j.closeFiles()
	aside, err := clearHelpers(d, j.dir)
	if err != nil {
		return Mended{}, err
	}
	if err := j.openLocks(); err != nil {
		return Mended{}, err
	}
	if j.writable != nil {
		return Mended{}, j.writable
	}
	for _, l := range []*fileLock{j.writes, j.syncs, j.snapshots} {
		if err := l.lock(ctx); err != nil {
			return Mended{}, err
		}
		defer l.unlock()
	}
	if err := j.gone(); err != nil {
		return Mended{}, err
	}
	s, err := survey(d, dir)
	if err != nil {
		return Mended{}, err
	}
	if s.health.Swapped != "" {
		return Mended{}, fmt.Errorf("%w: %s", ErrSwapped, s.health.Swapped)
	}
	m := &mender{surveyed: s, ctx: ctx}
	m.done.Last, m.done.Aside = s.health.Last, aside
	if len(s.health.Problems) == 0 {
		return m.done, nil
	}
	return m.done, m.mend()
}

type mender struct {
	*surveyed
	ctx  context.Context
	plan []planned
	done Mended
}

// planned is a segment of the mended journal.
type planned struct {
	header
	runs []keptRun
}

func (m *mender) mend() error {
	m.makePlan()
	for i := len(m.plan) - 1; i >= 0; i-- { // from the end, so that an interruption does not lose kept records
		if err := m.ctx.Err(); err != nil {
			return err
		}
		if err := m.write(m.plan[i], i == len(m.plan)-1); err != nil {
			return err
		}
	}
	for _, seg := range m.segments {
		if !m.planned(seg.First) {
			if err := m.setAside(seg.path, m.disk.Rename); err != nil {
				return err
			}
		}
	}
	path := filepath.Join(m.root, snapshotName)
	if _, err := m.disk.ID(path); err == nil && (!m.snapshot || m.health.Snapshot > m.done.Last) {
		if err := m.setAside(path, m.disk.Rename); err != nil {
			return err
		}
		if err := m.disk.SyncFolder(m.root); err != nil {
			return err
		}
	}
	if err := dropKeyframes(m.disk, m.dir, m.done.Last); err != nil {
		return err
	}
	// Write the marker after the records that it covers. Replace the lock file last: a new lock
	// file tells open handles that their files are outdated.
	err := replaceFile(m.disk, m.dir, markerName, func(w io.Writer) error {
		_, err := w.Write(formatMarker(m.id, m.done.Last))
		return err
	}, nil)
	if err != nil {
		return err
	}
	return replaceFile(m.disk, m.dir, lockName, func(io.Writer) error { return nil }, nil)
}

// makePlan decides the content of the mended journal.
func (m *mender) makePlan() {
	last := m.health.Last
	m.lay(1, m.keep(0, nil))
	m.done.Last = last
	if m.snapshot && m.health.Snapshot > last {
		hole := Range{last + 1, m.health.Snapshot}
		m.done.Hole = &hole
		after := m.keep(hole.To, nil)
		m.plan = append(m.plan, planned{header: header{Team: m.id, First: hole.From, Hole: &hole}})
		m.done.Last = hole.To
		if n := len(after); n > 0 {
			m.done.Last = after[n-1].To
		}
		m.lay(hole.To+1, after)
	}
	if m.health.Known > m.done.Last {
		m.done.Lost = &Range{m.done.Last + 1, m.health.Known}
	}
	if len(m.plan) == 0 {
		m.plan = []planned{{header: header{Team: m.id, First: 1}}}
	}
}

// lay distributes runs over segments as they were before.
func (m *mender) lay(next int64, runs []keptRun) {
	var from *surveyedSegment
	for _, r := range runs {
		opened := len(m.plan) > 0 && m.plan[len(m.plan)-1].runs == nil // the segment of a hole takes the first runs
		if r.From > next {
			hole := Range{next, r.From - 1} // from an earlier mend
			m.plan = append(m.plan, planned{header: header{Team: m.id, First: next, Hole: &hole}})
		} else if r.from != from && !opened {
			m.plan = append(m.plan, planned{header: header{Team: m.id, First: next}})
		}
		last := &m.plan[len(m.plan)-1]
		last.runs = append(last.runs, r)
		from, next = r.from, r.To+1
	}
	for _, seg := range m.segments { // a segment or an earlier hole that has no records yet
		if seg.First == next && len(seg.runs) == 0 && seg.Hole != nil {
			m.plan = append(m.plan, planned{header: seg.header})
		}
	}
}

func (m *mender) planned(first int64) bool {
	for _, p := range m.plan {
		if p.First == first {
			return true
		}
	}
	return false
}

// write writes a planned segment, unless the existing file is already as planned.
func (m *mender) write(p planned, last bool) error {
	path := filepath.Join(m.dir, segmentName(p.First))
	for _, seg := range m.segments {
		if seg.First != p.First {
			continue
		}
		whole := len(p.runs) == len(seg.runs) && len(seg.runs) <= 1 && (p.Hole == nil) == (seg.Hole == nil)
		if whole && len(p.runs) == 1 {
			whole = p.runs[0].run == seg.runs[0]
		}
		if whole && seg.clean && (last || seg.sealed) {
			return m.secure(path)
		}
		as := m.disk.Link
		if !seg.file {
			as = m.disk.Rename
		}
		if err := m.setAside(path, as); err != nil {
			return err
		}
		if err := m.disk.SyncFolder(m.dir); err != nil { // before the original name is reused
			return err
		}
	}
	return writeSegment(m.disk, m.dir, p.header, func(w io.Writer) error {
		end := p.First - 1
		if p.Hole != nil {
			end = p.Hole.To
		}
		for _, r := range p.runs {
			f, err := m.disk.Open(r.from.path, os.O_RDONLY)
			if err != nil {
				return err
			}
			_, err = io.Copy(w, io.NewSectionReader(f, r.off, r.end-r.off))
			if err = errors.Join(err, f.Close()); err != nil {
				return err
			}
			end = r.To
		}
		if last {
			return nil
		}
		_, err := w.Write(appendLine(nil, keySeal, end))
		return err
	})
}

// secure makes an intact file durable, because its writer may have died before the sync.
func (m *mender) secure(path string) error {
	f, err := m.disk.Open(path, os.O_RDWR)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.NewOffsetWriter(f, 0), whole(f))
	return errors.Join(err, f.SyncData(), f.Close())
}

func (m *mender) setAside(path string, as func(from, to string) error) error {
	name, err := setAside(m.disk, path, as)
	if err == nil {
		m.done.Aside = append(m.done.Aside, name)
	}
	return err
}

// setAside gives a file a new name and returns it. With Link the file keeps its own name as well;
// with Rename it does not.
func setAside(d Disk, path string, as func(from, to string) error) (name string, err error) {
	for n := 1; ; n++ {
		name = fmt.Sprintf("%s.damaged-%d", path, n)
		if _, err := d.ID(name); err == nil {
			continue
		} else if !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
		return name, as(path, name)
	}
}

// clearHelpers sets aside anything that is in place of a lock file or the marker and is not a
// regular file. Then the file can be created again. No process can hold a lock on it.
func clearHelpers(d Disk, dir string) (aside []string, err error) {
	for _, helper := range []string{lockName, markerName, snapshotLockName} {
		path := filepath.Join(dir, helper)
		f, err := d.Open(path, os.O_RDONLY)
		if err == nil {
			f.Close()
		}
		if !regularfile.Is(err) {
			continue
		}
		name, err := setAside(d, path, d.Rename)
		if err != nil {
			return aside, err
		}
		aside = append(aside, name)
	}
	return aside, nil
}
