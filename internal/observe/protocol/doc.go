// Package protocol reads the output of the agents of a Claude Code team: stream-json, session
// transcripts, the Agent SDK's message objects, and notes about the files of a team.
//
// # Authority
//
// It knows the formats, and both generations of the team tools. It does not know which team is
// observed, who speaks, or what happened before; package model does.
//
//   - filter.go skips lines that do not concern a team, by looking at their bytes.
//   - decode.go decodes a line, recognise.go recognises the calls of team tools, and outcome.go
//     reads their outcomes.
//   - messages.go reads the messages in a user line, notes.go the files of a team.
//   - lines.go splits a stream into lines, and environment.go finds out whose session a process is.
//
// # Guarantees
//
//   - Functions are pure. A [Filter] remembers tool uses that do not belong to a team, in a table
//     of fixed size. Nothing else here has state.
//   - Any bytes can be read. A field of an unexpected type is ignored, and the rest of its line is
//     read.
//   - A line that the filter skips does not concern a team (FuzzFilter).
package protocol
