// Package team is the pure core: what a team of agents is, and every rule about it.
//
// # Authority
//
// [Decide] alone says whether a command is accepted; [State.Apply] alone says what an accepted one
// changes; [State.Wants] alone says what should be true of the outside world. Nothing here reads a
// clock, a file or a random number: time and ids come in with the command, so the same records give
// the same state everywhere and for ever.
//
//	command ──▶ Decide(state) ──▶ record of events ──▶ (journal) ──▶ Apply ──▶ state ──▶ Wants(now)
//
// # States
//
// The moves of a team are [TeamMoves], those of a member [MemberMoves]; docs/ARCHITECTURE.md draws
// them from there. Nothing ends the lead before its team.
//
//	task    pending ─claim▶ in_progress ─complete▶ completed           not completed ─▶ deleted
//	        in_progress ─release, failure, lost member▶ pending
//
// A task is blocked, a derived property, while a task in its blockedBy is neither completed nor
// deleted.
//
// # Guarantees
//
//   - One command is one [Record]: all of its events happen, or none.
//   - A command is idempotent by its id: while its record is among the last [Remembered] ones,
//     sending it again changes nothing and gives the seq of that record. An older repetition meets
//     the rules that protect each thing by itself (fences, incarnations, requests that were
//     answered).
//   - What was read from a state stays as it was: Apply changes no list or map that a reader may
//     hold.
//   - Apply is total: it takes every event that any version of this package recorded, in any state,
//     and replaying events that a state has already is refused by seq.
//   - The state holds no history. A message leaves it when its last recipient has it; what remains
//     grows with the tasks and members of the team.
package team
