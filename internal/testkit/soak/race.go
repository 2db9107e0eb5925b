//go:build race

package soak

const races = true // the race detector is on
