// Package sdkrelay is a relay between Claude Code and its consumer. Claude Code connects to it with
// --sdk-url. The relay passes the messages of both sides on unchanged, while an observer reads
// along.
//
// # Authority
//
// A [Relay] starts the program, listens for its connection, checks its bearer token and forwards
// frames. It sends nothing of its own to either side, changes no byte, and decides nothing. The
// observer interprets the lines, and the consumer answers them.
//
//	program ◀──WebSocket──▶ peer ──▶ queue of each consumer ──▶ standard output, or a consumer's WebSocket
//	                         │ └──▶ Options.See, Options.Lost
//	                         └◀── queue of the program ◀─────── standard input, or a consumer's WebSocket
//
// # Behaviour of the program
//
// It sends text frames, each with one JSON value and a line break, and sends nothing before it has
// received something.
//
// It sends a ping every ten seconds, and treats a connection as dead if the ping was not answered
// before the next one. So if a relay stopped reading because its consumer is slow, the program
// would disconnect, and messages in flight would be lost.
//
// It reconnects after every disconnect except one with code 4001 or 4003. In X-Last-Request-Id it
// names the last event that it wrote, even if it wrote that event while it was not connected. Such
// an event is lost, because the program does not send it again (on Node; on Bun it resends its last
// thousand events at every connection). It ignores a user line whose uuid it has seen before.
//
// Few versions accept an address that is not Anthropic's: 2.1.47 does, 2.1.177 and 2.1.329 do not.
//
// # Guarantees
//
//   - A line stays in the queue of its receiver until the receiver has acknowledged it, by the answer
//     to a later ping. On a new connection, unacknowledged lines are sent again. So a line arrives
//     once, or after a broken connection perhaps twice. A line that breaks five connections is
//     dropped and reported.
//   - Queues are bounded in memory. What a slow consumer does not read goes to an unnamed file,
//     which is bounded as well. When that is full, the relay stops reading from the program, so
//     that it waits or disconnects. Nothing that was read is lost because of a slow consumer.
//   - If the program wrote events while it was not connected, its X-Last-Request-Id shows that, and
//     [Options.Lost] is called once. This also works for a relay that replaces a dead one, on the
//     same port and with the same token.
//   - Both sides need a bearer token. The program's token is not valid for the consumer, because
//     the agent's tools can read the program's token.
//   - When Run returns, the program and all processes that it started have ended.
package sdkrelay
