// Package model makes out a team of Claude Code from what its agents say, and says it as records
// of package team.
//
// # Authority
//
// It decides which team is observed, who wrote a line, and what is known of members, tasks and
// messages. It does not know where lines come from, or what a consumer is shown.
//
//   - [Watcher] (watcher.go, take.go, reduce.go, files.go) goes through the lines. It holds a fact
//     back while it is not known who made it.
//   - cast (speaker.go) knows who speaks: the lead, a teammate with a stream of its own or a chain
//     of nameless files, or a subagent, which is not in the team.
//   - correlation (correlate.go) brings a call and its result together, whichever comes first.
//   - subject (subject.go, epoch.go, requests.go) is the observed team: its name, its lead, when it
//     began and ended; with a board of tasks, a roster of members, a mailbag, and a ledger of usage.
//   - chronicle (chronicle.go) has the team's state and the record in the making; settle.go adds to
//     it what the state lacks of what is known.
//   - memory.go saves all of it and reads it back.
//
// # Guarantees
//
// Those of package observe. The saved form is durable: a later version reads what an earlier one
// saved, and refuses what a newer one did ([ErrNewer]).
package model
