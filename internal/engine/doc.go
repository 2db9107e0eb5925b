// Package engine assembles what takes part in a team. Whoever runs teams, from the command line, a
// Go program or another front end, opens them here, so that what one of them does all of them do.
//
// # Authority
//
// The package decides nothing about a team. It knows which parts belong together: an open replica
// has the hooks of its home and keeps the projections; a host has the checks of the place where it
// is to run, the merged worktree and the checkpoints; a session outside has its presence, its mail,
// its tools and, as the lead, the lead. What an actor may do is the team's affair, who may call is
// package access's, and what a person is shown is the caller's.
//
// # States of a host
//
//	Open ──Host──▶ refused: it runs on another machine, has another history, or its directory is gone
//	         │
//	         └───▶ what dead hosts left is ended ──▶ enrolled ──▶ running ──End, the team's end──▶ done
//
// # Guarantees
//
//   - No session of a team starts before [Team.Runnable] has agreed.
//   - A refused host has left nothing: no process, no folder.
//   - While a host runs, the projections follow the team. One loop does that, for every caller.
//   - A team on the disk has checkpoints while it is hosted; one in memory has none.
//   - A member is on record only when nothing that can be known before speaks against its session.
//   - One session at a time is a member outside. Its mail is read when a later call shows that it
//     came through, and is repeated to the next session else.
//   - What is opened here is closed by its Close alone, once its host has ended.
package engine
