package archtest

// module is the path of this module.
const module = "cadre"

// platforms lists the operating systems for which the plan must hold.
var platforms = []string{"linux", "darwin"}

// top lists the folders above internal, the highest first. Each may import everything below it, and
// nothing above.
var top = []string{"e2e", "cmd", "examples", "pkg"}

// floor is a level of the plan.
type floor struct {
	name  string
	wings []string
}

// floors lists the wings of internal, the highest first. A wing imports wings on its own floor, in
// one direction, and wings on the floors below. docs/ARCHITECTURE.md has the same table.
var floors = []floor{
	{"tests", []string{"testkit"}},
	{"front ends", []string{"ui", "server"}},
	{"assembly", []string{"run", "engine", "access"}},
	{"work", []string{"host", "guest", "consolidate", "inspect"}},
	{"agents", []string{"agent", "claude", "observe"}},
	{"state", []string{"liveness", "replica", "hook", "layout", "journal"}},
	{"tools", []string{"git", "render"}},
	{"core", []string{"team"}},
	{"system", []string{"sys"}},
}

// room is a package below internal, with the packages of this module that its non-test code may
// import.
type room struct {
	name    string
	may     []string
	because string
}

var rooms = []room{
	{"team", nil,
		"the core is functions over values: it contains every rule, and imports no other package"},
	{"journal", nil,
		"a journal orders and stores records without knowing their content, so neither side can break the other"},
	{"journal/filejournal", []string{"journal", "sys/crc32c", "sys/filelock", "sys/regularfile"},
		"an implementation depends only on its contract"},
	{"journal/filejournal/disktest", []string{"journal/filejournal"},
		"the simulated disk keeps the promises of a real one, and does not know what a journal is"},
	{"journal/journaltest", []string{"journal"},
		"the suite runs against the contract, so that every implementation passes the same"},
	{"journal/recorded", []string{"journal", "team"},
		"the state of a team is read from any journal in the same way, by a replica and by callers that only need to " +
			"know whose team it is"},
	{"journal/memjournal", []string{"journal"},
		"an implementation depends only on its contract"},
	{"journal/pgjournal", []string{"journal", "journal/pgjournal/pgwire", "journal/store"},
		"an implementation depends only on its contracts, and on what speaks with its server"},
	{"journal/pgjournal/pgwire", nil,
		"it carries statements and values between any caller and PostgreSQL, and knows no table"},
	{"journal/relay", []string{"journal", "journal/store", "sys/unixsocket"},
		"it carries the calls of the contracts between processes, and leaves to others who may do what"},
	{"journal/store", []string{"journal"},
		"what the processes of a team share is the same on a disk, in memory and in a database; from the journal the " +
			"contract takes only the error of a team that was removed"},
	{"journal/store/filestore", []string{"journal", "journal/store", "sys/atomicfile", "sys/filelock", "sys/fswatch",
		"sys/proc", "sys/regularfile"},
		"an implementation depends only on its contract"},
	{"journal/store/memstore", []string{"journal", "journal/memjournal", "journal/store"},
		"an implementation depends only on its contracts; a team in memory has its journal there, too"},
	{"journal/store/storetest", []string{"journal", "journal/journaltest", "journal/store"},
		"the suite runs against the contracts, so that every implementation passes the same"},
	{"sys/atomicfile", []string{"sys/regularfile"},
		"any package may need durable files, whatever their content"},
	{"sys/crc32c", nil,
		"any package that reads its own files may need a checksum"},
	{"sys/filelock", []string{"sys/sleep", "sys/regularfile"},
		"any package may need a lock between processes, whatever it protects"},
	{"sys/fswatch", nil,
		"it reports that files changed, and does not read them"},
	{"sys/lazyregexp", nil,
		"any package may need a regular expression that costs nothing before its first use"},
	{"sys/paths", nil,
		"any package may need to know whether two paths lead to the same place"},
	{"sys/sleep", nil,
		"any package may need to wait for a time that a context can end"},
	{"sys/proc", []string{"sys/atomicfile", "sys/filelock", "sys/regularfile", "sys/utf8text"},
		"it starts and ends processes for any caller, and does not know their purpose"},
	{"sys/regularfile", nil,
		"any package that reads files must not block on a pipe"},
	{"sys/unixsocket", nil,
		"a server and its clients reach the same socket, however long its path; they choose what is said on it"},
	{"sys/utf8text", nil,
		"any package that keeps a part of a text must not split its characters"},
	{"sys/websocket", nil,
		"it speaks the protocol over an existing connection; the caller connects and chooses the messages"},
	{"layout", []string{"git/project", "journal", "journal/filejournal", "journal/recorded", "journal/relay",
		"journal/store", "journal/store/filestore", "sys/atomicfile", "sys/filelock", "sys/proc", "sys/regularfile", "team"},
		"it knows the folders, and alone chooses the journal implementation in them"},
	{"render", []string{"render/excerpt", "render/sanitize", "team"},
		"output for people is a function of the state and its records"},
	{"render/excerpt", nil,
		"any package that shows or records texts may need to cut them, whatever their content"},
	{"render/redact", []string{"sys/lazyregexp"},
		"the search for secrets does not depend on the source or the target of the text"},
	{"render/report", []string{"render/sanitize", "sys/lazyregexp", "team"},
		"a report is text made from values, and any caller that has them can write one; from the core it takes only " +
			"the form of durations and counts"},
	{"render/sanitize", nil,
		"one place decides what a person may be shown; any package that writes for people may use it"},
	{"hook", []string{"render/excerpt", "render/sanitize", "sys/atomicfile", "sys/filelock", "sys/lazyregexp",
		"sys/paths", "sys/proc", "sys/regularfile", "team"},
		"a hook is a command with an event on its stdin, and knows only that event of the team; from the core it " +
			"takes only the form of durations"},
	{"replica/schema", nil,
		"whether a value fits a JSON Schema depends on these two alone"},
	{"replica", []string{"hook", "journal", "journal/recorded", "replica/schema", "team"},
		"every front end uses a replica, so a replica must work without a host and without sessions"},
	{"replica/search", []string{"journal", "team"},
		"what a text says is found the same way by a tool, a command and a program; the caller reads the records"},
	{"liveness/detector", []string{"journal/store", "journal/store/filestore", "liveness/heartbeat", "liveness/leader",
		"replica", "team"},
		"every process that stays with a team detects silent members in the same way, with or without sessions"},
	{"liveness/heartbeat", []string{"journal/store", "sys/regularfile"},
		"a heartbeat is a small value; others decide what to do when it is missing"},
	{"liveness/leader", []string{"journal/store", "liveness/heartbeat", "replica", "sys/sleep", "team"},
		"every process takes and holds the lead in the same way"},
	{"git", []string{"git/project", "sys/sleep", "sys/proc", "sys/regularfile"},
		"it runs git for any caller, and does not know the purpose of the repository"},
	{"git/project", []string{"sys/regularfile"},
		"git's files say which project a directory belongs to, so callers need not run git"},
	{"git/checkout", []string{"git", "git/checkpoint", "render/sanitize", "sys/paths", "sys/proc", "team"},
		"one check decides whether a directory is the team's project: before a session starts, before a team is " +
			"resumed, and after a move"},
	{"git/transport", []string{"git", "sys/proc", "team"},
		"it carries the branches of members; when that happens is the host's decision"},
	{"git/checkpoint", []string{"git", "git/worktree", "render/excerpt", "render/redact", "sys/atomicfile", "sys/crc32c",
		"sys/filelock", "sys/lazyregexp", "sys/paths", "sys/sleep", "sys/proc", "sys/regularfile", "team"},
		"a checkpoint is made of a state and its records, and stored in git; the journal and a restored team are the " +
			"caller's responsibility"},
	{"git/worktree", []string{"git", "git/project", "render/sanitize", "sys/filelock", "sys/paths", "sys/proc",
		"sys/regularfile"},
		"it knows worktrees and branches, but not members"},
	{"claude/projection", []string{"journal", "sys/atomicfile", "sys/crc32c", "sys/filelock", "sys/regularfile", "team"},
		"a projection is a function of the history and the state; any owner of a replica may call it"},
	{"claude/sdkrelay", []string{"sys/proc", "sys/websocket"},
		"a relay carries frames between the program that it starts and its client; observers interpret the lines"},
	{"claude/settings", []string{"sys/regularfile"},
		"every caller reads settings files in the same way, and another package runs their hooks"},
	{"claude/teamfiles", []string{"claude/projection", "sys/atomicfile", "sys/filelock", "sys/fswatch",
		"sys/sleep", "sys/regularfile", "team"},
		"it knows the files, their locks and their format; the packages above decide who may be a member"},
	{"claude/teamfiles/teamfilestest", nil,
		"a recording is what another program did to files; each reader interprets it in its own way"},
	{"agent", []string{"sys/lazyregexp", "sys/proc", "team"},
		"it is the contract of a session: what a member is, and which child processes it may have"},
	{"agent/acp", []string{"agent", "agent/readonly", "sys/lazyregexp", "sys/sleep", "sys/proc", "sys/regularfile",
		"team"},
		"a driver depends only on its contract; the peculiarities of an agent are data in it"},
	{"agent/agenttest", []string{"agent", "agent/envelope", "agent/mcpserver", "sys/filelock", "sys/proc",
		"team"},
		"the suite runs against the contract, so that every driver passes the same tests with its real program"},
	{"agent/agenttest/install", []string{"agent/agenttest"},
		"make test calls it, so that the user sees the installation"},
	{"agent/claude", []string{"agent", "agent/mcpserver", "sys/proc", "sys/regularfile", "team"},
		"a driver knows its contract, and serves the tools that it is given as its program wants them"},
	{"agent/claudetmux", []string{"agent", "agent/claude", "claude/projection", "claude/teamfiles", "sys/atomicfile",
		"sys/proc", "sys/regularfile", "team"},
		"a driver depends only on its contract; this one uses the team files of its program"},
	{"agent/codex", []string{"agent", "agent/readonly", "sys/lazyregexp", "sys/sleep", "sys/proc", "sys/regularfile",
		"sys/websocket", "team"},
		"a driver knows its contract, and serves the tools that it is given as its program wants them"},
	{"agent/drivers", []string{"agent", "agent/acp", "agent/claude", "agent/claudetmux", "agent/codex",
		"agent/headless", "agent/shell", "sys/proc", "team"},
		"it is the only list of agents, for the command line and for programs that embed teams; packages below it " +
			"know only the contract"},
	{"agent/envelope", []string{"render/sanitize", "sys/lazyregexp", "team"},
		"the form of a message for an agent is text, made from the message and found in a transcript"},
	{"agent/headless", []string{"agent", "sys/lazyregexp", "team"},
		"the output of an agent without a driver is lines, and every reader parses them in the same way"},
	{"agent/mcpserver", []string{"agent"},
		"it serves any tools"},
	{"agent/prompts", []string{"agent/envelope", "render/excerpt", "render/sanitize", "team"},
		"prompts are a function of the state, and do not depend on their delivery"},
	{"agent/readonly", []string{"sys/lazyregexp", "sys/paths", "sys/regularfile"},
		"it decides from the text and the disk whether a command only reads; the core decides what follows"},
	{"agent/sessionlog", []string{"agent", "render/excerpt", "sys/atomicfile", "sys/fswatch", "sys/regularfile",
		"sys/utf8text", "team"},
		"it keeps the output of a session for viewers, which decide how to show it"},
	{"agent/roles", []string{"sys/regularfile", "team"},
		"a definition is a file that a person wrote, and the caller decides its use"},
	{"agent/worker", []string{"agent", "team"},
		"a session that does tasks without a model sees the team only through its contract"},
	{"agent/shell", []string{"agent", "agent/worker", "sys/paths", "sys/proc", "team"},
		"a driver depends only on its contract, and sees the team only through it, never through a replica"},
	{"agent/tools", []string{"agent", "agent/envelope", "journal", "render/excerpt", "replica/search", "sys/lazyregexp", "team"},
		"a tool turns input into commands of one member, or searches the team's records, and does not depend on its " +
			"server"},
	{"agent/traceparent", []string{"agent"},
		"the id of a session's span is a function of names, which a host computes before the session starts, and the " +
			"exporter after it ended"},
	{"agent/wake", []string{"journal/store", "journal/store/filestore", "sys/atomicfile", "sys/filelock", "sys/lazyregexp",
		"sys/proc", "sys/regularfile", "sys/sleep", "team"},
		"it waits for and wakes agents that a person starts; the locks of outside sessions identify their members"},
	{"host", []string{"agent", "agent/envelope", "agent/mcpserver", "agent/prompts", "agent/readonly",
		"agent/roles", "agent/sessionlog", "agent/tools", "agent/traceparent", "git", "git/checkout", "git/checkpoint",
		"git/project", "git/transport", "git/worktree", "journal/store", "journal/store/filestore", "layout",
		"liveness/detector",
		"liveness/heartbeat", "render/excerpt", "render/sanitize", "replica",
		"sys/atomicfile", "sys/filelock", "sys/lazyregexp", "sys/paths", "sys/proc", "sys/regularfile", "team"},
		"a host is an actor with a replica; it decides nothing, and knows only the contract of agents"},
	{"consolidate", []string{"agent/prompts", "git", "git/worktree", "host", "journal/store", "journal/store/filestore",
		"layout", "render/excerpt",
		"render/sanitize", "replica", "sys/atomicfile", "sys/filelock", "sys/paths", "sys/proc", "sys/regularfile",
		"team"},
		"it takes the last steps of a team with git, each with the permission of the core; the caller talks to the " +
			"person"},
	{"consolidate/branches", []string{"consolidate", "git", "git/checkout", "git/checkpoint", "git/worktree",
		"sys/lazyregexp", "sys/proc", "team"},
		"it derives a team's branches from the team and its checkpoints; the caller decides to remove them"},
	{"inspect", []string{"consolidate", "git/checkout", "git/project", "git/worktree", "hook", "host", "layout",
		"journal/store", "journal/store/filestore", "liveness/detector", "liveness/heartbeat", "liveness/leader", "replica",
		"sys/proc", "sys/regularfile", "team"},
		"it reads everything that is left of a team, and changes nothing"},
	{"inspect/catalog", []string{"claude/teamfiles", "consolidate", "git/checkpoint", "git/project", "inspect", "layout",
		"observe/store", "replica",
		"sys/proc", "team"},
		"what is told of a team in a list is the same in every front end, and so is which teams a repository has"},
	{"inspect/history", []string{"render/excerpt", "team"},
		"every front end selects records in the same way"},
	{"engine/upkeep", []string{"claude/projection", "consolidate", "consolidate/branches", "git",
		"git/checkout", "git/checkpoint",
		"host", "inspect", "inspect/catalog", "journal", "journal/filejournal", "journal/store", "journal/store/filestore",
		"layout", "liveness/leader", "replica",
		"sys/sleep", "sys/proc", "team", "engine/transfer"},
		"every front end maintains a team in the same steps; the caller checks the permission and talks to the " +
			"person"},
	{"inspect/attention", []string{"inspect", "inspect/catalog", "journal", "layout", "replica", "sys/fswatch", "team"},
		"there is one list of what waits for people, and every front end follows the teams in the same way"},
	{"engine/transfer", []string{"consolidate", "git", "git/checkpoint", "git/project", "host", "journal/store",
		"journal/store/filestore", "layout", "liveness/leader", "replica", "sys/atomicfile", "sys/paths", "sys/proc",
		"sys/regularfile", "team"},
		"it moves a team between machines with its checkpoint branch; the caller talks to the person"},
	{"engine/database", []string{"engine", "git", "git/project", "journal", "journal/pgjournal", "journal/store", "layout",
		"sys/proc", "team"},
		"every front end has teams in a database in the same way, and only who wants that links a database's client"},
	{"engine/machines", []string{"engine", "engine/database", "engine/upkeep", "git/project", "git/transport", "host", "journal/store", "layout",
		"replica", "sys/proc", "team"},
		"every front end lists machines and serves as one in the same way; which one takes a member is decided here"},
	{"access", []string{"agent", "layout", "sys/paths", "sys/proc", "team"},
		"it says once who may call what, for the command line and for programs that embed teams; the core says what " +
			"an actor may do in a team"},
	{"engine", []string{"access", "agent", "agent/drivers", "agent/envelope", "agent/prompts", "agent/roles",
		"agent/sessionlog", "agent/tools", "agent/wake", "claude/projection", "claude/settings", "consolidate",
		"consolidate/branches", "engine/upkeep", "git", "git/checkout", "git/checkpoint", "git/project",
		"git/transport", "git/worktree", "hook", "host", "inspect", "inspect/attention", "inspect/catalog", "inspect/history", "journal",
		"journal/filejournal", "journal/recorded", "journal/relay", "journal/store",
		"journal/store/memstore", "layout", "liveness/detector", "liveness/leader", "observe/store",
		"render/redact", "render/sanitize", "replica", "replica/search", "sys/paths",
		"sys/sleep", "sys/proc", "sys/regularfile", "sys/unixsocket", "team", "engine/transfer"},
		"it is the one place that assembles replicas, hosts, leads and outside members, so that all front ends have " +
			"complete teams; each front end decides what it shows"},
	{"run", []string{"agent", "consolidate", "engine", "git", "git/checkout", "git/project", "git/worktree", "host", "inspect", "agent/worker",
		"journal/store", "liveness/leader", "render/report", "render/sanitize", "replica", "run/teamfile", "sys/atomicfile",
		"sys/proc", "sys/regularfile", "team"},
		"it leads a team that is made from a file, and connects the packages below; the caller chooses the agents"},
	{"run/teamfile", []string{"render/excerpt", "replica/schema", "sys/lazyregexp", "team"},
		"reading a team file must not depend on its use; from the core it takes only the forms of money and of paths"},
	{"run/templates", []string{"hook", "layout", "run", "run/teamfile", "run/templates/builtin", "sys/paths",
		"sys/regularfile", "team"},
		"every front end finds the same templates by their names, and the same of them are trusted"},
	{"run/templates/builtin", nil,
		"the templates in the program are files; their reader is the one of all team files"},
	{"observe", []string{"observe/model", "observe/present", "team"},
		"the observed team is a function of the observed lines; the caller provides them and keeps the result"},
	{"observe/model", []string{"observe/protocol", "team"},
		"the model of a team does not depend on how it is shown"},
	{"observe/present", []string{"observe/protocol", "team"},
		"the output for consumers is made from a state and its records, of an observer or a journal"},
	{"observe/protocol", []string{"sys/lazyregexp", "team"},
		"the meaning of a line does not depend on the state of the team"},
	{"observe/session", []string{"agent", "observe", "observe/present", "observe/protocol", "render/excerpt", "team"},
		"it describes a session without a team in a team's events, for any agent; the caller reads the lines"},
	{"observe/source", []string{"claude/projection", "claude/teamfiles", "observe/protocol", "sys/fswatch",
		"sys/regularfile", "team"},
		"it passes lines on to its caller, and neither interprets nor keeps them"},
	{"observe/store", []string{"journal", "layout", "observe", "observe/protocol", "observe/source", "replica",
		"sys/atomicfile", "sys/filelock", "sys/regularfile", "team"},
		"it keeps an observer's knowledge and alone writes its journal; it does not interpret lines, and the caller " +
			"shows the result"},
	{"guest", []string{"agent", "agent/envelope", "agent/mcpserver", "agent/prompts", "agent/readonly",
		"agent/tools", "claude/projection", "claude/teamfiles", "render/excerpt", "render/sanitize",
		"sys/atomicfile", "sys/filelock", "sys/sleep", "sys/proc", "sys/regularfile", "team"},
		"it is a member of a team that Claude Code runs: an agent by its contract, and the files; the caller chooses " +
			"the agent"},
	{"server/metrics", []string{"render/sanitize", "team"},
		"figures are a function of the histories; the server passes in what is in no history, and sends the text"},
	{"ui/costs", []string{"team"},
		"what was used over time is a function of the records; a terminal and a browser draw the same bars"},
	{"ui/filter", []string{"team"},
		"a person narrows every list in the same language, in a terminal and in a browser"},
	{"ui/graph", []string{"render", "team"},
		"the drawing of a graph is a function of the tasks, in the widths of render"},
	{"ui/timeline", []string{"team"},
		"lanes are a function of the records; a terminal and a browser draw the same ones"},
	{"ui/sessionview", []string{"agent/envelope", "agent/sessionlog", "render", "render/excerpt", "render/sanitize",
		"sys/regularfile", "team"},
		"a session looks the same on every screen; the front end decides where it comes from"},
	{"ui/pane", []string{"engine", "layout", "sys/filelock", "sys/proc", "sys/regularfile", "team"},
		"it shows the viewers of a team's members beside each other, for every front end, and does not know what " +
			"they show"},
	{"ui/presence", []string{"sys/atomicfile", "sys/proc", "sys/regularfile", "team"},
		"what a person looks at is in files, so that every process that notifies may ask"},
	{"ui/lineedit", []string{"render/sanitize", "sys/utf8text"},
		"a line is edited alike on the screen and below a session; the caller reads the keys and draws the line"},
	{"ui/settings", []string{"sys/regularfile"},
		"the file says how cadre shows itself, and each front end reads its part"},
	{"ui/notify", []string{"inspect/attention", "render", "render/excerpt", "render/redact", "render/sanitize", "sys/atomicfile",
		"sys/filelock", "sys/proc", "sys/regularfile", "team", "ui/settings"},
		"it sends what the one list of attention has, and every long command may start it"},
	{"ui/tui", []string{"access", "agent/sessionlog", "consolidate", "engine", "engine/upkeep", "inspect/attention",
		"inspect/catalog",
		"inspect/history", "render", "render/sanitize", "sys/sleep", "sys/proc", "team", "ui/costs", "ui/filter",
		"ui/graph",
		"ui/lineedit", "ui/presence", "ui/sessionview", "ui/timeline"},
		"the screen is a front end: it shows what the engine reads, and sends commands through it"},
	{"ui/web", []string{"engine", "git/checkpoint", "inspect/attention", "inspect/catalog", "inspect/history",
		"render", "replica/search", "server/api", "server/auth",
		"sys/atomicfile", "team",
		"ui/costs", "ui/timeline", "sys/lazyregexp"},
		"the board is a front end: its page shows what the engine reads and the reducer makes, and steers by the API"},
	{"server/auth", []string{"access", "layout", "sys/atomicfile", "sys/proc", "sys/regularfile", "team"},
		"who sends a request is decided before the request is read, in one place for all routes"},
	{"server/supervisor", []string{"access", "engine", "inspect/attention", "sys/atomicfile", "sys/proc",
		"sys/regularfile", "team"},
		"it starts the same process as a person who resumes a team, and knows nothing of requests"},
	{"server/api", []string{"access", "agent/sessionlog", "consolidate", "engine", "engine/upkeep", "git/checkpoint",
		"inspect", "inspect/attention", "inspect/catalog", "inspect/history", "journal", "run/templates", "server/auth",
		"server/supervisor", "team"},
		"a request becomes a call of the engine, as a command does, and the answer has the values that commands " +
			"print; it decides nothing about a team"},
	{"server/coordinator", []string{"engine", "inspect/attention", "inspect/history", "journal", "observe/present",
		"server/api", "server/auth", "server/supervisor", "team"},
		"a frame becomes a call of the engine, and a record becomes events; it shares the feed of records with the HTTP API"},
	{"server", []string{"engine", "inspect/attention", "layout", "server/api", "server/auth", "server/coordinator", "server/metrics", "server/supervisor", "server/tracing",
		"sys/atomicfile", "sys/filelock", "sys/proc", "sys/regularfile", "sys/sleep", "sys/unixsocket", "team"},
		"it is a process: it assembles the parts below it, and listens"},
	{"server/tracing", []string{"agent/traceparent", "journal", "render/excerpt", "render/redact", "render/sanitize",
		"sys/atomicfile", "sys/regularfile", "sys/sleep", "team"},
		"spans are a function of the records, which the server hands it; from the journal it takes only the error of " +
			"a team that was removed"},
	{"testkit/archtest", nil,
		"it contains only tests"},
	{"testkit/doctest", nil,
		"the commands in a document are text; the caller runs them"},
	{"testkit/golden", nil,
		"a golden file is text; the test says what belongs in it"},
	{"testkit/historytest", []string{"team"},
		"a history of a team is what the core decides; the tests say what they do with it"},
	{"testkit/hosttest", []string{"agent", "agent/shell", "engine", "layout", "sys/proc", "team"},
		"the front ends' tests need hosts in the background, which an engine runs"},
	{"testkit/postgrestest", []string{"testkit/soak"},
		"a server is the same for every package; the tests say what they keep in it"},
	{"testkit/simtest", []string{"agent", "host", "journal", "journal/memjournal", "liveness/heartbeat",
		"liveness/leader", "render", "replica", "sys/proc", "team"},
		"it plays whole teams on the real core, replica, host and lead; the machines, sessions and people are " +
			"simulated"},
	{"testkit/soak", nil,
		"it controls how much any tests do, and where their temporary folders are"},
	{"testkit/typedoc", []string{"team"},
		"what comments say of types is in the source; a test makes its document of it"},
	{"testkit/treetest", nil,
		"it compares any folders with their earlier content"},
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
			"command, and others carry out the effects"},
	{imports: []string{"os", "net", "context", "sync", "log", "syscall"},
		from:    []string{"render/report", "render"},
		because: "text is made from values, and the caller writes it, so that a test needs no disk and no terminal"},
	{imports: []string{"os", "net", "context", "sync", "log", "syscall", "math/rand", "crypto/rand", "runtime"},
		from: []string{"observe", "observe/model", "observe/present", "observe/protocol", "observe/session"},
		because: "the same lines give the same team, live, replayed and in a test: time comes in with the line, and " +
			"the caller uses the records"},
	{imports: []string{"os", "net", "log", "syscall"},
		from:    []string{"journal", "journal/store"},
		because: "the contract is for journals on a disk, in memory and elsewhere"},
	{imports: []string{"os/exec"},
		but: []string{"internal/sys/proc", "internal/agent/agenttest", "internal/testkit/postgrestest"},
		because: "no process outlives its host: proc starts children with a group, a record and a watchdog; it also " +
			"starts hosts in the background, which do outlive the process that started them. A database of tests " +
			"runs as another user, and its test kills it"},
	{imports: []string{"net"},
		but: []string{"internal/ui/web", "internal/agent/mcpserver", "internal/agent/agenttest", "internal/agent/codex",
			"internal/agent/acp", "internal/claude/sdkrelay", "internal/sys/websocket", "internal/ui/notify",
			"internal/ui/settings", "internal/server", "internal/server/api", "internal/server/auth", "internal/server/coordinator",
			"internal/server/tracing", "internal/sys/proc", "internal/sys/unixsocket", "pkg/teams/client",
			"internal/journal/pgjournal", "internal/journal/pgjournal/pgwire", "internal/journal/relay"},
		because: "nothing of this talks to a network, except that notify sends to the addresses in the person's " +
			"settings, and tracing to the receiver in OTEL_EXPORTER_OTLP_ENDPOINT. The server listens on a unix " +
			"socket, and on an address that the person gives it; proc looks up who is at the other end, and a client " +
			"connects where its program says. Claude Code connects to sdkrelay, on loopback unless a person says " +
			"otherwise. The tools of a session are on a unix socket; codex listens on one, and so does the driver " +
			"that gemini's hook asks, and so does a host that serves its team; a database is where a person says; tests " +
			"have a model on loopback"},
	{imports: []string{"log", "log/slog"},
		// acp silences the logger of its SDK, server that of net/http, and programs that embed
		// teams bring loggers.
		but: []string{"internal/agent/acp", "internal/server", "pkg/teams"},
		because: "messages go to the function that the caller passed in, which knows whether there is a terminal or " +
			"a file"},
	{imports: []string{"unsafe", "plugin", "C"},
		because: "the program can be cross-compiled for every platform, and stays memory-safe"},
	{imports: []string{"testing", "testing/fstest", "testing/iotest", "testing/synctest"},
		but: []string{"internal/journal/journaltest", "internal/journal/store/storetest",
			"internal/journal/filejournal/disktest",
			"internal/agent/agenttest", "internal/claude/teamfiles/teamfilestest", "internal/testkit/golden",
			"internal/testkit/hosttest", "internal/testkit/postgrestest", "internal/testkit/simtest",
			"internal/testkit/treetest", "internal/testkit/typedoc"},
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
	{"engine", nil, "every action on a team"},
	{"engine/database", []string{"Address", "Database", "Open"}, "the flag --store, and the preparation of a database"},
	{"engine/machines", []string{"Drain", "List", "Machine", "Options", "Serve"}, "the list of machines, and this one"},
	{"engine/upkeep", nil, "maintenance of a team by a person, and its errors"},
	{"run", nil, "runs of a team file or a goal; what the argument means"},
	{"run/teamfile", []string{"Budget", "Errors", "File", "Parameter", "ParseSettings", "Permissions",
		"Schema", "Setting"},
		"the flags of a goal as fields of a team file; the values of parameters; the printed schema"},
	{"run/templates", nil, "the templates, which it lists, shows, runs and writes by their names"},
	{"access", nil, "its commands pass the gate"},
	{"layout", []string{"AmbiguousError", "ElsewhereError", "Find", "Home"},
		"the home of the teams, from the environment, and whether a name stands for another project's"},
	{"render", nil, "text for people is the same in every front end"},
	{"render/excerpt", nil, "how long a text of an agent is when it is shown"},
	{"render/sanitize", nil, "all that it prints passes the sanitizer"},
	{"inspect", []string{"Ended", "Examination", "Life", "Member", "Offline", "Online", "Outside", "Paused",
		"Unknown"},
		"it prints what an examination found"},
	{"inspect/attention", []string{"Item"}, "it prints what waits for a person"},
	{"inspect/history", []string{"Filter", "MailFilter", "MailboxMessage", "Plan", "Words"},
		"the filter flags of a history, and " +
			"what it prints of one"},
	{"inspect/catalog", []string{"Answer", "Bring", "Observe", "Overview", "Plan", "Pull", "Review",
		"Seal",
		"Staff", "Standing", "Step"}, "it prints the list of teams with their states"},
	{"consolidate", []string{"ErrDamaged", "FailedCheck", "Options", "Plan", "Record", "RecordFile", "Trial"},
		"the flags of a consolidation, and its printed record"},
	{"consolidate/branches", []string{"Branch"}, "it prints the branches of a team"},
	{"git/checkpoint", []string{"Checkpoint", "ForkError", "Left", "Listed", "Restored"},
		"it prints what a checkpoint contains and lacks"},
	{"engine/transfer", []string{"Arrived", "ErrNoRepository", "MissingCheck", "MovedError", "Options", "PullOptions",
		"PushOptions",
		"SuspectError"}, "the flags of a move, and the printed result"},
	{"hook", []string{"Examined", "ExaminedHook"}, "the hooks of a project are shown before they are trusted"},
	{"journal", []string{"DamageError", "ErrGone", "ErrNewer", "ErrNotFound"}, "its errors have exit statuses"},
	{"sys/crc32c", []string{"Prepare"}, "the tables are built beside the start of the process"},
	{"sys/filelock", []string{"ErrHeld"}, "its error has an exit status"},
	{"sys/regularfile", []string{"Is", "TooLargeError"}, "its errors have exit statuses"},
	{"sys/proc", []string{"Become", "Ended", "Guard", "Open", "OpenWorker", "Register", "RunWorker", "Worker"},
		"the process becomes tmux, at the terminal where it was called, and it keeps the program of --exec; cadre " +
			"run leaves its terminal; a guard stays above cadre host"},
	{"agent", []string{"Access", "Agent", "Spec", "TeamVariable", "ToolServerName"},
		"the environment of a session, and the agent behind a teammate that Claude Code starts as this process"},
	{"agent/drivers", nil, "its help names the agents, and it tells the engine their helper"},
	{"agent/acp", []string{"Hook", "Relay"}, "agents start it as their helper, on its standard input and output"},
	{"agent/mcpserver", []string{"Introduced", "Options", "Stdio"}, "it serves tools on its standard input and output"},
	{"server", nil, "it is the server, asks it, and stops it"},
	{"server/auth", []string{"Observe", "ParseRole", "Roles", "Token", "Tokens"},
		"tokens are for the address of the server, which a person gives on the command line"},
	{"ui/presence", nil, "it knows what is shown at this terminal"},
	{"ui/notify", nil, "it tells the person at this terminal, and shows how"},
	{"ui/pane", nil, "the panes of the terminal at which the command was called"},
	{"ui/settings", nil, "the person's own choices"},
	{"ui/lineedit", nil, "the person types below the session that attach shows"},
	{"ui/sessionview", nil, "a session looks the same in every front end"},
	{"ui/tui", []string{"Background", "Hosted", "Linear", "Options", "Pause", "Restore", "Run", "RunHosted",
		"StrangerPrefix"}, "it opens the screen at the terminal where it was called, and refuses a team of Claude " +
		"Code in its palette"},
	{"ui/web", []string{"Board", "Export"}, "the server that it starts has the board, and it writes exported teams"},
	{"agent/prompts", []string{"News"}, "it prints that there is news, for an agent's hook"},
	{"agent/wake", []string{"Hook"}, "its help shows the hook"},
	{"guest", nil, "Claude Code starts it as a teammate: it is that member, at its terminal"},
	{"claude/teamfiles", nil, "the files of the team whose teammate it is, or which it observes"},
	{"claude/sdkrelay", nil, "it stands between a program and its own standard input and output"},
	{"observe", nil, "it observes what comes on its standard input and from files that are named"},
	{"observe/present", nil, "it prints what it observes in a form of its own"},
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
	{"leader.Claim", []string{"internal/engine/transfer", "internal/engine/upkeep"},
		"a move keeps other processes from leading the team meanwhile"},
	{"replica.Open", []string{"internal/engine/upkeep", "internal/inspect", "internal/host",
		"internal/observe/store", "internal/engine/transfer"},
		"who only looks, as a host at the teams in its team, needs no hooks and no projections; nor does who journals what it saw of a team that is not " +
			"ours, or who reads what may be damaged"},
}

