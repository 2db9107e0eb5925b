// Package agent is the contract of a session: one coding agent, or a substitute for one, that works
// as one member of a team.
//
// # Authority
//
// A session is an agent with its processes. It knows its prompts and what its agent does; package
// team decides what that means for the team. Package host runs sessions: it starts them, gives them
// prompts, forwards their updates, and ends them.
//
// # States of a session
//
//	Start ──▶ waiting ──Give──▶ working ──TurnEnded──▶ waiting ──Give──▶ working …
//	any ──Stop, or the agent ends by itself──▶ Ended, and its updates are closed
//
// # Guarantees
//
//   - Updates come in order, and the last one is [Ended]. After it, no process of the session is
//     running.
//   - A prompt is in the agent's context once [Received] names it, and never before. A working
//     agent gets it at its next tool boundary if its protocol allows that, without a cancelled
//     tool; otherwise at the end of its turn. An urgent prompt interrupts the turn.
//   - A turn that fails leaves no prompt behind: before TurnEnded, each one is received, or
//     returned with [NotTaken].
//   - Stop returns when the session has ended. It escalates in steps: the agent's own request to
//     end, the end of its standard input, SIGTERM and SIGKILL to its process group, each with its
//     own time.
package agent

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"cadre/internal/sys/proc"
	"cadre/internal/team"
)

// Agent starts sessions of one kind. It may be used from any goroutine.
type Agent interface {
	// Start starts a session. ctx applies to the start alone; the session continues until it ends
	// or is stopped. An error says why the agent cannot work here, in its own words if it has any.
	Start(ctx context.Context, spec Spec, its Team) (Session, error)
}

// Worker is an Agent whose sessions take tasks from the list by themselves. All other agents get
// each task in a prompt.
type Worker interface{ TakesTasks() }

// Prober is an Agent that can say whether it is installed.
type Prober interface {
	// Probe looks for the program and asks it for its version. It starts no session.
	Probe(ctx context.Context) Probe
}

// Probe describes an installed or missing agent.
type Probe struct {
	Program string   // path of the program; "" if it is not installed
	Version string   // in the program's own words
	Can     []string // what its driver can do with it, in a word or two each
	Missing string   // what to do if it cannot be used
}

// Locator is an Agent that can find its program without starting anything.
type Locator interface {
	// Locate returns an error if the program does not exist, with what to do about that. program is
	// the executable to use instead of the agent's own, or "".
	Locate(program string) error
}

// Missing says why the agent cannot work here: its program does not exist. It returns nil if the
// program exists, or if that is unknown.
func Missing(a Agent, program string) error {
	if l, ok := a.(Locator); ok {
		return l.Locate(program)
	}
	return nil
}

// Remedier is an Agent that knows what a person can do about a problem.
type Remedier interface {
	// Remedy returns a clause to append to the words of the problem; "" if no remedy is known.
	Remedy(kind ProblemKind) string
}

// LoginChecker is an Agent that can cheaply tell whether it is logged in: from its files, or by a
// command of its own that asks no model.
type LoginChecker interface {
	// CheckLogin checks the login for a session in that directory with these variables. program is
	// the executable to use instead of the agent's own, or "".
	CheckLogin(ctx context.Context, program, dir string, env []string) Login
}

// Login is the result of a check for a login. It holds no secret.
type Login struct {
	State  LoginState
	Detail string // how it is logged in, or why that is unknown
	How    string // how to log in; a clause
}

// LoginState says whether the agent is logged in.
type LoginState string

// These are the states of a login.
const (
	LoggedIn     LoginState = "logged in"
	NotLoggedIn  LoginState = "not logged in"
	LoginUnknown LoginState = "login unknown"
)

// Spec describes the session to start.
type Spec struct {
	TeamID      string
	Team        string
	Home        string // cadre's folder with the team
	Member      string
	Incarnation int64
	Lead        string
	Role        string
	Prompt      string // prompt it was spawned with, for agents that keep it; it is also given with Give
	// who the member is, and how its team works: for the system prompt, else before the first
	// prompt
	Instructions string
	Model        string   // "" for the agent's own choice
	Program      string   // executable to use instead of the agent's own; "" for its own
	Args         []string // added to the program's arguments
	Resume       string   // the agent's own id of the member's earlier session; "" for none
	// what that session has cost so far, in millionths of a US dollar, for agents that report a
	// session's total cost
	Spent int64
	Dir   string // where the session works
	// Where returns the directory for a task's command, for an agent that runs commands. Others
	// wait for that directory until done is called. nil means Dir.
	Where   func(ctx context.Context, task team.Task) (dir string, done func(), err error)
	Scratch string   // path of a folder for its own files; the session makes it, and its host removes it
	Env     []string // added to the environment
	Access  Access
	// Gate returns an error if the team's rules forbid the tool, whatever its agent decides. If the
	// agent allows it, drivers call it before a tool runs, and show the error to the agent. It may
	// be called from any goroutine.
	Gate func(tool, input string) error
	// Reads reports whether a call only reads, so that it needs no permission; nil means never. If
	// the agent lets the user's own rules take precedence, a driver may call it after the gate, and
	// let such a call run unasked. It may be called from any goroutine.
	Reads func(tool, input string) bool
	// Tools are the team's tools, for an agent that takes tools from its driver.
	Tools Tools
	// ToolServer is the command line of an MCP server with the same tools on its standard input and
	// output, for other agents.
	ToolServer []string
	// Carries returns the seqs of the messages in a text, in order. Drivers use it to find the
	// messages in the transcript of a resumed session: in prompts and in results of tools.
	Carries func(text string) []int64
	Procs   *proc.Register // starts its processes, so that none outlives its host
}

