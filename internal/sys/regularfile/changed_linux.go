package regularfile

import (
	"io/fs"
	"syscall"
	"time"
)

// ChangedAt returns when the file was last written or moved, or its mode changed.
func ChangedAt(info fs.FileInfo) time.Time {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		return time.Unix(stat.Ctim.Unix())
	}
	return info.ModTime()
}
