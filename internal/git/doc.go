// Package git runs git commands.
//
// # Authority
//
// The package decides on the environment of a git command, its time limit and the meaning of its
// end. It also decides how its lists of changes are read. Its callers decide which commands run in
// which repository. For commands of the user, only [Local] applies.
//
// # How a command ends
//
//	          ┌─ exit status 0 ─────────▶ its output, unchanged
//	git ──────┼─ another exit status ───▶ [Refusal]: git has answered, and the answer is no
//	 ▲        ├─ a lock is held ────────▶ waits for the holder, then [LockedError], which names the file
//	 └─again──┘
//	          ├─ it waits for a pipe ───▶ [BlockedError], which names it
//	          └─ anything else ─────────▶ another error: the answer is unknown
//
// A pipe in the place of a file that git reads would make git wait for ever. Linux reports for
// which pipe git waits. Elsewhere, a slow command is suspected if there is a pipe that git would
// open. The other errors are a signal, the end of the context, and the end of the command's time,
// which the error names.
//
// # Guarantees
//
//   - Whatever the caller is (a git hook, for example), a command uses the repository that it is
//     given. Git's program, its configuration and the committer are the user's.
//   - No hook of the repository runs, no file monitor or maintenance starts, and nothing is signed,
//     asked at a terminal or opened in an editor. What was written survives a loss of power.
//   - With [Runner.Shown], git runs no program at all that settings name, whoever wrote them. Without it,
//     filters and merge drivers run, because work is committed with them.
//   - A path is literal, not a pattern, and git's messages are in English.
//   - No command outlives its time limit, its context or its [proc.Register]; neither do its
//     children.
//   - A lock of the index that a killed [Index] left is recognized and taken over, and so is a lock
//     on a reference that only cadre changes ([Runner.RunOwn]). Any other lock of git's is waited
//     for and never removed, because it is unknown whether its owner was killed.
package git
