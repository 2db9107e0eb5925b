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
// schema.json describes every key, with its values and its default. docs/team-files.md is made from
// it.
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
	"fmt"
	"slices"
	"time"

	"cadre/internal/team"
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
	// Nests says that the agent is a team of its own, which is made from a file, a template or a
	// goal.
	Nests bool
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
	// Commands can be named as checks of tasks, in file order.
	Commands []Command
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
	// MaxParallel limits how many teammates have a turn at a time; 0 for no limit.
	MaxParallel int
	Liveness    Liveness
	Facts       []Fact // in file order
	Metadata    map[string]json.RawMessage
	Parameters  []Parameter // in file order
	MaxDepth    int         // how deep teams may be nested in the team; 0 for none
	Remote      string      // git remote through which work travels between machines; "" for none

	digest   string
	settings []Setting
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
	Mode         string   // permission mode; "" for the team's
	Isolation    string   // "" or worktree
	RunsOn       []string // labels of the machine that runs it; none where the team is run
	Nested       Nested   // what its teams are made from, if its agent is a team
	Budget       Budget   // of its own
}

// Elsewhere reports whether a member runs on another machine than the team.
func (f *File) Elsewhere() bool {
	return slices.ContainsFunc(f.Members, func(m Member) bool { return len(m.RunsOn) > 0 })
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
	In          string          // "merged", or "" for its member's directory
	Dir         string          // directory below that one; "" for the directory itself
	Env         []string        // NAME=value, added to the environment of Run
	When        string          // "always", "failed", or "" for after BlockedBy are done
	Result      json.RawMessage // JSON Schema of its result; nil for any result
	Check       string          // command that must pass before it is completed; "" for none
	CheckName   string          // name of the team's command that Check is; "" for none
	Rounds      int             // how often an attempt tries Check, with until; 0 for a plain check
	Metadata    map[string]json.RawMessage
	BlockedBy   []string      // ids, in the order written
	ForEach     *team.ForEach // for which items it makes tasks; nil for a task by itself
	Paths       []string      // patterns of the files that it changes, as [team.CleanPath] spells them
	Owner       string        // "" for any member with Role
	Role        string        // "" for any member
	Priority    string        // one of Priorities
	Timeout     time.Duration // 0 for no limit
	Retries     int
	Verify      Verify // By is "" where nobody verifies it
}

// Verify says who must accept a task before it counts as completed.
type Verify struct {
	By     string // a member, else a role
	Count  int
	Rule   string // "all" or "majority"
	Rounds int
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
	return ParseWith(data, filename, agents, nil)
}

// ParseWith is [Parse] with values for the parameters of the file. An error about such a value has
// no line.
func ParseWith(data []byte, filename string, agents []Agent, set []Setting) (*File, error) {
	return Read(data, filename, Options{Agents: agents, Set: set})
}

// ParseUnset is [Parse] for a file whose parameters have no values yet. Each parameter without a
// default gets an example of its type.
func ParseUnset(data []byte, filename string, agents []Agent) (*File, error) {
	return Read(data, filename, Options{Agents: agents, Unset: true})
}

// Options say how a team file is read.
type Options struct {
	Agents []Agent
	Set    []Setting // values for the parameters of the file
	// Unset says that the values are not known yet: a parameter without a default gets an example.
	Unset bool
	// Unknown are the parameters that will be set, to values that are not known yet. Each gets an
	// example.
	Unknown []string
	// Template says that the file is a template. Who trusts one has seen its commands, so it names
	// no other file.
	Template bool
	// Inner is the member whose team the file is for; nil for a team by itself. In the directory of
	// its parent, a team in a team does not check and commit its work.
	Inner *Inside
}

// Read reads a team file. The filename is for error messages only. An error is always of type
// [Errors].
func Read(data []byte, filename string, o Options) (*File, error) {
	src := &source{name: filename, data: data}
	return (&parser{source: src, agents: o.Agents, sample: o.Unset, unknown: o.Unknown, template: o.Template,
		inner: o.Inner}).parse(o.Set)
}

func (p *parser) parse(set []Setting) (*File, error) {
	root := p.document()
	if root == nil {
		return nil, p.problems()
	}
	p.parameters(root, set)
	file := p.file(root)
	if len(p.errs) > 0 {
		return nil, p.problems()
	}
	sum := sha256.New()
	sum.Write(p.data)
	file.settings = p.settings()
	if given := file.settings; len(given) > 0 {
		data, _ := json.Marshal(given) // texts can always be JSON
		sum.Write(data)
		if file.Metadata == nil {
			file.Metadata = map[string]json.RawMessage{}
		}
		if _, own := file.Metadata[team.ParametersKey]; !own {
			file.Metadata[team.ParametersKey] = data
		}
	}
	file.digest = hex.EncodeToString(sum.Sum(nil))
	return file, nil
}

// Digest returns the SHA-256 of the file's bytes, and of the values that differ from the defaults
// of its parameters, in hexadecimal. It shows whether a team was made from this version of the
// file, and of the files of its members that are teams, as far as these were read.
func (f *File) Digest() string {
	all := f.digest
	for i := range f.Members {
		if inner := f.Members[i].Nested.Digest; inner != "" {
			all = fmt.Sprintf("%x", sha256.Sum256([]byte(all+inner)))
		}
	}
	return all
}

// Settings returns the values of the parameters that the run must set, or that differ from their
// defaults, in file order.
func (f *File) Settings() []Setting { return f.settings }

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
