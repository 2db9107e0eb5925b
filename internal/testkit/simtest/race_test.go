//go:build race

package simtest

// raced says that goroutines come to their turns by chance, as the race detector has it.
const raced = true
