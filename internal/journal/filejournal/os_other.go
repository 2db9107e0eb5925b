//go:build !linux

package filejournal

import (
	"os"
	"runtime"
)

// syncData makes the file durable. On darwin Sync is F_FULLFSYNC, the only call there that reaches
// the disk itself.
func syncData(f *os.File) error { return f.Sync() }

// yield lets another goroutine run, which is all that can be asked for here.
func yield() { runtime.Gosched() }

// holder cannot be told here.
func holder(*os.File) int { return 0 }
