// Package lazyregexp compiles regular expressions at their first use.
//
// # Authority
//
// It decides when an expression is compiled. A command of cadre runs for some milliseconds, and
// compiling expressions that it does not need would take a good part of them.
//
// # Guarantees
//
// An expression is compiled once, whichever goroutine uses it first.
package lazyregexp

import (
	"regexp"
	"sync"
)

// New returns a function that returns the compiled expression. An invalid expression panics at the
// first use.
func New(expression string) func() *regexp.Regexp {
	return Of(func() string { return expression })
}

// Of is like [New] for an expression that is built at the first use.
func Of(expression func() string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expression()) })
}
