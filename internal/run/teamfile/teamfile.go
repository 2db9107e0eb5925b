// Package teamfile reads team files: the YAML in which a person describes a team and its work
// before it runs.
//
// # Authority
//
// The package decides whether a file is a team file and what it means: which keys exist, what their
// defaults are, and which tasks, owners and roles fit together. It knows nothing of a running team.
// The core checks every command again when the team is created; it refuses no file that passes
// here.
//
// # Format
//
//	name: health                  # letters, digits, _ and -, at most 64; required
//	goal: what the team is for
//	lead: lead                    # the lead's name, when a person or a program leads, or
//	lead:                         # an agent that plans, and leads the others
//	  agent: claude
//	  name: lead
//	  model: opus                 # left out: the agent's own choice
//	  prompt: how it is to lead
//	delegate: false               # true: the lead may only coordinate
//	defaults:                     # defaults of members and tasks
//	  agent: shell                # shell, external, claude, codex, gemini, opencode, or acp: with a command behind it
//	  model: sonnet
//	  prompt: be brief
//	  priority: medium            # low, medium, high or critical
//	  timeout: 10m                # of one attempt of a command; left out: 1h
//	  retries: 0                  # how often a failed task is retried, 0 to 100
//	members:
//	  - name: scout
//	    agent: shell
//	    role: reader
//	    prompt: what this member should know
//	    count: 3                  # scout-1, scout-2 and scout-3
//	    model: opus
//	    command: /opt/bin/claude  # the executable, instead of the agent's own
//	    args: [--verbose]         # added to its arguments
//	    env: {DEBUG: "1"}         # added to its environment
//	    planApproval: true        # it changes nothing before the lead approved its plan
//	    permissionMode: plan      # what it does without asking; left out: permissions.mode
//	    isolation: worktree       # it works in a git worktree and on a branch of its own
//	tasks:
//	  - id: survey                # letters, digits, _ . and -, at most 64; required
//	    subject: Look around      # left out: the id
//	    description: more words
//	    run: git status           # the command, for members that run commands
//	    in: merged                # where that runs: in the merged worktree, with the work of all branches; left out: where its member works
//	    blockedBy: [other]        # ids of the tasks that it depends on
//	    owner: scout-1            # a member, or
//	    role: reader              # any member with this role; neither: any member
//	    priority: high
//	    timeout: 1m30s            # only with run
//	    retries: 2
//	hooks:                        # the shape of settings.json; timeout in seconds
//	  TaskCompleted:
//	    - hooks: [{type: command, command: make test, timeout: 60}]
//	checks:                       # have to pass, in this order, before cadre consolidate commits what the team did
//	  - make test                 # a command, or
//	  - name: build               # left out: the command
//	    run: make build
//	    timeout: 10m              # left out: 30m
//	clean: true                   # the checks run in a clean checkout of what is to be committed
//	withCheckChanges: true      # files that the checks write are committed with the work, and the checks run again
//	consolidate: true             # cadre run commits what the team did when all is done and the checks passed
//	permissions:
//	  mode: default               # permission mode of the lead, and so of all
//	  allow: [Edit, "Bash(go test:*)"]
//	  policy: user                # who answers what no rule answers: user, lead, allow or deny
//	  timeout: 5m                 # for the answer
//	handover: 80                  # percent of its context at which a session is replaced by a fresh one
//	maxTeammates: 10              # at a time; left out: 10 that a lead that is an agent spawns, and any number of members here
//	budget: {tokens: 1000000, usd: 2.50, time: 30m}
//	liveness:                     # time limits of failure detection; these are the defaults
//	  beat: 30s                   # between two heartbeats of a member, and of the lead
//	  offline: 10m                # silence after which a member is offline
//	  leadLost: 5m                # silence after which the lead is lost
//	  zombie: 30m                 # how long a teammate works without a lead
//	  blocked: 10m                # how long a blocked one keeps its task without a lead
//	  undelivered: 5m             # how long a message waits before the lead is notified
//	  stale: 30m                  # silence after which another session may take the lead
//	  checkpoint: 30s             # between two checkpoints while the team changes, and of the work of one without a lead
//	facts:                        # files that all members rely on; cadre resume says when they changed
//	  - go.mod
//	  - {name: schema, path: db/schema.sql}
//	report:
//	  file: REPORT.md             # where the lead writes, from the team's directory
//	  title: The title
//	  sections: [survey, other]   # tasks whose results the report shows, in this order; left out: all, in file order
//
// An alias (*name) may stand for a text or a number, but not for a list or a mapping. This keeps a
// small file small.
//
// # Guarantees
//
//   - A *[File] is complete and consistent. Defaults are filled in, and counts are expanded to
//     members. Every owner, role and blocker exists, and no task waits for itself, directly or
//     through others.
//   - A refused file is refused with all its errors, as [Errors] in the order of the file. Each
//     error says where it is, what is wrong, and what to do.
//   - The size of the file bounds the time and memory of reading. Reading uses only the given
//     bytes.
package teamfile

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"time"
)

