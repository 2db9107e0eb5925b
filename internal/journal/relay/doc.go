// Package relay lets processes of one machine use a team's journal, and what its processes share,
// through a process that has them open.
//
// # Authority
//
// A team in a database is reached with an address and a password, which no session of an agent may
// have. So a host serves its team on a unix socket in its folder, and sessions connect to it. The
// [Rights] of a caller decide what passes; they come from whoever calls [Serve].
//
// # Protocol
//
// Each call is one connection. Both sides send frames: a length of four bytes, big-endian, a kind
// of one byte, and the content.
//
//	client                       server
//	request (JSON) ────────────▶
//	               ◀──────────── record, for each record that is read or caught up with
//	               ◀──────────── ask: decide now, the others are excluded
//	data, or nothing ──────────▶
//	               ◀──────────── value (JSON), data, or error (JSON): the end of the call
//
// A client that has nothing to add, or whose caller gave up, closes the connection; what it has not
// decided by then is not written. A lease lasts as long as its connection.
//
// # Guarantees
//
//   - Those of the journal and of the store that are served, with one more case of
//     [journal.ErrUncertain]: the connection broke after the data of a record was sent.
//   - A client that does not answer when it is asked to decide loses its turn after [askTime].
//   - What a caller has no right to is refused before it reaches the journal.
package relay
