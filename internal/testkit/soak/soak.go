// Package soak says how thorough the tests are that could try every place, such as each command of
// git at which a process may be killed. Usually they take a sample, always the same one; make soak
// has them take all.
package soak

import "os"

// Variable is set to 1 by make soak.
const Variable = "CADRE_SOAK"

// Wanted reports whether the tests are to take as long as it takes.
func Wanted() bool { return os.Getenv(Variable) == "1" }

// Of is usual, or all where a soak is wanted.
func Of(usual, all int) int {
	if Wanted() {
		return all
	}
	return usual
}
