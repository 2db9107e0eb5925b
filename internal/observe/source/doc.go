// Package source delivers the output of agents to a listener, line by line.
//
// # Authority
//
// A [Feed] knows a source of lines: a [Stream], a growing [File], a folder of [Transcripts], the
// files of a [ClaudeTeam]. It passes each line to a [Listener], with the place at which reading
// continues after it. It does not interpret or keep the lines. It never writes to its source.
//
// # Guarantees
//
//   - A line is delivered within milliseconds after its line break was written. Incomplete lines
//     are not delivered.
//   - Reading a file continues after the last complete line, also in another process. If a followed
//     file is replaced, the old file is read to its end before the new one. A file that was
//     truncated, a file that was replaced between two runs, and a replaced transcript are read from
//     the beginning, and a gap is reported.
//   - The end of a stream is reported after its last line.
//   - New lines of several transcripts are delivered in the order of their times. Other sources are
//     delivered as lines arrive.
//   - No line can exhaust the memory.
package source
