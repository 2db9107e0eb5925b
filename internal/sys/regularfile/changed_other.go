//go:build !linux && !darwin

package regularfile

import (
	"io/fs"
	"time"
)

// ChangedAt returns when the file was last written.
func ChangedAt(info fs.FileInfo) time.Time { return info.ModTime() }
