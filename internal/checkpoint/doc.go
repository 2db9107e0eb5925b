// Package checkpoint keeps checkpoints of a team where its journal cannot be lost with them, and brings a team back from one.
//
// # Authority
//
// The package decides what a checkpoint looks like and where it is: on the branch cadre/TEAM of the project's repository or, where there is none,
// in the folder checkpoint beside the team's journal. When one is due, and what becomes of a restored team, is decided elsewhere: a
// restoration is a command for the core like any other. A checkpoint is never the truth while the journal is there.
//
// # What is in one
//
//	.claude/teams/TEAM/state.json              the team, for people and for restoring; closed tasks are not in it
//	                   mailbox.log             a line for each record with events of messages
//	                   tasks.jsonl             the same for tasks; and each task once more, whole, when it is completed or deleted
//	                   mailbox/0000/0001.log   older parts of these, which never change and which all later commits share
//	                   tasks/0000/0001.jsonl
//
// So a checkpoint costs what happened since the last one and what is open, however long the history is. Likely secrets are replaced by [Mark] before
// anything is written: a branch may be pushed.
//
// # How one is written
//
//	load the tip ─▶ does it cover us? ─yes▶ done
//	     ▲               │no
//	     │               ▼
//	     │         render what is new ─▶ git fast-import: the commit ─▶ git update-ref: the branch, if it is still where it was
//	     └──────────────────────────────────moved──────────────────────────────┘
//
// # Guarantees
//
//   - Neither the work tree nor the index, HEAD or a hook is touched, and no variable GIT_… of the caller changes which repository is meant.
//   - The branch only moves from a checkpoint to a later one of the same history, or of a later team of that name. Of two hosts that write at once
//     none undoes what the other wrote: who comes second writes on top, or finds that there is nothing left to write.
//   - Killed anywhere, the branch, or the folder, has the checkpoint before or the one after.
//   - Restore gives a whole team or an error that names what is wrong, never a part.
//   - A team that was restored, and the one that it was restored from, do not both write: the one that comes second gets [ErrForked].
package checkpoint
