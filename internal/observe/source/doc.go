// Package source brings what agents say to whoever listens, line by line.
//
// # Authority
//
// A [Feed] knows a place from which lines come: a [Stream], a growing [File], a folder of
// [Transcripts], the files of a [ClaudeTeam]. It gives each line to a [Listener], with the place
// where reading continues behind it. What the lines say, and what is kept of them, it does not
// know. Nothing that is read is ever written to.
//
// # Guarantees
//
//   - A line is given when its line break is there, within milliseconds. One that is being written
//     is waited for.
//   - Reading a file continues behind the last whole line, also in another process. A file that was
//     replaced is read to its end before the new one. A file that was cut, one that was replaced
//     while nobody looked, and a transcript that was replaced, are read from the beginning, and the
//     gap is reported.
//   - The end of a stream is reported behind its last line.
//   - What is new in several transcripts is given in the order of the times in their lines. Other
//     sources come as they come.
//   - No line can fill the memory.
package source
