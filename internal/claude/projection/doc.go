// Package projection shows a team in Claude Code's own folders, in Claude Code's own format, for
// that program and for whatever else reads them.
//
// # Authority
//
// It writes <claude>/teams/<team>/ and <claude>/tasks/<team>/ where they are ours, and the mark in
// the team's own folder. It decides nothing, and nothing is read back: what is there is a
// projection of the state, and a lost or damaged one is made again. Claude Code itself deletes old
// task folders.
//
// # Files
//
//	<claude>/teams/<team>/config.json     the roster: the members that have not ended
//	<claude>/tasks/<team>/<id>.json       a task that was not deleted
//	                      .highwatermark  the highest id given so far, once a task was deleted: ids are not used again
//	                      .lock           empty; Claude Code expects it
//	                      .cadre          whose folder it is
//	<mark>                                which state was projected; its flock is held to project
//
// The formats are those of Claude Code 2.1.329, which reads those of 2.1.47 too. config.json has
// one key more, the first one: "cadre", an [Owner]. The first line of the mark is the CRC-32C of a
// JSON object and that object; only this line counts.
//
// # States
//
//	team live                    config.json and tasks/<team>/ follow the state
//	team complete or aborted     config.json stays, tasks/<team>/ goes
//	team cleaned up              both are gone, and nothing brings them back
//
// # Whose a folder is
//
//	config.json or .cadre names this team                      ours
//	it names another team of ours, created before this one     ours: the older one has lost its name
//	it names a newer team of ours, or nobody                   foreign: left alone, and said once
//	a tasks folder without .cadre that is not empty            foreign
//
// # Guarantees
//
//   - Each file changes in one step: a reader sees the old one or the new one, whole. Folders are
//     0700 and files 0600.
//   - Of any number of processes one projects at a time, and none takes the projection back to an
//     older state: who comes with a state before the mark leaves everything as it is.
//   - The mark moves last. A process that is killed at any moment leaves files that are newer than
//     the mark, and the next one writes them again.
//   - The cost is that of what changed since the mark, not of the team. Everything is looked at
//     only where the mark, the roster or the tasks folder is missing, where reading the history
//     since would cost more, or where somebody added a file to the tasks folder or removed one.
//   - A file that somebody removed, replaced or added is put right by the next change. One that was
//     altered in its place is put right by the next change of its task, and by [Projector.Repair].
//   - A folder in the place of a file is moved beside the team's folder, with what is in it, and
//     said.
//   - Nothing is synced: after a loss of power a file may be empty or old. Removing the mark has
//     everything made again.
package projection
