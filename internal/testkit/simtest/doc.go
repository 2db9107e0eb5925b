// Package simtest plays a team's life on the real code, with everything that can go wrong, and looks
// after each step whether a promise was broken.
//
// # Authority
//
// It decides what happens when: the clocks, the disk, the order in which threads run, and every
// fault come from one seed. What the team does is the real code: hosts, leads, the failure detector,
// the tools of members, the replica, the core, and the text of records. What that code touches of the
// outside world is played: a journal on a disk that can lose power, the registry of hosts, signs of
// life, saved work, the project, sessions of agents with transcripts, and people.
//
//	plan (moves, from the seed) ──▶ world: agenda of threads, virtual time ──▶ judge: the promises, record by record
//	                                  │ people  sessions  disk                         and context by context
//	                                 gate, and the seams behind it
//	                                  │ hosts  leads   real code, in a bubble of testing/synctest
//
// # Real code and the world
//
// Real code has goroutines of its own. They and the world take turns at the gate: while the world does
// something everybody else waits, and it goes on when they all wait again. Whatever real code touches
// is a seam that asks the world for it. The world carries that out as a thread of the process that
// asks, so it takes a time from the seed, and the process can be killed in the middle of it; what
// takes no time is answered at once. From then on every seam of the process fails: the code comes to
// its end, and nothing that it does has an effect.
//
// The clock of real code follows that of the world, and is behind by less than a millisecond: to wake
// everybody for each step of the world would take several times as long.
//
// # The same again
//
// A seed gives the same history when the goroutines of real code come to their turns in the same
// order. On one processor they do, so the tests of this package run on one, and where many histories are
// to be played several processes play them. Chance still decides which of two choices a select takes
// that are both ready, and which of two goroutines comes first that ask for the same thing at one
// moment: 1,493 of 1,500 histories were the same to the letter when they were played four times.
// TestTheSameAgain counts them.
//
// # The journal
//
// The journal of the simulation is a model: lines on a disk, with the conflict rule, the waits and the
// failures of the real one. People act from threads of the world, which may wait for nothing but the
// world. The real journal waits in goroutines of its own, for locks and for changes of its files, so
// it would stop the world. Its files, and what a loss of power leaves of them, have histories of their
// own in package filejournal, on the disk of package disktest.
//
// # A history
//
// For some time the moves of the plan happen: work for the team, and faults. Then everything heals,
// and the team has to come to rest: tasks done, inboxes empty, requests ended, every session idle.
// A history that breaks a promise is played again with fewer moves as long as it breaks the same
// promise, and what is left is told line by line.
//
// # Where things are
//
//   - plan.go, moves.go, moves_lead.go: what happens. What people ask of a team, and what goes wrong,
//     is a row in requests or faults.
//   - world.go, crew.go, gate.go: processes, threads and time, and where real code meets them.
//   - host.go, lead.go, office.go: processes with real code in them.
//   - seams.go, agent.go, disk.go: what real code touches. Another thing that it touches is a type here.
//   - session.go, people.go: what agents and people do. What an agent does with something it is told is
//     a case of session.react.
//   - judge.go, judge_lead.go, rest.go: the promises. Each is looked at in a method of judge, called from
//     judge.record, judge.reads, judge.edits, judge.loses, judge.takes, judge.punctual or
//     judge.atRest.
//   - mutants.go, mutants_lead.go, and bugs_test.go, mutants_test.go: bugs that have to be found. Each is a
//     row in mutants. One in the core is a function that decides in its place; one in the disk or in
//     a seam asks for itself by name; one in other real code is a row in bugs, which an overlay puts
//     into that code when the tests are built once more. Where few histories find it, a row in hints
//     says which one did.
package simtest
