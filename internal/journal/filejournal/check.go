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
	"cadre/internal/sys/regularfile"
)

// Health is the result of [Check].
type Health struct {
	Team     string
	Segments int
	Last     int64   // the record up to which the history is complete
	Known    int64   // the last record with any trace; greater than Last if records are lost
	Durable  int64   // the marker's seq, 0 if it cannot be read
	Snapshot int64   // the snapshot's seq, 0 if there is no readable one
	Holes    []Range // records lost earlier and replaced by a hole
	// Swapped says how the journal id of the marker differs from that of all segments. It is "" if
	// they agree. [Mend] can only help then.
	Swapped  string
	Problems []Problem
	Torn     []Problem // after the end of the history: never acknowledged, cut by the next writer, not a problem
}

// Problem is one defect of a journal.
type Problem struct {
	File   string
	Line   int   // from 1, 0 for the file as a whole
	Seq    int64 // the record expected there, 0 for none
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

// Check reads the whole journal in the team's folder dir and lists every problem. It takes no lock
// and changes nothing. While other processes append, it may report the newest line as torn.
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

// surveyed is the content of a journal, damaged or not.
type surveyed struct {
	disk     Disk
	dir      string // the journal's folder
	root     string // the team's
	markerOK bool
	marked   string // journal id in the marker; "" if it has none
	segments []*surveyedSegment
	id       string // of the journal
	snapshot bool   // there is a valid one; its seq is in health
	health   Health
}

type surveyedSegment struct {
	header
	path   string
	runs   []run
	sealed bool
	clean  bool // it has no defects
	file   bool // it is a regular file
}

// run is an unbroken sequence of valid records in one segment: the bytes from off to end.
type run struct {
	Range
	off, end int64
}

func survey(d Disk, dir string) (*surveyed, error) {
	s := &surveyed{disk: d, root: dir, dir: filepath.Join(dir, journalFolder)}
	s.health.Team = filepath.Base(dir)
	// Read the marker first. The records up to its seq are then in the segments.
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
		if regularfile.Is(err) {
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
	if regularfile.Is(err) {
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

// readSegment finds every valid record of a segment, before and after defects.
func (s *surveyed) readSegment(first int64, last bool) error {
	seg := &surveyedSegment{header: header{First: first}, path: filepath.Join(s.dir, segmentName(first)), clean: true}
	s.segments = append(s.segments, seg)
	f, err := s.disk.Open(seg.path, os.O_RDONLY)
	if regularfile.Is(err) {
		seg.clean = false
		s.problem(seg.path, 0, first, "%v", err)
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	seg.file = true
	r := segmentReader{surveyedSegment: seg, health: &s.health, first: first, last: last, due: first}
	in := bufio.NewReaderSize(whole(f), 16<<10)
	for {
		line, err := in.ReadBytes('\n')
		switch r.number++; {
		case err == io.EOF:
			r.end(line)
			return nil
		case err != nil:
			return err
		}
		if err := r.line(line); err != nil {
			return err
		}
		r.off += int64(len(line))
	}
}

// segmentReader examines the lines of a segment, one after the other.
type segmentReader struct {
	*surveyedSegment
	health *Health
	first  int64 // the segment is named after this seq
	last   bool  // it is the last segment
	number int   // of the present line, from 1
	off    int64 // where that line begins
	due    int64 // seq of the next record
}

// wrong records a defect of the present line. due is the record expected there, 0 for none.
func (r *segmentReader) wrong(due int64, reason string, args ...any) {
	p := Problem{r.path, r.number, due, fmt.Sprintf(reason, args...)}
	if r.last && r.number > 1 {
		r.health.Torn = append(r.health.Torn, p) // judge may reclassify it
	} else {
		r.health.Problems = append(r.health.Problems, p)
	}
	r.clean = false
}

// end examines what follows the last line break.
func (r *segmentReader) end(rest []byte) {
	if r.number == 1 {
		r.wrong(0, "the header has no end")
	} else if len(rest) > 0 {
		r.wrong(r.due, "the line is truncated")
	}
}

// line examines a whole line. It returns an error if the segment has a newer format.
func (r *segmentReader) line(line []byte) error {
	fr, bad := parseLine(line[:len(line)-1])
	switch key := string(fr.key); {
	case bad != "":
		r.wrong(r.due, "%s", bad)
		if r.number > 1 {
			r.due++ // there is one record per line, so the next line has the next record
		}
	case key == keyHeader && r.number == 1:
		if fr.n > version {
			return newer(r.path, fr.n)
		}
		if err := json.Unmarshal(line, &r.header); err != nil || r.First != r.first {
			r.wrong(0, "the header belongs to another segment")
			r.header.First, r.Hole = r.first, nil
		}
		if r.Hole != nil {
			r.due = r.Hole.To + 1
		}
	case key == keyRecord && bytes.HasPrefix(fr.rest, dataField):
		if fr.n != r.due {
			r.wrong(r.due, "it has seq %d, expected %d", fr.n, r.due)
		}
		end := r.off + int64(len(line))
		if n := len(r.runs); n > 0 && r.runs[n-1].To == fr.n-1 && r.runs[n-1].end == r.off {
			r.runs[n-1].To, r.runs[n-1].end = fr.n, end
		} else {
			r.runs = append(r.runs, run{Range{fr.n, fr.n}, r.off, end})
		}
		r.due = fr.n + 1
	case key == keySeal:
		if r.sealed = fr.n == r.due-1 && fr.n >= r.first; !r.sealed {
			r.wrong(r.due, "it is sealed at %d", fr.n)
		}
	default:
		r.wrong(r.due, "unexpected line %q", fr.key)
	}
	return nil
}

// expel removes the segments of other journals. The marker says which journal this is. A marker of
// an older version does not. In that case it is the id that equals the folder's name or begins with
// it and a hyphen. Failing that, it is the id of most segments, and among equals that of the first
// segment, which has the beginning of the team.
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
			s.health.Swapped = fmt.Sprintf("the marker %s belongs to journal %q, and the segments beside it to %q",
				filepath.Join(s.dir, markerName), s.marked, s.id)
		}
		s.id = s.marked
	}
	for _, seg := range s.segments {
		if seg.Team == "" || seg.Team == s.id {
			continue
		}
		s.problem(seg.path, 1, 0, "the segment belongs to journal %q, and the marker or the other segments to %q",
			seg.Team, s.id)
		seg.runs, seg.Hole, seg.sealed, seg.clean = nil, nil, false, false
	}
}

// judge combines the findings of all segments: how far the history is complete, which records are
// lost, and whether the defects at its end were never acknowledged.
func (s *surveyed) judge() {
	h := &s.health
	var next int64 = 1 // the seq expected in the next segment
	for i, seg := range s.segments {
		if seg.First != next {
			s.problem(seg.path, 0, next, "it begins with record %d, expected %d", seg.First, next)
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
			s.problem(seg.path, 0, 0, "it has no seal, although there is a segment after it")
			seg.clean = false
		}
	}
	kept := s.keep(0, nil)
	if n := len(kept); n > 0 {
		h.Last = kept[n-1].To
	}
	for _, hole := range h.Holes {
		if hole.From == h.Last+1 { // no record came after the hole yet
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
		s.problem(s.dir, 0, 1, "the journal has no segment")
	} else if h.Last < h.Durable {
		s.problem(s.segments[len(s.segments)-1].path, 0, h.Last+1, "the history is complete up to record %d, and the "+
			"records up to %d were acknowledged", h.Last, h.Durable)
	}
	// Defects after the end of the history are torn if none of it was acknowledged. The marker says
	// so or, without a marker, there is only the beginning of a line. A torn part may contain valid
	// records, if the power was lost before any of it was synced.
	partial := len(h.Torn) == 1 && h.Torn[0].Reason == "the line is truncated"
	switch {
	case len(h.Torn) == 0:
	case h.Durable > h.Last || h.Torn[0].Seq <= h.Last || !(s.markerOK || partial):
		h.Problems, h.Torn = append(h.Problems, h.Torn...), nil
	default:
		h.Known = h.Last
	}
}

// keptRun is a run with its segment.
type keptRun struct {
	run
	from *surveyedSegment
}

// keep returns the runs that form the longest unbroken history after the record seq. Holes of
// earlier mends do not break it.
func (s *surveyed) keep(seq int64, kept []keptRun) []keptRun {
	for _, seg := range s.segments {
		if seg.Hole != nil && seg.Hole.From == seq+1 {
			seq = seg.Hole.To
		}
		for _, r := range seg.runs {
			if r.From <= seq+1 && r.To > seq {
				if r.From <= seq { // it begins inside the run
					r = r.after(s.disk, seq, seg.path)
				}
				kept = append(kept, keptRun{r, seg})
				seq = r.To
			}
		}
	}
	return kept
}

// after removes the records up to seq from the front of a run. The run was read before, so an error
// here is treated as its end.
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
	if regularfile.Is(err) {
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
		s.problem(path, 1, 0, "it is the state after record %d, but the journal ends with record %d", h.seq,
			s.health.Last)
	}
	s.snapshot, s.health.Snapshot = true, h.seq
	s.health.Known = max(s.health.Known, h.seq)
	return nil
}
