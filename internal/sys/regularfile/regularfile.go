// Package regularfile opens and reads files that must be regular files.
//
// # Authority
//
// A program that can write to a folder can put a named pipe or a device in the place of a file.
// Opening a pipe can block forever, opening a device can have side effects, and reading either may
// never end. This package guards against that, in one place. It knows nothing about file contents.
//
// # Guarantees
//
//   - Opening never blocks: anything but a regular file is refused at once with an [Error].
//   - [Read] never reads more than its limit, even from a growing file.
//   - Symbolic links are followed; the target must be a regular file.
package regularfile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
)

// Error reports that a path is not a regular file.
type Error struct {
	Path string
	Mode fs.FileMode // type of the file
}

func (e *Error) Error() string {
	return fmt.Sprintf("%s is %s, not a regular file", e.Path, Kind(e.Mode))
}

// Is reports whether the error says that a path is not a regular file.
func Is(err error) bool {
	_, special := errors.AsType[*Error](err)
	return special
}

// Kind returns the type of a file in words, with its article.
func Kind(m fs.FileMode) string {
	switch {
	case m.IsRegular():
		return "a file"
	case m&fs.ModeSymlink != 0:
		return "a link"
	case m.IsDir():
		return "a directory"
	case m&fs.ModeNamedPipe != 0:
		return "a named pipe"
	case m&fs.ModeSocket != 0:
		return "a socket"
	case m&fs.ModeDevice != 0:
		return "a device"
	}
	return "a special file"
}

// TooLargeError reports that a file is larger than the limit of its reader.
type TooLargeError struct {
	Path string
	Most int64 // bytes
}

func (e *TooLargeError) Error() string {
	return fmt.Sprintf("%s is larger than %s, the limit for such a file", e.Path, Size(e.Most))
}

// Size formats a number of bytes for people. It rounds up, so that a file above a limit never shows
// the same size as the limit.
func Size(n int64) string {
	switch {
	case n >= 1<<20:
		return inTenths(n, 1<<20) + " MiB"
	case n >= 1<<10:
		return inTenths(n, 1<<10) + " KiB"
	case n == 1:
		return "1 byte"
	}
	return fmt.Sprintf("%d bytes", n)
}

func inTenths(n, unit int64) string {
	whole, tenths := n/unit, (n%unit*10+unit-1)/unit
	switch {
	case tenths == 0:
		return fmt.Sprint(whole)
	case tenths == 10:
		return fmt.Sprint(whole + 1)
	}
	return fmt.Sprintf("%d.%d", whole, tenths)
}

// Open opens the file for reading.
func Open(path string) (*os.File, error) { return OpenFile(path, os.O_RDONLY, 0) }

// OpenFile is [os.OpenFile] for a regular file. With [os.O_CREATE] the file need not exist.
func OpenFile(path string, flag int, mode fs.FileMode) (*os.File, error) {
	// Check before opening, because opening a device can have side effects, and after, because
	// another file may have taken its place.
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return nil, &Error{path, info.Mode()}
	}
	f, err := os.OpenFile(path, flag|syscall.O_NONBLOCK, mode)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = &Error{path, info.Mode()}
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// Read returns the content of the file, or a [*TooLargeError] if it is longer than most bytes.
func Read(path string, most int64) ([]byte, error) {
	f, err := Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if info.Size() > most {
		return nil, &TooLargeError{path, most}
	}
	data := make([]byte, 0, min(info.Size(), most)+1) // one more byte to detect the end without growing
	for {
		n, err := f.Read(data[len(data):cap(data)])
		data = data[:len(data)+n]
		switch {
		case int64(len(data)) > most:
			return nil, &TooLargeError{path, most}
		case err == io.EOF:
			return data, nil
		case err != nil:
			return nil, err
		case len(data) == cap(data):
			data = append(data, 0)[:len(data)]
		}
	}
}
