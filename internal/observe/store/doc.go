// Package store passes lines to an observer, keeps the observer's knowledge, and journals its
// records. It is the disk of packages observe and session, which are pure.
//
// # Authority
//
// A [Watch] passes the lines of feeds to one [Observer], one at a time and with their arrival
// times. It shows the results to all viewers. [Book] is the only writer of an observed team's
// journal, and [Kept] of the folder beside it.
//
//	feeds ─ line, place ─▶ Watch ─▶ Observer ─▶ Seen ─┬─▶ Kept: the observer's knowledge, on disk
//	                                one at a time     ├─▶ Book: the team's journal, like any team's
//	                                                  └─▶ viewers: a board, NDJSON, a program
//
// # Files
//
//	<folder>/lock               held by the running observer
//	         observation.json   the observer's knowledge after some line, and the place in each file
//	         lines-<n>          the relevant lines since then
//
// A line is kept before its records are journaled, and the knowledge is saved only when the journal
// has all records. So an observer that is killed at any step and started again sees the same lines,
// makes the same records, and skips those that the journal has. After a power loss the journal may
// be ahead of the kept data; the journal's state then counts.
//
// # Guarantees
//
//   - No line is fatal.
//   - A record is journaled once, however often its observer was killed.
//   - The end of a stream is kept like a line, for observers that use it.
//   - At most one process observes under one name.
package store
