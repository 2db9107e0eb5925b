package soak

import "os"

// InMemory puts the temporary folders of a package's tests in memory, if the system offers that and
// has room. Call it before m.Run in TestMain. It is for packages that start git hundreds of times
// and wait for the disk more than for a processor. Their results must not depend on it. A TMPDIR
// that is set stays.
func InMemory() {
	if dir := memory(); dir != "" && os.Getenv("TMPDIR") == "" {
		os.Setenv("TMPDIR", dir)
	}
}
