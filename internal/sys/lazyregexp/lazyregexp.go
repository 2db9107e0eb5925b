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
	l := &lazy{expression: expression}
	return l.compiled
}

// lazy compiles an expression once. Packages make dozens of them when they are initialised, so it
// has fewer allocations than [sync.OnceValue].
type lazy struct {
	expression string
	once       sync.Once
	regexp     *regexp.Regexp
}

func (l *lazy) compiled() *regexp.Regexp {
	l.once.Do(func() { l.regexp = regexp.MustCompile(l.expression) })
	return l.regexp
}

// Of is like [New] for an expression that is built at the first use.
func Of(expression func() string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expression()) })
}
