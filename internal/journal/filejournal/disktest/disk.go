// Package disktest is a disk in memory for tests of what a journal keeps when the power is lost.
//
// # Authority
//
// It decides what a disk may do to a program that relies on no more than [filejournal.Disk]
// promises, and it is meant to be the worst disk that keeps these promises. It has no clock and no
// chance of its own: whatever can go one way or another is asked of a function that the test gives,
// so that a test is a function of its seed.
//
// # What a disk has
//
//	a file    what processes see ──sync──▶ what is safe
//	          and, between the two, each change since: the sectors that it wrote, and the length that it left
//	a folder  the names that processes see ──sync of the folder──▶ the names that are safe
//	          and, between the two, each making, renaming, linking and removing since
//
// # What the loss of power leaves
//
//   - All that is safe.
//   - Of the changes since: nothing, everything, the first few, or for each sector of 512 bytes any
//     of the states that it went through, in no order among sectors and files. The length of a file
//     is any of those that it had, or one between two; where it was made longer and the bytes did
//     not come, there is rubbish, which has no line ends in it.
//   - Each change of a folder's names or not, whatever became of the others. A rename is one
//     change, and a file's own sync says nothing of its name.
//
// # What a failed sync leaves
//
// What Linux leaves: some of the sectors reached the disk, the others are never written again
// unless somebody writes to them anew, and everybody still reads them as if nothing was wrong. The
// error is told once to each opening of the file from before, and to nobody who opens it later.
package disktest

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"

	"cadre/internal/journal/filejournal"
)

// Choose returns a number from 0 to n-1. It is asked for everything that chance decides, and 0 is
// always the harmless answer.
type Choose func(n int) int

// What an operation returns that came too late.
var (
	ErrOff    = errors.New("the power is off")
	ErrKilled = errors.New("the process was killed")
)

// Disk is a disk. Its methods may be called from any goroutine.
type Disk struct {
	// Before is called before each operation that others can take notice of, without a lock: it may
	// wait, and it may have the operation fail.
	Before func(*Op) Fault

	mu   sync.Mutex
	off  bool
	all  []*node // by their number
	root *node
}

// Op is an operation that a process asks for.
type Op struct {
	Process *Process
	Kind    Kind
	Path    string
	To      string // of a rename or link
	Off     int64  // of a read, write or truncation
	Len     int    // of a read or write
	lock    func() bool
}

func (o *Op) String() string {
	s := fmt.Sprintf("%s: %s %s", o.Process.Name, o.Kind, o.Path)
	switch o.Kind {
	case Rename, Link:
		s += " as " + path.Base(o.To)
	case Truncate:
		s += fmt.Sprintf(" to %d", o.Off)
	case Read, Write:
		s += fmt.Sprintf(" %d–%d", o.Off, o.Off+int64(o.Len))
	}
	return s
}

// Ready reports whether the operation can be done now: a lock that somebody else holds is to be
// waited for.
func (o *Op) Ready() bool { return o.lock == nil || o.lock() }

// Kind is what an operation does.
type Kind string

// The operations.
const (
	Open       Kind = "open"
	Make       Kind = "make" // an open that makes the file, or a folder
	Empty      Kind = "empty"
	Look       Kind = "look" // for a name, a list of them or a file's length
	Read       Kind = "read"
	Write      Kind = "write"
	Truncate   Kind = "truncate"
	Sync       Kind = "sync"
	SyncFolder Kind = "sync folder"
	Rename     Kind = "rename"
	Link       Kind = "link"
	Remove     Kind = "remove"
	Lock       Kind = "lock"
)

// Changes reports whether the loss of power can leave something else after such an operation.
func (k Kind) Changes() bool {
	return k != Open && k != Look && k != Read && k != Lock
}

// Fault is how an operation is to fail; the zero Fault is that it does not.
type Fault struct {
	Err    error
	Choose Choose // how much of a write, and which sectors of a sync, still come about
}

// New returns an empty disk.
func New() *Disk {
	d := &Disk{}
	d.root = d.newNode(true)
	return d
}

func (d *Disk) newNode(folder bool) *node {
	n := &node{number: len(d.all)}
	if folder {
		n.names, n.safeNames = map[string]*node{}, map[string]*node{}
	}
	d.all = append(d.all, n)
	return n
}

