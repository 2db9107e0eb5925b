// Package filejournal keeps a team's journal in files, for any number of processes of one machine.
//
// # Authority
//
// It has authority over <team>/journal/ and <team>/state.json and over nothing else in the team's
// folder. Nobody else writes there. Folders are 0700 and files 0600.
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
// Each file but the marker is lines of one shape: a JSON object whose first field is a number and
// whose second is the CRC-32C of the line without that second field and without the newline.
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
// snapshot has the checksum of that id as "journal", and as "record" the checksum of the line of
// the record it stands at; one that begins a segment has 0 there. A segment of another journal than
// the marker's is damage, and so is a marker of another one than the segments'. Where they have
// nothing in common, nobody can tell which are the team's, and [Mend] refuses. A marker of an older
// version has one line: the segments alone then say which journal it is, until the next write binds
// the marker. A snapshot of another journal or history is passed over, and so is one of an older
// version, which has neither, unless the history has a hole.
//
// The first line of a segment keeps its shape in every version, so an older binary can tell a newer
// journal from damage. A segment's header may have "hole":{"from":4,"to":9}: these records were
// lost to damage, and [Mend] started again from a snapshot that has their effect. A reader that has
// to cross a hole is given the damage, never a history without them.
//
// Only regular files are opened. Anything else in the place of a segment, a lock or the marker is
// damage, which [Mend] sets aside, and so is a directory in the place of state.json; another
// special file there is passed over.
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
//   - One writer at a time, by flock: it reads what others wrote, decides, writes and unlocks. Two
//     handles of one process exclude each other like two processes.
//   - The sync comes after the unlock and is shared: whoever holds the marker's flock syncs for all
//     that is written by then and says so in the marker; the others find their seq there and are
//     done.
//   - The marker is written only after the sync, so it is never ahead of the disk. It is itself
//     synced every 256 KiB and at the end of a segment, so after a loss of power it may be behind
//     by so much. That is harmless: what it no longer vouches for is on the disk and whole, because
//     every sync was of the whole segment; only damage that comes with the loss, to the records in
//     between, is then taken for torn.
//   - A record up to the marker that is bad or missing was acknowledged: it is damage, and refused.
//     A bad line behind the marker was never acknowledged: the next writer copies it aside, cuts it
//     away and reports it. Without a usable marker only a last line without its newline is taken
//     for torn.
//   - Readers take no lock and cut nothing. They may see a record in the instant between its write
//     and its sync; Append without a result waits until what it saw is durable.
//   - Whoever is the first to make something durable in a segment syncs the folder before: whoever
//     made the segment may have died before he did. And the first sync through an opening of a
//     segment writes anew what no marker vouches for: a sync says nothing of what failed to be
//     written before the file was opened, and a handle trusts no sync after one that failed.
//   - A cut is synced before anything is written in its place, so that the loss of power cannot put
//     a new record before an old one.
//   - A write that fails (full disk, a limit, a read-only folder) is taken back under the lock.
//   - A reader holds one buffer, whatever the length of the history, and a handle that stands at
//     the end reads only what is new.
//
// # Loss of power
//
// All of it rests on what [Disk] promises, and that is little: no order among what was not synced,
// sectors of 512 bytes, names that come and go one by one. The tests put a disk below it that keeps
// no more than that, lose the power after each change of it, in random histories of several
// processes, in a mend and with failing syncs and full disks, and look that what was acknowledged
// is there:
//
//	go test ./internal/journal/filejournal -run 'TestPower$' -power.histories 100000 -power.seed 1
//
// A page that could not be written and is then dropped from memory, while another process of the
// same machine has appended behind it, is beyond them.
package filejournal