// These variables name the member in whose session a process runs.
const (
	TeamVariable   = "CADRE_TEAM"
	TeamIDVariable = "CADRE_TEAM_ID"
	MemberVariable = "CADRE_MEMBER_NAME"
	// cadre's folder to which the two refer; without it, they hold in every folder
	HomeVariable = "CADRE_SESSION_HOME"
	HookVariable = "CADRE_HOOK_EVENT" // set in hooks, in which the others name the member of the event
)

// NoLocks keeps git from taking a lock when it only reads; for example, git status refreshes the
// index. At that moment, a commit of another member in the same folder would fail. It comes first
// in a session's environment.
const NoLocks = "GIT_OPTIONAL_LOCKS=0"

// Identity returns the variables that name the session's member. They come last in the environment,
// so that nothing overrides them.
func (s Spec) Identity() []string {
	return []string{TeamVariable + "=" + s.Team, TeamIDVariable + "=" + s.TeamID, MemberVariable + "=" + s.Member,
		"CADRE_TEAM_ROLE=" + s.Role, HomeVariable + "=" + s.Home, HookVariable + "="}
}

// Access says what a session may do without asking.
type Access struct {
	Mode   string   // one of [team.PermissionModes]
	Writes bool     // false while a plan waits for approval: the session may read everything and change nothing
	Gated  bool     // the gate forbids some tools now, whatever the mode allows, so it has to be called for each
	Allow  []string // rules for tools that need no permission, in Claude Code's form: Bash(go test:*), Edit
}

// Tools are the team's tools for one member. They may be called from any goroutine.
type Tools interface {
	List() []Tool
	// Call calls a tool. The text is for the agent, even if the call failed.
	Call(ctx context.Context, name string, input json.RawMessage) (text string, failed bool)
}

// Tool describes one tool.
type Tool struct {
	Name        string
	Description string
	Schema      json.RawMessage // JSON Schema object of the tool's input
}

// ToolServerName is the name that agents have for the MCP server of the team's tools.
const ToolServerName = "cadre"

// NoPerson is the answer to an agent that asks a person at its own terminal.
const NoPerson = "No person is at this terminal. Ask your lead, or a colleague, with SendMessage, and end your turn: " +
	"the answer comes as a message."

// Team is a session's access to its team, always as its member.
type Team interface {
	// Do executes a command and returns its record; nil if nothing had to change.
	Do(ctx context.Context, body team.Body) (*team.Record, error)
	// View calls see with the present state of the team. see must not keep the state.
	View(see func(*team.State))
}

// Session is one running session. Its methods may be called from any goroutine.
type Session interface {
	// Give passes a prompt to the session; [Received] reports that it is in the context. After an
	// error, the session did not take it.
	Give(ctx context.Context, p Prompt) error
	// SetAccess changes what the session may do without asking. What the team's rules forbid
	// applies at once. The permission mode applies from the next tool on, or from the next turn if
	// the program cannot change it earlier; no turn is cut short for it. [errors.ErrUnsupported]
	// means that there is nothing to change, and [ErrNewSession] that only a new session can have
	// this access. After an error, the former access is still in force.
	SetAccess(ctx context.Context, a Access) error
	// Interrupt ends the turn. The session continues with the next prompt.
	Interrupt(ctx context.Context) error
	// Stop ends the session. ctx bounds the orderly part; the rest is quick.
	Stop(ctx context.Context) error
	// Updates returns the session's updates. It is closed after Ended. The channel has to be read,
	// or the session blocks.
	Updates() <-chan Update
}

// ErrNewSession reports an access that a running session cannot get, but a new one can.
var ErrNewSession = errors.New("this needs a new session")

// Prompt is input for a session's context.
type Prompt struct {
	ID     string         // unique in the session
	Text   string         // text for the agent
	Mail   []team.Message // the messages in Text, for sessions without a model
	Urgent bool           // interrupts the turn
}

// Update is one event of a session: one of the types below.
type Update interface{ update() }

