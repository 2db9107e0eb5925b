// Package source brings what agents say to an observer, keeps what the observer knows, and journals
// what it makes of it: the hands of packages observe and solo, which are pure.
//
// # Authority
//
// A [Feed] knows a place from which lines come: a stream, a growing file, a folder of transcripts,
// the files of a team. It does not know what they say. A [Watch] gives them to one [Observer], one
// at a time and with the time at which they came, and shows everybody who looks on what was seen.
// Nothing of what is observed is ever written to.
//
//	Stream ─────┐
//	File ───────┤
//	Transcripts ┼─ line, place ─▶ Watch ─▶ Observer ─▶ Seen ─┬─▶ Kept: what the observer knows, on disk
//	ClaudeTeam ─┤                  one at a time             ├─▶ Book: the team's journal, like that of any team
//	yours ──────┘                                            └─▶ whoever looks on: a board, NDJSON, a program
//
// # What is kept
//
//	<folder>/lock               held by the living observer
//	         observation.json   what the observer knew after some line, and how far each file was read
//	         lines-<n>          the lines since then that said something
//
// A line is kept before what it said is journaled, and what is known is saved only when the journal
// has all of it. So who is killed at any step and begins again is shown the same lines, makes the
// same records of them, and leaves out those that the journal has. After a loss of power the
// journal may be ahead of what was kept; then its state is what goes on.
//
// # Guarantees
//
//   - A line is shown to the observer when its line break is there, within milliseconds; one that
//     is being written is waited for.
//   - What is read of a file goes on behind the last whole line, also in another process. A file
//     that was replaced is read to its end before the new one; one that was cut, one that was
//     replaced while nobody looked, and a transcript that was, is read from its beginning, and the
//     gap is said.
//   - That a stream has ended is told behind its last line to an observer to whom it says
//     something, and kept like a line.
//   - What is new in several transcripts is given in the order of the times in their lines. Other
//     sources come as they come.
//   - No line is fatal, and none can fill the memory.
//   - A record is journaled once, however often its observer was killed.
//   - At most one process observes as one name.
package source
