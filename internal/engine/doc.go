// Package engine assembles the parts of a team. The command line, Go programs and other front ends
// open teams here, so all of them behave alike.
//
// # Authority
//
// The package decides nothing about a team. It knows which parts belong together. An open replica
// has the hooks of its home and keeps the projections. A host has the checks of the place where it
// runs, the merged worktree and the checkpoints. An external session has its presence, its mail,
// its tools and, as the lead, the lead. The team decides what an actor may do, package access who
// may call, and the caller what a person is shown.
//
// # States of a host
//
//	Open ──Host──▶ refused: it runs on another machine, has another history, or its directory is gone
//	         │
//	         └───▶ what dead hosts left is ended ──▶ enrolled ──▶ running ──End, the team's end──▶ done
//
// # Guarantees
//
//   - No session of a team starts before [Team.Runnable] has accepted the team.
//   - A refused host leaves nothing behind: no process, no folder.
//   - While a host runs, the projections follow the team. One loop does that, for every caller.
//   - A team on disk has checkpoints while it is hosted. A team in memory has none.
//   - A member is recorded only after every check that is possible beforehand has passed.
//   - An external member has one session at a time. Mail counts as read once a later call shows
//     that it arrived. Otherwise the next session gets it again.
//   - Close closes everything that was opened here. The host must have ended before.
package engine
