// Package guest runs one of our agents as a member of a team that Claude Code leads.
//
// # Authority
//
// [Work] runs one member from start to end: its agent's session, mail, tasks, questions and
// shutdown. The team's files define the team (package teamfiles), and the caller chooses the agent.
// The rules of package team apply to what the agent does: who may claim a task, and what blocks a
// task.
//
// # The files are the journal
//
//	files ──▶ team.State ──▶ team.Decide ──▶ events ──▶ files, each under its lock, if it has not changed since the decision
//	  ▲           └──▶ tools, envelopes, prompts
//	  └── Claude Code, and all other members of the team
//
// # States of a member
//
//	starting ──▶ idle ──mail──▶ working ──its turn ends: a notice to the lead, with its last words──▶ idle …
//	its session ends by itself ──▶ failed ──mail, after a pause──▶ starting          after five times in a row: stopped
//	asked to shut down ──it agrees, or the deadline passes──▶ the session ends ──▶ the lead is notified ──▶ stopped
//	the team has ended, or the member is off the roster ──▶ stopped
//	killed ──its watchdog notifies the lead ([ReportKilled])──▶ down ──another process starts under its name ([TakeSlot])──▶ starting, with its session
//
// # Guarantees
//
//   - A message stays in the inbox until it is in the agent's context. A member that is killed in
//     between reads it again, unless its session's history already has it.
//   - A task that changed since the decision is read and decided on again: of two claims one
//     succeeds.
//   - Every turn ends with one notice to the lead; a turn without any work sends none. If a
//     teammate that the lead started cannot run, the lead is told why ([ReportNotStarted]).
//   - Only messages from the lead end the member, answer it, or change what it may do. No message
//     makes it skip permissions unless it was started that way. If the lead signs its messages to
//     this member, unsigned ones do not count as the lead's. A lead signs only for the teammates
//     that it starts, not for members that join by hand.
//   - Every question ends: with the answer of the lead or of the person at the pane, or with a
//     denial at its deadline.
//   - A name has one process at a time. After a kill the lead is notified, and the slot is kept
//     until the team has ended.
//   - The lead is told of a shutdown only when no process of the agent is left.
package guest
