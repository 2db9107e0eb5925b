// Package teammate is an agent of ours behind the name of a teammate in a team that Claude Code
// runs.
//
// # Authority
//
// [Work] sees one member through: its agent's session, its mail, its tasks, its questions, its end.
// The team is what its files say (teamfiles), and which agent the member is its caller chose. The
// rules of the team package hold for what the agent does: who may claim, what blocks what.
//
// # One path, with files for a journal
//
//	files ──▶ team.State ──▶ team.Decide ──▶ events ──▶ files, each under its lock, if it still is what was decided on
//	  ▲           └──▶ tools, envelopes, what the agent is told (prompts)
//	  └── Claude Code, and whoever else is on the team
//
// # States of a member
//
//	starting ──▶ idle ──mail──▶ working ──its turn ends: a notice to the lead, with its last words──▶ idle …
//	its session ends by itself ──▶ down ──mail, after a pause──▶ starting          after five times in a row: over
//	asked to shut down ──it agrees, or the deadline passes──▶ the session ends ──▶ the lead is told ──▶ over
//	the team is gone, or the member is off the roster ──▶ over
//	killed ──its leash tells the lead ([Bury])──▶ missed ──somebody is started under its name ([Take])──▶ starting, with its session
//
// # Guarantees
//
//   - A message stays in the inbox until it is in the agent's context; killed in between, the
//     member reads it again, unless its session's history has it.
//   - A task that changed meanwhile is looked at again before it is changed: of two that claim it
//     one has it.
//   - Every turn ends with one notice to the lead, and a turn in which nothing was done with none.
//     Of whom it started and who cannot be it is told why ([Excuse]).
//   - Only what the lead sent ends the member, answers it, or changes what it may do, and nothing
//     makes it skip permissions that was not started so. Where the lead signs what it sends to this
//     member, what it did not sign is not its own. It signs to those that it starts, and to nobody
//     who joins by hand.
//   - Every question ends: with the answer of the lead or of the person at the pane, or at its
//     deadline with a no.
//   - Under one name one process sits. One that is killed is missed, and nothing of it is left but
//     its seat, until the team is over.
//   - The lead is told of a shutdown when no process of the agent is left.
package teammate
