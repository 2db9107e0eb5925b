// Package observe watches a team of Claude Code through what its agents say, and makes of it the
// events of package team: an observed team is then a team like our own, for everything that shows,
// journals or serves one.
//
// # Authority
//
// The agents decide and this package listens. Nothing here starts, answers or writes anything: it
// is a function of the lines that it is given, in the order in which they come, with the time at
// which they came. What it says of a team is what an agent said happened, never what it meant to
// do: a task that could not be created never existed.
//
//	line ──▶ sift ──▶ decode ──▶ recognise ──▶ correlate ──▶ reduce ──▶ settle ──▶ record of team events ──▶ notices
//	bytes    of no    blocks     a team's      call with     what is    what the                             for consumers
//	         use?     letters    tool call     its result    known      team lacks
//
// Each step is a file:
//
//   - sift.go tells by a look at the bytes that a line is of no interest, without decoding it:
//     nearly all are.
//   - decode.go reads the rest: lines of stream-json, of session transcripts, and the Agent SDK's
//     message objects, which are alike.
//   - recognise.go knows the tools of both ages of the protocol, outcome.go what became of a call.
//   - correlate.go brings call and result together, whichever comes first.
//   - speaker.go finds out who says it: the lead, a teammate in a stream of its own or in a chain
//     of nameless files, or a subagent, who is not of the team.
//   - epoch.go tells one team from the next: which is observed, who leads it, and when it is over.
//   - take.go goes through a line; reduce.go and requests.go write what it says into a board of
//     tasks (board.go), a roster of members (roster.go), a mailbag (mailbag.go) and what was used
//     (usage.go).
//   - files.go takes what the files of a team show, which comes as notes among the lines.
//   - settle.go says as team events what the team's state lacks of that; notice.go, teamstate.go
//     and supplement.go show it to consumers.
//   - memory.go saves all of it, and reads it back.
//
// # Order
//
// Inputs come in any order: a lead's stream, a teammate's transcript that is read an hour later, a
// part that a reconnection repeats. So nothing depends on who is read first. Each thing that is
// known has the time at which it was true, and the newest counts: a call counts from its result;
// what TaskList or TaskGet shows counts from their call, because it may be older than a result that
// came meanwhile. Times are those of the lines where they have some, else those of their arrival,
// and never go back within one source.
//
// Of several teams the one that began last is observed. Whoever began before it is not, in whatever
// order they are read; a team that is left for its successor ends in its records, as one that was
// deleted does.
//
// # Guarantees
//
//   - A tool use counts once, by its id, and a letter once, by its line, however often they are
//     seen.
//   - No line is fatal. What cannot be read is counted and reported, and if it may have concerned
//     the team, that is a gap, and said.
//   - Memory grows with the tasks and members of the team, and by a few words with each source and
//     each team that was there before; everything else that is remembered has a bound.
//   - What is known can be saved and read back at any line, also in the middle of a call.
//
// # Contract
//
// What consumers of [Observer.State], [Observer.Agents] and [Notice] may rely on, at every line:
//
//   - There is no state until a team was created, or showed itself, and none after it was deleted.
//     A session without a team makes no event.
//   - Members are added and never taken away while their team is there; who shut down stays, with
//     that status. Their names are unique.
//   - Tasks are added, change, and go only when they were deleted, or an agent's own list has them
//     no more. Their ids are unique.
//   - The agents are the members, in the same order.
//   - What happens to a member or a task comes after it joined or was created. Beyond that the
//     order is that in which it was read.
//   - The state survives a restart, a reconnection and the compaction of an agent's context:
//     nothing is gone because an agent forgot it.
package observe
