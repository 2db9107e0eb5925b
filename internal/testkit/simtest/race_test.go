//go:build race

package simtest

// raced reports whether the race detector is on. It makes the order of goroutines random.
const raced = true
