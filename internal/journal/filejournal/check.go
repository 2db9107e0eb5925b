package filejournal

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"cadre/internal/journal"
)

// Health is what [Check] found.
type Health struct {
	Team     string
	Segments int
	Last     int64   // the record up to which the history is whole
	Known    int64   // the last record there is any trace of; greater than Last where records are lost
	Durable  int64   // what the marker says, 0 where it cannot be read
	Snapshot int64   // the seq of the snapshot, 0 where there is none that can be read
	Holes    []Range // lost earlier, and mended
	// how the marker and all segments differ in whose they are; "" where they do not, and [Mend]
	// can help
	Swapped  string
	Problems []Problem
	Torn     []Problem // behind the history: never acknowledged, cut by the next writer, no problem
}

// Problem is one thing wrong with a journal.
type Problem struct {
	File   string
	Line   int   // from 1, 0 where the file as a whole is meant
	Seq    int64 // the record that is due there, 0 where none is
	Reason string
}

func (p Problem) String() string {
	s := p.File
	if p.Line > 0 {
		s += fmt.Sprintf(", line %d", p.Line)
	}
	if p.Seq > 0 {
		s += fmt.Sprintf(", record %d", p.Seq)
	}
	return s + ": " + p.Reason
}

// Check reads everything of the journal in the team's folder dir and lists every problem. It takes
// no lock and changes nothing; while others append it may take the newest line for torn.
func Check(dir string) (Health, error) {
	return check(OS, dir)
}

func check(d Disk, dir string) (Health, error) {
	s, err := survey(d, dir)
	if err != nil {
		return Health{}, err
	}
	return s.health, nil
}

// surveyed is a journal as it is found, damaged or not.
type surveyed struct {
	disk     Disk
	dir      string // the journal's folder
	root     string // the team's
	markerOK bool
	marked   string // the id of the journal that the marker is of; "" where it does not say
	segments []*surveyedSegment
	id       string // of the journal
	snapshot bool   // there is a good one; its seq is in health
	health   Health
}

type surveyedSegment struct {
	header
	path   string
	runs   []run
	sealed bool
	clean  bool // nothing in it is wrong
	file   bool // it is a regular file
}

// run is an unbroken sequence of good records in one segment: the bytes from off to end.
type run struct {
	Range
	off, end int64
}

func survey(d Disk, dir string) (*surveyed, error) {
	s := &surveyed{disk: d, root: dir, dir: filepath.Join(dir, journalFolder)}
	s.health.Team = filepath.Base(dir)
	// The marker first: what it vouches for is then found in the segments.
	if err := s.readMarker(); err != nil {
		return nil, err
	}
	firsts, err := listSegments(d, s.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: %s", journal.ErrNotFound, s.dir)
	}
	if err != nil {
		return nil, err
	}
	s.health.Segments = len(firsts)
	for _, name := range []string{lockName, snapshotLockName} {
		path := filepath.Join(s.dir, name)
		f, err := d.Open(path, os.O_RDONLY)
		if err == nil {
			f.Close()
		}
		if notAFile(err) {
			s.problem(path, 0, 0, "%v", err)
		}
	}
	for i, first := range firsts {
		if err := s.readSegment(first, i == len(firsts)-1); err != nil {
			return nil, err
		}
	}
	s.expel()
	s.judge()
	return s, s.readSnapshot()
}

func (s *surveyed) problem(file string, line int, seq int64, format string, args ...any) {
	s.health.Problems = append(s.health.Problems, Problem{file, line, seq, fmt.Sprintf(format, args...)})
}

