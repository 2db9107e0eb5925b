// Package simtest plays a team's life in one goroutine, with everything that can go wrong, and
// looks after each step whether a promise was broken.
//
// # Authority
//
// It decides what happens when: the clocks, the disk, the order in which threads run, and every
// fault come from one seed. What the team does is the real code: the core (team), the replica with
// its commands, repetitions and snapshots, and the text of records. Only what touches the outside
// world is played: a journal on a disk that can lose power, hosts that follow package host step by
// step, processes that lead as package leader does, sessions of agents with transcripts, people.
//
//	plan (moves, from the seed) ──▶ world: agenda of threads, virtual time
//	                                  │ people  hosts ─ seats ─ sessions      each a thread that can stop for good between any two steps
//	                                  └─▶ replica ─▶ journal ─▶ disk ─▶ judge: the promises, record by record and context by context
//
// # A history
//
// For some time the moves of the plan happen: work for the team, and faults. Then everything heals,
// and the team has to come to rest: tasks done, inboxes empty, requests ended, every session idle.
// A history that breaks a promise is played again with fewer moves as long as it breaks the same
// promise, and what is left is told line by line.
//
// # Where things go
//
//   - What people ask of a team, and what goes wrong: a row in moves.
//   - What a host does about a want: a case of host.reconcile or seat.hand, as in package host.
//   - What a process that leads does: leading.take and leading.hold, as in leader and in the
//     command that resumes a team.
//   - What an agent does with something it is told: session.react.
//   - What a host records of the work of tasks: host.traceOnce.
//   - A promise: a method of judge, called from judge.record, judge.reads, judge.edits,
//     judge.gives, judge.takes, judge.punctual or judge.atRest.
//   - A bug that has to be found: a row in mutants. A history that found one of ours: a row in
//     once, of the tests.
//
// # Guarantees
//
//   - The same seed, plan and mutant give the same history, to the byte.
//   - Nothing runs beside the history, and nothing of it is left when [Play] returns.
package simtest
