// Package coordinator speaks the WebSocket protocol of a team coordinator: requests and events as
// frames with a type and a payload, at /ws.
//
// # Authority
//
// The package translates. A request becomes a call of the engine, as a command of the command line
// does, and a record becomes the events that it stands for. It decides nothing about a team.
// Package access says by the command of a request who may send it; the role of a token comes on
// top. One table has all requests and one all events. They are the source of the AsyncAPI
// description.
//
// # A connection
//
//	accepted ──▶ reads a request ──▶ carries it out ──▶ answers it ──┐
//	                  ▲                                              │
//	                  └──────────────────────────────────────────────┘
//	subscribed to a team ──▶ takes records from the shared feed ──▶ sends their events ──▶ takes …
//
// Requests are carried out one after the other. Each subscription sends beside them, at the pace at
// which the client reads. There is no queue for a client: one that does not read is disconnected,
// and comes back with its cursor.
//
// # One cursor
//
// An event carries the seq of its record, and its part where others of the same record follow. A
// client that subscribes after the seq and the part of the last event that it has misses nothing,
// and gets nothing twice. The events of a record depend on that record and the state after it
// alone, so they are the same after a restart of the server.
//
// # Guarantees
//
//   - A request is answered only when what it changed is durable. When the answer with seq N is there,
//     all events up to N of a subscription to that team were sent before it.
//   - A request with a key that is sent again changes nothing and gets an answer to the same effect.
//   - A frame that is not a request gets an error that says what is wrong, and the connection stays.
//   - Frames, sockets and subscriptions are bounded.
package coordinator
