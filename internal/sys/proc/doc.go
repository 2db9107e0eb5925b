// Package proc starts children that never outlive the process that started them. That process is
// called their host here.
//
// # Authority
//
// A [Register] owns the children of one host. It alone starts, signals, reaps and forgets them. A
// child is the leader of a session of its own, and so of a process group of its own, without a
// terminal. Statements about a child apply to its whole group.
//
// # States
//
//	        fork           record, watchdog          exec             exit, group ended
//	(none) ─────▶ at the gate ─────────▶ admitted ───────▶ running ──────────────────▶ ended
//	                  │ host dies: end of file at the gate     │ host dies: watchdog, EndStrays
//	                  ▼                                        ▼
//	                killed                                   killed
//
// A child first waits at a gate: a pipe from which it reads one line. The gate opens when the
// child's record is written and the watchdog knows its group. If the host dies, three independent
// things end its children:
//
//   - the gate, for a child that does not run yet: the pipe closes with the host;
//   - the watchdog, a small shell in a session of its own, which has the list of running groups and
//     kills them when its pipe from the host closes;
//   - the records, one file per child in the host's folder, with which [EndStrays] finds the
//     remaining processes if the watchdog was killed as well.
//
// # Guarantees
//
//   - A child never runs without a record and a watchdog, even if the host is killed with SIGKILL
//     between any two steps.
//   - When [Child.Wait] returns, no process of the child's session is left, not even one that runs
//     in the background or ignores SIGTERM. Nor is any process with the child's token in its
//     environment, in any session: coding agents create sessions of their own for their tools. If a
//     process could not be ended, the error names it.
//   - Every wait is bounded. [Child.Stop] ends with SIGKILL. A pipe held open by an escaped process
//     delays nothing for longer than [Cmd.Drain].
//   - With [Register.KillAt], children are killed at a time, whatever the host does then: even if it
//     is stopped.
//   - An unrelated process is never killed. A running host signals a group only while its leader is
//     not reaped, so that the kernel cannot reuse the id. [EndStrays] checks the start time of the
//     leader, or, without a leader, for the child's token in the environment of each process.
//
// # Whose session a process runs in
//
// A register that runs sessions is listed ([OpenListed]), and its process is a subreaper if the
// system has them. [Ancestry] walks from a process up to the nearest listed host, and finds in the
// host's own records which child the process descends from. It does not use the environment, which
// a process can change.
//
//	host ── child with a record ── …            the record's member, or the user if it is trusted
//	     ├─ process of the host's own session   started by the host's program itself
//	     └─ any other                           left behind by some child: never the user
//
// A program that starts processes for others, such as a server, is listed as a whole ([OpenWhole]).
// It is then the nearest host of what it started itself, and of what a killed host below it has
// left. [Guard] puts such a program above a host in the background.
//
// # Workers
//
// A command that may continue in the background runs in a worker ([RunWorker]). A worker is not a
// child in this sense: it shares the terminal and the process group of the process in front of it.
// If it leaves for the background, it outlives that process. If the process in front is killed, the
// worker gets SIGHUP.
//
// # Not covered
//
// A process that creates a session (setsid, a daemon) and drops the token from its environment
// stays.
//
// The watchdog knows groups, not sessions. A job that a shell put into a group of its own, or a
// process that created a session, is ended by Wait, Stop and EndStrays, but not by the watchdog.
//
// macOS hides the environment of the system's own programs. EndStrays reports such processes of a
// dead leader as [Stray.Left] instead of ending them.
//
// A variable whose name is not an identifier does not pass the shell at the gate.
package proc
