// Package model reconstructs a Claude Code team from the output of its agents, as records of
// package team.
//
// # Authority
//
// It decides which team is observed, who wrote a line, and what is known about members, tasks and
// messages. It does not know where lines come from, or what consumers are shown.
//
//   - [Watcher] (watcher.go, take.go, reduce.go, files.go) processes the lines. It holds a fact
//     back while its author is unknown.
//   - speakers (speaker.go) knows who speaks: the lead, a teammate with its own stream or a chain
//     of nameless files, or a subagent, which is not in the team.
//   - correlation (correlate.go) matches calls and results, in whatever order they arrive.
//   - observedTeam (observed_team.go, lifetime.go, requests.go) has the name, the lead, the
//     beginning and the end of the observed team, and its tasks, members, messages and usage.
//   - recorder (recorder.go) has the team's state and the record under construction; changes.go
//     adds the difference between the knowledge and the state to it.
//   - memory.go saves and restores all of it.
//
// # Guarantees
//
// The guarantees of package observe hold. The saved form is durable: a later version reads the data
// of an earlier one, and refuses the data of a newer one ([ErrNewer]).
package model
