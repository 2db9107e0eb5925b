//go:build !linux

package soak

// memory returns "": no folder in memory is writable for every user.
func memory() string { return "" }
