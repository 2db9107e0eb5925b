package proc

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"cadre/internal/sys/filelock"
	"cadre/internal/sys/regularfile"
)

// Sign writes into a lock's file which process holds it, for [HolderOf].
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

// Holder is a process that signed a lock with [Sign]. Its start is as [StartTime] has it.
type Holder struct {
	Pid   int
	Start string
}

// HolderOf returns the process that holds the lock at that path, as it signed it. ok is false where
// no process holds it, and where the holder has not signed it or cannot be seen from here, because
// it runs on another machine or in another PID namespace. The error says that the file cannot be
// read; one that does not exist is nobody's.
func HolderOf(path string) (h Holder, ok bool, err error) {
	if h, ok, err = signature(path); err != nil || !ok {
		return Holder{}, false, err
	}
	// A holder that has not signed it yet follows one that has ended, whose signature is still there.
	if !Alive(h.Pid, h.Start) || !filelock.Held(path) {
		return Holder{}, false, nil
	}
	return h, true, nil
}

// signature reads who was the last to sign the lock; ok is false where nobody was.
func signature(path string) (h Holder, ok bool, err error) {
	data, err := regularfile.Read(path, maxNote)
	if errors.Is(err, fs.ErrNotExist) {
		return Holder{}, false, nil
	}
	if err != nil {
		return Holder{}, false, err
	}
	_, malformed := fmt.Sscan(string(data), &h.Pid, &h.Start)
	return h, malformed == nil, nil
}
