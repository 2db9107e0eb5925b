package access

// commands is the table of the command line. A lead's session may do what the team's tools let it
// do (internal/agent/tools). It passes here like any member, and the core decides by its name.
var commands = []Row{
	{Name: "", Rule: Anyone}, // the help
	{Name: "help", Rule: Anyone},
	{Name: "completion", Rule: Anyone},
	{Name: "completion bash", Rule: Anyone},
	{Name: "completion fish", Rule: Anyone},
	{Name: "completion powershell", Rule: Anyone},
	{Name: "completion zsh", Rule: Anyone},
	{Name: "__complete", Rule: Anyone},
	{Name: "version", Rule: Anyone},
	{Name: "schema", Rule: Anyone}, // the help
	{Name: "schema observe", Rule: Anyone},
	{Name: "schema teamfile", Rule: Anyone},
	{Name: "validate", Rule: Anyone}, // it reads a file, with the caller's own rights
	{Name: "doctor", Rule: Anyone},   // it shows what is installed, and every session can find that out

	{Name: "store", Rule: Anyone}, // the help
	{Name: "store init", Rule: User, Because: "it makes tables, and says who may use them"},
	{Name: "store migrate", Rule: User, Because: "it changes the tables of every team in a database"},
	{Name: "store move", Rule: User, Because: "it decides where a team continues"},

	{Name: "init", Rule: Anyone},      // a session can write that file itself
	{Name: "templates", Rule: Anyone}, // it reads files, with the caller's own rights

	{Name: "run", Rule: User, Because: "it creates teams and runs sessions outside of the permissions of any agent"},
	{Name: "create", Rule: User, Because: "no member creates a team"},
	{Name: "serve", Rule: User, Because: "it runs sessions outside of the permissions of any agent"},
	{Name: "serve token", Rule: Anyone}, // the help
	{Name: "serve token add", Rule: User, Because: "a token lets in whoever has it"},
	{Name: "serve token ls", Rule: User, Because: "it shows where the user's tokens are"},
	{Name: "serve token rm", Rule: User, Because: "it logs out the user's browsers"},
	{Name: "board", Rule: User, Because: "what is clicked on the board is the user's word"},
	{Name: "hosts", Rule: User, Because: "it shows and drains the machines of all teams"},
	{Name: "host", Rule: User, Because: "it runs sessions outside of the permissions of any agent"},
	{Name: "resume", Rule: User, Because: "it takes the lead as the user"},
	{Name: "pause", Rule: User, Because: "it ends everybody's session"},
	{Name: "abort", Rule: User, Because: "it ends everybody's session"},
	{Name: "cleanup", Rule: User, Because: "it removes the team with its history"},
	{Name: "consolidate", Rule: User, Because: "it runs the checks and moves the user's HEAD"},
	{Name: "push", Rule: User, Because: "it sends the team and its work to another machine"},
	{Name: "pull", Rule: User, Because: "it decides which history of a team counts here"},
	{Name: "checkpoint", Rule: User, Because: "it commits to the user's repository, and hosts make checkpoints by " +
		"themselves"},
	{Name: "trust", Rule: User, Because: "hooks that are trusted run with the user's rights"},
	{Name: "notify", Rule: User, Because: "it runs a command and sends to addresses that the user chose"},
	{Name: "hooks", Rule: Reads, Flags: []Flag{
		{"dir", User, "the hooks of other projects are not the session's business"}}},
	{Name: "hooks disable", Rule: User, Because: "hooks judge what members do"},
	{Name: "hooks enable", Rule: User, Because: "hooks judge what members do"},
	{Name: "hooks try", Rule: User, Because: "hooks run with the user's rights"},

	// a session sees only its own team there: goals and directories of other teams are not its
	// business
	{Name: "ls", Rule: Reads},
	{Name: "status", Rule: Reads},
	{Name: "log", Rule: Reads},
	{Name: "search", Rule: Reads},
	{Name: "probe", Rule: Reads},
	{Name: "attention", Rule: Reads},
	{Name: "review", Rule: Reads},
	{Name: "export", Rule: Reads}, // the file is where the session may write
	{Name: "fsck", Rule: Reads, Flags: []Flag{
		{"mend", User, "what is mended may be lost"}}},
	{Name: "facts", Rule: Reads, Flags: []Flag{
		{"add", User, "the user says which files all members rely on"},
		{"record", User, "the user says that the files are right as they are"}}},
	{Name: "plan", Rule: Reads, Flags: []Flag{
		{"approve", Acts, ""},
		{"reject", Acts, ""}}},
	{Name: "plan list", Rule: Reads},
	{Name: "plan submit", Rule: Acts},
	// without a team it reads only files and programs that the session can read itself
	{Name: "observe", Rule: Anyone, Flags: []Flag{
		{"as-team", User, "it keeps what it observes as a team"},
		{"claude-team", User, "it keeps what it observes as a team"}}},

	{Name: "spawn", Rule: Acts, Flags: []Flag{
		{"command", User, "a program of its own would run outside of the session's permissions"},
		{"arg", User, "arguments of an agent say what it may do without asking"},
		{"env", User, "the environment of an agent says which programs it runs"}}},
	{Name: "shutdown", Rule: Acts, Flags: []Flag{
		{"graceful", User, "it ends the team"}}},
	{Name: "permit", Rule: Acts, Flags: []Flag{
		{"always", User, "it says what a member may do without asking"}}},
	{Name: "permission", Rule: Reads},
	{Name: "permission add", Rule: User, Because: "it says what a member may do without asking"},
	{Name: "permission rm", Rule: User, Because: "it says what a member may do without asking"},
	{Name: "permit list", Rule: Reads},
	{Name: "leave", Rule: Acts},
	{Name: "resend", Rule: Acts},
	{Name: "lift", Rule: Acts},
	{Name: "mode", Rule: User, Because: "it says what a member may do without asking"},
	{Name: "delegate", Rule: User, Because: "it says what the lead may do"},
	{Name: "budget", Rule: Reads, Flags: []Flag{
		{"tokens", User, "it says what may be spent"},
		{"usd", User, "it says what may be spent"},
		{"time", User, "it says what may be spent"},
		{"unlimited", User, "it says what may be spent"}}},
	{Name: "watch", Rule: User, Because: "what is typed on the screen is the user's word"},
	{Name: "attach", Rule: User, Because: "what is typed at a member's terminal is the user's word"},
	{Name: "panes", Rule: User, Because: "it opens panes in the terminal of the user"},
	{Name: "handover", Rule: User, Because: "it ends a session; that happens by itself when a context is full"},
	{Name: "interrupt", Rule: User, Because: "it ends a turn; a lead sends an urgent message"},
	{Name: "reassign", Rule: User, Because: "it reads what another member did where that works; a lead gives a task " +
		"to another member with cadre task update --owner"},

	{Name: "task", Rule: Anyone}, // the help
	{Name: "task add", Rule: Acts, Flags: []Flag{
		{"run", User, "its command would run outside of the session's permissions"},
		{"check", User, "its check would run outside of the session's permissions"},
		{"until", User, "its check would run outside of the session's permissions"},
		{"file", User, "its commands would run outside of the session's permissions"}}},
	{Name: "task list", Rule: Reads},
	{Name: "task show", Rule: Reads},
	{Name: "task update", Rule: Acts, Flags: []Flag{
		{"run", User, "its command would run outside of the session's permissions"}}},
	{Name: "task claim", Rule: Acts},
	{Name: "task done", Rule: Acts},
	{Name: "task paths", Rule: Reads},
	{Name: "task paths claim", Rule: Acts},
	{Name: "task paths release", Rule: Acts},
	{Name: "task fail", Rule: Acts},
	{Name: "task release", Rule: Acts},
	{Name: "task rm", Rule: Acts},
	{Name: "task rollback", Rule: User, Because: "it changes files that are not the session's"},
	{Name: "note", Rule: Anyone}, // the help
	{Name: "note set", Rule: Acts},
	{Name: "note append", Rule: Acts},
	{Name: "note get", Rule: Reads},
	{Name: "note list", Rule: Reads},
	{Name: "note log", Rule: Reads},
	{Name: "note rm", Rule: Acts},
	{Name: "send", Rule: Acts},
	{Name: "broadcast", Rule: Acts},
	{Name: "inbox", Rule: Acts},

	{Name: "mcp", Rule: Acts, Flags: []Flag{
		{"socket", Anyone, ""}}}, // the host at the other end knows which session it serves
	{Name: "gemini-hook", Rule: Anyone}, // likewise
	{Name: "wake", Rule: Reads},         // it says only whether there is news
	{Name: "join", Rule: User, Because: "it runs an agent outside of the session's permissions"},
	{Name: "claude-teammate", Rule: User, Because: "it runs an agent outside of the session's permissions"},
	{Name: "report-killed", Rule: User, Because: "it speaks for a member that was killed"},
}
