package archtest

// module is the path of this module.
const module = "cadre"

// platforms lists the operating systems for which the plan must hold.
var platforms = []string{"linux", "darwin"}

// top lists the folders above internal, the highest first. Each may import everything below it, and
// nothing above.
var top = []string{"e2e", "cmd", "examples", "pkg"}

// room is a package below internal, with the packages of this module that its non-test code may
// import.
type room struct {
	name    string
	may     []string
	because string
}

var rooms = []room{
	{"team", nil,
		"the core is functions over values: every rule is in it, and it needs nobody to hold"},
	{"journal", nil,
		"a journal orders records and keeps them; it does not know what they say, so that neither can break the other"},
	{"journal/filejournal", []string{"journal", "sys/crc32c", "sys/filelock", "sys/regularfile"},
		"an implementation knows its contract only"},
	{"journal/filejournal/disktest", []string{"journal/filejournal"},
		"a disk that loses power keeps what the real one promises to a journal, and knows nothing of what a journal is"},
	{"journal/journaltest", []string{"journal"},
		"the suite runs against the contract, so that every implementation passes the same"},
	{"journal/recorded", []string{"journal", "team"},
		"the state of a team is read from any journal in the same way, by a replica and by whoever has to know whose " +
			"team it is"},
	{"journal/memjournal", []string{"journal"},
		"an implementation knows its contract only"},
	{"sys/atomicfile", []string{"sys/regularfile"},
		"a file that lasts is of use to any room, whatever is in it"},
	{"sys/crc32c", nil,
		"a checksum is of use to any room that reads back what it wrote"},
	{"sys/filelock", []string{"sys/regularfile"},
		"a lock between processes is of use to any room, whatever it protects"},
	{"sys/fswatch", nil,
		"it tells that files changed, and what is in them is none of its business"},
	{"sys/lazyregexp", nil,
		"a regular expression that costs nothing until it is used is of use to any room, and needs none"},
	{"sys/proc", []string{"sys/atomicfile", "sys/filelock", "sys/regularfile"},
		"it starts and ends processes for whoever asks, and what they are for is none of its business"},
	{"sys/regularfile", nil,
		"to open a file without waiting for a pipe is of use to any room that reads files, and needs none"},
	{"sys/websocket", nil,
		"a protocol over a connection that there is; who connects, and what is said, is its caller's affair"},
	{"layout", []string{"git/project", "journal", "journal/filejournal", "journal/recorded", "sys/atomicfile",
		"sys/filelock", "sys/proc",
		"sys/regularfile", "team"},
		"it knows the folders, and is the one place that chooses the journal that is in them"},
	{"render", []string{"render/excerpt", "render/sanitize", "team"},
		"lines for people are a function of the state and its records"},
	{"render/excerpt", nil,
		"how a text is cut is of use to any room that shows or records texts, and does not depend on what it says"},
	{"render/report", []string{"render/sanitize", "sys/lazyregexp"},
		"a report is text from values, and whoever has the values can write one"},
	{"render/sanitize", nil,
		"what a person may be shown is decided at one place, of use to any room that writes for people, and does not " +
			"depend on what is shown"},
	{"git/redact", []string{"sys/lazyregexp"},
		"what is likely a secret does not depend on where the text is from and where it goes"},
	{"hook", []string{"render/excerpt", "render/sanitize", "sys/atomicfile", "sys/filelock", "sys/lazyregexp",
		"sys/proc", "sys/regularfile"},
		"a hook is a command with an event on its stdin; what a team is it learns from the event alone"},
	{"replica", []string{"hook", "journal", "journal/recorded", "team"},
		"every front end works through a replica, so it must work without a host and without sessions"},
	{"liveness/detector", []string{"liveness/heartbeat", "liveness/leader", "replica", "sys/filelock",
		"sys/proc", "team"},
		"who is silent is found out in the same way by whatever process stays with a team, with sessions or without"},
	{"liveness/heartbeat", []string{"sys/atomicfile", "sys/regularfile"},
		"a sign of life is a small file, and says nothing of what is done about its absence"},
	{"liveness/leader", []string{"liveness/heartbeat", "replica", "sys/filelock", "team"},
		"whatever process leads, it takes and holds the lead in the same way"},
	{"git", []string{"sys/proc", "sys/regularfile"},
		"it runs git for whoever knows what to ask it, and what a repository is used for is none of its business"},
	{"git/project", []string{"sys/regularfile"},
		"which project a directory belongs to is in git's files, and whoever asks need not run git"},
	{"git/checkout", []string{"git", "git/checkpoint", "render/sanitize", "sys/proc", "team"},
		"whether a directory is the one that a team was created in is found out in the same way before a session " +
			"starts, before a team is resumed and when a person says that it was moved"},
	{"git/checkpoint", []string{"git", "git/redact", "git/worktree", "render/excerpt", "sys/atomicfile", "sys/crc32c",
		"sys/filelock", "sys/lazyregexp", "sys/proc", "sys/regularfile", "team"},
		"a checkpoint is made of a state and its records, whoever has them, and kept by git; the journal and what a " +
			"restored team does are its caller's affair"},
	{"git/worktree", []string{"git", "render/sanitize", "sys/filelock", "sys/proc", "sys/regularfile"},
		"worktrees and branches, and nothing of what a member is"},
	{"claude/projection", []string{"journal", "sys/crc32c", "sys/filelock", "sys/regularfile", "team"},
		"a projection is a function of the history and the state; whoever has a replica may call it, and it " +
			"calls nobody"},
	{"claude/sdkrelay", []string{"sys/proc", "sys/websocket"},
		"a relay carries frames between a program that it starts and whoever uses it; what the lines mean is the " +
			"affair of who reads along"},
	{"claude/settings", []string{"sys/regularfile"},
		"what a file of settings says is the same for whoever asks, and the hooks in it are another room's"},
	{"claude/teamfiles", []string{"claude/projection", "sys/atomicfile", "sys/filelock", "sys/fswatch",
		"sys/regularfile", "team"},
		"files and their locks, and the form of what is in them; who may be a member is decided above it"},
	{"claude/teamfiles/teamfilestest", nil,
		"a recording is what somebody else's program did to files; what that means each reader finds out in its own way"},
	{"agent", []string{"sys/lazyregexp", "sys/proc", "team"},
		"the contract of a session: what a member is, and the children it may have"},
	{"agent/acp", []string{"agent", "agent/readonly", "sys/lazyregexp", "sys/proc", "sys/regularfile", "team"},
		"a driver knows its contract; what is particular to one agent is data in it"},
	{"agent/agenttest", []string{"agent", "agent/envelope", "agent/mcpserver", "sys/filelock", "sys/proc",
		"team"},
		"the suite runs against the contract, so that every driver passes the same with its real program"},
	{"agent/agenttest/install", []string{"agent/agenttest"},
		"what make test calls, so that a person sees the programs come"},
	{"agent/claude", []string{"agent", "agent/mcpserver", "sys/proc", "sys/regularfile", "team"},
		"a driver knows its contract, and serves the tools that it is given as its program wants them"},
	{"agent/claudetmux", []string{"agent", "agent/claude", "claude/projection", "claude/teamfiles", "sys/atomicfile",
		"sys/proc", "sys/regularfile", "team"},
		"a driver knows its contract, and speaks with its program by the files of a team of that program's own"},
	{"agent/codex", []string{"agent", "agent/readonly", "sys/lazyregexp", "sys/proc", "sys/regularfile",
		"sys/websocket", "team"},
		"a driver knows its contract, and serves the tools that it is given as its program wants them"},
	{"agent/drivers", []string{"agent", "agent/acp", "agent/claude", "agent/claudetmux", "agent/codex",
		"agent/headless", "agent/shell", "sys/proc", "team"},
		"which agents there are is said once, for the command line and for programs that embed teams; nobody below " +
			"it knows more than the contract"},
	{"agent/envelope", []string{"render/sanitize", "sys/lazyregexp", "team"},
		"the form of a message for an agent is text, made from the message and found in a transcript"},
	{"agent/headless", []string{"agent", "sys/lazyregexp", "team"},
		"what agents print where nobody drives them is lines, and says the same to whoever reads it"},
	{"agent/mcpserver", []string{"agent"},
		"it serves tools, whatever they do"},
	{"agent/prompts", []string{"agent/envelope", "render/excerpt", "render/sanitize", "team"},
		"what agents are told is a function of the state, and says nothing of how it gets to them"},
	{"agent/readonly", []string{"sys/lazyregexp", "sys/regularfile"},
		"whether a command only reads is told from its text and what is on the disk; what follows from that is the " +
			"core's affair"},
	{"agent/sessionlog", []string{"agent", "render/excerpt", "sys/fswatch", "sys/regularfile", "team"},
		"what a session shows is kept for viewers; who watches, and how it looks, is their affair"},
	{"agent/roles", []string{"sys/regularfile", "team"},
		"a definition is a file that a person wrote, and who uses it is the caller's affair"},
	{"agent/shell", []string{"agent", "sys/proc", "team"},
		"a driver knows its contract, and sees the team through what the contract hands it, never through a replica"},
	{"agent/tools", []string{"agent", "agent/envelope", "render/excerpt", "sys/lazyregexp", "team"},
		"a tool turns input into commands of one member; who serves it is not its affair"},
	{"agent/wake", []string{"liveness/detector", "sys/atomicfile", "sys/filelock", "sys/lazyregexp", "sys/proc",
		"sys/regularfile", "team"},
		"agents that a person starts: how long they wait for a tool, and how they are woken; the locks of sessions " +
			"outside tell which session is which member"},
	{"host", []string{"agent", "agent/envelope", "agent/mcpserver", "agent/prompts", "agent/readonly",
		"agent/roles", "agent/sessionlog", "agent/tools", "git", "git/checkout", "git/checkpoint", "git/worktree",
		"liveness/detector", "liveness/heartbeat", "render/excerpt", "render/sanitize", "replica",
		"sys/atomicfile", "sys/filelock", "sys/proc", "sys/regularfile", "team"},
		"a host is one more actor with a replica; it decides nothing, and knows of agents no more than their contract"},
	{"consolidate", []string{"agent/prompts", "git", "git/worktree", "host", "render/excerpt",
		"render/sanitize", "replica", "sys/atomicfile", "sys/filelock", "sys/proc", "sys/regularfile", "team"},
		"it takes the last steps of a team, with git and with the core's leave for each; who asked for that, and " +
			"what is told to a person, is its caller's affair"},
	{"consolidate/branches", []string{"consolidate", "git", "git/checkout", "git/checkpoint", "git/worktree",
		"sys/lazyregexp", "sys/proc", "team"},
		"which branches are a team's follows from the team and its checkpoints; who wants them removed is its " +
			"caller's affair"},
	{"inspect", []string{"consolidate", "git/checkout", "git/worktree", "hook", "host", "layout", "liveness/detector",
		"liveness/heartbeat", "liveness/leader", "replica", "sys/filelock", "sys/proc", "sys/regularfile",
		"team"},
		"it looks at everything that is left of a team, and touches nothing"},
	{"inspect/catalog", []string{"consolidate", "git/checkpoint", "git/project", "inspect", "layout",
		"observe/store", "replica",
		"sys/proc", "team"},
		"what is told of a team in a list is the same in every front end, and so is which teams a repository has"},
	{"inspect/history", []string{"team"},
		"which records a person asks for is the same in every front end"},
	{"engine/upkeep", []string{"claude/projection", "consolidate", "consolidate/branches", "git",
		"git/checkout", "git/checkpoint",
		"host", "inspect", "inspect/catalog", "journal", "journal/filejournal",
		"layout", "liveness/leader", "replica", "sys/filelock",
		"sys/proc", "team", "transfer"},
		"what a person does to a team from outside of its work is done in the same steps by every front end; who may, " +
			"and what the person is told, is its caller's affair"},
	{"inspect/attention", []string{"inspect", "layout", "replica", "sys/fswatch", "team"},
		"what waits for people in all teams is one list, and whoever shows it follows the teams in the same way"},
	{"transfer", []string{"consolidate", "git", "git/checkpoint", "git/project", "host", "layout", "liveness/leader",
		"replica", "sys/atomicfile", "sys/filelock", "sys/proc", "sys/regularfile", "team"},
		"it moves a team between machines by the branch of its checkpoints; what it tells a person, and what a " +
			"person answers, is its caller's affair"},
	{"access", []string{"agent", "layout", "sys/proc", "team"},
		"who may call what is said once, for the command line and for programs that embed teams; what an actor may " +
			"do in a team is the core's"},
	{"engine", []string{"access", "agent", "agent/drivers", "agent/envelope", "agent/prompts", "agent/roles",
		"agent/sessionlog", "agent/tools", "agent/wake", "claude/projection", "claude/settings", "consolidate",
		"consolidate/branches", "engine/upkeep",
		"git/checkout", "git/checkpoint", "git/project", "git/worktree", "hook", "host", "inspect", "inspect/attention",
		"inspect/catalog", "inspect/history", "journal", "journal/memjournal", "layout", "liveness/detector",
		"liveness/leader",
		"observe/store", "replica", "sys/filelock", "sys/proc", "sys/regularfile", "team", "transfer"},
		"it is the one place that puts replicas, hosts, leads and members outside together, so that no front end " +
			"has a team with less than another one; what is shown of that is the front end's affair"},
	{"run", []string{"agent", "consolidate", "engine", "git", "git/checkout", "git/worktree", "host", "inspect",
		"liveness/leader", "render/report", "render/sanitize", "replica", "run/teamfile", "sys/atomicfile",
		"sys/proc", "sys/regularfile", "team"},
		"it is the lead of a team made from a file, and puts the rooms below together; which agents there are is its " +
			"caller's choice"},
	{"run/teamfile", []string{"render/excerpt", "sys/lazyregexp", "team"},
		"reading a file a person wrote must not depend on what is done with it; of the core it takes how an amount " +
			"of money is written"},
	{"observe", []string{"observe/model", "observe/present", "team"},
		"what is seen of a team is a function of the lines that were seen; where they come from, and who keeps what " +
			"they say, is its caller's affair"},
	{"observe/model", []string{"observe/protocol", "team"},
		"what is known of a team does not depend on how it is shown"},
	{"observe/present", []string{"observe/protocol", "team"},
		"what consumers see is made from a state and its records, an observer's or a journal's"},
	{"observe/protocol", []string{"sys/lazyregexp", "team"},
		"what a line says does not depend on what is known of the team"},
	{"observe/session", []string{"agent", "observe", "observe/present", "observe/protocol", "render/excerpt", "team"},
		"what a session without a team did is told in a team's events, whichever agent it is; who reads its lines is " +
			"its caller's choice"},
	{"observe/source", []string{"claude/projection", "claude/teamfiles", "observe/protocol", "sys/fswatch",
		"sys/regularfile", "team"},
		"it brings lines to whoever listens; what they say, and what is kept of them, is none of its business"},
	{"observe/store", []string{"journal", "layout", "observe", "observe/protocol", "observe/source", "replica",
		"sys/atomicfile", "sys/filelock", "sys/regularfile", "team"},
		"it keeps what an observer knows and is the one writer of its journal; what the lines say is none of its " +
			"business, and to whom it is shown its caller's choice"},
	{"guest", []string{"agent", "agent/envelope", "agent/mcpserver", "agent/prompts", "agent/readonly",
		"agent/tools", "claude/projection", "claude/teamfiles", "render/excerpt", "render/sanitize",
		"sys/atomicfile", "sys/filelock", "sys/proc", "sys/regularfile", "team"},
		"a member of a team that Claude Code runs: an agent by its contract, and the files; which agents there are " +
			"is its caller's choice"},
	{"ui/sessionview", []string{"agent/sessionlog", "render", "render/sanitize", "team"},
		"how a session looks is the same on every screen; who shows it, and where it comes from, is the front end's affair"},
	{"testkit/archtest", nil,
		"it has tests only"},
	{"testkit/doctest", nil,
		"what a document shows of commands is text; who can run them is its caller's affair"},
	{"testkit/simtest", []string{"agent", "host", "journal", "journal/memjournal", "liveness/heartbeat",
		"liveness/leader", "render", "replica", "sys/proc", "team"},
		"it plays whole teams on the real core, replica, host and lead, and judges signs of life as the real ones " +
			"do; the machines, sessions and people are its own"},
	{"testkit/soak", nil,
		"it says how much tests do at once, whatever they are"},
	{"testkit/treetest", nil,
		"it holds folders to what was in them, whatever they are"},
}

