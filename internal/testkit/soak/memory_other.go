//go:build !linux

package soak

// memory is "": there is no folder in memory that every user may write to.
func memory() string { return "" }
