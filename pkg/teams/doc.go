// Package teams runs teams of coding agents from a Go program: a lead and its teammates, who share
// a task list with dependencies and a mailbox, under rules that hold for every process that takes
// part. It is the whole product as a library: what a command of cadre does, an entry here does.
//
// # Who is who
//
//	Manager    one session of one actor: the lead by default, or the teammate that Options.As names
//	View       what there is to see of a team, also of one that others run; see [Manager.View]
//	Team       a View, and what is done with a team, from its members to its one commit
//	Teammate   what a member does in it: a program that acts as an external member, or a session
//	TaskList, Mailbox   the same for everybody; each handle acts as the one it was got from
//	Agent, Session      your own agents, run by the manager; [Worker] is one made of Go functions
//	Observer   watches a team that Claude Code runs itself, and needs no manager
//
// Each thing is done in one place. A Manager begins and ends having a team: it creates, opens and
// cleans up, one team at a time, and it looks at, moves and lists all teams of a home. A Team has
// what happens in a team: [Team.Spawn] and [Team.Shutdown] are there, because both need the host
// and the rules of that team, and a manager without a team could only refuse them. A Mailbox sends,
// because a message has a sender, and the handle says who that is.
//
// A member is, by its Agent, a coding agent: [Claude], [Codex], [Gemini], [OpenCode], or any behind
// [ACP]; [Shell], which runs the commands of tasks; an agent of your own, by its name in
// Options.Agents; or [External], without a session: somebody acts as it with [Team.As].
//
//	m, err := teams.New(teams.Options{})
//	defer m.Close()
//	team, err := m.CreateTeam(ctx, teams.TeamConfig{
//		Name: "docs", Goal: "Describe the flags.",
//		Lead: teams.MemberConfig{Agent: teams.Claude, PermissionMode: teams.ModeAcceptEdits},
//	})
//	result, err := team.Run(ctx, teams.RunOptions{})
//
// The lead is a member too. Where it is [External] this program leads, and the manager acts as the
// lead. Where it is an agent, that leads by itself, and the manager acts as the [User]: it gives
// tasks, writes to members and answers their [Team.Questions], but claims no task and has no
// mailbox.
//
// # A life
//
//	CreateTeam ─▶ Spawn ─▶ tasks, mail ─▶ Shutdown ─▶ Cleanup
//	    └───────────────── Run ─────────────────┘
//	             Close, or kill -9, at any point ─▶ OpenTeam, in any process: it continues
//
// A team is on disk, in the same folders and format as the cadre program's, and both may be at work
// on it at once; with Options.Memory it is in memory and ends with the program. Close ends the
// sessions that this manager runs and leaves the team; only Cleanup removes it.
//
// # What the manager does by itself
//
// A lead's manager is a host: it starts a session for every member whose agent it knows, gives it
// its messages, wakes it when there is a task for it, ends it when it is to end, and records when
// it ended by itself. Of several hosts of one team each member has one. A team on disk has
// checkpoints while it is hosted. A manager with Options.As runs nothing.
//
// # Guarantees
//
//   - A method that changes something returns nil only when that is durable; after an error the
//     team is as it was, except where the context ended or the error says otherwise: then it may
//     have happened.
//   - Refusals are an [*Error]: a code, a sentence, and hints that say as data which action would
//     help. errors.Is(err, teams.ErrConflict) and the other codes tell them apart. Other errors are
//     those of the context, the disk and the like, as they are.
//   - No process of a session outlives its manager, also one that is killed; but a daemon that
//     dropped its environment may.
//   - A task is held by one member at a time. A [Claim] that was lost completes nothing.
//   - A message is in its recipient's hands once, in the order of Seq, or comes back to its sender.
//   - Methods that read show the team as of their call or later. What they return is the caller's
//     own copy.
//   - What waits ends with the team: with ErrFinished, or without an error for a sequence of
//     events.
//   - Everything here may be used from any goroutine, and no handle needs closing but the manager.
//
// # Where to begin
//
// docs/migrating.md maps the names of the first description of agent teams to these. A program that
// imports this package compiles the packages that it needs alone: what the tests of cadre import
// stays with cadre.
//
// # Stability
//
// Until version 1 an entry may change with a minor version; the release notes name the old and the
// new one. From version 1 on, what is exported here follows Go's promise of compatibility: names,
// signatures and documented behaviour stay within a major version. This includes the values of
// codes, statuses and the other enumerations, because programs keep them; the texts of errors and
// of Attention are for people, and change. New fields of structs, new constants and new types of
// [Fact] come with minor versions, so a switch over them needs a default, and structs are written
// with the names of their fields.
//
// What is on disk has a version of its own. A newer version reads what an older one wrote. An older
// one refuses with ErrNewerVersion what it does not know, and changes nothing.
package teams