// ban forbids imports in packages. A name covers the packages below it too.
type ban struct {
	imports []string
	from    []string // packages below internal; nil for every package but the ones in but
	but     []string
	because string
}

var bans = []ban{
	{imports: []string{"os", "net", "context", "sync", "log", "math/rand", "crypto/rand", "syscall",
		"io/fs", "runtime",
		"github.com", "golang.org", "go.yaml.in", "go.uber.org", "pgregory.net"},
		from: []string{"team"},
		because: "the core gives the same state everywhere and for ever: time, ids and randomness come in with the " +
			"command, and effects are what others do with its answers"},
	{imports: []string{"os", "net", "context", "sync", "log", "syscall"},
		from: []string{"render/report", "render"},
		because: "text is made from values and written by whoever asked for it, so that a test needs no disk and no " +
			"terminal"},
	{imports: []string{"os", "net", "context", "sync", "log", "syscall", "math/rand", "crypto/rand", "runtime"},
		from: []string{"observe", "observe/model", "observe/present", "observe/protocol", "observe/session"},
		because: "the same lines give the same team, live, replayed and in a test: time comes in with the line, and " +
			"what is done with the records is its caller's affair"},
	{imports: []string{"os", "net", "log", "syscall"},
		from:    []string{"journal"},
		because: "the contract is for journals on a disk, in memory and elsewhere"},
	{imports: []string{"os/exec"},
		but: []string{"internal/sys/proc", "internal/agent/agenttest"},
		because: "no process outlives its host: children are started by proc, with a group, a record and a leash; " +
			"and so are hosts in the background, which are to outlive who started them"},
	{imports: []string{"net"},
		but: []string{"internal/agent/mcpserver", "internal/agent/agenttest", "internal/agent/codex",
			"internal/agent/acp", "internal/claude/sdkrelay", "internal/sys/websocket"},
		because: "nothing of this talks to a network. Claude Code connects to sdkrelay, on loopback unless a person " +
			"says otherwise. The tools of a session are on a unix socket; codex listens on one, and so does the " +
			"driver that gemini's hook asks; tests have a model on loopback"},
	{imports: []string{"log", "log/slog"},
		// acp silences the logger of its SDK, and programs that embed teams bring loggers.
		but: []string{"internal/agent/acp", "pkg/teams"},
		because: "what is worth saying goes to the function that the caller gave, which knows whether there is a " +
			"terminal, a file or nobody"},
	{imports: []string{"unsafe", "plugin", "C"},
		because: "the program is built for every platform from any of them, and a bug stays a bug"},
	{imports: []string{"testing", "testing/fstest", "testing/iotest", "testing/synctest"},
		but: []string{"internal/journal/journaltest", "internal/journal/filejournal/disktest",
			"internal/agent/agenttest", "internal/claude/teamfiles/teamfilestest", "internal/testkit/simtest",
			"internal/testkit/treetest"},
		because: "tests are no part of the program; suites that others run are in packages whose names end in test"},
}