// unit permits a name that says in which unit a length of time is.
type unit struct{ pkg, name, because string }

func (u unit) same(o unit) bool { return u.pkg == o.pkg && u.name == o.name }

var mayNameUnit = []unit{
	{"cmd/cadre", "seconds", "the documented JSON of cadre run has a number of seconds"},
	{"internal/agent/tools", "seconds", "agents give a number of seconds: this type reads it"},
}

// durations lists what the core may use of package time: durations and their units. A duration is a
// plain value; the clock, timers and the local time zone are not.
var durations = []string{"time.Duration", "time.Nanosecond", "time.Microsecond", "time.Millisecond", "time.Second",
	"time.Minute", "time.Hour"}

// mayReadTheClock lists the packages that may call time.Now, Since or Until. Every package but the
// core may use timers.
var mayReadTheClock = []struct{ pkg, because string }{
	{"internal/replica", "it stamps commands: the one place where a team's time comes from"},
	{"internal/testkit/hosttest", "how long a test waits for a host to end"},
	{"internal/testkit/simtest", "it simulates the time: it reads the clock of a test bubble"},
	{"internal/host", "heartbeats, and the age of the lead's heartbeats"},
	{"internal/liveness/leader", "heartbeats of the lead"},
	{"internal/inspect/catalog", "how long ago what it shows was looked at"},
	{"internal/engine/machines", "how long a member waits for a machine, and when the list was read"},
	{"internal/engine/upkeep", "who is alive before a task is taken from a member"},
	{"internal/engine", "when a team was examined"},
	{"internal/inspect/attention", "how long ago what it shows was looked at"},
	{"internal/liveness/detector", "heartbeats of outside sessions, and the age of other heartbeats"},
	{"internal/journal/pgjournal", "until when a lease is held, and for how long since it was asked for"},
	{"internal/journal/pgjournal/pgwire", "how old a connection is, and how long nobody used it"},
	{"internal/journal/store/storetest", "whether a lease is held for some time"},
	{"internal/sys/proc", "deadlines of processes, and how long they ran"},
	{"internal/agent/worker", "how long a task took"},
	{"internal/run", "how long a run took"},
	{"internal/agent/agenttest", "deadlines of tests"},
	{"internal/agent/acp", "when a chat may be loaded again, and deadlines of the hook"},
	{"internal/agent/codex", "names for the prompts that answer a plan"},
	{"internal/sys/fswatch", "how long a complete check takes, and when the next one is due"},
	{"internal/claude/teamfiles", "how old a lock is, and when a message was sent"},
	{"internal/git", "how old the lock of a reference is, and how long a command waited for it"},
	{"internal/agent/claudetmux", "when a member of a team of files joined it, and was answered"},
	{"internal/guest", "it stamps commands and messages to a team that has no journal"},
	{"internal/layout", "the age of a folder whose creation was not finished"},
	{"internal/ui/lineedit", "whether Escape was a key, or began a sequence that came apart"},
	{"internal/ui/notify", "when a notification is tried again, and how long a fact has stood"},
	{"internal/server", "when it began, when a team was found, and how long a client takes"},
	{"internal/server/api", "until when a code can be used, and how long a reader takes"},
	{"pkg/teams/client", "how long an attempt of a call lasted"},
	{"internal/journal/relay", "until when a call may last after its record was decided"},
	{"internal/journal/pgjournal", "how long the server takes, and how far its clock is off"},
	{"internal/server/coordinator", "since when it runs, and when it was asked for its state"},
	{"internal/server/auth", "when a code was made, and a wrong token came"},
	{"internal/server/supervisor", "when a team may be resumed again"},
	{"pkg/teams", "the deadline for the answer to a permission request"},
	{"cmd/cadre", "when a project was trusted, and when a member joined a team of Claude Code"},
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
	{"cmd/cadre", use{"io.Copy", "mail.go"}, "it counts the rest of standard input"},
	{"cmd/cadre", use{"protocol", "mcp.go"}, "what it prints is MCP, or an answer to gemini's hook"},
	{"cmd/cadre", use{"protocol", "observe.go"}, "with --pass it prints what it reads, unchanged"},
	{"pkg/teams", use{"os.Stdout", "program.go"}, "a program that embeds teams may be the helper of an agent's " +
		"session, and its output a protocol"},
	{"pkg/teams", use{"os.Stderr", "program.go"}, "an agent's program keeps the output of its helper"},
	{"examples/client", use{"os.Stdout", "main.go"}, "it shows what a program does that is no part of cadre: it quotes texts of agents"},
	{"examples/client", use{"os.Stderr", "main.go"}, "it shows what a program does that is no part of cadre"},
	{"internal/sys/proc", use{"os.NewFile", "worker.go"}, "the socket between a worker and the process in front of it"},
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
	{"charm.land/bubbletea/v2", false,
		"a screen that draws only what changed, on any terminal, and reads all of its keys: the modes and quirks of " +
			"terminals are its data. It adds 0.15 ms to the start of each command"},
	{"github.com/clipperhouse/displaywidth", false,
		"how many columns a terminal gives to a text is Unicode's data, which changes each year, by clusters of " +
			"characters; the tables of the terminal libraries count with it too, and it does nothing when a program " +
			"starts"},
	{"rsc.io/qr", false,
		"cadre board --phone shows an address as a QR code, whose error correction is not a thing to write again; " +
			"the package has no dependencies, and starts in 8 µs"},
	{"mvdan.cc/sh/v3", false,
		"which files a shell command names is known only after parsing it as a shell does: quotes, braces, " +
			"here-documents, substitutions"},
	{"github.com/jackc/pgx/v5/pgconn", false,
		"the lower half of the driver of the field for PostgreSQL: its protocol with pipelines, passwords, TLS and " +
			"service files is not a thing to write again. No command links it yet"},
	{"github.com/jackc/pgx/v5", true,
		"the whole driver is the independent client of tests. Linked, it would add 4 MB to the program, and page faults " +
			"to the start of every command"},
	{"github.com/spf13/cobra", false,
		"a command line with help that teaches and completion for four shells"},
	{"github.com/spf13/pflag", false,
		"cobra's flags: which one has a wrong value; their names and values for the command reference"},
	{"github.com/coder/acp-go-sdk", false,
		"the Agent Client Protocol: types and connection from its schema, which grows"},
	{"github.com/coder/websocket", false,
		"it accepts the connections of the server; in tests it is the peer of our own WebSocket, which short commands link"},
	{"github.com/modelcontextprotocol/go-sdk", true,
		"we write the server of the agents' tools, and tests use the official client"},
	{"github.com/google/jsonschema-go", true,
		"a foreign library checks the schemas of cadre's output and of the tools' input"},
	{"github.com/prometheus/client_golang", true,
		"Prometheus's own linter checks the metrics, which we write by hand: linked, it would slow down the start of " +
			"every command"},
	{"github.com/prometheus/common", true,
		"Prometheus's own parser reads the metrics in tests"},
	{"github.com/prometheus/client_model", true,
		"the type of what that parser returns"},
	{"go.opentelemetry.io/proto/otlp", true,
		"tests read the traces that we write with OpenTelemetry's own types"},
	{"google.golang.org/protobuf", true,
		"those types are decoded by it"},
	{"go.uber.org/goleak", true,
		"a goroutine that outlives its test is a bug, and this finds it"},
	{"pgregory.net/rapid", true,
		"properties: random histories that shrink to what matters"},
	{"github.com/rogpeppe/go-internal", true,
		"testscript: the command line is tested as it is used, with files that read as a session"},
	{"golang.org/x/sync", true,
		"a semaphore with weights, fair to those that wait: how many agents the tests run beside each other"},
	{"github.com/anishathalye/porcupine", true,
		"it checks claims of many processes for linearizability"},
}

