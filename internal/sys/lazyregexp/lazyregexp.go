// Package lazyregexp compiles regular expressions when they are first used.
//
// # Authority
//
// It says when an expression is compiled, and nothing about what it matches. A command of cadre
// lives for some milliseconds; compiling at its start what it does not need would be a good part of
// them.
//
// # Guarantees
//
// An expression is compiled once, whichever goroutine asks first.
package lazyregexp

import (
	"regexp"
	"sync"
)

// New returns a function that gives the compiled expression. A mistake in it is a panic at the
// first use.
func New(expression string) func() *regexp.Regexp {
	return Of(func() string { return expression })
}

// Of is New for an expression that is put together, which happens at the first use too.
func Of(expression func() string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expression()) })
}
