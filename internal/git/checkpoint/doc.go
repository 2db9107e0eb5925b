// Package checkpoint stores checkpoints of a team where they survive the loss of its journal, and
// restores a team from one.
//
// # Authority
//
// The package decides on the format of a checkpoint and its place. That is the branch cadre/TEAM of
// the project's repository or, without a repository, the folder checkpoint beside the team's
// journal. Its callers decide when one is due, and what happens to a restored team: a restoration
// is a command for the core like any other. While the journal exists, a checkpoint is never the
// truth.
//
// # Content
//
//	.claude/teams/TEAM/state.json              the team at a glance, for people; it names the sheets and says how far the logs count
//	                   mailbox.log             a line for each record with events of messages
//	                   tasks.jsonl             the same for tasks; and each task once more, whole, when it is completed or deleted
//	                   mailbox/0000/0001.log   older parts of these, which never change and which all later commits share
//	                   tasks/0000/0001.jsonl
//	                   restore/team-DIGEST.json             sheets: what the team is restored from, besides the tasks that are closed;
//	                           base-DIGEST.json             later commits share those that are as they were
//	                           members-DIGEST.jsonl
//	                           messages/0007-DIGEST.jsonl   numbers 700 to 799, as far as they are not delivered
//	                           tasks/0012-DIGEST.jsonl      the same, as far as they are open
//	                   COMPLETED               the record of a team that was consolidated
//	README.md                                  what a forge shows of the branch
//
// A commit on the branch also carries the work, as its further parents, each once. They are the
// branches of members, the commit that is checked out in the team's directory, a commit of the
// team's uncommitted changes there, the commits that tasks name, and the checkpoints of the teams
// in the team, which are on branches of their own. What an earlier checkpoint has
// is reachable by the first parent. So the line of first parents has checkpoints only, and a clone
// that has the branch has the work. state.json names the commits. As in the consolidation, a file
// is the team's if it differs from the last commit now and did not when the team was created. Files
// that git ignores, files over 5 MiB and files that likely hold a secret are only named.
//
// So the cost of a checkpoint depends on the events since the last one and on the open tasks, not
// on the length of the history. The size of state.json depends on the team and its open tasks: 50
// KiB at most for ten members and a hundred tasks. Likely secrets are replaced by [Mark] before
// anything is written: a branch may be pushed.
//
// # Writing
//
//	load the tip ─▶ does it cover us? ─yes▶ done
//	     ▲               │no
//	     │               ▼
//	     │         render what is new ─▶ gather the work ─▶ git fast-import: the commit ─▶ git update-ref: the branch, if it is still where it was
//	     └──────────────────────────────────moved──────────────────────────────┘
//
// # Guarantees
//
//   - The package touches neither the work tree nor the index, HEAD or a hook. No variable GIT_… of
//     the caller changes which repository is used.
//   - The branch moves only from a checkpoint to a later one of the same history, or of a later
//     team of that name. If two hosts write at once, neither undoes the other's work: the second
//     writes on top, or finds nothing left to write.
//   - After a kill at any point, the branch or folder has either the previous checkpoint or the new
//     one.
//   - The commits of every task that a checkpoint calls completed are reachable from it: the work
//     is collected after the state was read.
//   - What a checkpoint carries of a team in the team is a state that fits its own: each message
//     between the two is in one of them, whatever was passed on meanwhile.
//   - No commit is made of a file that was not searched for secrets. Existing commits are carried
//     unchanged.
//   - Loose objects of checkpoints are packed before there are a thousand, in at most eight packs.
//     Only packed objects are removed, and other objects are not touched.
//   - Restore returns a complete team, or an error that names what is wrong; never a part.
//   - A restored team and its original do not both write: the second one gets [ErrForked].
package checkpoint
