// Package teams runs teams of agents from a Go program: a lead and its teammates, who share a task
// list with dependencies and a mailbox, under rules that hold for every process that takes part.
//
// # Who is who
//
//	Manager    one session of one actor: the lead by default, or the teammate that Options.As names. It has one team at a time.
//	Team       what the lead does with its team: tasks, mail, plans, permissions, modes, the run to its end
//	Teammate   what a member does in it: a program that acts as an external member, or a session
//	TaskList, Mailbox   the same for everybody; each handle acts as the one it was got from
//	Agent, Session      your own agents, run by the manager; [Worker] is one made of Go functions
//	Observer   watches a team that Claude Code runs itself, and needs no manager
//
// A member is, by its Agent, a coding agent: [Claude], [Codex], [Gemini], [OpenCode], or any behind
// [ACP]; [Shell], which runs the commands of tasks; an agent of your own, by its name in
// Options.Agents; or [External], without a session: somebody acts as it with [Team.As].
//
//	m, err := teams.New(teams.Options{})
//	defer m.Close()
//	team, err := m.CreateTeam(ctx, teams.TeamConfig{
//		Name: "docs", Goal: "Describe the flags.",
//		Lead: teams.Spawn{Agent: teams.Claude, PermissionMode: teams.ModeAcceptEdits},
//	})
//	result, err := team.Run(ctx, teams.Report{})
//
// The lead is a member too. Where it is [External] this program leads, and the manager acts as the
// lead. Where it is an agent, that leads by itself, and the manager acts as the [User]: it gives
// tasks, writes to members and answers their [Team.Questions], but claims no task and has no
// mailbox.
//
// # A life
//
//	CreateTeam ─▶ SpawnTeammate ─▶ tasks, mail ─▶ ShutdownTeammate ─▶ Cleanup
//	    └──────────────────────── Run ───────────────────────┘
//	                 Close, or kill -9, at any point ─▶ OpenTeam, in any process: it goes on
//
// A team is on disk, in the same folders and format as the cadre program's, and both may be at work
// on it at once; with Options.Memory it is in memory and ends with the program. Close ends the
// sessions that this manager runs and leaves the team; only Cleanup removes it.
//
// # What the manager does by itself
//
// A lead's manager is a host: it starts a session for every member whose agent it knows, gives it
// its messages, wakes it when there is a task for it, ends it when it is to end, and records when
// it ended by itself. Of several hosts of one team each member has one. A manager with Options.As
// runs nothing.
//
// # Guarantees
//
//   - A method that changes something returns nil only when that is durable; after an error the
//     team is as it was, except where the context ended or the error says otherwise: then it may
//     have happened.
//   - Refusals are an [*Error]: a code, a sentence, and hints that say as data which action would
//     help. errors.Is(err, teams.Conflict) and the other codes tell them apart.
//     Other errors are those of the context, the disk and the like, as they are.
//   - No process of a session outlives its manager, also one that is killed; but a daemon that
//     dropped its environment may.
//   - A task is held by one member at a time. A [Claim] that was lost completes nothing.
//   - A message is in its recipient's hands once, in the order of Seq, or comes back to its sender.
//   - Methods that read show the team as of their call or later. What they return is the caller's
//     own copy.
//   - Everything here may be used from any goroutine, and no handle needs closing but the manager.
package teams
