// Package render turns teams into lines for people: what happened, and the present state. It prints
// nothing itself.
//
// # Guarantees
//
// A line contains no line break and no character that controls a terminal, whatever agents wrote.
package render
