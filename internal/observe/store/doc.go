// Package store shows an observer what comes, keeps what the observer knows, and journals what it
// makes: the disk of packages observe and session, which are pure.
//
// # Authority
//
// A [Watch] gives the lines of feeds to one [Observer], one at a time and with the time at which
// they came, and shows everybody who looks on what was seen. [Book] is the only writer of an
// observed team's journal, and [Kept] of the folder beside it.
//
//	feeds ─ line, place ─▶ Watch ─▶ Observer ─▶ Seen ─┬─▶ Kept: what the observer knows, on disk
//	                                one at a time     ├─▶ Book: the team's journal, like that of any team
//	                                                  └─▶ whoever looks on: a board, NDJSON, a program
//
// # What is kept
//
//	<folder>/lock               held by the living observer
//	         observation.json   what the observer knew after some line, and how far each file was read
//	         lines-<n>          the lines since then that said something
//
// A line is kept before what it said is journaled, and what is known is saved only when the journal
// has all of it. So an observer that is killed at any step and starts again is shown the same
// lines, makes the same records, and leaves out those that the journal has. After a loss of power
// the journal may be ahead of what was kept: then the journal's state counts.
//
// # Guarantees
//
//   - No line is fatal.
//   - A record is journaled once, however often its observer was killed.
//   - The end of a stream is kept like a line, for an observer to whom it says something.
//   - At most one process observes under one name.
package store
