//go:build !linux && !darwin

package consolidate

import (
	"io/fs"
	"time"
)

// changedAt returns when the file was last written.
func changedAt(info fs.FileInfo) time.Time { return info.ModTime() }
