// Package projection writes a team into Claude Code's own folders, in Claude Code's own format, for
// that program and for others that read its files.
//
// # Authority
//
// It writes <claude>/teams/<team>/ and <claude>/tasks/<team>/ if they belong to cadre, and the mark
// in the team's own folder. It decides nothing and reads nothing back: the files are a projection
// of the state, and lost or damaged ones are written again. Claude Code itself deletes old task
// folders.
//
// # Files
//
//	<claude>/teams/<team>/config.json     the roster: the members that have not ended
//	<claude>/tasks/<team>/<id>.json       a task that was not deleted
//	                      .highwatermark  the highest id so far, once a task was deleted: ids are not used again
//	                      .lock           empty; Claude Code expects it
//	                      .cadre          the owner of the folder
//	<mark>                                which state was projected; its flock is held to project
//
// The files have the format of Claude Code 2.1.329, which also reads files of 2.1.47. config.json
// has one additional key, the first one: "cadre", an [Owner]. The first line of the mark is the
// CRC-32C of a JSON object and that object; the rest of the file is ignored.
//
// # States
//
//	team live                    config.json and tasks/<team>/ follow the state
//	team complete or aborted     config.json stays, tasks/<team>/ is removed
//	team cleaned up              both are removed and never written again
//
// # Names of folders
//
// The folders have the team's name. Two projects may have a team of one name: the second team of a
// home gets the folders of the first free name of NAME-2, NAME-3 and so on. It does not take over
// folders of another owner.
//
// # Owner of a folder
//
//	config.json or .cadre names this team                      ours
//	it names another team of ours, created before this one     ours: the older one has lost its name
//	it names a newer team of ours, or no team                  foreign: left alone, and reported once
//	a tasks folder without .cadre that is not empty            foreign
//
// # Guarantees
//
//   - Each file changes atomically: a reader sees the old content or the new one, complete. Folders
//     have mode 0700 and files 0600.
//   - At most one process projects at a time, and none takes the projection back to an older state:
//     a process whose state is older than the mark changes nothing.
//   - The mark is written last. A process that is killed leaves files newer than the mark, and the
//     next process writes them again.
//   - The cost depends on the changes since the mark, not on the size of the team. All files are
//     compared only in three cases: the mark, the roster or the tasks folder is missing; reading
//     the history since the mark would cost more; a file was added to the tasks folder or removed
//     from it.
//   - A file that was removed, replaced or added by another program is corrected with the next
//     change. A file that was modified in place is corrected with the next change of its task, or
//     by [Projector.Repair].
//   - A folder in place of a file is moved beside the team's folder with its content, and reported.
//   - Nothing is fsynced: after a power loss a file may be empty or old. Removing the mark causes
//     everything to be written again.
package projection
