package source

import (
	"bytes"
	"encoding/json"
	"errors"
	"hash/fnv"
	"io"
	"io/fs"
	"os"

	"cadre/internal/observe/protocol"
)

// Place is where reading of a source continues. In a file it is after a complete line, and is valid
// only while the file begins like the one that was read. In a stream that cannot be read again it
// is after an event.
type Place struct {
	Offset int64  `json:"offset,omitempty"`
	Head   int64  `json:"head,omitempty"` // length in bytes of the known beginning
	Hash   uint64 `json:"hash,omitempty"` // hash of the known beginning
	Event  string `json:"event,omitempty"`
}

// longHead is how much of a file's beginning identifies it: more than the first line of a
// transcript, and more than the common beginning of two transcripts.
const longHead = 1 << 10

// tail reads a growing file line by line.
type tail struct {
	path   string   // also the name of the source
	file   *os.File // nil if it is not open
	info   fs.FileInfo
	at     int64 // offset at which reading continues
	place  Place // after the last complete line
	lines  protocol.Splitter
	gap    string // a gap to report with the first line of a replaced file
	buffer []byte
}

// open opens the file, and continues at place if place belongs to this file.
func (t *tail) open(place Place) error {
	file, err := os.Open(t.path)
	if err != nil {
		return err
	}
	info, err := file.Stat()
	if err != nil {
		file.Close()
		return err
	}
	t.file, t.info, t.place, t.lines = file, info, Place{}, protocol.Splitter{}
	if place.Offset > 0 {
		if hash, err := headOf(file, place.Head); err == nil && hash == place.Hash && info.Size() >= place.Offset {
			t.place = place
		} else {
			t.gap = "the file was replaced or truncated since the last run"
		}
	}
	t.at = t.place.Offset
	return nil
}

func headOf(file *os.File, size int64) (uint64, error) {
	head := make([]byte, size)
	if _, err := file.ReadAt(head, 0); err != nil {
		return 0, err
	}
	h := fnv.New64a()
	h.Write(head)
	return h.Sum64(), nil
}

func (t *tail) close() {
	if t.file != nil {
		t.file.Close()
		t.file = nil
	}
}

// read delivers the complete lines up to the file's present end.
func (t *tail) read(to Listener) error {
	if t.buffer == nil {
		t.buffer = make([]byte, 64<<10)
	}
	for {
		switch err := t.piece(t.buffer, t.deliverTo(to)); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
	}
}

// piece reads a piece of the file and calls each for the lines that end in it. At the file's
// present end the error is io.EOF.
func (t *tail) piece(buffer []byte, each func(line []byte, after Place)) error {
	n, err := t.file.ReadAt(buffer, t.at)
	for p := buffer[:n]; len(p) > 0; {
		end := bytes.IndexByte(p, '\n') + 1
		if end == 0 {
			t.lines.Write(p, nil)
			t.at += int64(len(p))
			break
		}
		t.at += int64(end)
		t.lines.Write(p[:end], func(line []byte) { each(line, t.currentPlace()) })
		p = p[end:]
	}
	return err
}

// currentPlace returns the place after a line that ends at t.at.
func (t *tail) currentPlace() Place {
	if head := min(t.at, longHead); head > t.place.Head {
		if hash, err := headOf(t.file, head); err == nil {
			t.place.Head, t.place.Hash = head, hash
		}
	}
	t.place.Offset = t.at
	return t.place
}

// deliverTo returns a function that delivers lines to a listener.
func (t *tail) deliverTo(to Listener) func(line []byte, after Place) {
	return func(line []byte, after Place) {
		if t.gap != "" {
			to.Gap(t.path, t.gap)
			t.gap = ""
		}
		to.Line(t.path, line, after)
	}
}

// follow reads the present lines, first in the open file, then in the file now at the path.
func (t *tail) follow(to Listener) error {
	for {
		there, err := os.Stat(t.path)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if t.file == nil {
			if err != nil {
				return nil
			}
			if err := t.open(to.Place(t.path)); errors.Is(err, fs.ErrNotExist) {
				return nil
			} else if err != nil {
				return err
			}
		}
		now, err := t.file.Stat()
		if err != nil {
			return err
		}
		if now.Size() < t.at {
			t.at, t.place, t.lines = 0, Place{}, protocol.Splitter{}
			t.gap = "the file was truncated"
		}
		if err := t.read(to); err != nil {
			return err
		}
		if there == nil || os.SameFile(there, t.info) {
			return nil
		}
		// The file was replaced. Its last line is complete, with or without a line break.
		t.end(t.deliverTo(to))
		t.close()
		if err := t.open(Place{}); errors.Is(err, fs.ErrNotExist) {
			return nil
		} else if err != nil {
			return err
		}
	}
}

// end delivers the last line of a file that ends without a line break. An incomplete line may still
// be growing, so its place is before it, and a later reader reads it again.
func (t *tail) end(each func(line []byte, after Place)) {
	t.lines.End(func(line []byte) {
		if !json.Valid(line) {
			each(line, t.place)
			return
		}
		each(line, t.currentPlace())
	})
}
