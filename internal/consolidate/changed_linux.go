package consolidate

import (
	"io/fs"
	"syscall"
	"time"
)

// changedAt returns when the file was last written, moved or given another mode.
func changedAt(info fs.FileInfo) time.Time {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		return time.Unix(stat.Ctim.Unix())
	}
	return info.ModTime()
}