// Limits of a team file. They prevent that a typing error, or an attack, makes a team that no host
// can run.
const (
	MaxFile    = 16 << 20 // bytes of the whole file
	MaxText    = 1 << 20  // bytes of one text; the size limit of a message, too
	MaxTasks   = 10_000
	MaxMembers = 1_000 // after counts are expanded
	MaxRetries = 100
	MaxChecks  = 100
)

// DefaultLead is the lead's name in a file that does not give one.
const DefaultLead = "lead"

// An Agent is a kind of session that a member can have, as the caller offers it.
type Agent struct {
	Name string // a name that ends in a colon stands for all names with that prefix
	// CommandsOnly agents can only run a task's command. A task without a command must be for
	// another member.
	CommandsOnly bool
	// Boundless agents cannot be held to the team's rules, so approval of plans and delegate mode
	// are refused for them.
	Boundless bool
	// FollowsOnly agents can be members, but cannot lead.
	FollowsOnly bool
}

// File is a team file that was read and is consistent.
type File struct {
	Name    string
	Goal    string
	Lead    string
	Leader  Member   // the lead, if it is an agent; else its Agent is ""
	Members []Member // in file order, with counts expanded
	Tasks   []Task   // in file order
	Hooks   Hooks
	Checks  []Check // in file order, with unique names
	// Clean runs the checks in a clean checkout of the tree to commit.
	Clean bool
	// CheckChanges commits files that the checks write with the work.
	CheckChanges bool
	// Consolidate makes the run consolidate the team when all tasks are done.
	Consolidate bool
	Budget      Budget
	Report      Report

	Delegate    bool
	Permissions Permissions
	Handover    int // percent; 0 for the default
	// MaxTeammates limits how many teammates run at a time, without the lead; 0 for the default.
	MaxTeammates int
	Liveness     Liveness
	Facts        []Fact // in file order
	Metadata     map[string]json.RawMessage

	digest string
}

// Member is one teammate, or a lead that is an agent.
type Member struct {
	Name         string
	Agent        string
	Role         string // "" for none
	Prompt       string
	Model        string
	Command      string // executable; "" for the agent's own
	Args         []string
	Env          []string // NAME=value
	PlanApproval bool
	Mode         string // permission mode; "" for the team's
	Isolation    string // "" or worktree
	Budget       Budget // of its own
}

// Permissions say what members may do without asking, and who is asked about the rest.
type Permissions struct {
	Mode    string // "" for default
	Allow   []string
	Policy  string
	Timeout time.Duration // 0 for the default
}

// permissionModes and policies, by their names in the core.
var (
	permissionModes = []string{"default", "acceptEdits", "auto", "bypassPermissions", "dontAsk", "plan"}
	policies        = []string{"user", "lead", "allow", "deny"}
)

