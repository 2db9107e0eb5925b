// Package simtest plays a team's life in one goroutine, with everything that can go wrong, and
// looks after each step whether a promise was broken.
//
// # Authority
//
// It decides what happens when: the clocks, the disk, the order in which threads run, and every
// fault come from one seed. What the team does is the real code: the core (team), the replica with
// its commands, repetitions and snapshots, and the text of records. What touches the outside world is
// played: a journal on a disk that can lose power, sessions of agents with transcripts, people. Hosts
// and leads are of two kinds. [PlayReal] runs those of packages host and leader, with the failure
// detector and the tools of members; [Play] has some of its own, which follow those step by step.
//
//	plan (moves, from the seed) ──▶ world: agenda of threads, virtual time
//	                                  │ people  hosts ─ seats ─ sessions      each a thread that can stop for good between any two steps
//	                                  └─▶ replica ─▶ journal ─▶ disk ─▶ judge: the promises, record by record and context by context
//
// # Real hosts and leads
//
// A real host, or lead, has goroutines of its own, in a bubble of [testing/synctest]. They and the world take
// turns at the gate. Whatever a host touches is a seam that asks the world for it: its journal, the
// registry of hosts, signs of life, saved work, the project, the sessions of its agents, the clock.
// The world carries that out as a thread of the host's process, so it takes a time from the seed, and
// the process can be killed in the middle of it. From then on every seam of the host fails: it comes
// to its end, and nothing that it does has an effect. So a real host is killed at its seams alone, and
// a played one between any two steps.
//
// Who of several goroutines comes first at one moment is decided by what they ask for, and between
// those that ask for the same, by nothing. Nor does the seed decide the order in which the host goes
// over its maps, or a select with two choices. Of 200 histories 176 were the same to the letter when
// they were played again, on two processors; with the race detector it was 7 of 20. TestRealAgain
// counts them.
//
// The bugs that real hosts have to show are put into the real code, by an overlay with which the tests
// are built once more: a row in bugs says which piece of which file is another one then.
//
// Why hosts are played still: a history with real ones takes three to four times as much of a
// processor, and playedOnly names bugs that so far only histories with played hosts have found.
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
//   - What a real host touches: a method of registry, signs, saved, project, outer or service.
//   - A bug that has to be found: a row in mutants, and one in bugs, of the tests, where it is in
//     real code. A history that found one of ours: a row in once, of the tests.
//
// # Guarantees
//
//   - The same seed, plan and mutant give the same history, to the byte, where hosts are played;
//     where they are real, most often.
//   - Nothing runs beside the history, and nothing of it is left when [Play] returns.
package simtest