// fronted is a package that the command line may import, and why. The command line parses, calls
// and prints. Whatever acts on a team belongs to the engine, which other front ends use too.
type fronted struct {
	name    string   // below internal
	names   []string // all that it may use: values that it prints, and errors that it explains; nil for anything
	because string
}

var front = []fronted{
	{"team", nil, "the commands that it sends, the values that it prints, the refusals that it explains"},
	{"engine", nil, "all that is done to a team"},
	{"engine/upkeep", nil, "what a person does to a team from outside of its work, and the errors of that"},
	{"run", nil, "a team file or a goal to its end; what is typed, made out"},
	{"run/teamfile", []string{"Budget", "File", "Nearest", "Permissions", "Schema"},
		"what the flags of a goal say, in a team file's terms; its schema is printed; what a slip was meant for"},
	{"examples", nil, "the example team files, which it runs and writes by their names"},
	{"access", nil, "its commands pass the gate"},
	{"layout", []string{"ElsewhereError", "Find", "Home"},
		"whose teams it is about, as the environment says, and whether a name stands for another project's"},
	{"render", nil, "text for people is the same in every front end"},
	{"render/excerpt", nil, "how long a text of an agent is when it is shown"},
	{"render/sanitize", nil, "all that it prints passes the sanitizer"},
	{"inspect", []string{"Ended", "Examination", "Life", "Member", "Offline", "Online", "Outside", "Paused",
		"Unknown"},
		"what was found of a team is printed"},
	{"inspect/attention", []string{"Item"}, "what waits for a person is printed"},
	{"inspect/history", []string{"Filter", "Letter", "MailFilter", "Words"}, "what the flags of a history say"},
	{"inspect/catalog", []string{"Answer", "Bring", "Checkpoint", "Observe", "Overview", "Plan", "Pull", "Review",
		"Seal",
		"Staff", "Standing", "Step"}, "teams in a list, and how each stands, are printed"},
	{"consolidate", []string{"ErrDamaged", "FailedCheck", "Options", "Pending", "Record", "RecordFile", "Trial"},
		"what the flags say of a consolidation, and its record, which is printed"},
	{"consolidate/branches", []string{"Branch"}, "the branches of a team are printed"},
	{"git/checkpoint", []string{"Checkpoint", "ForkError", "Left", "Listed", "Restored"},
		"what a checkpoint has and has not is printed"},
	{"transfer", []string{"Arrived", "ErrNoRepository", "MissingCheck", "MovedError", "Options", "PullOptions",
		"PushOptions",
		"SuspectError"}, "what the flags say of a move, and what arrived, which is printed"},
	{"hook", []string{"Examined", "ExaminedHook"}, "the hooks of a project are shown before they are trusted"},
	{"journal", []string{"DamageError", "ErrGone", "ErrNewer", "ErrNotFound"}, "its errors have exit statuses"},
	{"sys/filelock", []string{"ErrHeld"}, "its error has an exit status"},
	{"sys/regularfile", []string{"Error", "TooLargeError"}, "its errors have exit statuses"},
	{"sys/proc", []string{"Become", "Open", "Register"},
		"the process becomes tmux, at the terminal where it was called, and it keeps the program of --exec"},
	{"agent", []string{"Access", "Agent", "Spec", "TeamVariable", "ToolServerName"},
		"the environment of a session, and the agent behind a teammate that Claude Code starts as this process"},
	{"agent/drivers", nil, "its help names the agents, and the engine is told with which helper they run"},
	{"agent/acp", []string{"Hook", "Relay"}, "agents start it as their helper, on its standard input and output"},
	{"agent/mcpserver", []string{"Options", "Stdio"}, "it serves tools on its standard input and output"},
	{"ui/sessionview", nil, "a session looks the same in every front end"},
	{"agent/prompts", []string{"News"}, "it prints that there is news, for an agent's hook"},
	{"agent/wake", []string{"Hook"}, "its help shows the hook"},
	{"guest", nil, "Claude Code starts it as a teammate: it is that member, at its terminal"},
	{"claude/teamfiles", nil, "the files of the team whose teammate it is, or which it observes"},
	{"claude/sdkrelay", nil, "it stands between a program and its own standard input and output"},
	{"observe", nil, "it observes what comes on its standard input and from files that are named"},
	{"observe/present", nil, "what it observes is printed in a form of its own"},
	{"observe/protocol", nil, "whose session it runs in"},
	{"observe/session", nil, "a session without a team, by the name of its agent"},
	{"observe/source", nil, "the streams and files that the flags name"},
	{"observe/store", nil, "where what it observes is kept"},
}

