// Package consolidate brings a team to its end: it checks what the team did and commits it.
//
// # Authority
//
// The package decides what of the work tree is the team's, and how it becomes a commit. Whether the
// team may be consolidated, and what became of each step, is the core's: every step is a record of
// the team before the next one is taken. What it touches of the repository is new objects, then,
// where members have worked on branches, what these bring, in the work tree; then the branch that
// is checked out, once, then the index, for exactly the paths of the commit, and last the branches
// that are in it. It pushes nothing and runs no hooks of the repository; a check of the team may do
// that.
//
// # Steps
//
//	began ──▶ merged ──▶ staged ──▶ made ──▶ done          and from each of the first three, and from made when HEAD has moved: abandoned
//	  │         │          │         └ HEAD names the commit, the index follows, the team is complete; COMPLETED is written
//	  │         │          └ what comes from branches is put into the work tree; the checks run in the team's directory; the tree must be as it was; the
//	  │         │            commit is made, and nothing refers to it
//	  │         └ what is the team's in the work tree is put into a tree by way of an index of our own, and the branches are merged into that; nothing refers to it
//	  └ members with worktrees of their own end, and what they did is on their branches
//
// The commit has HEAD as its first parent, and the branches as the others: there is one commit of
// the team's work, none of what members committed themselves is lost, and git knows that their
// branches are merged. One that does not merge, or that something in the work tree is in the way
// of, becomes a task for the lead.
//
// # What is the team's
//
// What differs from HEAD now, and did not when the team was created. A file that did, and is as it
// was then, is the person's and left alone. One that did and was changed since is both's: that is
// refused, by name, unless it is included on purpose. What checks leave behind is nobody's.
//
// # Guarantees
//
//   - The commit holds exactly the tree that the checks saw the files of, on the commit that was
//     HEAD then.
//   - Killed anywhere, [Run] goes on where that was: what passed is not checked again, a commit
//     that HEAD names is found, and there is never a second one.
//   - As long as HEAD does not name the commit, giving the attempt up leaves HEAD, index and work
//     tree as they were before it. Of each file that comes from a branch the work tree has at every
//     moment what was there before, or what is to be there; what somebody has changed since is left
//     alone, and named.
//   - A staged file that is missing when an attempt is given up is put back, so that no later
//     attempt commits without it. Where something else is in its place it is named, and every later
//     attempt refuses to begin while it is missing. A file that a check changed stays as it is:
//     nobody can tell that from an edit.
//   - One process at a time consolidates a team.
package consolidate
