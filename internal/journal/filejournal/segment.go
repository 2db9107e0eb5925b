package filejournal

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"cadre/internal/journal"
	"cadre/internal/sys/regularfile"
)

// header is the first line of a segment.
type header struct {
	Team  string `json:"team"`           // id of the journal
	First int64  `json:"first"`          // first seq the segment is responsible for, also its name
	Hole  *Range `json:"hole,omitempty"` // begins at First; the segment's records follow it
}

// Range is a range of seqs, both ends included.
type Range struct {
	From int64 `json:"from"`
	To   int64 `json:"to"`
}

func (r Range) String() string {
	if r.From == r.To {
		return strconv.FormatInt(r.From, 10)
	}
	return fmt.Sprintf("%d–%d", r.From, r.To)
}

// segment is one open file of the history.
type segment struct {
	header
	name  string // name of the team
	path  string
	f     File
	start int64 // offset of the line after the header
	// trusted is set after a successful sync of f. From then on, f gets an error for every failed
	// write-back.
	trusted atomic.Bool
	refs    int // guarded by Journal.mu; the file is closed at 0
}

// before returns the seq of the last record in an earlier segment or in this segment's hole.
func (s *segment) before() int64 {
	if s.Hole != nil {
		return s.Hole.To
	}
	return s.First - 1
}

// origin returns the cursor before the segment's first record.
func (s *segment) origin() cursor {
	return cursor{first: s.First, off: s.start, line: 1, seq: s.before()}
}

func (s *segment) damage(line int, format string, args ...any) error {
	return &journal.DamageError{Team: s.name, Segment: s.path, Line: line, Reason: fmt.Sprintf(format, args...)}
}

func (s *segment) size() (int64, error) {
	return s.f.Size()
}

const segmentSuffix = ".jsonl"

func segmentName(first int64) string { return fmt.Sprintf("%020d%s", first, segmentSuffix) }

// segmentFirst parses a segment's name; ok is false for any other name.
func segmentFirst(name string) (first int64, ok bool) {
	digits, ok := strings.CutSuffix(name, segmentSuffix)
	if !ok || len(digits) != 20 {
		return 0, false
	}
	first, err := strconv.ParseInt(digits, 10, 64)
	return first, err == nil && first > 0
}

// listSegments returns the first seq of each segment in a journal's folder, in order.
func listSegments(d Disk, dir string) ([]int64, error) {
	names, err := d.List(dir)
	if err != nil {
		return nil, err
	}
	var firsts []int64
	for _, name := range names {
		if first, ok := segmentFirst(name); ok {
			firsts = append(firsts, first)
		}
	}
	slices.Sort(firsts)
	return firsts, nil
}

// openSegment opens a segment of this journal. A segment of another journal is damage.
func (j *Journal) openSegment(first int64) (*segment, error) {
	s, err := openSegment(j.disk, j.team, j.dir, first)
	if err == nil && j.id != "" && s.Team != j.id {
		err = s.damage(1, "the segment belongs to journal %q, and the marker or the other segments belong to %q",
			s.Team, j.id)
		s.f.Close()
	}
	if err != nil {
		return nil, err
	}
	return s, nil
}

// openSegment opens a segment and reads its header. It opens the file for writing if possible,
// because a handle that reads now may append later. In a folder that cannot be written it opens the
// file for reading.
func openSegment(d Disk, team, dir string, first int64) (*segment, error) {
	path := filepath.Join(dir, segmentName(first))
	f, err := openAny(d, path)
	if regularfile.Is(err) {
		return nil, damagedFile(team, path, err)
	}
	if err != nil {
		return nil, err
	}
	s := &segment{header: header{First: first}, name: team, path: path, f: f, refs: 1}
	if err := s.readHeader(); err != nil {
		f.Close()
		return nil, err
	}
	return s, nil
}

// openAny opens a file for reading and writing, or only for reading if it cannot be written.
func openAny(d Disk, path string) (File, error) {
	f, err := d.Open(path, os.O_RDWR)
	if errors.Is(err, fs.ErrPermission) || isReadOnly(err) {
		return d.Open(path, os.O_RDONLY)
	}
	return f, err
}

func (s *segment) readHeader() error {
	line, err := bufio.NewReader(io.NewSectionReader(s.f, 0, 64<<10)).ReadBytes('\n')
	if err == io.EOF {
		return s.damage(1, "the header has no end")
	}
	if err != nil {
		return err
	}
	fr, bad := parseLine(line[:len(line)-1])
	if bad != "" {
		return s.damage(1, "the header is invalid: %s", bad)
	}
	if string(fr.key) != keyHeader {
		return s.damage(1, "it has no header")
	}
	if fr.n > version {
		return newer(s.path, fr.n)
	}
	var h header
	if err := json.Unmarshal(line, &h); err != nil {
		return s.damage(1, "the header is invalid: %v", err)
	}
	if h.First != s.First || (h.Hole != nil && (h.Hole.From != h.First || h.Hole.To < h.Hole.From)) {
		return s.damage(1, "the header belongs to another segment, which begins at record %d", h.First)
	}
	s.header, s.start = h, int64(len(line))
	return nil
}

func newer(path string, v int64) error {
	return fmt.Errorf("%w: %s has format version %d, and this cadre knows version %d; update cadre", journal.ErrNewer,
		path, v, version)
}

func appendHeader(dst []byte, h header) []byte {
	rest, err := json.Marshal(h)
	if err != nil {
		panic(err) // a struct of strings and numbers always marshals
	}
	rest[0] = ','
	return appendLine(dst, keyHeader, version, rest[:len(rest)-1])
}

// writeSegment atomically creates a segment from its header and the output of fill, and makes it
// durable.
func writeSegment(d Disk, dir string, h header, fill func(io.Writer) error) error {
	return replaceFile(d, dir, segmentName(h.First), func(w io.Writer) error {
		if _, err := w.Write(appendHeader(nil, h)); err != nil {
			return err
		}
		if fill == nil {
			return nil
		}
		return fill(w)
	}, nil)
}

// replaceFile writes a file atomically and durably: it writes a temporary file, syncs it, renames
// it and syncs the folder. Callers hold a lock, so the temporary file has a fixed name, and a crash
// leaves at most that one file.
func replaceFile(d Disk, dir, name string, fill func(io.Writer) error, step func(string)) (err error) {
	tmp := filepath.Join(dir, name+".tmp")
	f, err := d.Open(tmp, os.O_WRONLY|os.O_CREATE|os.O_TRUNC)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			f.Close()
			d.Remove(tmp)
		}
	}()
	w := bufio.NewWriterSize(io.NewOffsetWriter(f, 0), 16<<10)
	if err := fill(w); err != nil {
		return err
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if step != nil {
		step(name + " unsynced")
	}
	if err := f.Sync(); err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	if step != nil {
		step(name + " unnamed")
	}
	if err := d.Rename(tmp, filepath.Join(dir, name)); err != nil {
		return err
	}
	return d.SyncFolder(dir)
}
