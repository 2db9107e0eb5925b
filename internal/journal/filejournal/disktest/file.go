package disktest

import (
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"

	"cadre/internal/journal/filejournal"
)

// Open implements [filejournal.Disk].
func (p *Process) Open(name string, flags int) (filejournal.File, error) {
	op := &Op{Kind: Open, Path: name}
	if flags&os.O_CREATE != 0 {
		_ = p.locked(func() error {
			n, err := p.disk.find(name)
			switch {
			case err != nil:
				op.Kind = Make
			case flags&os.O_TRUNC != 0 && len(n.now) > 0:
				op.Kind = Empty
			}
			return nil
		})
	}
	var f *file
	err := p.do(op, func(d *Disk, _ Fault) error {
		n, err := d.find(name)
		if errors.Is(err, fs.ErrNotExist) && flags&os.O_CREATE != 0 {
			dir, base, err := d.place(name)
			if err != nil {
				return err
			}
			n = d.newNode(false)
			dir.rename("", base, n)
		} else if err != nil {
			return err
		}
		if n.names != nil {
			return syscall.EISDIR
		}
		if flags&os.O_TRUNC != 0 && len(n.now) > 0 {
			n.truncate(0)
		}
		f = &file{node: n, process: p, name: name, heard: n.failures}
		if n.failures > 0 && !n.told {
			f.heard--
		}
		p.files = append(p.files, f)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return f, nil
}

// Mkdir implements [filejournal.Disk].
func (p *Process) Mkdir(name string) error {
	return p.do(&Op{Kind: Make, Path: name}, func(d *Disk, _ Fault) error {
		dir, base, err := d.place(name)
		switch {
		case name == "/":
			return fs.ErrExist
		case err != nil:
			return err
		case dir.names[base] != nil:
			return fs.ErrExist
		}
		dir.rename("", base, d.newNode(true))
		return nil
	})
}

// List implements [filejournal.Disk].
func (p *Process) List(dir string) (names []string, err error) {
	err = p.do(&Op{Kind: Look, Path: dir}, func(d *Disk, _ Fault) error {
		n, err := d.find(dir)
		if err == nil {
			names = slices.Sorted(maps.Keys(n.names))
		}
		return err
	})
	return names, err
}

// ID implements [filejournal.Disk].
func (p *Process) ID(name string) (id filejournal.FileID, err error) {
	err = p.do(&Op{Kind: Look, Path: name}, func(d *Disk, _ Fault) error {
		n, err := d.find(name)
		if err == nil {
			id.Inode = uint64(n.number)
		}
		return err
	})
	return id, err
}

// Rename implements [filejournal.Disk], within one folder.
func (p *Process) Rename(from, to string) error {
	return p.name(Rename, from, to)
}

// Link implements [filejournal.Disk], within one folder.
func (p *Process) Link(from, to string) error {
	return p.name(Link, from, to)
}

func (p *Process) name(kind Kind, from, to string) error {
	return p.do(&Op{Kind: kind, Path: from, To: to}, func(d *Disk, _ Fault) error {
		if path.Dir(from) != path.Dir(to) {
			return fs.ErrInvalid
		}
		dir, base, err := d.place(from)
		if err != nil {
			return err
		}
		n := dir.names[base]
		switch {
		case n == nil:
			return fs.ErrNotExist
		case kind == Rename:
			dir.rename(base, path.Base(to), n)
		case dir.names[path.Base(to)] != nil:
			return fs.ErrExist
		default:
			dir.rename("", path.Base(to), n)
		}
		return nil
	})
}

// Remove implements [filejournal.Disk].
func (p *Process) Remove(name string) error {
	return p.do(&Op{Kind: Remove, Path: name}, func(d *Disk, _ Fault) error {
		dir, base, err := d.place(name)
		if err == nil && dir.names[base] == nil {
			err = fs.ErrNotExist
		}
		if err == nil {
			dir.rename(base, "", nil)
		}
		return err
	})
}

// SyncFolder implements [filejournal.Disk].
func (p *Process) SyncFolder(dir string) error {
	return p.do(&Op{Kind: SyncFolder, Path: dir}, func(d *Disk, _ Fault) error {
		n, err := d.find(dir)
		if err == nil {
			n.syncNames()
		}
		return err
	})
}

// file is a file opened by a process.
type file struct {
	node    *node
	process *Process
	name    string
	heard   int // number of the last sync failure reported to it
}

func (f *file) Name() string { return f.name }

func (f *file) ReadAt(b []byte, off int64) (n int, err error) {
	err = f.process.do(&Op{Kind: Read, Path: f.name, Off: off, Len: len(b)}, func(*Disk, Fault) error {
		if off < int64(len(f.node.now)) {
			n = copy(b, f.node.now[off:])
		}
		return nil
	})
	if err == nil && n < len(b) {
		err = io.EOF
	}
	return n, err
}

// WriteAt writes only a part if it must fail. Existing content is overwritten only in whole
// sectors.
func (f *file) WriteAt(b []byte, off int64) (n int, err error) {
	err = f.process.do(&Op{Kind: Write, Path: f.name, Off: off, Len: len(b)}, func(_ *Disk, fault Fault) error {
		if n = len(b); fault.Err != nil {
			n = fault.Choose(n)
			if end := int(off) + n; end < len(f.node.now) {
				n = max(0, end/sectorSize*sectorSize-int(off))
			}
		}
		if n > 0 {
			f.node.write(b[:n], int(off))
		}
		return fault.Err
	})
	return n, err
}

func (f *file) Truncate(size int64) error {
	return f.process.do(&Op{Kind: Truncate, Path: f.name, Off: size}, func(*Disk, Fault) error {
		f.node.truncate(int(size))
		return nil
	})
}

func (f *file) Size() (size int64, err error) {
	err = f.process.do(&Op{Kind: Look, Path: f.name}, func(*Disk, Fault) error {
		size = int64(len(f.node.now))
		return nil
	})
	return size, err
}

func (f *file) ID() (filejournal.FileID, error) {
	return filejournal.FileID{Inode: uint64(f.node.number)}, nil
}

func (f *file) Sync() error { return f.SyncData() }

func (f *file) SyncData() error {
	return f.process.do(&Op{Kind: Sync, Path: f.name}, func(_ *Disk, fault Fault) error {
		if fault.Err != nil {
			f.node.fail(fault.Choose)
		} else {
			f.node.sync()
		}
		if f.heard < f.node.failures {
			f.heard, f.node.told = f.node.failures, true
			return syscall.EIO
		}
		return nil
	})
}

// Flock makes each attempt to lock, blocking or not, an operation. An unlock is not one, because
// others notice it only when they try to lock.
func (f *file) Flock(how int) error {
	if how == unix.LOCK_UN {
		return f.process.locked(func() error {
			delete(f.node.locks, f)
			return nil
		})
	}
	wants := how &^ unix.LOCK_NB
	op := &Op{Kind: Lock, Path: f.name}
	if how == wants {
		op.lock = func() bool {
			free := false
			err := f.process.locked(func() error { free = f.free(wants); return nil })
			return free || err != nil
		}
	}
	err := f.process.do(op, func(*Disk, Fault) error {
		if !f.free(wants) {
			return unix.EWOULDBLOCK
		}
		if f.node.locks == nil {
			f.node.locks = map[*file]int{}
		}
		f.node.locks[f] = wants
		return nil
	})
	if errors.Is(err, unix.EWOULDBLOCK) {
		return unix.EWOULDBLOCK
	}
	return err
}

// free reports whether no other file holds a conflicting lock.
func (f *file) free(wants int) bool {
	for other, has := range f.node.locks {
		if other != f && (wants == unix.LOCK_EX || has == unix.LOCK_EX) {
			return false
		}
	}
	return true
}

func (f *file) Holder() int { return 0 }

// Close closes the file and releases its lock at once.
func (f *file) Close() error {
	f.process.disk.mu.Lock()
	defer f.process.disk.mu.Unlock()
	delete(f.node.locks, f)
	f.process.files = slices.DeleteFunc(f.process.files, func(o *file) bool { return o == f })
	return nil
}