// Off ends everything: each operation fails from now on.
func (d *Disk) Off() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.off = true
}

// LosePower returns a disk as it may be after a loss of power now. The disk itself goes on as if
// there was none.
func (d *Disk) LosePower(choose Choose) *Disk {
	d.mu.Lock()
	defer d.mu.Unlock()
	left := &Disk{all: make([]*node, len(d.all))}
	for i := range d.all {
		left.all[i] = &node{number: i}
	}
	left.root = left.all[d.root.number]
	mood := mood(choose(int(moods)))
	for i, n := range d.all {
		if n.names == nil {
			left.all[i].safe = n.lose(mood, choose)
			left.all[i].now = slices.Clone(left.all[i].safe)
			continue
		}
		names := map[string]*node{}
		for name, of := range n.namesLeft(mood, choose) {
			names[name] = left.all[of.number]
		}
		left.all[i].names, left.all[i].safeNames = names, maps.Clone(names)
	}
	return left
}

// Read returns what processes see of a file.
func (d *Disk) Read(path string) ([]byte, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	n, err := d.find(path)
	if err != nil {
		return nil, err
	}
	return slices.Clone(n.now), nil
}

// Spoil changes a byte of a file, on the disk and for everybody.
func (d *Disk) Spoil(path string, off int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	n, err := d.find(path)
	if err != nil {
		panic(err) // a test that spoils what is not there is wrong
	}
	n.now[off] ^= 1
	n.safe = slices.Clone(n.safe)
	n.safe[off] ^= 1
	for _, c := range n.since {
		for i := range c.sectors {
			if s := &c.sectors[i]; int64(s.index) == off/sectorSize {
				s.data[off%sectorSize] ^= 1
			}
		}
	}
}

// Flush makes all that was done so far safe.
func (d *Disk) Flush() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, n := range d.all {
		if n.names == nil {
			n.sync()
		} else {
			n.syncNames()
		}
	}
}

func (d *Disk) find(p string) (*node, error) {
	n := d.root
	for part := range strings.SplitSeq(strings.Trim(p, "/"), "/") {
		if part == "" {
			continue
		}
		if n.names == nil {
			return nil, fs.ErrInvalid
		}
		if n = n.names[part]; n == nil {
			return nil, fs.ErrNotExist
		}
	}
	return n, nil
}

// place returns the folder of a path and the name in it.
func (d *Disk) place(p string) (*node, string, error) {
	dir, err := d.find(path.Dir(p))
	if err == nil && dir.names == nil {
		err = fs.ErrInvalid
	}
	return dir, path.Base(p), err
}

// Process is the disk as one process has it. Its files and locks end with it.
type Process struct {
	Name   string
	disk   *Disk
	killed bool // guarded by disk.mu
	files  []*file
}

var _ filejournal.Disk = (*Process)(nil)

// Process returns a new process.
func (d *Disk) Process(name string) *Process { return &Process{Name: name, disk: d} }

// Kill ends the process at once: what it still asks for is not done.
func (p *Process) Kill() {
	p.disk.mu.Lock()
	defer p.disk.mu.Unlock()
	p.killed = true
	for _, f := range p.files {
		delete(f.node.locks, f)
	}
}

// do asks for leave to do an operation and does it. Where the operation is to fail, do has that
// done which comes about all the same.
func (p *Process) do(op *Op, do func(d *Disk, fault Fault) error) error {
	op.Process = p
	if err := p.Alive(); err != nil {
		return err
	}
	var fault Fault
	if p.disk.Before != nil {
		fault = p.disk.Before(op)
	}
	err := p.locked(func() error {
		if fault.Err != nil && op.Kind != Write && op.Kind != Sync {
			return fault.Err
		}
		return do(p.disk, fault)
	})
	if err != nil {
		return &fs.PathError{Op: string(op.Kind), Path: op.Path, Err: err}
	}
	return nil
}

// Alive returns an error where the process was killed, or the power is off: whatever it concludes
// from then on, nobody hears of it.
func (p *Process) Alive() error { return p.locked(func() error { return nil }) }

func (p *Process) locked(do func() error) error {
	p.disk.mu.Lock()
	defer p.disk.mu.Unlock()
	switch {
	case p.disk.off:
		return ErrOff
	case p.killed:
		return ErrKilled
	}
	return do()
}
