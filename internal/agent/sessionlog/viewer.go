package sessionlog

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"iter"
	"os"

	"cadre/internal/sys/fswatch"
	"cadre/internal/sys/regularfile"
)

// readAtOnce is how many bytes a viewer reads in one step.
const readAtOnce = 64 << 10

// Viewer reads a member's log at its own pace, from the first entry that is kept. It belongs to one
// goroutine.
type Viewer struct {
	folder Folder
	member string
	at     segment
	file   *os.File // at; nil if there was no segment yet
	rest   []byte   // of file, before the end of a line
	next   int64    // number of the entry that comes next

	looked os.FileInfo      // the file of running outputs that was read last; nil if there was none
	seen   map[string]int64 // how many bytes of each running output were returned, by the id of its use
}

// View returns a viewer of the member's log. The log need not exist yet.
func (f Folder) View(member string) *Viewer { return &Viewer{folder: f, member: member, next: 1} }

// Read returns entries that the viewer has not returned yet. It never waits, and returns no entries
// if there are no more now. It returns them in steps, so that each call is short.
func (v *Viewer) Read() ([]Entry, error) {
	var tools glimpse
	for looked := false; ; {
		entries, err := v.step()
		if err != nil || len(entries) > 0 {
			return entries, err
		}
		more, err := v.turnOver()
		switch {
		case err != nil:
			return nil, err
		case more:
			looked = false
		case looked:
			return v.running(tools), nil
		default:
			if tools, looked = v.glance(); !looked {
				return nil, nil
			}
		}
	}
}

// step returns the entries of the next lines in the segment; none at its end.
func (v *Viewer) step() (entries []Entry, err error) {
	for v.file != nil && len(entries) == 0 {
		had := len(v.rest)
		v.rest = append(v.rest, make([]byte, readAtOnce)...)
		n, err := v.file.Read(v.rest[had:])
		v.rest = v.rest[:had+n]
		if err != nil && err != io.EOF {
			return nil, err
		}
		if n == 0 {
			return nil, nil
		}
		end := bytes.LastIndexByte(v.rest, '\n') + 1
		for line := range bytes.Lines(v.rest[:end]) {
			e, ok := parse(line)
			if !ok {
				continue
			}
			if e.Seq > v.next {
				entries = append(entries, Entry{Seq: v.next, At: e.At, Kind: Lost, Count: e.Seq - v.next})
			}
			v.next = max(v.next, e.Seq+1)
			if e.Kind == Tool || e.Kind == Result { // agents use ids again
				delete(v.seen, e.ID)
			}
			entries = append(entries, e)
		}
		v.rest = append(v.rest[:0], v.rest[end:]...)
	}
	return entries, nil
}

// turnOver opens the next segment, once everything before it was read. It reports whether there is
// more to read.
func (v *Viewer) turnOver() (more bool, err error) {
	there, err := v.folder.segments(v.member)
	if err != nil {
		return false, err
	}
	for _, next := range there {
		if v.file != nil && next.first <= v.at.first {
			continue
		}
		if v.file != nil { // the segment got its last lines before the next one began
			if info, err := v.file.Stat(); err != nil || info.Size() > v.position() {
				return err == nil, err
			}
		}
		file, err := regularfile.Open(next.path)
		if errors.Is(err, fs.ErrNotExist) {
			continue // removed meanwhile: the viewer is more than a segment behind
		}
		if err != nil {
			return false, err
		}
		v.Close()
		v.at, v.file, v.rest = next, file, nil
		return true, nil
	}
	return false, nil
}

// position is how far the segment was read.
func (v *Viewer) position() int64 {
	at, err := v.file.Seek(0, io.SeekCurrent)
	if err != nil {
		return 0
	}
	return at
}

// Close releases the viewer's file.
func (v *Viewer) Close() {
	if v.file != nil {
		v.file.Close()
		v.file = nil
	}
}

// Follow returns the entries of the member's log, and waits for more until ctx ends. It then
// returns what is there, and ends without an error.
func (f Folder) Follow(ctx context.Context, member string) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		v, folders := f.View(member), fswatch.New()
		defer v.Close()
		defer folders.Close()
		for more := true; more; {
			folders.Add(string(f))
			more = ctx.Err() == nil // otherwise this is the last look
			for entries, err := v.Read(); err != nil || len(entries) > 0; entries, err = v.Read() {
				if err != nil {
					yield(Entry{}, err)
					return
				}
				for _, e := range entries {
					if !yield(e, nil) {
						return
					}
				}
			}
			if more {
				folders.Wait(ctx, folders.Pace())
			}
		}
	}
}
