// Package disktest is a simulated disk in memory, for tests of what a journal keeps after a power
// loss.
//
// # Authority
//
// It decides what a disk may do to a program that relies only on the guarantees of
// [filejournal.Disk]. It is meant to be the worst disk that still gives these guarantees. It uses
// no clock and no randomness of its own. For every choice it calls a function of the test, so that
// a test is determined by its seed.
//
// # Content of a disk
//
//	a file    the content that processes see ──sync──▶ the safe content
//	          and, between the two, each change since: the sectors that it wrote, and the length that it left
//	a folder  the names that processes see ──sync of the folder──▶ the safe names
//	          and, between the two, each creation, renaming, link and removal since
//
// # After a power loss
//
//   - Everything safe is left.
//   - Of the changes since then: nothing, everything, the first few, or for each sector of 512
//     bytes any of its states since then, in any order among sectors and files. The length of a
//     file is any of the lengths that it had, or one between two of them. If the file grew and the
//     bytes did not arrive, there is garbage without line ends.
//   - Each change of a folder's names is left or not, independently of the others. A rename is one
//     change. Syncing a file does not sync its name.
//
// # After a failed sync
//
// It behaves like Linux. Some of the sectors reached the disk. The others are never written unless
// a process writes to them again, and all processes still read them as if nothing had happened.
// Each file descriptor opened before gets the error once. Descriptors opened later do not get it.
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

// Choose returns a number from 0 to n-1. It decides everything that is left to chance. 0 is always
// the harmless choice.
type Choose func(n int) int

// Errors of operations that came too late.
var (
	ErrOff    = errors.New("the power is off")
	ErrKilled = errors.New("the process was killed")
)

// Disk is a simulated disk. Its methods may be called from any goroutine.
type Disk struct {
	// Before is called before each operation with a visible effect. No lock is held: it may block,
	// and it may make the operation fail.
	Before func(*Op) Fault

	mu   sync.Mutex
	off  bool
	all  []*node // indexed by node.number
	root *node
}

// Op is an operation requested by a process.
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

// Ready reports whether the operation can proceed. A lock that another process holds is not ready.
func (o *Op) Ready() bool { return o.lock == nil || o.lock() }

// Kind is the type of an operation.
type Kind string

// Types of operations.
const (
	Open       Kind = "open"
	Make       Kind = "make" // an open that creates the file, or a mkdir
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

// Changes reports whether such an operation can affect the state after a power loss.
func (k Kind) Changes() bool {
	return k != Open && k != Look && k != Read && k != Lock
}

// Fault makes an operation fail; the zero Fault lets it succeed.
type Fault struct {
	Err    error
	Choose Choose // decides how much of a write, and which sectors of a sync, still take effect
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

// Off turns the power off: every operation fails from now on.
func (d *Disk) Off() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.off = true
}

// LosePower returns a disk in a possible state after a power loss now. It does not affect d.
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

// Read returns the content of a file as processes see it.
func (d *Disk) Read(path string) ([]byte, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	n, err := d.find(path)
	if err != nil {
		return nil, err
	}
	return slices.Clone(n.now), nil
}

// Spoil changes a byte of a file, in the safe content and in the visible one.
func (d *Disk) Spoil(path string, off int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	n, err := d.find(path)
	if err != nil {
		panic(err) // a bug in the test: the file does not exist
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

// Flush makes all changes so far safe.
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

// Process is a process' view of the disk. Its files and locks end with it.
type Process struct {
	Name   string
	disk   *Disk
	killed bool // guarded by disk.mu
	files  []*file
}

var _ filejournal.Disk = (*Process)(nil)

// Process returns a new process.
func (d *Disk) Process(name string) *Process { return &Process{Name: name, disk: d} }

// Kill ends the process at once: its pending operations do not happen.
func (p *Process) Kill() {
	p.disk.mu.Lock()
	defer p.disk.mu.Unlock()
	p.killed = true
	for _, f := range p.files {
		delete(f.node.locks, f)
	}
}

// do performs an operation after Before has allowed it. If the operation must fail, do still
// performs the part that takes effect.
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

// Alive returns an error if the process was killed or the power is off. It cannot report any result
// after that.
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
