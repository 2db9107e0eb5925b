// Package team is the pure core: it defines a team of agents and every rule about it.
//
// # Authority
//
// [Decide] alone says whether a command is accepted. [State.Apply] alone says what an accepted
// command changes. [State.Wants] alone says what should be true of the outside world. This package
// reads no clock, file or random number: times and ids come in with the command. So the same
// records give the same state, everywhere and always.
//
//	command ──▶ Decide(state) ──▶ record of events ──▶ (journal) ──▶ Apply ──▶ state ──▶ Wants(now)
//
// # States
//
// [TeamMoves] lists the transitions of a team, and [MemberMoves] those of a member;
// docs/architecture/core.md draws them from there. The lead never ends before its team.
//
//	task    pending ─claim▶ in_progress ─complete▶ completed           not completed ─▶ deleted
//	        in_progress ─release, failure, lost member▶ pending
//	        in_progress ─submit▶ pending ─accepted▶ completed, ─rejected▶ pending
//
// A task is blocked while a task in its blockedBy is neither completed nor deleted. This is
// derived, not recorded.
//
// # Guarantees
//
//   - One command is one [Record]: all of its events happen, or none.
//   - A command is idempotent by its id. While its record is among the last [Remembered] ones,
//     sending it again changes nothing and returns the seq of that record. An older repetition
//     meets the rules that protect each thing: fences, incarnations, and requests that were
//     answered.
//   - Values that were read from a state never change: Apply changes no list or map that a reader
//     may hold.
//   - Apply is total: it takes every event that any version of this package recorded, in any state.
//     It skips a record that was applied before, by its seq.
//   - The state keeps no history. A message leaves it when its last recipient has it. What remains
//     grows with the tasks and members of the team, and with its notes, which have limits.
package team
