//go:build !race

package simtest

const raced = false
