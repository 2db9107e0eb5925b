// Package git runs git for those who know what to ask it.
//
// # Authority
//
// The package decides in which surroundings a git of cadre's runs, how long that may take, what its
// end means, and how its lists of changes are read. What is asked of which repository is its
// callers' affair, and so is what a person runs: for that, [Local] is all.
//
// # How a command ends
//
//	          ┌─ exit status 0 ─────────▶ what it printed, as it is
//	git ──────┼─ another one ───────────▶ [Refusal]: git has answered, and the answer is no
//	 ▲        ├─ it cannot have a lock ─▶ waits for who has it, then [LockedError], which names the file
//	 └─again──┘
//	          ├─ it waits for a pipe ───▶ [BlockedError], which names it: somebody put it in the place of a file that git reads. Linux tells for which pipe
//	          │                           git waits; elsewhere a command that takes long is suspected where there is one that git would open
//	          └─ anything else ─────────▶ another error: nobody knows what the answer is. A signal, the end of the context, or of the command's time, which it says
//
// # Guarantees
//
//   - Whoever calls, a hook of git say, a command means the repository that it is told. Where git
//     and its configuration are, and in whose name it commits, is as the person has it.
//   - No hook of the repository runs, no watcher of its files or upkeep is started, nothing is
//     signed, asked at a terminal or put into an editor, and what was written survives a loss of
//     power.
//   - A path is a path and no pattern, and git speaks English.
//   - No command outlives its time, its context or its [proc.Register], nor does what it started.
//   - A lock of the index that a kill left to [Index] is known again and taken over. One of git's
//     own is waited for and never removed: nobody can know that its owner was killed.
package git
