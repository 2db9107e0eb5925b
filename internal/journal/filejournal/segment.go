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
)

// header is the first line of a segment.
type header struct {
	Team  string `json:"team"`           // id of the journal
	First int64  `json:"first"`          // first seq the segment answers for; its name
	Hole  *Range `json:"hole,omitempty"` // starts at First; the segment's records come after it
}

// Range is a run of seqs, both ends included.
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
	name  string // of the team
	path  string
	f     File
	start int64 // where the line after the header begins
	// trusted says that a sync of f went well: from then on f is told of any write that fails.
	trusted atomic.Bool
	refs    int // guarded by Journal.mu; the file is closed with the last
}

// before is the seq of the last record that is in an earlier segment or in this one's hole.
func (s *segment) before() int64 {
	if s.Hole != nil {
		return s.Hole.To
	}
	return s.First - 1
}

// origin is the cursor before the segment's first record.
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

// segmentFirst is the inverse of segmentName; ok is false for any other name.
func segmentFirst(name string) (first int64, ok bool) {
	digits, ok := strings.CutSuffix(name, segmentSuffix)
	if !ok || len(digits) != 20 {
		return 0, false
	}
	first, err := strconv.ParseInt(digits, 10, 64)
	return first, err == nil && first > 0
}

// listSegments returns the firsts of a journal folder's segments in order.
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

// openSegment opens a segment of this journal. One of another journal is damage: somebody put it
// there.
func (j *Journal) openSegment(first int64) (*segment, error) {
	s, err := openSegment(j.disk, j.team, j.dir, first)
	if err == nil && j.id != "" && s.Team != j.id {
		err = s.damage(1, "it is a segment of the journal %q, and its marker or its other segments are of %q", s.Team,
			j.id)
		s.f.Close()
	}
	if err != nil {
		return nil, err
	}
	return s, nil
}

// openSegment opens a segment and reads its header. The file is opened for writing where it can be,
// because a handle that reads today may append tomorrow, and for reading alone in a folder that
// cannot be written.
func openSegment(d Disk, team, dir string, first int64) (*segment, error) {
	path := filepath.Join(dir, segmentName(first))
	f, err := openAny(d, path)
	if notAFile(err) {
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

// openAny opens a file to read and write, or to read where it may not be written.
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
		return s.damage(1, "the header is not good: %s", bad)
	}
	if string(fr.key) != keyHeader {
		return s.damage(1, "there is no header")
	}
	if fr.n > version {
		return newer(s.path, fr.n)
	}
	var h header
	if err := json.Unmarshal(line, &h); err != nil {
		return s.damage(1, "the header is not good: %v", err)
	}
	if h.First != s.First || (h.Hole != nil && (h.Hole.From != h.First || h.Hole.To < h.Hole.From)) {
		return s.damage(1, "the header is that of another segment, which begins at %d", h.First)
	}
	s.header, s.start = h, int64(len(line))
	return nil
}

func newer(path string, v int64) error {
	return fmt.Errorf("%w: %s has format version %d and this one knows %d: update cadre", journal.ErrNewer,
		path, v, version)
}

func appendHeader(dst []byte, h header) []byte {
	rest, err := json.Marshal(h)
	if err != nil {
		panic(err) // a struct of strings and numbers
	}
	rest[0] = ','
	return appendLine(dst, keyHeader, version, rest[:len(rest)-1])
}

// writeSegment makes a segment with its header and whatever fill writes after it, complete or not
// at all, and durable.
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

// replaceFile puts a file in place as a whole: written beside it, synced, renamed, the folder
// synced. Its callers hold a lock, so the name of the unfinished file can be a fixed one and a
// crash leaves at most that one behind.
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
