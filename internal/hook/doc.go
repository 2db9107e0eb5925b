// Package hook runs the commands that a user attaches to three events of a team: a teammate is
// about to go idle, a task is created, and a task is completed.
//
// # Authority
//
// The package decides which commands run and how their answers are read. It does not decide what
// happens to the team. The caller puts the [Verdict] into the command that the team's core judges,
// and the core counts repeated rejections.
//
// # Where hooks come from
//
// Hooks come from the settings files of Claude Code, in its format, and from the team file. They
// run one after the other in this order, and all of them run even if one rejects:
//
//	user      <claude root>/settings.json
//	project   <dir>/.claude/settings.json           only once trusted
//	local     <dir>/.claude/settings.local.json     only once trusted
//	team      the team file
//
// As in Claude Code, these three events do not support a matcher. A matcher in the file has no
// effect, and a note for the log says so.
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
//   - A command gets the event as one JSON object on standard input and as environment variables.
//     It runs in the project's folder.
//   - When [Runner.Run] returns, no process that a command started is still running. Package proc
//     defines which processes this covers.
//   - A broken hook never stops a team: only exit status 2 or an explicit answer rejects. A
//     settings file that cannot be read is an error with line and column, because a team must not
//     run without its gates.
//   - A hook that comes with a repository runs only after a person has approved it. When it
//     changes, it needs approval again; see [Trust].
package hook
