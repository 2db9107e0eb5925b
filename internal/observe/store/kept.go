package store

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"cadre/internal/observe"
	"cadre/internal/observe/protocol"
	"cadre/internal/observe/source"
	"cadre/internal/sys/atomicfile"
	"cadre/internal/sys/filelock"
	"cadre/internal/sys/regularfile"
	"cadre/internal/team"
)

// Files of an observation.
const (
	lockName    = "lock"
	savedName   = "observation.json"
	linesPrefix = "lines-"
	keptFormat  = 1
)

// Kept stores the knowledge of an observer in a folder: its state after some line, and the lines
// since. It belongs to one process.
type Kept struct {
	dir     string
	lock    *filelock.Lock
	log     *os.File
	number  int64 // number of the log
	size    int64 // size of the log, in bytes
	saved   int64 // length of the last saved state, in bytes
	skipped int64 // irrelevant lines since the last one in the log
}

// ErrObserved reports that another process observes under this name.
var ErrObserved = errors.New("it is already being observed")

// ErrDamaged reports that the kept data of an observation cannot be read.
var ErrDamaged = errors.New("the kept data of the observation is damaged")

// OpenKept takes the folder and creates it if needed. While another process has it, the error is
// [ErrObserved].
func OpenKept(dir string) (*Kept, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	lock, err := filelock.New(filepath.Join(dir, lockName))
	if errors.Is(err, filelock.ErrHeld) {
		return nil, fmt.Errorf("%w: by another process", ErrObserved)
	}
	if err != nil {
		return nil, err
	}
	return &Kept{dir: dir, lock: lock}, nil
}

// Observes reports whether a running process has the folder.
func Observes(dir string) bool { return filelock.Held(filepath.Join(dir, lockName)) }

// maxKept is the size limit of a saved observer, in bytes.
const maxKept = 1 << 30

// Close releases the folder.
func (k *Kept) Close() error {
	var err error
	if k.log != nil {
		err = k.log.Close()
	}
	return errors.Join(err, k.lock.Unlock())
}

// Discard releases the folder, and removes it if nothing was kept in it.
func (k *Kept) Discard() error {
	if entries, err := os.ReadDir(k.dir); err == nil && len(entries) == 1 {
		_ = os.RemoveAll(k.dir)
	}
	return k.Close()
}

// Kinds of entries.
const (
	lineEntry      = "line"
	introduceEntry = "introduce"
	gapEntry       = "gap"
	endEntry       = "end"
	placeEntry     = "place" // where a source continues after an irrelevant line
)

// entry is one input of an observer. In the log it is a checksum and this struct as JSON on one
// line, followed by the input line. The checksum covers everything after it.
type entry struct {
	Kind   string       `json:"kind"`
	Source string       `json:"source"`
	At     team.Time    `json:"at"`
	Place  source.Place `json:"place,omitzero"`
	Team   string       `json:"team,omitempty"`
	Member string       `json:"member,omitempty"`
	Reason string       `json:"reason,omitempty"`
	// Skipped is the number of irrelevant lines before it. They matter because the observer numbers
	// its records by lines.
	Skipped int64 `json:"skipped,omitempty"`
	Size    int   `json:"size,omitempty"` // length of the line

	line []byte
}

// applyTo passes the entry to an observer.
func (e *entry) applyTo(o Observer) observe.Seen {
	switch e.Kind {
	case introduceEntry:
		o.Introduce(e.Source, e.Team, e.Member)
	case gapEntry:
		return o.Gap(e.Source, e.Reason, e.At)
	case endEntry:
		if o, ok := o.(Ender); ok {
			return o.End(e.Source, e.At)
		}
	case lineEntry:
		return o.Line(e.Source, e.line, e.At)
	}
	return observe.Seen{}
}

// add appends an entry to the log. An irrelevant line is only counted, unless its place identifies
// the source when it reconnects.
func (k *Kept) add(e entry, relevant bool) error {
	if !relevant {
		k.skipped++
		if e.Place.Event == "" {
			return nil
		}
		e = entry{Kind: placeEntry, Source: e.Source, At: e.At, Place: e.Place}
	}
	e.Skipped, e.Size = k.skipped, len(e.line)
	k.skipped = 0
	head, err := json.Marshal(e)
	if err != nil {
		return err
	}
	whole := make([]byte, sumLength, sumLength+len(head)+len(e.line)+2)
	whole = append(append(append(append(whole, head...), '\n'), e.line...), '\n')
	copy(whole, sum(whole[sumLength:]))
	n, err := k.log.Write(whole)
	k.size += int64(n)
	return err
}

// sumLength is the length of a checksum and the space after it.
const sumLength = 9

func sum(data []byte) string { return fmt.Sprintf("%08x ", crc32.ChecksumIEEE(data)) }

// minLog is the size that a log must reach before the state is saved again.
const minLog = 1 << 20

