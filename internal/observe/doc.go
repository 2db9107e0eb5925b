// Package observe watches a Claude Code team through the output of its agents. It turns their lines
// into the events of package team, so that everything that shows, journals or serves a team also
// works for an observed one.
//
// # Authority
//
// The agents decide and this package only listens. Nothing below observe starts, answers or writes
// anything: an [Observer] is a function of its input lines, their order and their arrival times. It
// reports what an agent said happened, never what the agent intended: a task whose creation failed
// never existed.
//
//	        protocol                    model                                        present
//	line ─▶ filter ▶ decode ─▶ tools ─▶ correlate ─▶ reduce ─▶ settle ─▶ record ─┬─▶ notices, supplements
//	bytes   of use?  blocks,   a team's call with    what is   what the          └─▶ state, JSON Patches
//	                 messages  call?    its result   known     state lacks
//
// The packages import each other in this direction only:
//
//   - protocol knows the meaning of the lines: formats, tools and their outcomes, messages, notes
//     about a team's files. It remembers only which tool uses to ignore.
//   - model reconstructs the team: who speaks, which team it is, its members, tasks and messages.
//   - present shows a team to consumers: its state in JSON and the changes, events, supplements,
//     and the JSON Schema of all of these.
//
// This package combines the three. Package session observes a session whose agent has no teams,
// source brings lines, and store keeps the observer's knowledge and journals its records.
//
// # Order
//
// Inputs arrive in any order: a lead's stream, a teammate's transcript that is read an hour later,
// a part that a reconnection repeats. So nothing depends on which source is read first. Each known
// fact has the time at which it was true, and the newest wins. A call counts from its result. The
// content of TaskList or TaskGet counts from their call, because it may be older than a result that
// arrived in between. The times are those in the lines, or otherwise the arrival times. They never
// go backwards within one source.
//
// Of several teams, the one that began last is observed, in whatever order they are read. A team
// that is left for its successor ends in its records, like one that was deleted.
//
// # Guarantees
//
//   - A tool use counts once, by its id, and a message once, by its line, however often they are
//     seen.
//   - No line is fatal. A line that cannot be read is counted and reported. If it may have
//     concerned the team, it is recorded as a gap.
//   - Memory grows with the tasks and members of the team, and by a few words for each source and
//     each earlier team. Everything else is bounded.
//   - The observer's knowledge can be saved and restored at any line, even in the middle of a call.
//
// # Contract
//
// Consumers of [Observer.State], [Observer.Agents] and the notices may rely on this at every line:
//
//   - There is no state before a team was created or seen, and none after it was deleted. A session
//     without a team produces no event.
//   - Members are added, and never removed while their team exists. A member that shut down stays,
//     with that status. Names are unique.
//   - Tasks are added and changed. They are removed only when they were deleted, or when an agent's
//     own list no longer has them. Ids are unique.
//   - The agents are the members, in the same order.
//   - Events about a member or a task come after it joined or was created. Otherwise events are in
//     the order in which they were read.
//   - The state survives a restart, a reconnection and the compaction of an agent's context.
package observe
