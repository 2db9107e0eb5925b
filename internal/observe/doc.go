// Package observe watches a team of Claude Code through what its agents say. It turns their lines
// into the events of package team, so that whatever shows, journals or serves a team can do the
// same with one that is only observed.
//
// # Authority
//
// The agents decide and this package listens. Nothing below observe starts, answers or writes
// anything: an [Observer] is a function of the lines that it is given, their order and the time at
// which they came. It says what an agent said happened, never what the agent meant to do: a task
// that could not be created never existed.
//
//	        protocol                    model                                        present
//	line ─▶ sieve ─▶ decode ─▶ tools ─▶ correlate ─▶ reduce ─▶ settle ─▶ record ─┬─▶ notices, supplements
//	bytes   of use?  blocks,   a team's call with    what is   what the          └─▶ state, JSON Patches
//	                 letters   call?    its result   known     state lacks
//
// The packages import each other in this direction only:
//
//   - protocol knows what the lines say: formats, tools and their outcomes, letters, the notes of
//     a team's files. It remembers nothing but which tool uses to ignore.
//   - model makes out the team: who speaks, which team it is, its members, tasks and messages.
//   - present shows a team to consumers: its state in JSON and what changes in it, events,
//     supplements, the JSON Schema of all of these.
//
// This package puts the three together. Package session observes a session whose agent has no
// teams, source brings lines, and store keeps what is known and journals what it makes.
//
// # Order
//
// Inputs come in any order: a lead's stream, a teammate's transcript that is read an hour later, a
// part that a reconnection repeats. So nothing depends on who is read first. Each known thing has
// the time at which it was true, and the newest counts. A call counts from its result. What
// TaskList or TaskGet shows counts from their call, because it may be older than a result that came
// meanwhile. Times are those of the lines where they have some, else those of their arrival, and
// never go back within one source.
//
// Of several teams the one that began last is observed, in whatever order they are read. A team
// that is left for its successor ends in its records, like one that was deleted.
//
// # Guarantees
//
//   - A tool use counts once, by its id, and a letter once, by its line, however often they are
//     seen.
//   - No line is fatal. A line that cannot be read is counted and reported. If it may have
//     concerned the team, it is recorded as a gap.
//   - Memory grows with the tasks and members of the team, and by a few words with each source and
//     each earlier team. Everything else that is remembered has a bound.
//   - What is known can be saved and read back at any line, also in the middle of a call.
//
// # Contract
//
// Consumers of [Observer.State], [Observer.Agents] and the notices may rely on this at every line:
//
//   - There is no state until a team was created, or showed itself, and none after it was deleted.
//     A session without a team makes no event.
//   - Members are added and never taken away while their team is there. A member that shut down
//     stays, with that status. Names are unique.
//   - Tasks are added, change, and go only when they were deleted, or when an agent's own list no
//     longer has them. Ids are unique.
//   - The agents are the members, in the same order.
//   - What happens to a member or a task comes after it joined or was created. Beyond that the
//     order is that in which it was read.
//   - The state survives a restart, a reconnection and the compaction of an agent's context.
package observe
