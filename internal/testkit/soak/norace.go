//go:build !race

package soak

const races = false
