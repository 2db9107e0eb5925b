// Package hook runs the commands that a user puts around what a team does: before a teammate goes
// idle, when a task is created, and when one is completed.
//
// # Authority
//
// The package decides which commands run and what their answers mean. It does not decide what
// becomes of the team: a [Verdict] goes into the command that the team's core judges, and the core
// counts repeated rejections.
//
// # Where hooks come from
//
// From the settings files of Claude Code, in its format, and from the team file; they run one after
// the other in this order, and all of them run, also after one rejected:
//
//	user      <claude root>/settings.json
//	project   <dir>/.claude/settings.json           only once trusted
//	local     <dir>/.claude/settings.local.json     only once trusted
//	team      the team file
//
// As in Claude Code, these three events know no matcher: one that is written there is without
// effect, and a note says so.
//
// # States of a command
//
//	         exit 0                        allow
//	         exit 0, {"decision":"block"}  reject, reason
//	running  exit 0, {"continue":false}    allow, and the teammate may idle whatever the others say
//	         exit 2                        reject, standard error
//	         anything else                 allow, and a note for the log
//
// # Guarantees
//
//   - A command gets the event as one JSON object on standard input and as environment, and runs in
//     the project's folder.
//   - When [Runner.Run] returns, nothing that a command started runs any more; see package proc for
//     what is meant by that.
//   - A broken hook never stops a team: only an exit status of 2 or a clear answer rejects. A
//     settings file that cannot be read is an error with line and column, not a team without its
//     gates.
//   - What a repository brings along runs only after a person looked at it, and not after it
//     changed; see [Trust].
package hook
