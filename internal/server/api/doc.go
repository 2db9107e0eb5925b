// Package api answers the HTTP requests of cadre serve: what the command line does, as resources of
// teams.
//
// # Authority
//
// The package turns a request into a call of the engine, and the result into JSON. It decides
// nothing about a team. One table has all routes, each with the command of the command line that
// does the same: package access says by that command who may call the route. The role of a token
// comes on top. The same table is the source of the OpenAPI description.
//
// # One cursor
//
// Everything that a client is shown is the state after a record, and each record has a number: seq.
// A client reads a team at a seq, and follows its events after that seq. It pulls them from the
// journal at its own pace. Nothing is queued for a client, and nothing is left out for one:
//
//	GET /v1/teams/T            state after record 812, ETag "812-…"
//	GET /v1/teams/T/events?after=812      813, 814, … as they come
//
// # Guarantees
//
//   - A state and the events after its seq fit together: no event is missing or there twice.
//   - A change is answered only when its record is durable. A request with an Idempotency-Key that is
//     sent again changes nothing and gets the same answer: the key is the id of its command. The key of
//     another request is refused.
//   - A record is encoded once for all clients that follow a team. A client that reads slowly holds
//     up no other client and no writer.
//   - An answer to an error is a problem of RFC 9457, with the code and the hints of the core.
//   - No request names a path of this machine.
package api
