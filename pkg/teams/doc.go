// Package teams runs teams of coding agents from a Go program: a lead and its teammates, who share
// a task list with dependencies and a mailbox. The same rules hold for every process that takes
// part. What a command of cadre does to teams has an entry here, too. The screen, the server with
// its board, notifications, trust in hooks, and what the session of an agent calls are in the
// program alone; commands_test.go has every command with its entries, or with the reason why it has
// none.
//
// # Who is who
//
//	Manager    one session of one actor: the lead by default, or the teammate that Options.As names
//	View       reads a team, also one that another process runs; see [Manager.View]
//	Team       a View that can also change the team, from its members to its one commit
//	Teammate   acts as a member: for a program that is an external member, or for a session
//	TaskList, Mailbox   the same for all; each handle acts as the actor that it came from
//	Agent, Session      your own agents, run by the manager; [Worker] is one made of Go functions
//	Observer   watches a team that Claude Code runs itself, and needs no manager
//
// Each operation is in one place. A Manager creates, opens and cleans up teams, one team at a time,
// and it reads, moves and lists all teams of a home. A Team has the operations within a team:
// [Team.Spawn] and [Team.Shutdown] need its host and its rules. A Mailbox sends, because the handle
// says who the sender of a message is.
//
// A member is, by its Agent, a coding agent: [Claude], [Codex], [Gemini], [OpenCode], or any behind
// [ACP]; [Shell], which runs the commands of tasks; an agent of your own, by its name in
// Options.Agents; or [External], without a session: a program acts as it with [Team.As].
//
//	m, err := teams.New(teams.Options{})
//	defer m.Close()
//	team, err := m.CreateTeam(ctx, teams.TeamConfig{
//		Name: "docs", Goal: "Describe the flags.",
//		Lead: teams.MemberConfig{Agent: teams.Claude, PermissionMode: teams.ModeAcceptEdits},
//	})
//	result, err := team.Run(ctx, teams.RunOptions{})
//
// The lead is a member too. If it is [External], this program leads, and the manager acts as the
// lead. If it is an agent, the agent leads by itself, and the manager acts as the [User]: it
// creates tasks, writes to members and answers their [Team.Questions], but it claims no task and
// has no mailbox.
//
// # Life of a team
//
//	CreateTeam ─▶ Spawn ─▶ tasks, mail ─▶ Shutdown ─▶ Cleanup
//	    └───────────────── Run ─────────────────┘
//	             Close, or kill -9, at any point ─▶ OpenTeam, in any process: it continues
//
// A team is on disk, in the same folders and format as the cadre program's, and both may work on it
// at once. With Options.Memory it is in memory and ends with the program. Close ends the sessions
// that this manager runs and keeps the team; only Cleanup removes it.
//
// # What the manager does by itself
//
// A lead's manager is a host. It starts a session for every member whose agent it knows, delivers
// messages, and wakes the session when a task is ready. It ends the session on request, and records
// if the session ended by itself. If a team has several hosts, each member has one of them. A team
// on disk gets checkpoints while a host runs it. A manager with Options.As runs no sessions.
//
// # Guarantees
//
//   - A method that changes something returns nil only when the change is durable. After an error the
//     team is unchanged, unless the context ended or the error says otherwise: then the change may
//     have happened.
//   - A refusal is an [*Error]: a code, a sentence, and hints with the next steps as data. Compare
//     codes with errors.Is(err, teams.ErrConflict). Other errors, such as those of the context and
//     the disk, are returned as they are.
//   - No process of a session outlives its manager, even if the manager is killed. Only a daemon that
//     dropped its environment may.
//   - One member at a time holds a task. A lost [Claim] completes nothing.
//   - A message is delivered to its recipient once, in the order of Seq, or returns to its sender.
//   - Methods that read return the team's state at the time of the call or later, as a copy.
//   - Methods that wait return when the team ends: with ErrFinished, or without an error for a
//     sequence of events.
//   - All methods may be called from any goroutine. Only the manager must be closed.
//
// # Where to start
//
// docs/migrating.md maps the names of the first description of agent teams to these names. A
// program that imports this package does not compile the dependencies of cadre's tests. Package
// client is for a program that leaves the running of teams to a server; docs/embedding.md says
// when.
//
// # Stability
//
// Before version 1, an entry may change with a minor version; the release notes name the old and
// the new one. From version 1 on, exported names follow Go's compatibility promise: names,
// signatures and documented behaviour stay within a major version. This includes the values of
// codes, statuses and other enumerations, because programs store them. The texts of errors and of
// Attention are for people, and may change. Minor versions add fields of structs, constants and
// types of [Fact]. So a switch over them needs a default, and struct literals need field names.
//
// The format on disk has its own version. A newer program reads what an older one wrote. An older
// program returns ErrNewerVersion for a format that it does not know, and changes nothing.
package teams
