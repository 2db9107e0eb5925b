package source

import (
	"bytes"
	"container/heap"
	"errors"
	"io"
	"io/fs"
	"os"
	"slices"

	"cadre/internal/observe/protocol"
	"cadre/internal/sys/regularfile"
	"cadre/internal/team"
)

// Transcripts of one team describe the same events: the lead's a message that it sent, the
// teammate's its reaction. So new lines of several transcripts are delivered in the order of their
// times. An effect then never comes before its cause, whichever file changed last or comes first by
// name.

// cursor is a transcript with some lines read ahead.
type cursor struct {
	*tail
	size  int // size of the next piece to read
	ahead []datedLine
	last  team.Time // time of the newest line
	ended bool      // there is nothing more to read ahead
}

// datedLine is a line that was read but not delivered yet.
type datedLine struct {
	line  []byte
	after Place
	at    team.Time // its own time, or a newer one of an earlier line, to keep the order of a file
}

// cursors is a heap: the first element has the next line.
type cursors []*cursor

func (c cursors) Len() int      { return len(c) }
func (c cursors) Swap(i, j int) { c[i], c[j] = c[j], c[i] }
func (c *cursors) Push(one any) { *c = append(*c, one.(*cursor)) }

func (c cursors) Less(i, j int) bool {
	if a, b := c[i].ahead[0].at, c[j].ahead[0].at; a != b {
		return a < b
	}
	return c[i].path < c[j].path
}

func (c *cursors) Pop() any {
	last := len(*c) - 1
	one := (*c)[last]
	*c = (*c)[:last]
	return one
}

const (
	firstPiece   = 4 << 10 // small, because there may be thousands of files
	longestPiece = 256 << 10
)

// read delivers the new lines of some transcripts. An unreadable transcript is reported as a gap
// and does not stop the others.
func (r *reading) read(paths []string) {
	slices.Sort(paths)
	var all cursors
	for _, path := range slices.Compact(paths) {
		t := r.tails[path]
		if t == nil {
			t = &tail{path: path}
			r.tails[path] = t
		}
		if info, err := os.Stat(path); err == nil && t.info != nil && info.Size() == t.at && os.SameFile(info, t.info) {
			continue
		}
		if c := (&cursor{tail: t, size: firstPiece}); r.advance(c) {
			all = append(all, c)
		}
	}
	heap.Init(&all)
	for len(all) > 0 {
		c := all[0]
		r.introduceOne(c.path)
		c.deliverTo(r.to)(c.ahead[0].line, c.ahead[0].after)
		if c.ahead = c.ahead[1:]; r.advance(c) {
			heap.Fix(&all, 0)
		} else {
			heap.Pop(&all)
		}
	}
	r.introduce()
}

// advance reports whether there is a next line. It reads ahead if needed.
func (r *reading) advance(c *cursor) bool {
	if len(c.ahead) == 0 && !c.ended {
		if err := r.fill(c); err != nil {
			c.ended = true
			if !errors.Is(err, fs.ErrNotExist) {
				r.to.Gap(c.path, "cannot read the transcript: "+err.Error())
			}
		}
	}
	return len(c.ahead) > 0
}

// fill reads ahead. It does not keep the file open, because there may be thousands.
func (r *reading) fill(c *cursor) error {
	if err := r.open(c.tail); err != nil {
		return err
	}
	defer c.close()
	if r.buffer == nil {
		r.buffer = make([]byte, longestPiece)
	}
	each := func(line []byte, after Place) {
		c.last = max(c.last, protocol.TimeOf(line))
		c.ahead = append(c.ahead, datedLine{bytes.Clone(line), after, c.last})
	}
	for len(c.ahead) == 0 && !c.ended {
		switch err := c.piece(r.buffer[:c.size], each); {
		case errors.Is(err, io.EOF):
			c.ended = true
			if !r.follow {
				c.end(each)
			}
		case err != nil:
			return err
		}
		c.size = min(2*c.size, longestPiece)
	}
	c.backdate()
	return nil
}

// backdate gives lines without a time at the beginning of a transcript the time of the first line
// that has one.
func (c *cursor) backdate() {
	first := slices.IndexFunc(c.ahead, func(d datedLine) bool { return d.at != 0 })
	for i := range max(first, 0) {
		c.ahead[i].at = c.ahead[first].at
	}
}

// open opens a transcript at the place where reading continues.
func (r *reading) open(t *tail) error {
	if t.info == nil {
		return t.open(r.to.Place(t.path))
	}
	file, err := regularfile.Open(t.path)
	if err != nil {
		return err
	}
	t.file = file
	now, err := file.Stat()
	if err != nil {
		t.close()
		return err
	}
	if !os.SameFile(now, t.info) || now.Size() < t.at {
		t.close()
		if err := t.open(Place{}); err != nil {
			return err
		}
		t.gap = "the transcript was replaced or truncated"
		return nil
	}
	t.info = now
	return nil
}
