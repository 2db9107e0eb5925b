// Package sdkrelay stands between Claude Code and whoever uses it: Claude Code connects to it with
// --sdk-url, and what both say is passed on as it is, while an observer reads along.
//
// # Authority
//
// A [Relay] starts the program, listens for it, checks its bearer token and carries frames. It says
// nothing of its own to either end, changes no byte, and decides nothing: what the lines mean is
// the observer's affair, and what is answered the consumer's.
//
//	program ◀──WebSocket──▶ peer ──▶ queue of each consumer ──▶ standard output, or a consumer's WebSocket
//	                         │ └──▶ Options.See, Options.Lost
//	                         └◀── queue of the program ◀─────── standard input, or a consumer's WebSocket
//
// # What the program does
//
// It speaks text frames, one JSON and a line break each, and says nothing until it is spoken to. It
// sends a ping each ten seconds, and takes a connection that did not answer by the next one for
// dead: so a relay that does not read, because somebody behind it is slow, would be left, and what
// was under way lost. It connects again after every end of a connection but one with code 4001 or
// 4003, and names the last event that it wrote in X-Last-Request-Id, also when it wrote that while
// there was no connection. Then that event is lost: it says nothing again (on Node; on Bun it says
// its last thousand events again at every connection). A user's line that comes a second time with
// its uuid is passed over there. Versions that take an address that is not their maker's are few:
// 2.1.47 does, 2.1.177 and 2.1.329 do not.
//
// # Guarantees
//
//   - A line that is under way to an end stays in its queue until that end has it, which the answer
//     to a ping behind it says. On a new connection what was not answered for is sent again, so a
//     line comes once, and after a broken connection perhaps twice. One that breaks five
//     connections is dropped, and said.
//   - Queues are bounded in memory; what a consumer does not take goes on to a file without a name,
//     bounded as well, and beyond that the program is not read, so that it waits or goes. Nothing
//     that was read is lost to a slow consumer.
//   - What the program wrote while it was not connected is noticed by its X-Last-Request-Id, and
//     said once: [Options.Lost]. That holds for a relay too which takes the place of one that is
//     gone, at the same port and with the same token.
//   - Who has not the bearer token is refused; the program's is not the consumer's, because the
//     agent's tools can read the program's.
//   - When Run returns, the program and all that it started are gone.
package sdkrelay