// These are the updates of a session.
type (
	// Started reports that the session is running.
	Started struct {
		Session string  // the agent's own id of the session, for resuming; "" if it has none
		Resumed bool    // it continues the history of Spec.Resume
		Seen    []int64 // of a resumed session: the messages in its transcript
	}
	// Received reports that a prompt is in the agent's context.
	Received struct{ ID string }
	// NotTaken reports that a prompt will not reach the agent's context. It may be given again.
	NotTaken struct{ ID string }
	// TurnStarted reports that the agent starts to work.
	TurnStarted struct{ Summary string }
	// Text is a whole block of text from the agent.
	Text struct{ Text string }
	// TextPart is a part of a block of text, as the agent writes it. The whole block follows as
	// Text, or as PlanProposed, unless the turn ends first. Agents that show no parts only send
	// whole blocks.
	TextPart struct{ Text string }
	// ToolStarted reports that the agent starts to use a tool.
	ToolStarted struct{ ID, Tool, Input string }
	// ToolOutput is a part of the output of a tool, as it comes. ToolFinished has the whole output,
	// so only viewers need the parts. Agents that show no parts send none.
	ToolOutput struct {
		ID, Text string // Text may begin and end within a character
		Missed   int64  // bytes of the output before Text that are in no part
	}
	// ToolFinished reports the end of a tool's use.
	ToolFinished struct {
		ID     string
		Failed bool
		Output string // as far as the agent's stream has it
		Lines  int    `json:",omitempty"` // lines of the whole output, if Output has parts of it only; otherwise 0
	}
	// Used adds to the usage, by the agent's own figures.
	Used struct {
		Task    string // "" for the member's current task
		Usage   team.Usage
		Context int // percent of its context that is full; 0 if unknown
	}
	// Compacted reports that the agent shortened its context.
	Compacted struct{}
	// PermissionAsked reports that the agent waits for permission to use a tool; Answer is called
	// once. Tool has Claude Code's name for the tool's kind: Bash, Edit, Write, Read, WebFetch, or
	// mcp__server__tool for a tool of an MCP server. Input is JSON; for Bash it may have the
	// working folder as cwd.
	PermissionAsked struct {
		Tool, Input string
		Ruled       bool // a rule in the user's own settings for the agent requires the question
		Answer      func(allow bool, reason string)
	}
	// PlanProposed reports that the agent submits a plan to its lead and waits; Answer is called
	// once.
	PlanProposed struct {
		Plan   string
		Answer func(approved bool, feedback string)
	}
	// Retrying reports that the model cannot be reached and that the agent tries again by itself;
	// the turn continues. With [ProblemLogin] no attempt can succeed.
	Retrying struct{ Problem Problem }
	// TurnEnded reports that the agent waits for the next prompt.
	TurnEnded struct {
		Text        string   // the last text of the turn
		Interrupted bool     // the turn was interrupted
		Problem     *Problem // why the turn failed; nil if it finished
		Continues   bool     // another turn follows at once by itself: the session is not idle
	}
	// Nested is a use of a tool in the team that the session runs, which began or ended at that
	// time: ToolStarted or ToolFinished, whose id is unique among those of the session. Only the
	// host needs it: viewers watch that team.
	Nested struct {
		Update
		At time.Time
	}
	// Ended is the last update. Err is nil if the session was stopped; otherwise it says why the
	// session ended by itself.
	Ended struct{ Err error }
)

// Reader turns the lines that an agent sends to another driver into updates. It only reads and
// answers nothing, so the Answer of an update is nil. It skips a line that it cannot read. It can
// be saved as JSON between any two lines, and continues from there after it is loaded. It belongs
// to one goroutine.
type Reader interface {
	Line(line []byte) []Update
	json.Marshaler
	json.Unmarshaler
}

// Parse reads JSON into v, as far as it has the shapes that v knows. Other shapes, from another
// version of an agent or of a kind without interest, are skipped.
func Parse(data []byte, v any) error {
	err := json.Unmarshal(data, v)
	if _, other := errors.AsType[*json.UnmarshalTypeError](err); other {
		return nil
	}
	return err
}

// Problem says why a turn failed, or why a session could not start or continue.
type Problem struct {
	Kind ProblemKind
	Text string // the agent's own words
	// Until and After say when the provider takes requests again, if the agent's protocol says it
	// beside its words. See [Problem.FreeAt].
	Until time.Time     `json:",omitzero"`
	After time.Duration `json:",omitzero"`
}

func (p *Problem) Error() string { return p.Text }

// ProblemKind says what helps.
type ProblemKind string

// These are the kinds of problems.
const (
	ProblemLogin   ProblemKind = "login"   // it has no access to its model: only a person can help
	ProblemLimit   ProblemKind = "limit"   // too many requests, or a quota: waiting helps
	ProblemModel   ProblemKind = "model"   // the model failed or cannot be reached: trying again may help
	ProblemContext ProblemKind = "context" // its context is full: a fresh session helps
	// the program does not exist, or ends before it has said anything: only a person can help
	ProblemMissing ProblemKind = "missing"
)

func (Started) update()         {}
func (Received) update()        {}
func (NotTaken) update()        {}
func (TurnStarted) update()     {}
func (Text) update()            {}
func (TextPart) update()        {}
func (ToolStarted) update()     {}
func (ToolOutput) update()      {}
func (ToolFinished) update()    {}
func (Used) update()            {}
func (Compacted) update()       {}
func (PermissionAsked) update() {}
func (PlanProposed) update()    {}
func (Retrying) update()        {}
func (TurnEnded) update()       {}
func (Ended) update()           {}
