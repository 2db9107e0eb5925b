// Package transfer moves a team between machines, by the branch of its checkpoints.
//
// # Authority
//
// The package decides in which order a team, its branch and its work come to a place or leave it.
// What a checkpoint holds is package checkpoint's, what a team may do is the core's, and how files
// come into a work tree is package consolidate's. It never changes HEAD or the index of the person.
//
// # Steps
//
//	Adopt:  (a copy that is here, aside) ─▶ branches of members and of the team ─▶ work into the work tree ─▶ the team's folder, whole ─▶ a checkpoint of its own
//	Push:   (let go of the team) ─▶ a checkpoint ─▶ fetch ─▶ look at what goes there ─▶ ask, once ─▶ push
//	Pull:   fetch ─▶ compare ─▶ a last checkpoint of the copy that is here ─▶ Adopt
//
// # Guarantees
//
//   - Killed between any two steps, the same call continues. Until the team's folder appears nobody
//     takes the team for restored; from then on it names what is missing.
//   - A file in the work tree is changed only where it is as the checkpoint says that it was
//     without the team's work.
//   - Two histories of a team are never joined or chosen between without being told: the error is a
//     [checkpoint.ForkError]. What is left stays reachable from the branch.
//   - Nothing is pushed that is no successor of what the remote has, and no branch but the team's.
package transfer