// assembly is a part that the engine assembles, and the other packages that may use it directly.
// The simulation may use any part: its disk, clock, agents and processes are its own.
type assembly struct {
	use     string
	by      []string // the other packages
	because string
}

var assembled = []assembly{
	{"host.New", nil, ""},
	{"host.Enroll", nil, ""},
	{"detector.Keep", nil, ""},
	{"leader.Attach", nil, ""},
	{"leader.Take", []string{"internal/run"}, "a run leads a team that the engine opened for it"},
	{"leader.Claim", []string{"internal/transfer", "internal/engine/upkeep"},
		"who moves a team keeps others from leading it meanwhile"},
	{"replica.Open", []string{"internal/engine/upkeep", "internal/inspect/attention", "internal/inspect/catalog",
		"internal/observe/store", "internal/transfer"},
		"who only looks needs no hooks and no projections; nor does who journals what it saw of a team that is not " +
			"ours, or who reads what may be damaged"},
}

// durations lists what the core may use of package time: durations and their units. A duration is a
// plain value; the clock, timers and the local time zone are not.
var durations = []string{"time.Duration", "time.Nanosecond", "time.Microsecond", "time.Millisecond", "time.Second",
	"time.Minute", "time.Hour"}

// mayReadTheClock lists the packages that may call time.Now, Since or Until. Every package but the
// core may use timers.
var mayReadTheClock = []struct{ pkg, because string }{
	{"internal/replica", "it stamps commands: the one place where a team's time comes from"},
	{"internal/testkit/simtest", "it makes the time: the clock that it reads is that of a bubble"},
	{"internal/host", "signs of life, and how old those of the lead are"},
	{"internal/liveness/leader", "signs of life of the lead"},
	{"internal/inspect/catalog", "how long ago what it shows was looked at"},
	{"internal/engine/upkeep", "who is alive before a task is taken from a member"},
	{"internal/engine", "when a team was examined"},
	{"internal/inspect/attention", "how long ago what it shows was looked at"},
	{"internal/liveness/detector", "signs of life of sessions outside, and how old those of the others are"},
	{"internal/sys/proc", "deadlines of processes, and how long they ran"},
	{"internal/agent/shell", "how long a command took"},
	{"internal/run", "how long a run took"},
	{"internal/agent/agenttest", "deadlines of tests"},
	{"internal/agent/acp", "when a chat may be loaded again, and deadlines of the hook"},
	{"internal/agent/codex", "names for the prompts that answer a plan"},
	{"internal/sys/fswatch", "how long a look at everything takes, and when the next one is due"},
	{"internal/claude/teamfiles", "how old a lock is, and when a message was sent"},
	{"internal/agent/claudetmux", "when a member of a team of files joined it, and was answered"},
	{"internal/guest", "it stamps commands and messages to a team that has no journal"},
	{"internal/layout", "how old a folder is whose making nobody finished"},
	{"pkg/teams", "until when a caller waits for the answer to a permission request"},
	{"cmd/cadre", "when a project was trusted, and when somebody joined a team of Claude Code's"},
}

