// Package consolidate ends a team: it checks the team's work and commits it.
//
// # Authority
//
// The package decides which changes in the work tree are the team's, and how they become a commit.
// The core decides whether the team may be consolidated, and records each step before the next one
// starts. The package pushes nothing and runs no hooks of the repository; a check of the team may
// do either. It changes the repository in this order:
//
//  1. new objects;
//  2. the work tree, if members worked on branches: it gets the changes of these branches;
//  3. the branch that is checked out, once;
//  4. the index, for exactly the paths of the commit;
//  5. the merged branches.
//
// # Steps
//
//	began ──▶ merged ──▶ staged ──▶ made ──▶ done          and from each of the first three, and from made when HEAD has moved: abandoned
//	  │         │          │         └ HEAD names the commit, the index follows, the team is complete, and COMPLETED is written
//	  │         │          └ changes from branches are put into the work tree; the checks run in the team's directory; the tree must be unchanged; the
//	  │         │            commit is made, and nothing refers to it
//	  │         └ the team's files in the work tree are put into a tree through an index of our own, and the branches are merged into it; nothing refers to it
//	  └ members with worktrees of their own end, and their work is on their branches
//
// The commit has HEAD as its first parent, and the branches as the others. So the team's work is
// one commit, no commit of a member is lost, and git knows that the branches are merged. A branch
// that does not merge becomes a task for the lead. A file of the user in the way of a branch is
// refused by name, because only the user can move it.
//
// # Which changes are the team's
//
// A file is the team's if it differs from HEAD now and did not when the team was created. A file
// that differed then and is unchanged since is the user's, and is not touched. A file that differed
// then and was changed since is refused by name, unless it is included on purpose. Files that
// checks leave behind are not the team's. A file that changed after the team finished is not the
// team's, unless one of its tasks had changed it before.
//
// # Guarantees
//
//   - The commit holds exactly the tree whose files the checks saw, on the commit that was HEAD
//     then.
//   - After a kill at any point, [Run] continues. A check that passed does not run again, a commit
//     that HEAD names is found, and there is never a second one.
//   - As long as HEAD does not name the commit, abandoning the attempt restores HEAD, index and
//     work tree. At every moment, a file from a branch has either its old or its new content in the
//     work tree. A file that was changed in between is not touched, and is named.
//   - A staged file that is missing when an attempt is abandoned is restored, so that no later
//     attempt commits without it. If something else is in its place, the file is named, and every
//     later attempt refuses to start while it is missing. A file that a check changed is not
//     restored, because the change may be a person's edit.
//   - One process at a time consolidates a team.
//
// # Files
//
//	consolidate.go      the steps, one after the other, in one file although it is long, because their order matters
//	files.go, beside.go the owner of a change in the work tree: the team, a person, another team
//	stage.go            puts the team's files into a tree
//	merging.go          merges the members' branches into that tree
//	check.go            the checks; site.go is where they run, settle.go handles the files that they changed
//	land.go             puts the changes of branches into the work tree, and takes them out again
//	absent.go           files that could not be restored in the work tree
//	place.go            HEAD and the index follow, the team ends; message.go and seal.go write what remains of it
//	trial.go            runs the checks alone, and commits nothing
//	pending.go, plan.go what a consolidation would do, in short and path by path
//	mergedworktree.go   the combined work, for tasks that need it before the end
//	rollback.go         takes out the work of one task; putback.go puts work back
package consolidate
