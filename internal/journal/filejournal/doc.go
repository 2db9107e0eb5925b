// Package filejournal keeps a team's journal in files, for any number of processes of one machine.
//
// # Authority
//
// It has authority over <team>/journal/ and <team>/state.json and over nothing else in the team's folder. Nobody else
// writes there. Folders are 0700 and files 0600.
//
// # Files
//
//	journal/00000000000000000001.jsonl   a segment, named after the first seq it answers for
//	journal/lock                         empty; its flock is held to catch up, decide and write
//	journal/durable                      the marker: every record up to this seq is durable; its flock is held to sync
//	journal/snapshot.lock                empty; its flock is held to replace state.json
//	journal/<segment>.torn-<offset>      what a writer that died had left of a line that was never acknowledged
//	journal/<segment>.damaged-<n>        the original of a file that Mend set aside
//	state.json                           the snapshot
//
// # Format
//
// Each file but the marker is lines of one shape: a JSON object whose first field is a number and whose second is
// the CRC-32C of the line without that second field and without the newline.
//
//	{"cadre-journal":1,"crc":"…","team":"…","first":1}           first line of a segment: format version
//	{"seq":1,"crc":"…","data":{…}}                               a record
//	{"seal":1,"crc":"…"}                                         last line of a full segment: its last seq
//	{"cadre-state":1,"crc":"…","seq":1,"segment":1,"at":64,"line":2,"data":{…}}    state.json
//
// The first line of a segment keeps its shape in every version, so an older binary can tell a newer journal from damage.
// A segment's header may have "hole":{"from":4,"to":9}: these records were lost to damage, and [Mend] started again from a
// snapshot that has their effect. A reader that has to cross a hole is given the damage, never a history without them.
//
// # States of a segment
//
//	         records, group-committed           seal, fdatasync            header, fsync, rename
//	active ───────────────────────────▶ full ────────────────▶ sealed ──────────────────────────▶ sealed, with a successor
//	  ▲                                                          │ the writer died here:
//	  └───────── a torn tail is cut by the next writer           └ the next writer makes the successor
//
// # Guarantees
//
//   - One writer at a time, by flock: it reads what others wrote, decides, writes and unlocks. Two handles of one process
//     exclude each other like two processes.
//   - The sync comes after the unlock and is shared: whoever holds the marker's flock syncs for all that is written by
//     then and says so in the marker; the others find their seq there and are done.
//   - The marker is written only after the sync, so it is never ahead of the disk. After a loss of power it may be behind.
//   - A record up to the marker that is bad or missing was acknowledged: it is damage, and refused. A bad line behind the
//     marker was never acknowledged: the next writer copies it aside, cuts it away and reports it. Without a usable marker only a
//     last line without its newline is taken for torn.
//   - Readers take no lock and cut nothing. They may see a record in the instant between its write and its sync; Append
//     without a result waits until what it saw is durable.
//   - A write that fails (full disk, a limit, a read-only folder) is taken back under the lock.
//   - A reader holds one buffer, whatever the length of the history, and a handle that stands at the end reads only what is new.
package filejournal
