package soak

import "os"

// InMemory has the temporary folders of a package's tests in memory, where the system offers that
// and has room. It is for packages that start git hundreds of times: they wait for the disk more
// than for a processor, and nothing that they show depends on it. It belongs before m.Run in their
// TestMain. A TMPDIR that is set stays.
func InMemory() {
	if dir := memory(); dir != "" && os.Getenv("TMPDIR") == "" {
		os.Setenv("TMPDIR", dir)
	}
}