func (s *surveyed) readMarker() error {
	path := filepath.Join(s.dir, markerName)
	f, err := s.disk.Open(path, os.O_RDONLY)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if notAFile(err) {
		s.problem(path, 0, 0, "%v", err)
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	said, err := marker{f: f}.load()
	if err != nil {
		line := 1
		if err == errUnbound {
			line = 2
		}
		s.problem(path, line, 0, "%v", err)
	}
	s.markerOK = err != errNoMarker
	s.health.Durable, s.marked = said.seq, said.journal
	return nil
}

// readSegment finds every good record of a segment, on both sides of what is bad.
func (s *surveyed) readSegment(first int64, last bool) error {
	seg := &surveyedSegment{header: header{First: first}, path: filepath.Join(s.dir, segmentName(first)), clean: true}
	s.segments = append(s.segments, seg)
	f, err := s.disk.Open(seg.path, os.O_RDONLY)
	if notAFile(err) {
		seg.clean = false
		s.problem(seg.path, 0, first, "%v", err)
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	seg.file = true
	wrong := func(line int, due int64, reason string, args ...any) {
		p := Problem{seg.path, line, due, fmt.Sprintf(reason, args...)}
		if last && line > 1 {
			s.health.Torn = append(s.health.Torn, p) // until judge knows better
		} else {
			s.health.Problems = append(s.health.Problems, p)
		}
		seg.clean = false
	}
	due := first
	in := bufio.NewReaderSize(whole(f), 16<<10)
	for off, number := int64(0), 1; ; number++ {
		line, err := in.ReadBytes('\n')
		if err != nil && err != io.EOF {
			return err
		}
		if err == io.EOF {
			if number == 1 {
				wrong(1, 0, "the header has no end")
			} else if len(line) > 0 {
				wrong(number, due, "the line is cut off")
			}
			return nil
		}
		begin := off
		off += int64(len(line))
		fr, bad := parseLine(line[:len(line)-1])
		switch key := string(fr.key); {
		case bad != "":
			wrong(number, due, "%s", bad)
			if number > 1 {
				due++ // one record a line: the next is the one after
			}
		case key == keyHeader && number == 1:
			if fr.n > version {
				return newer(seg.path, fr.n)
			}
			if err := json.Unmarshal(line, &seg.header); err != nil || seg.First != first {
				wrong(1, 0, "the header is that of another segment")
				seg.header.First, seg.Hole = first, nil
			}
			if seg.Hole != nil {
				due = seg.Hole.To + 1
			}
		case key == keyRecord && bytes.HasPrefix(fr.rest, dataField):
			if fr.n != due {
				wrong(number, due, "it has seq %d where %d is due", fr.n, due)
			}
			if n := len(seg.runs); n > 0 && seg.runs[n-1].To == fr.n-1 && seg.runs[n-1].end == begin {
				seg.runs[n-1].To, seg.runs[n-1].end = fr.n, off
			} else {
				seg.runs = append(seg.runs, run{Range{fr.n, fr.n}, begin, off})
			}
			due = fr.n + 1
		case key == keySeal:
			if seg.sealed = fr.n == due-1 && fr.n >= first; !seg.sealed {
				wrong(number, due, "it is sealed at %d", fr.n)
			}
		default:
			wrong(number, due, "a line %q is out of place here", fr.key)
		}
	}
}

// expel leaves out the segments of other journals. This one is that of the marker, where that says
// so. A marker of an older version does not: then it is that of the id which begins with the
// folder's name, or is it; else that of most segments, and of as many that of the first, which has
// the team's beginning.
func (s *surveyed) expel() {
	const named = 1 << 32 // more than there are segments
	weight := map[string]int{}
	for _, seg := range s.segments {
		if seg.Team == "" {
			continue
		}
		weight[seg.Team]++
		if base := filepath.Base(s.root); seg.Team == base || strings.HasPrefix(seg.Team, base+"-") {
			weight[seg.Team] += named
		}
	}
	for _, seg := range s.segments {
		if weight[seg.Team] > weight[s.id] {
			s.id = seg.Team
		}
	}
	if s.marked != "" {
		if s.id != "" && weight[s.marked] == 0 {
			s.health.Swapped = fmt.Sprintf("the marker %s is of the journal %q, and the segments beside it are of %q",
				filepath.Join(s.dir, markerName), s.marked, s.id)
		}
		s.id = s.marked
	}
	for _, seg := range s.segments {
		if seg.Team == "" || seg.Team == s.id {
			continue
		}
		s.problem(seg.path, 1, 0, "it is a segment of the journal %q, and its marker or its other segments are of %q",
			seg.Team, s.id)
		seg.runs, seg.Hole, seg.sealed, seg.clean = nil, nil, false, false
	}
}

// judge puts the segments' findings together: how far the history is whole, what is known to be
// lost, and whether what is wrong at its end was never acknowledged.
func (s *surveyed) judge() {
	h := &s.health
	var next int64 = 1 // the seq due in the next segment
	for i, seg := range s.segments {
		if seg.First != next {
			s.problem(seg.path, 0, next, "it begins with record %d where %d is due", seg.First, next)
		}
		next = max(next, seg.First)
		if seg.Hole != nil {
			h.Holes = append(h.Holes, *seg.Hole)
			next = max(next, seg.Hole.To+1)
		}
		for _, r := range seg.runs {
			next = max(next, r.To+1)
		}
		if !seg.sealed && i < len(s.segments)-1 && seg.clean {
			s.problem(seg.path, 0, 0, "it has no seal and there is a segment after it")
			seg.clean = false
		}
	}
	kept := s.keep(0, nil)
	if n := len(kept); n > 0 {
		h.Last = kept[n-1].To
	}
	for _, hole := range h.Holes {
		if hole.From == h.Last+1 { // nothing came after it yet
			h.Last = hole.To
		}
	}
	h.Known = max(h.Durable, h.Last)
	for _, seg := range s.segments {
		for _, r := range seg.runs {
			h.Known = max(h.Known, r.To)
		}
	}
	if len(s.segments) == 0 {
		s.problem(s.dir, 0, 1, "there is no segment")
	} else if h.Last < h.Durable {
		s.problem(s.segments[len(s.segments)-1].path, 0, h.Last+1, "the history is whole up to record %d, and the "+
			"records up to %d were acknowledged", h.Last, h.Durable)
	}
	// What is wrong behind the history is torn if nothing of it was acknowledged: the marker says
	// so or, without it, it is no more than the beginning of a line. There may be good records in
	// what is torn: the power was lost before any of it was synced.
	partial := len(h.Torn) == 1 && h.Torn[0].Reason == "the line is cut off"
	switch {
	case len(h.Torn) == 0:
	case h.Durable > h.Last || h.Torn[0].Seq <= h.Last || !(s.markerOK || partial):
		h.Problems, h.Torn = append(h.Problems, h.Torn...), nil
	default:
		h.Known = h.Last
	}
}

// keptRun is a run with the segment it comes from.
type keptRun struct {
	run
	from *surveyedSegment
}

// keep returns the runs that together make the longest unbroken history after the record seq, going
// over the holes of earlier mends.
func (s *surveyed) keep(seq int64, kept []keptRun) []keptRun {
	for _, seg := range s.segments {
		if seg.Hole != nil && seg.Hole.From == seq+1 {
			seq = seg.Hole.To
		}
		for _, r := range seg.runs {
			if r.From <= seq+1 && r.To > seq {
				if r.From <= seq { // begins within the run
					r = r.after(s.disk, seq, seg.path)
				}
				kept = append(kept, keptRun{r, seg})
				seq = r.To
			}
		}
	}
	return kept
}

// after cuts the records up to seq off the front of a run. It was read before, so errors cannot be
// told from its end.
func (r run) after(d Disk, seq int64, path string) run {
	f, err := d.Open(path, os.O_RDONLY)
	if err != nil {
		return r
	}
	defer f.Close()
	for in := bufio.NewReader(io.NewSectionReader(f, r.off, r.end-r.off)); r.From <= seq; r.From++ {
		line, err := in.ReadBytes('\n')
		if err != nil {
			break
		}
		r.off += int64(len(line))
	}
	return r
}

func (s *surveyed) readSnapshot() error {
	path := filepath.Join(s.root, snapshotName)
	h, _, v, bad, err := readSnapshot(s.disk, path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if notAFile(err) {
		bad, err = err.Error(), nil
	}
	if bad == "" {
		bad = h.foreign(s.id)
	}
	if err != nil {
		return err
	}
	switch {
	case v > 0:
		return newer(path, v)
	case bad != "":
		s.problem(path, 1, 0, "the snapshot cannot be read: %s", bad)
		return nil
	case h.seq > s.health.Known:
		s.problem(path, 1, 0, "it is the state after record %d, and the journal ends with %d", h.seq, s.health.Last)
	}
	s.snapshot, s.health.Snapshot = true, h.seq
	s.health.Known = max(s.health.Known, h.seq)
	return nil
}
