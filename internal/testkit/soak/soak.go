// Package soak controls how much the tests do. A test that could try every case, such as each git
// command at which a process may be killed, usually takes a fixed sample. With make soak it takes
// all cases. With -short, tests that take long are skipped. Tests that mostly wait run in parallel,
// more of them than there are processors. Temporary folders of tests that mostly wait for the disk
// are in memory.
package soak

import (
	"flag"
	"os"
	"strconv"
)

// Variable is the environment variable that make soak sets to 1.
const Variable = "CADRE_SOAK"

// Wanted reports whether the tests should take all cases, however long that takes.
func Wanted() bool { return os.Getenv(Variable) == "1" }

// Beside lets at least that many tests of a package run in parallel, if they call t.Parallel. It is
// for packages whose tests wait. Call it before m.Run in TestMain.
func Beside(tests int) {
	parallel := flag.Lookup("test.parallel")
	flag.Parse()
	if now, err := strconv.Atoi(parallel.Value.String()); err == nil && now < tests {
		parallel.Value.Set(strconv.Itoa(tests))
	}
}

// Long skips the test with -short. The race detector, which make race runs with -short, still gets
// it: most of what takes long has goroutines.
func Long(t interface{ Skip(...any) }) {
	if flag.Lookup("test.short").Value.String() == "true" && !races {
		t.Skip("it takes long; not with -short")
	}
}

// Of returns usual, or all if a soak is wanted.
func Of(usual, all int) int {
	if Wanted() {
		return all
	}
	return usual
}
