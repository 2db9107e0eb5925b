package proc

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"cadre/internal/sys/filelock"
	"cadre/internal/sys/regularfile"
)

// Sign writes the identity of this process into a lock's file, for [HolderOf].
func Sign(l *filelock.Lock) error {
	start, err := StartTime(os.Getpid())
	if err == nil {
		err = l.File().Truncate(0)
	}
	if err == nil {
		_, err = l.File().WriteAt(fmt.Appendf(nil, "%d %s\n", os.Getpid(), start), 0)
	}
	if err != nil {
		return fmt.Errorf("sign lock: %w", err)
	}
	return nil
}

// Holder is a process that signed a lock with [Sign]. Start has the format of [StartTime].
type Holder struct {
	Pid   int
	Start string
}

// HolderOf returns the process that holds the lock at path, as it signed it. ok is false if no
// process holds the lock, or if the holder has not signed it. It is also false for an invisible
// holder, which runs on another machine or in another PID namespace. An unreadable file is an
// error; a file that does not exist is not.
func HolderOf(path string) (h Holder, ok bool, err error) {
	if h, ok, err = signature(path); err != nil || !ok {
		return Holder{}, false, err
	}
	// A new holder that has not signed yet finds the signature of the last one, which has ended.
	if !Alive(h.Pid, h.Start) || !filelock.Held(path) {
		return Holder{}, false, nil
	}
	return h, true, nil
}

// signature reads which process signed the lock last; ok is false if none did.
func signature(path string) (h Holder, ok bool, err error) {
	data, err := regularfile.Read(path, maxFile)
	if errors.Is(err, fs.ErrNotExist) {
		return Holder{}, false, nil
	}
	if err != nil {
		return Holder{}, false, err
	}
	_, malformed := fmt.Sscan(string(data), &h.Pid, &h.Start)
	return h, malformed == nil, nil
}