// Task is one piece of work. At most one of Owner and Role is set.
type Task struct {
	ID          string
	Subject     string
	Description string
	Run         string
	In          string   // "merged", or "" for its member's directory
	Dir         string   // directory below that one; "" for the directory itself
	Env         []string // NAME=value, added to the environment of Run
	When        string   // "always", or "" for after BlockedBy are done
	Metadata    map[string]json.RawMessage
	BlockedBy   []string      // ids, in the order written
	Owner       string        // "" for any member with Role
	Role        string        // "" for any member
	Priority    string        // one of Priorities
	Timeout     time.Duration // 0 for no limit
	Retries     int
}

// priorities has the lowest first.
var priorities = []string{"low", "medium", "high", "critical"}

// Hooks are the commands to run, by event. They have the shape of settings.json.
type Hooks map[string][]HookGroup

// hookEvents are the events that a team file can have hooks for.
var hookEvents = []string{"TeammateIdle", "TaskCreated", "TaskCompleted"}

// HookGroup is a set of commands that share a matcher.
type HookGroup struct {
	Matcher string
	Hooks   []HookCommand
}

// HookCommand is one command of a hook.
type HookCommand struct {
	Command string
	Timeout time.Duration // 0 for the host's default
}

// Check is a command that must pass before the team's work is committed.
type Check struct {
	Name    string
	Run     string
	Timeout time.Duration // 0 for the host's default
}

// Budget limits what the team or a member may spend. Zero means no limit.
type Budget struct {
	Tokens       int64
	CostMicroUSD int64 // millionths of a US dollar
	Time         time.Duration
}

// Report says what the lead's report contains and where it is written.
type Report struct {
	File     string   // "" for the caller's choice
	Title    string   // "" for the caller's choice
	Sections []string // ids of tasks, in the order of the report; never empty
}

// Parse reads a team file. The filename is for error messages only. An error is always of type
// [Errors].
func Parse(data []byte, filename string, agents []Agent) (*File, error) {
	src := &source{name: filename, data: data}
	root := src.document()
	if root == nil {
		return nil, src.problems()
	}
	p := &parser{source: src, agents: agents}
	file := p.file(root)
	if len(src.errs) > 0 {
		return nil, src.problems()
	}
	sum := sha256.Sum256(data)
	file.digest = hex.EncodeToString(sum[:])
	return file, nil
}

// Digest returns the SHA-256 of the file's bytes, in hexadecimal. It shows whether a team was made
// from this version of the file.
func (f *File) Digest() string { return f.digest }

// LeftOut returns the ids of the tasks whose results the report omits.
func (f *File) LeftOut() (ids []string) {
	for _, t := range f.Tasks {
		if !slices.Contains(f.Report.Sections, t.ID) {
			ids = append(ids, t.ID)
		}
	}
	return ids
}

// Order returns the tasks with each one after its blockers. It keeps the file's order where it can:
// a blocker moves forward to just before the first task that needs it.
func (f *File) Order() []Task {
	index := make(map[string]int, len(f.Tasks))
	for i, t := range f.Tasks {
		if t.ID != "" {
			index[t.ID] = i
		}
	}
	ordered := make([]Task, 0, len(f.Tasks))
	placed := make([]bool, len(f.Tasks))
	var place func(i int)
	place = func(i int) {
		if placed[i] {
			return
		}
		placed[i] = true
		blockers := make([]int, 0, len(f.Tasks[i].BlockedBy))
		for _, id := range f.Tasks[i].BlockedBy {
			if b, here := index[id]; here {
				blockers = append(blockers, b)
			}
		}
		slices.Sort(blockers)
		for _, b := range blockers {
			place(b)
		}
		ordered = append(ordered, f.Tasks[i])
	}
	for i := range f.Tasks {
		place(i)
	}
	return ordered
}
