package filejournal

import (
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"cadre/internal/sys/filelock"
	"cadre/internal/sys/regularfile"
)

// Disk is the part of a file system that a journal needs. Everything but tests uses the operating
// system's; tests use one that loses power. Errors are those of package os. Methods may be called
// from any goroutine.
//
// A journal relies on these guarantees after a power loss. The data written to a file before its
// last sync is there, and so is the file's length. The names in a folder are those at its last
// sync. Later changes may each be there or not, independently. A sector of 512 bytes is written
// completely or not at all.
type Disk interface {
	// Open opens a file with the flags of [os.OpenFile]. It creates files with mode 0600. If the
	// path is not a regular file, it returns a [*regularfile.Error] at once.
	Open(path string, flags int) (File, error)
	// Mkdir creates a folder with mode 0700.
	Mkdir(path string) error
	// List returns the names in a folder, in order.
	List(dir string) ([]string, error)
	// ID returns the identity of the file or folder at a path.
	ID(path string) (FileID, error)
	Rename(from, to string) error
	Link(from, to string) error
	Remove(path string) error
	// SyncFolder makes the names in a folder durable.
	SyncFolder(dir string) error
}

// File is an open file of a [Disk].
type File interface {
	Name() string
	io.ReaderAt // in one system call: a short read means the end of the file
	io.WriterAt
	io.Closer
	Truncate(size int64) error
	Size() (int64, error)
	ID() (FileID, error)
	// SyncData makes the file's bytes and length durable, without its times. Sync makes everything
	// durable.
	SyncData() error
	Sync() error
	// Flock is flock(2): the lock belongs to this open file, and ends when it is closed.
	Flock(how int) error
	// Holder returns the pid of the process that holds the file's lock, or 0 if it is unknown.
	Holder() int
}

// FileID identifies a file.
type FileID struct{ Device, Inode uint64 }

// OS is the operating system's disk.
var OS Disk = osDisk{}

type osDisk struct{}

func (osDisk) Open(path string, flags int) (File, error) {
	f, err := regularfile.OpenFile(path, flags, 0o600)
	if err != nil {
		return nil, err
	}
	return osFile{f}, nil
}

func (osDisk) Mkdir(path string) error      { return os.Mkdir(path, 0o700) }
func (osDisk) Rename(from, to string) error { return os.Rename(from, to) }
func (osDisk) Link(from, to string) error   { return os.Link(from, to) }
func (osDisk) Remove(path string) error     { return os.Remove(path) }

func (osDisk) List(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name()
	}
	return names, err
}

func (osDisk) ID(path string) (FileID, error) {
	var st unix.Stat_t
	if err := unix.Stat(path, &st); err != nil {
		return FileID{}, &fs.PathError{Op: "stat", Path: path, Err: err}
	}
	return newFileID(&st), nil
}

func (osDisk) SyncFolder(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}

func newFileID(st *unix.Stat_t) FileID { return FileID{uint64(st.Dev), st.Ino} }

type osFile struct{ *os.File }

func (f osFile) SyncData() error { return syncData(f.File) }
func (f osFile) Holder() int     { return holder(f.File) }

// ReadAt needs one system call. Package os needs a second one to detect the end of the file.
func (f osFile) ReadAt(b []byte, off int64) (int, error) {
	for {
		n, err := unix.Pread(int(f.Fd()), b, off)
		switch {
		case err == unix.EINTR:
			continue
		case err != nil:
			return 0, &fs.PathError{Op: "read", Path: f.Name(), Err: err}
		case n < len(b):
			return n, io.EOF
		}
		return n, nil
	}
}

func (f osFile) Truncate(size int64) error {
	for {
		if err := unix.Ftruncate(int(f.Fd()), size); err != unix.EINTR {
			return err
		}
	}
}

func (f osFile) stat() (st unix.Stat_t, err error) {
	if err = unix.Fstat(int(f.Fd()), &st); err != nil {
		err = &fs.PathError{Op: "stat", Path: f.Name(), Err: err}
	}
	return st, err
}

func (f osFile) Size() (int64, error) {
	st, err := f.stat()
	return st.Size, err
}

func (f osFile) ID() (FileID, error) {
	st, err := f.stat()
	return newFileID(&st), err
}

func (f osFile) Flock(how int) error { return filelock.Flock(f.File, how) }

// pread reads up to len(b) bytes. A short read at the end of the file is not an error.
func pread(f File, b []byte, off int64) (int, error) {
	n, err := f.ReadAt(b, off)
	if err == io.EOF {
		err = nil
	}
	return n, err
}

// whole returns a reader of a whole file.
func whole(f File) io.Reader { return io.NewSectionReader(f, 0, 1<<62) }

// makeFolder creates a folder and its parents, and makes the new names durable.
func makeFolder(d Disk, dir string) error {
	err := d.Mkdir(dir)
	above := filepath.Dir(dir)
	if isMissing(err) && above != dir {
		if err = makeFolder(d, above); err == nil {
			err = d.Mkdir(dir)
		}
	}
	switch {
	case err == nil:
		return d.SyncFolder(above)
	case isThere(err):
		return nil
	}
	return err
}
