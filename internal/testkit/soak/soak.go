// Package soak says how much the tests do at once. Those that could try every place, such as each
// command of git at which a process may be killed, usually take a sample, always the same one; make
// soak has them take all. Those that mostly wait run beside each other, more of them than there are
// processors.
package soak

import (
	"flag"
	"os"
	"strconv"
)

// Variable is set to 1 by make soak.
const Variable = "CADRE_SOAK"

// Wanted reports whether the tests are to take as long as it takes.
func Wanted() bool { return os.Getenv(Variable) == "1" }

// Beside has at least so many tests of a package run beside each other, if they call t.Parallel. It
// is for packages whose tests wait, and belongs before m.Run in their TestMain.
func Beside(tests int) {
	parallel := flag.Lookup("test.parallel")
	flag.Parse()
	if now, err := strconv.Atoi(parallel.Value.String()); err == nil && now < tests {
		parallel.Value.Set(strconv.Itoa(tests))
	}
}

// Of is usual, or all where a soak is wanted.
func Of(usual, all int) int {
	if Wanted() {
		return all
	}
	return usual
}
