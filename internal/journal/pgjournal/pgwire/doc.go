// Package pgwire speaks with PostgreSQL for pgjournal: it has connections, a pool of them,
// statements that are sent together, and the encoding of their values.
//
// # Authority
//
// It knows the protocol and no table. It stands on pgconn, the lower half of the driver pgx, which
// has the messages, authentication, TLS and the parameters of addresses. The upper half is not
// used, because every command would link it: docs/architecture/start.md says what that costs.
// Errors, and the further parameters of addresses, are those of pgx.
//
// # A connection
//
//	       Acquire            Do, Exec, Query
//	idle ───────────▶ in use ─────────────────▶ busy
//	 ▲                │    ▲                    │  │
//	 │    Release     │    └────── results ─────┘  │ the context ended,
//	 └────────────────┤                            ▼ or the connection broke
//	                  └─────────────────────────▶ closed
//	            a transaction was left open, the connection
//	            is too old, or the pool was reset
//
// A connection that nobody uses for long is closed too.
//
// One goroutine at a time uses a connection. When a context ends while the server works, the
// connection is closed, and the server is told to cancel what it does.
//
// # Guarantees
//
//   - The statements of a [Batch] take one round trip, also if the server must prepare them first.
//     After an error the server skips the rest of them.
//   - A connection prepares each statement once, at its first use. After an error of the server it
//     prepares those of the batch again. The name of a prepared statement stands for its text and
//     the types of its arguments: behind a pooler, which gives one session to many clients, it is
//     an error or the right statement.
//   - With default_query_exec_mode=exec nothing is prepared.
//   - Values travel in the binary format. The type of an argument follows from its Go type, and a
//     value is scanned only from a column whose type fits.
//   - A [Pool] has never more connections than its limit. Those that are being opened or closed
//     count too.
package pgwire
