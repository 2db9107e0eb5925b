// Package pgjournal keeps teams in a PostgreSQL database: their list, their journals, their leases
// and values, for any number of processes on any number of machines.
//
// # Authority
//
// It has authority over the tables of one schema, which the caller names, and uses no other. A
// [Store] is a connection to them; [Store.Teams] is the list of the teams, [Store.Open] returns a
// handle on one team's journal, and [Journal.Shared] the rest of what the team's processes share.
// The rules are in this package: the tables have no triggers. It needs PostgreSQL 14 or later and
// no extension.
//
// # Tables
//
//	migration   the versions of the schema that were applied
//	team        a row for each team: names, last seq and its digest; its lock is the right to append
//	record      the history of all teams; rows are never changed
//	snapshot    states after a record: the newest is the snapshot, the others are keyframes
//	lease       leases of the teams, by the clock of the server; rows stay when a lease is free
//	value       values of the teams
//
// [Migrate] makes and changes them, and nothing else does. [Connect] refuses an older schema with
// [ErrOlder] and a newer one with [journal.ErrNewer]. So does each call that appends, reads the
// history, waits, saves a snapshot, takes a lease or changes a value: a process that runs while
// another one migrates is refused too, and its leases are not renewed. Reading leases and values
// and releasing a lease do not read the version, nor does creating, opening, archiving or removing
// a team.
//
// # An append
//
//	      BEGIN, lock the team's row,            INSERT the record,
//	      records that are new to the caller     UPDATE the team's row, COMMIT
//	start ─────────────────────────▶ locked ──▶ decided ─────────────────────────▶ committed
//	  ▲                                │                        │
//	  └── more than fits under a lock  │ nothing to write,      │ the connection broke
//	      is read without it           ▼ or a refusal           ▼
//	                               rolled back              settled: written or not, else uncertain
//
// The steps between two states are one round trip. The goroutines of a process that append to one
// team queue in the process, so they take one connection.
//
// # Guarantees
//
//   - There is one writer of a team at a time, by the lock of its row.
//   - Append returns nil after the server acknowledged the commit. A commit waits for the disk, and
//     for standbys if the database is configured so, even if synchronous_commit is off by default.
//   - After a connection broke during a commit, a new connection locks the row of the team. The lost
//     transaction has it until it is committed or rolled back, so the wait for the lock is the wait
//     for its fate. Then the id of the append is in the history or it never will be. The answer is
//     itself a commit, so it is as durable as any. Append returns [journal.ErrUncertain] only if
//     there is no answer within [Options.Settle]. The end of the context does not interrupt this.
//   - A client that has the lock and stalls for [Options.Stall] loses it: the server ends its session
//     and the transaction. It has never more than 64 KiB to read under the lock, which fit into the
//     buffers of a connection: a server that waits for a client to read would not end it.
//   - Each record has the SHA-256 of the digest of the one before and its data. The chain begins with
//     the id of the team, and the team's row has its end. Reading verifies it. A record that was
//     changed, removed or inserted, and a history that ends earlier than this handle has seen it,
//     are damage.
//   - Reading takes no lock, and pages of bounded size: a slow reader delays no writer and no vacuum.
//   - Every exchange with the server ends by [Options.Timeout] or with its context.
//
// # Leases
//
// A lease lasts for [Options.Lease] by the clock of the server. A [Store] renews all its leases in
// one statement, three times in that time, on a connection of its own: appends that wait for each
// other may have all connections of the pool. A lease that was lost is not renewed any more.
//
// The holder counts from the moment before it asked, and a twentieth less: it has lost the lease
// before the server gives it to another process. It looks at its steady clock and each second at
// its wall clock, because the steady clock stops while a machine is suspended. Each holder has a
// greater fence. Taking and renewing are durable, so no crash of the server forgets them; a standby
// that is promoted may have forgotten the last ones, unless the primary waits for it.
//
// # Waiting
//
// A process that appended sends NOTIFY afterwards, in another transaction: a transaction with
// NOTIFY holds a lock of the whole database while it commits. What it appended meanwhile goes into
// one NOTIFY. Where other processes append too, it waits a few milliseconds and leaves the NOTIFY
// to whoever appended last, up to eight times in a row.
//
// A notification is a hint and may be lost; the rows are the truth, and waiters read them every two
// seconds. A process that waits has one connection that listens, and sends itself a first
// notification. Until that arrives, as behind a pooler in transaction mode, it reads the rows ten
// times a second: one statement for all teams that it waits for.
//
// # Poolers
//
// Behind a pooler in session mode everything works as without. Nothing depends on the state of a
// session, so transaction mode works too if the address says default_query_exec_mode=exec, because
// prepared statements belong to a session. Without it, errors say so.
package pgjournal
