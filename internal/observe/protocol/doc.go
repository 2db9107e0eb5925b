// Package protocol reads what the agents of a Claude Code team write: stream-json, session
// transcripts, the Agent SDK's message objects, and notes about the files of a team.
//
// # Authority
//
// It knows the formats, and both ages of the team tools. It does not know which team is observed,
// who speaks, or what happened before: that is package model's.
//
//   - sift.go passes over the lines that say nothing of a team, by a look at their bytes.
//   - decode.go reads a line, recognise.go the calls of a team's tools, and outcome.go what became
//     of them.
//   - letters.go reads the messages in a user's line, notes.go the files of a team.
//   - lines.go cuts a stream into lines, and environment.go tells whose session a process is.
//
// # Guarantees
//
//   - Functions are pure. A [Sieve] remembers the tool uses that are not a team's, in a table of
//     fixed size, and nothing else here has a state.
//   - Any bytes can be read. A field of another type than expected is passed over, and the rest of
//     its line is read.
//   - A line that the sieve passes over says nothing of a team (FuzzSift).
package protocol