// streams lists the standard streams of the process, which only the command line writes to.
var streams = []string{"os.Stdout", "os.Stderr", "os.NewFile", "fmt.Print", "fmt.Printf", "fmt.Println",
	"syscall.Stdout", "syscall.Stderr", "print", "println"}

// writing permits a package to write past the sanitizer.
type writing struct {
	pkg     string
	use     use
	because string
}

var mayWrite = []writing{
	{"cmd/cadre", use{"os.Stdout", "output.go"},
		"the sanitizer writes to it; and so do protocols, which programs read"},
	{"cmd/cadre", use{"os.Stderr", "output.go"}, "the sanitizer writes to it"},
	{"cmd/cadre", use{"io.Copy", "mail.go"}, "it counts what is left of standard input"},
	{"cmd/cadre", use{"protocol", "mcp.go"}, "what it prints is MCP, or an answer to gemini's hook"},
	{"cmd/cadre", use{"protocol", "observe.go"}, "with --pass it prints what it reads, unchanged"},
	{"pkg/teams", use{"os.Stdout", "program.go"}, "a program that embeds teams may be the helper of an agent's " +
		"session, and its output a protocol"},
	{"pkg/teams", use{"os.Stderr", "program.go"}, "an agent's program keeps what its helper says"},
	{"internal/agent/agenttest", use{"os.Stdout", "relay.go"}, "a relay of tests"},
	{"internal/agent/agenttest/install", use{"fmt.Printf", "main.go"}, "make agents says what it does"},
	{"internal/agent/agenttest/install", use{"fmt.Println", "main.go"}, "make agents says what it does"},
}

