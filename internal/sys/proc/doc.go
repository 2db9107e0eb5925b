// Package proc starts children that never outlive the process that started them, which is called
// their host here.
//
// # Authority
//
// A [Register] owns the children of one host: it alone starts them, signals them, reaps them and
// forgets them. A child is the leader of a session of its own (and so of a process group of its
// own, without a terminal), and what is said here of a child is meant of its whole group.
//
// # States
//
//	        fork            record, leash           exec             exit, group ended
//	(none) ─────▶ at the gate ─────────▶ admitted ───────▶ running ──────────────────▶ ended
//	                  │ host dies: end of file at the gate     │ host dies: the leash, or EndStrays
//	                  ▼                                        ▼
//	                gone                                     gone
//
// A child waits at a gate, a pipe that it reads one line from, until its record is written and the
// leash knows it. Three things end a child whose host is gone, each on its own:
//
//   - the gate, while the child has not run yet: the pipe ends with the host;
//   - the leash, a small shell in a session of its own that holds the list of running groups and
//     kills them when its pipe from the host ends;
//   - the records, one file a child in the host's folder, by which [EndStrays] finds what is left
//     when the leash was killed as well.
//
// # Guarantees
//
//   - A child never runs without a record and a leash. Between any two steps the host may be killed
//     with SIGKILL.
//   - When [Child.Wait] returns, no process of the child's session is left, also not one that was
//     started in the background or ignores SIGTERM, and none that has the child's token in its
//     environment, wherever it went: coding agents make sessions of their own for what their tools
//     run. An error says which could not be ended.
//   - No wait is for ever: [Child.Stop] ends with SIGKILL, and a pipe held open by a process that
//     got away delays nothing for longer than [Cmd.Drain].
//   - A stranger is never killed. A live host signals a group only while it has not reaped its
//     leader, so that the kernel cannot give the number away; [EndStrays] asks for the start time
//     of the leader, or for the child's token in the environment of each process that the leader
//     left behind.
//
// # Whose session a process runs in
//
// A register that runs sessions is listed ([OpenListed]), and its process is a subreaper where the
// system has them. [Ancestry] walks from a process up to the nearest listed host, and tells by the
// host's own records which child it descends from: the environment, which a process can change, has
// no part in that.
//
//	host ── child with a record ── …            the record's member, or the user where it is trusted
//	     ├─ process of the host's own session   started by the host's program itself
//	     └─ any other                           left behind by some child: never the user
//
// # Not covered
//
// A process that makes itself a session (setsid, a daemon) and drops the token from its environment
// stays. The leash knows groups, not sessions: a job that a shell with job control put into a group
// of its own, or a process that made itself a session, is ended by Wait, Stop and EndStrays but not
// by the leash. On macOS the environment of the system's own programs is hidden; there EndStrays
// reports what a dead leader left behind as [Stray.Left] instead of ending it. A variable whose
// name is not an identifier does not pass the shell at the gate.
package proc
