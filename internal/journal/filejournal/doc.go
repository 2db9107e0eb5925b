// Package filejournal keeps a team's journal in files, for any number of processes of one machine.
//
// # Authority
//
// It has authority over <team>/journal/ and <team>/state.json and nothing else in the team's
// folder. No other package writes there. Folders have mode 0700 and files 0600.
//
// # Files
//
//	journal/00000000000000000001.jsonl   a segment, named after the first seq it is responsible for
//	journal/lock                         empty; its flock is held to catch up, decide and write
//	journal/durable                      the marker: every record up to this seq is durable; its flock is held to sync
//	journal/snapshot.lock                empty; its flock is held to replace state.json, and to change keyframes
//	journal/<segment>.torn-<offset>      an unfinished line of a writer that died; it was never acknowledged
//	journal/<segment>.damaged-<n>        the original of a file that Mend set aside
//	journal/keyframes/<seq>.json         an earlier snapshot, kept to show earlier states
//	state.json                           the snapshot
//
// # Format
//
// Every file but the marker consists of lines with the same structure: a JSON object whose first
// field is a number, and whose second field is the CRC-32C of the line without that second field
// and without the newline.
//
//	{"cadre-journal":1,"crc":"…","team":"…","first":1}           first line of a segment: format version
//	{"seq":1,"crc":"…","data":{…}}                               a record
//	{"seal":1,"crc":"…"}                                         last line of a full segment: its last seq
//	{"cadre-state":1,"crc":"…","seq":1,"segment":1,"at":64,"line":2,"journal":7,"record":9,"data":{…}}    state.json
//
// The marker has a line of fixed width, and a second one with the id of its journal:
//
//	durable 00000000000000000002 1c8d0f3a
//	journal "demo-k3x7q2" 5e0b77c1
//
// Every file is bound to its journal. The header of a segment has the journal's id as "team". A
// snapshot has the checksum of that id as "journal". As "record" it has the checksum of the line of
// its last record, or 0 if that record is the last before its segment.
//
// A segment whose journal differs from the marker's is damage, and so is a marker whose journal
// differs from the segments'. If marker and segments have nothing in common, it is unknown which
// belong to the team, and [Mend] refuses. A marker of an older version has one line. Then only the
// segments say which journal it is, until the next write binds the marker.
//
// A snapshot or keyframe of another journal or history is ignored. A snapshot of an older version
// has neither checksum and is ignored too, unless the history has a hole.
//
// The first line of a segment has the same structure in every version, so an older binary can
// distinguish a newer journal from damage. A segment's header may have "hole":{"from":4,"to":9}:
// these records were lost to damage, and [Mend] continued from a snapshot that includes their
// effect. A reader that would have to cross a hole gets a damage error, never a history without
// these records.
//
// Only regular files are opened. Anything else in place of a segment, a lock or the marker is
// damage, which [Mend] sets aside. So is a directory in place of state.json; any other special file
// there is ignored.
//
// # States of a segment
//
//	         records, group-committed           seal, fdatasync            header, fsync, rename, fsync of the folder
//	active ───────────────────────────▶ full ────────────────▶ sealed ──────────────────────────▶ sealed, with a successor
//	  ▲                                                          │ the writer died here:
//	  └───────── a torn tail is cut by the next writer           └ the next writer makes the successor
//
// # Guarantees
//
//   - There is one writer at a time, by flock: it reads what others wrote, decides, writes and
//     unlocks. Two handles of one process exclude each other like two processes.
//   - The sync follows the unlock and is shared. The process that holds the marker's flock syncs
//     for all records written by then, and stores their seq in the marker. The others find their
//     seq there and are done.
//   - The marker is written only after the sync, so it is never ahead of the disk. It is itself
//     synced every 256 KiB and at the end of a segment, so after a power loss it may be behind by
//     that much. This is harmless: the records in between are on the disk, because every sync
//     covered the whole segment. Only if the power loss also damages these records does the damage
//     count as torn.
//   - A bad or missing record up to the marker was acknowledged: it is damage and refused. A bad
//     line after the marker was never acknowledged: the next writer copies it aside, cuts it off
//     and reports it. Without a usable marker, only a last line without a newline counts as torn.
//   - Readers take no lock and cut nothing. They may see a record in the instant between its write
//     and its sync. An Append that writes no record waits until everything it has seen is durable.
//   - The first process to make something durable in a segment syncs the folder first, because the
//     segment's creator may have died before it did. The first sync through a descriptor of a
//     segment rewrites the records that no marker covers: a sync does not report write errors from
//     before the file was opened. A handle does not trust any sync after a failed one.
//   - A cut is synced before anything is written in its place, so that a power loss cannot put a
//     new record before an old one.
//   - A failed write (full disk, a limit, a read-only folder) is undone under the lock.
//   - A reader needs one buffer, however long the history is. A handle positioned at the end reads
//     only new records.
//
// # Power loss
//
// All of this relies only on what [Disk] guarantees, which is little: no order among unsynced
// changes, sectors of 512 bytes, names that come and go independently. The tests use a simulated
// disk that gives no more than that. They lose the power after each change, in random histories of
// several processes, during a mend, with failing syncs and full disks, and check that every
// acknowledged record is there:
//
//	go test ./internal/journal/filejournal -run 'TestPower$' -power.histories 100000 -power.seed 1
//
// They do not cover this case: a page could not be written and was then dropped from memory, while
// another process of the same machine had appended after it.
package filejournal
