// Package teamfiles reads, changes and follows the files of a team that Claude Code runs, as
// another participant.
//
// # Authority
//
// It knows the files and their locks. Package guest decides how a member behaves there. The
// projections of cadre's own teams look the same, but have a single writer; package projection
// handles them.
//
// # Files, under Claude Code's folder
//
//	teams/<team>/config.json             the roster                           under config.json.lock
//	             inboxes/<member>.json   what waits for a member, in order    under <member>.json.lock
//	tasks/<team>/<id>.json               a task                               under <id>.json.lock
//	             .highwatermark          the highest id of any deleted task
//	             .lock                   empty                                .lock.lock, while an id is assigned or deleted
//
// A lock is a folder: mkdir takes it and rmdir releases it.
//
//	free ──mkdir──▶ held ──rmdir──▶ free
//	                 └── not touched for a minute: it is stolen
//
// # Guarantees
//
//   - This package holds a lock for one read and one write. If its process was suspended so long
//     that the lock may have been stolen, it writes nothing.
//   - A lock is stolen only if its holder has not touched it for a minute. Of several cadre
//     processes, one steals it, and never from one that has just stolen it.
//   - A file is replaced atomically, and only after it was read completely. A file that is not
//     valid JSON of its kind is reported as a [DamagedError] and not changed.
//   - Unknown fields of a file and the order of its keys are kept.
//   - A message stays in an inbox until its reader settles it. A message that was read by a process
//     that died is read again. Both formats of inboxes are supported: up to 2.1.177, read entries
//     stay with read:true; later they are removed.
//   - With a key, a message signed by the lead can be distinguished from a forged one ([LeadKey]).
//
// Nothing is fsynced. Claude Code does not do so either, and its team ends with it.
package teamfiles