// dependency is a module that we import, and why we neither write it ourselves nor do without it.
type dependency struct {
	module  string
	tests   bool // only in tests, and in packages whose names end in test
	because string
}

var dependencies = []dependency{
	{"github.com/fsnotify/fsnotify", false,
		"a watcher in another process is to see a record within milliseconds and an idle one is to cost nothing: " +
			"inotify and kqueue, behind one interface"},
	{"golang.org/x/sys", false,
		"calls that package syscall lacks or has differently on linux and macOS: pread, fdatasync, the process table"},
	{"golang.org/x/term", false,
		"whether there is a terminal, and how wide it is"},
	{"go.yaml.in/yaml/v4", false,
		"team files are YAML, and their errors name line and column"},
	{"github.com/clipperhouse/displaywidth", false,
		"how many columns a terminal gives to a text is Unicode's data, which changes each year, by clusters of " +
			"characters; the tables of the terminal libraries count with it too, and it does nothing when a program " +
			"starts"},
	{"mvdan.cc/sh/v3", false,
		"which files a shell command names can only be told by whoever reads shell as a shell does: quotes, braces, " +
			"here-documents, substitutions"},
	{"github.com/spf13/cobra", false,
		"a command line with help that teaches and completion for four shells"},
	{"github.com/spf13/pflag", false,
		"cobra's flags: which one has a wrong value; their names and values for the command reference"},
	{"github.com/coder/acp-go-sdk", false,
		"the Agent Client Protocol: types and connection from its schema, which grows"},
	{"github.com/coder/websocket", true,
		"the other end of our WebSocket is somebody else's"},
	{"github.com/modelcontextprotocol/go-sdk", true,
		"the protocol in which agents get their tools is ours to write, and the client of those who make it to judge"},
	{"github.com/google/jsonschema-go", true,
		"the schemas of what cadre prints, and of the tools' input, are resolved by somebody else's library"},
	{"go.uber.org/goleak", true,
		"a goroutine that outlives its test is a bug, and this finds it"},
	{"pgregory.net/rapid", true,
		"properties: random histories that shrink to what matters"},
	{"github.com/rogpeppe/go-internal", true,
		"testscript: the command line is tested as it is used, with files that read as a session"},
	{"github.com/anishathalye/porcupine", true,
		"claims by many processes are checked for linearizability, which no test of ours could argue as well"},
}

// heavy lists modules that may not come in even indirectly: everybody who builds or tests cadre
// would have to download them.
var heavy = []struct{ word, because string }{
	{"sqlite", "the database is only what the benchmarks compare with; it lives in the nested module bench"},
	{"grpc", "nothing here needs it"},
	{"docker", "a clone needs Go and git, and nothing else"},
}

// vague lists package names that say nothing about the content. Such packages collect everything.
var vague = []string{"util", "utils", "common", "helper", "helpers", "misc", "base", "lib", "shared", "types"}

const (
	// maxLines limits a non-test file. Split a longer file, or name it in its package comment with
	// the reason.
	maxLines = 600
	// maxWings limits the folders on the first level of internal. It leaves room for the server and
	// the screens that are planned.
	maxWings = 22
	// minComment is the minimum length of a package comment in bytes.
	minComment = 200
)
