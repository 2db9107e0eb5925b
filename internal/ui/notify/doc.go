// Package notify tells a person that a team needs them, or has ended, where they do not look at it.
//
// # Authority
//
// Package team says what waits for a person, and package inspect/attention follows it in all teams.
// Package notify makes facts of that and sends each one through the channels of the settings.
//
// # States
//
// Each channel has its own state for each fact:
//
//	stands ──send──▶ sent              it is not sent again while it stands
//	  │  └────────▶ failed ──pause──▶ stands
//	  └─looked at─▶ seen ──the person has looked away──▶ stands
//
// A fact that no longer holds has no state. If it holds again, it stands again. The end of a team
// that the person looks at counts as sent: it does not wait for them.
//
// One process at a time serves a channel: it holds the channel's lock in the folder "notified" of
// the home. A process that is killed leaves its place to the next one, and the file beside the lock
// says what was sent. A channel that reaches a terminal is another one in each terminal.
//
// # Guarantees
//
//   - A fact is sent once through each channel, and once to each terminal. Only a process that is
//     killed between sending it and recording that leaves it to be sent again. It has the same id
//     then.
//   - What the person looks at is not sent. If it still waits when they no longer look, it is sent.
//   - What stood before the settings were written is not sent.
//   - The end of a team is one fact. A pause by a person is not a fact.
//   - A channel that hangs is ended after [Deadline], delays no other channel, and is reported once.
//     It is tried again later, with growing pauses.
//   - Nothing is sent to an address that the settings do not name; redirects are not followed. Likely
//     secrets are replaced in what is sent over the network.
package notify
