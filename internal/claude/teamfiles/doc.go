// Package teamfiles reads, changes and follows the files of a team that Claude Code runs itself, as
// one more program that does.
//
// # Authority
//
// It knows the files and their locks. Who joins such a team and what a member does there is decided
// above it (package teammate); projections of our own teams, which look the same and have one
// writer, are those of package projection.
//
// # Files, under Claude Code's folder
//
//	teams/<team>/config.json             the roster                           under config.json.lock
//	             inboxes/<member>.json   what waits for a member, in order    under <member>.json.lock
//	tasks/<team>/<id>.json               a task                               under <id>.json.lock
//	             .highwatermark          the highest id that was ever deleted
//	             .lock                   empty                                .lock.lock, while an id is given or deleted
//
// A lock is a folder: mkdir takes it and rmdir lets go of it.
//
//	free ──mkdir──▶ held ──rmdir──▶ free
//	                 └── nobody touched it for a minute: it is stolen
//
// # Guarantees
//
//   - A lock of ours is held for one read and one write. One that was stolen from us, because this
//     process stood still for so long, writes nothing.
//   - A lock is stolen only after a minute without a sign of its holder; of several of our
//     processes one steals, and never from one that has just stolen.
//   - A file is replaced whole, and only after it was read whole: one that is no JSON of its kind
//     is reported as a [DamagedError] and left as it is.
//   - What we do not know in a file, and the order of its keys, stays.
//   - A message is in an inbox until its reader settles it, so that one that was read by a process
//     that died is read again. Files of both ages are read: where entries that were read stay with
//     read:true, as until 2.1.177, and where they go.
//   - Where there is a key, a message of the lead's is told from one that only says so ([LeadKey]).
//
// Nothing is synced: Claude Code does not either, and its team ends with it.
package teamfiles
