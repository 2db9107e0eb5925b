//go:build !linux

package filejournal

import (
	"os"
	"runtime"
)

// syncData makes the file durable. On darwin Sync is F_FULLFSYNC, the only call that reaches the
// disk itself.
func syncData(f *os.File) error { return f.Sync() }

// yield lets another goroutine run. This system has no portable way to yield to a process.
func yield() { runtime.Gosched() }

// holder returns 0: this system does not show the holder.
func holder(*os.File) int { return 0 }