// heavy lists modules that may not come in even indirectly: every build and test of cadre would
// have to download them.
var heavy = []struct{ word, because string }{
	{"sqlite", "only the benchmarks compare with the database, in the nested module bench"},
	{"grpc", "nothing here needs it"},
	{"docker", "a clone needs Go and git, and nothing else"},
}

// vague lists package names that say nothing about the content. Such packages collect everything.
var vague = []string{"util", "utils", "common", "helper", "helpers", "misc", "base", "lib", "shared", "types"}

const (
	// maxLines limits a non-test file. Split a longer file, or name it in its package comment with
	// the reason.
	maxLines = 600
	// maxFunction limits the lines of a function, and maxLongFunctions the functions that are
	// longer: tables, switches with one short case for each kind, and declarations of commands,
	// which are no easier to read in parts. Only lower that number.
	maxFunction, maxLongFunctions = 60, 17
	// maxWings limits the folders on the first level of internal.
	maxWings = 22
	// minComment is the minimum length of a package comment in bytes.
	minComment = 200
	// maxColumn limits the columns of a line of Go, and maxWide the permille of all lines that are
	// wider: a long text that reads better in one piece. A tab has four columns.
	maxColumn, maxWide = 120, 2
	// maxCommentColumn limits the columns of prose in comments, and maxWideComments the lines that
	// are wider: the output of an example. Only lower it.
	maxCommentColumn, maxWideComments = 100, 1
)
