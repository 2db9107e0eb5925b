// Package simtest simulates the life of a team on the real code, with every fault that can happen.
// After each step it checks whether a promise was broken.
//
// # Authority
//
// The package decides what happens when: the clocks, the disk, the order in which threads run, and
// every fault come from one seed. The team runs real code: hosts, leads, the failure detector, the
// tools of members, the replica, the core, and the text of records. The package simulates what that
// code touches outside: a journal on a disk that can lose power, the registry of hosts, heartbeats,
// saved work, the project, agent sessions with transcripts, and people.
//
//	plan (moves, from the seed) ──▶ world: agenda of threads, virtual time ──▶ judge: the promises, record by record
//	                                  │ people  sessions  disk                         and context by context
//	                                 gate, and the seams behind it
//	                                  │ hosts  leads   real code, in a bubble of testing/synctest
//
// # Real code and the world
//
// Real code has goroutines of its own. They and the world take turns at the gate. While the world
// runs, all of them wait; the world resumes when they all wait again. Whatever real code touches is
// a seam, which asks the world to act. The world carries out a request in a thread of the process
// that asks. The request takes a time from the seed, and the process can be killed in the middle of
// it. A request that takes no time is answered at once. After a kill every seam of the process
// fails: the code returns, and nothing that it does has an effect.
//
// The clock of real code follows the clock of the world, less than a millisecond behind. Waking
// every goroutine for each step of the world would take several times as long.
//
// # Repeatable histories
//
// A seed gives the same history if the goroutines of real code run in the same order. On one
// processor they do, so the tests of this package run on one. To play many histories, the tests
// start several processes. Two things remain random: which of two ready cases a select takes, and
// the order of two goroutines that ask for the same thing at the same moment. Of 1,500 histories,
// 1,493 were identical when they were played four times. TestTheSameAgain counts them.
//
// # The journal
//
// The journal of the simulation is a model: lines on a disk, with the conflict rule, the waits and
// the failures of the real one. People act from threads of the world, which may wait for nothing
// but the world. The real journal waits in goroutines of its own, for locks and for changes of its
// files, so it would stop the world. Package filejournal tests the real files, and what a loss of
// power leaves of them, with histories of its own on the disk of package disktest.
//
// # A history
//
// First the moves of the plan happen: work for the team, and faults. Then everything heals, and the
// team has to come to rest: tasks done, inboxes empty, requests ended, every session idle. If a
// history breaks a promise, the package plays it again with fewer moves as long as it breaks the
// same promise. It reports the remaining history line by line.
//
// # Where things are
//
//   - plan.go, moves.go, moves_lead.go: what happens. Each request of a person is a row in
//     requests, and each fault a row in faults.
//   - world.go, pool.go, gate.go: processes, threads and time, and where real code meets them.
//   - host.go, lead.go, office.go: processes with real code in them.
//   - seams.go, agent.go, disk.go: what real code touches. Another thing that it touches is a type
//     here.
//   - session.go, people.go: what agents and people do. Each reaction of an agent to a message is a
//     case of session.react.
//   - judge.go, judge_lead.go, judge_notes.go, judge_demands.go, rest.go: the promises. A method
//     of judge checks each, called from judge.record, judge.reads, judge.edits, judge.loses,
//     judge.takes, judge.punctual or judge.atRest. judge.go is longer than other files, because its promises share what the judge
//     remembers of one history.
//   - mutants.go, mutants_lead.go, and bugs_test.go, mutants_test.go: bugs that the simulation must
//     find. Each is a row in mutants. A bug in the core is a function that decides in its place. A
//     bug in the disk or in a seam asks by name whether it is active. A bug in other real code is a
//     row in bugs; an overlay puts it into that code when TestMutants builds the tests again. If
//     few histories find a bug, a row in hints names one that did.
package simtest
