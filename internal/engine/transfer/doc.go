// Package transfer moves a team between machines, by means of the branch with its checkpoints.
//
// # Authority
//
// The package decides in which order a team, its branch and its work arrive at a place or leave it.
// Package checkpoint decides what a checkpoint holds, the core decides what a team may do, and
// package consolidate writes files into a work tree. Package transfer never changes the HEAD or the
// index of the user's work tree.
//
// # Steps
//
//	Adopt:  read the tree ─▶ (move the old copies aside) ─▶ branches of members and of the team ─▶ files into the work tree ─▶ branches of the teams in it ─▶ all folders, complete, its own last ─▶ a checkpoint of its own
//	Push:   (release the tree) ─▶ a checkpoint ─▶ fetch ─▶ examine what would be pushed ─▶ ask, once ─▶ push
//	Pull:   fetch ─▶ compare ─▶ a last checkpoint of the local copy ─▶ Adopt
//
// # Guarantees
//
//   - After a kill between any two steps, the same call continues. Until the team's folder appears,
//     the team does not count as restored. From then on, the team names the work that is missing.
//   - A file in the work tree is changed only if its content is what the checkpoint records as the
//     content without the team's work.
//   - Two histories of a team are never joined, and the package never chooses between them unasked:
//     the error is a [checkpoint.ForkError]. The history that was not chosen stays reachable from
//     the branch.
//   - A team and the teams in it are restored together or not at all, are compared as a whole, and
//     one choice between two histories counts for all of them.
//   - A push is always a fast-forward of the remote's branch, and pushes only the team's own
//     branch.
package transfer