// due reports whether the log has grown enough to justify saving.
func (k *Kept) due() bool { return k.size > max(minLog, k.saved) }

// saved is the content of observation.json.
type saved struct {
	V        int                     `json:"v"`
	Log      int64                   `json:"log"` // number of the log that continues it
	Places   map[string]source.Place `json:"places,omitempty"`
	Observer json.RawMessage         `json:"observer"`
}

// save stores the observer's knowledge, replacing everything kept so far.
func (k *Kept) save(o Observer, places map[string]source.Place) error {
	known, err := o.Save()
	if err != nil {
		return err
	}
	data, err := json.Marshal(saved{V: keptFormat, Log: k.number + 1, Places: places, Observer: known})
	if err != nil {
		return err
	}
	// A log of this number may be left from a process that died before the rename below. Truncate
	// it.
	log, err := regularfile.OpenFile(k.logPath(k.number+1), os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	if err := atomicfile.Write(filepath.Join(k.dir, savedName), data); err != nil {
		return errors.Join(err, log.Close())
	}
	if k.log != nil {
		err = k.log.Close()
	}
	if gone := os.Remove(k.logPath(k.number)); !errors.Is(gone, fs.ErrNotExist) {
		err = errors.Join(err, gone)
	}
	k.log, k.number, k.size, k.saved, k.skipped = log, k.number+1, 0, int64(len(data)), 0
	return err
}

func (k *Kept) logPath(n int64) string {
	return filepath.Join(k.dir, fmt.Sprintf("%s%d", linesPrefix, n))
}

// restore restores the observer and replays the lines since then. It calls each with their results
// and the team before them. The log is then open for appending.
func (k *Kept) restore(restore Restore, places map[string]source.Place,
	each func(*team.State, observe.Seen) error) (Observer, error) {
	s := saved{V: keptFormat}
	data, err := regularfile.Read(filepath.Join(k.dir, savedName), maxKept)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if err == nil {
		if err := json.Unmarshal(data, &s); err != nil {
			return nil, k.damaged(err)
		}
		if s.V > keptFormat {
			return nil, observe.ErrNewer
		}
	}
	k.number, k.saved = s.Log, int64(len(data))
	for source, place := range s.Places {
		places[source] = place
	}
	o, err := restore(s.Observer, nil)
	switch {
	case errors.Is(err, observe.ErrOther), errors.Is(err, observe.ErrNewer), errors.Is(err, team.ErrNewer):
		return nil, err
	case err != nil:
		return nil, k.damaged(err)
	}
	whole, err := k.replay(o, places, each)
	if err != nil {
		return nil, err
	}
	if k.log, err = regularfile.OpenFile(k.logPath(k.number), os.O_CREATE|os.O_WRONLY, 0o600); err != nil {
		return nil, err
	}
	k.size = whole
	if err := k.log.Truncate(whole); err != nil {
		return nil, err
	}
	_, err = k.log.Seek(whole, io.SeekStart)
	return o, errors.Join(err, k.sweep())
}

func (k *Kept) damaged(err error) error {
	return fmt.Errorf("%w: %s: %w", ErrDamaged, filepath.Join(k.dir, savedName), err)
}

// replay passes the entries of the log to the observer, and returns the length of the complete
// ones. A killed process may have left an incomplete last entry.
func (k *Kept) replay(o Observer, places map[string]source.Place,
	each func(*team.State, observe.Seen) error) (int64, error) {
	file, err := regularfile.Open(k.logPath(k.number))
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	defer file.Close()
	whole, r := int64(0), bufio.NewReaderSize(file, 256<<10)
	for {
		head, err := r.ReadBytes('\n')
		if err != nil {
			return whole, notEnd(err)
		}
		var e entry
		if len(head) < sumLength || json.Unmarshal(head[sumLength:], &e) != nil || e.Size < 0 ||
			e.Size > 2*protocol.MaxLine {
			return whole, nil
		}
		data := append(head, make([]byte, e.Size+1)...)
		if _, err := io.ReadFull(r, data[len(head):]); err != nil {
			return whole, notEnd(err)
		}
		if sum(data[sumLength:]) != string(data[:sumLength]) {
			return whole, nil
		}
		e.line = data[len(head) : len(data)-1]
		whole += int64(len(data))
		for range e.Skipped {
			o.Line(e.Source, nil, e.At)
		}
		before := o.Team()
		seen := e.applyTo(o)
		if e.Place != (source.Place{}) {
			places[e.Source] = e.Place
		}
		if err := each(before, seen); err != nil {
			return whole, err
		}
	}
}

func notEnd(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return nil
	}
	return err
}

// sweep removes logs left by processes that were killed while saving.
func (k *Kept) sweep() error {
	entries, err := os.ReadDir(k.dir)
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), linesPrefix) && e.Name() != filepath.Base(k.logPath(k.number)) {
			err = errors.Join(err, os.Remove(filepath.Join(k.dir, e.Name())))
		}
	}
	return err
}
