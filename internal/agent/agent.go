// Package agent is the contract of a session: one coding agent, or a stand-in for one, that works
// as one member of a team.
//
// # Authority
//
// A session is the agent and its processes. It knows what it was given and what its agent does;
// what the team makes of that is decided by the team package. Whoever runs sessions (package host)
// starts them, gives them prompts, passes on what they say, and ends them.
//
// # States of a session
//
//	Start ──▶ waiting ──Give──▶ working ──TurnEnded──▶ waiting ──Give──▶ working …
//	any ──Stop, the agent's own end──▶ Ended, and its updates are closed
//
// # Guarantees
//
//   - Updates come in order, and the last one is [Ended]; after it no process of the session is
//     left.
//   - A prompt that was given is in the agent's context once [Received] names it, and never before.
//     A working agent gets it at its next tool boundary where its protocol can, without a tool
//     being cancelled for it, else when its turn has ended; an urgent one interrupts.
//   - A turn that fails leaves no prompt behind: each is received by then, or given back with
//     [NotTaken], before TurnEnded.
//   - Stop returns when the session is over. It climbs a ladder: what the agent understands as a
//     request, end of its standard input, SIGTERM and SIGKILL to its process group, each with its
//     time.
package agent

import (
	"context"
	"encoding/json"
	"errors"

	"cadre/internal/sys/proc"
	"cadre/internal/team"
)

// Agent starts sessions of one kind. It may be used from any goroutine.
type Agent interface {
	// Start starts a session. ctx is for the start alone; the session goes on until it ends or is
	// stopped. An error says why the agent cannot work here, in its own words where it has some.
	Start(ctx context.Context, spec Spec, its Team) (Session, error)
}

// Worker is an Agent whose sessions take tasks from the list by themselves; all others are told of
// each task in a prompt.
type Worker interface{ TakesTasks() }

// Prober is an Agent that can say whether it is installed.
type Prober interface {
	// Probe looks for the program and asks it for its version. It starts no session.
	Probe(ctx context.Context) Probe
}

// Probe is what was found of an agent.
type Probe struct {
	Program string   // its path; "" when it is not installed
	Version string   // in its own words
	Can     []string // what its driver can do with it, in a word or two each
	Missing string   // what to do about it, when it cannot be used
}

// Locator is an Agent that can say without starting anything whether its program is there.
type Locator interface {
	// Locate says why the program is not there, and what to do about that. program is the
	// executable instead of the agent's own, or "".
	Locate(program string) error
}

// Missing says why the agent cannot work here because its program is not there; nil where it is, or
// where nobody can tell.
func Missing(a Agent, program string) error {
	if l, ok := a.(Locator); ok {
		return l.Locate(program)
	}
	return nil
}

// Remedier is an Agent that says what a person can do about a problem.
type Remedier interface {
	// Remedy is a clause, for behind the words of the problem; "" where nothing is known that
	// helps.
	Remedy(kind ProblemKind) string
}

// LoginChecker is an Agent that can say by cheap means whether somebody is logged in to it: by its
// files, or by a command of its own that asks no model.
type LoginChecker interface {
	// CheckLogin looks for a session that would run in that directory with these variables. program
	// is the executable instead of the agent's own, or "".
	CheckLogin(ctx context.Context, program, dir string, env []string) Login
}

// Login is what was found of that. It holds no secret.
type Login struct {
	State  LoginState
	Detail string // by what means, or why that is not known
	How    string // how to log in; a clause
}

// LoginState says whether somebody is logged in.
type LoginState string

// The states of a login.
const (
	LoggedIn     LoginState = "logged in"
	NotLoggedIn  LoginState = "not logged in"
	LoginUnknown LoginState = "login unknown"
)

// Spec says which session to start.
type Spec struct {
	TeamID      string
	Team        string
	Home        string // folder of the program's that the team is in
	Member      string
	Incarnation int64
	Lead        string
	Role        string
	Prompt      string // what it was spawned with. It is given with Give; here it is for agents that keep it
	// who the member is, and how its team works: for the system prompt, else before the first
	// prompt
	Instructions string
	Model        string   // "" for the agent's own choice
	Program      string   // executable instead of the agent's own; "" for that
	Args         []string // added to its arguments
	Resume       string   // the agent's own id of an earlier session of the member, "" for none
	// what that session has cost by now, in millionths of a US dollar, for agents that say what a
	// session cost in all
	Spent int64
	Dir   string // where it works
	// Where says where a task's command runs, for an agent that runs commands, and keeps others
	// away from there until done is called; nil for Dir.
	Where   func(ctx context.Context, task team.Task) (dir string, done func(), err error)
	Scratch string   // path of a folder for its own files, made by the session and removed by its host after it
	Env     []string // added to the environment
	Access  Access
	// Gate says at once whether the team's rules forbid the tool, whatever its agent thinks of it.
	// Drivers ask it before a tool runs, where the agent lets them, and put its words before the
	// agent. It may be called from any goroutine.
	Gate func(tool, input string) error
	// Reads reports whether a call only looks around, so that it needs nobody's leave; nil for
	// never. A driver may ask it once the gate let the call pass, and run the call unasked, where
	// its agent lets the user's own rules win over that. It may be called from any goroutine.
	Reads func(tool, input string) bool
	// Tools are the team's tools, for an agent that takes tools from its driver.
	Tools Tools
	// ToolServer is the command line that serves the same tools as MCP on its standard input and
	// output, for an agent that does not.
	ToolServer []string
	// Carries returns the seqs of the messages that a text given to the agent carried, in order:
	// drivers look into the transcript of a resumed session with it, at what was said to the agent
	// and at the results of its tools.
	Carries func(text string) []int64
	Procs   *proc.Register // starts its processes, so that none outlives its host
}

// The variables that name the member in whose session a process runs.
const (
	TeamVariable   = "CADRE_TEAM"
	MemberVariable = "CADRE_MEMBER_NAME"
	HomeVariable   = "CADRE_SESSION_HOME" // in which the two hold; without it they hold in each
	HookVariable   = "CADRE_HOOK_EVENT"   // set in hooks, in which the others say whom the event is about
)

// NoLocks keeps git from taking a lock where it only looks, as git status does to refresh the
// index. In that moment a commit of another member in the same folder would fail. It belongs before
// everything else in a session's environment.
const NoLocks = "GIT_OPTIONAL_LOCKS=0"

// Identity is the part of a session's environment that names its member. It belongs behind
// everything else, so that nothing there contradicts it.
func (s Spec) Identity() []string {
	return []string{TeamVariable + "=" + s.Team, "CADRE_TEAM_ID=" + s.TeamID, MemberVariable + "=" + s.Member,
		HomeVariable + "=" + s.Home, HookVariable + "="}
}

// Access is what a session may do by itself.
type Access struct {
	Mode   string   // one of [team.PermissionModes]
	Writes bool     // false while a plan waits for approval: it may look at everything and change nothing
	Gated  bool     // the gate forbids some tools now, whatever the mode allows: it has to be asked about each
	Allow  []string // rules for tools that need not be asked about, as Claude Code writes them: Bash(go test:*), Edit
}

// Tools are the team's tools as one member has them. They may be called from any goroutine.
type Tools interface {
	List() []Tool
	// Call calls a tool. The text is for the agent, also when it failed.
	Call(ctx context.Context, name string, input json.RawMessage) (text string, failed bool)
}

// Tool describes one of them.
type Tool struct {
	Name        string
	Description string
	Schema      json.RawMessage // of its input: a JSON Schema object
}

// ToolServerName is the name under which agents know the MCP server of the team's tools.
const ToolServerName = "cadre"

// Nobody is what an agent is told that asks a person at its own terminal.
const Nobody = "Nobody sits at this terminal. Ask your lead, or a colleague, with SendMessage, and end your turn: the answer comes as a message."

// Replica is what a session may do in its team, always as its member.
type Team interface {
	// Do sends a command and returns the record that it became; the record is nil when nothing had
	// to change.
	Do(ctx context.Context, body team.Body) (*team.Record, error)
	// View calls see with the team as it is. The state must not be kept.
	View(see func(*team.State))
}

// Session is one running session. Its methods may be called from any goroutine.
type Session interface {
	// Give hands the session something for its context; [Received] says when it is there. After an
	// error it was not taken.
	Give(ctx context.Context, p Prompt) error
	// SetAccess changes what the session may do by itself: what the team's rules forbid at once,
	// and the permission mode from the next tool on, or from the next turn on where the program
	// cannot do that. No turn is cut short for a mode. [errors.ErrUnsupported] means that it has
	// nothing to change, and [ErrNewSession] that only a session that is started so may do it.
	// After an error the session may do what it might before.
	SetAccess(ctx context.Context, a Access) error
	// Interrupt ends the turn; the session goes on with what it is given next.
	Interrupt(ctx context.Context) error
	// Stop ends the session. ctx bounds the friendly part; the rest is quick.
	Stop(ctx context.Context) error
	// Updates is what the session does, closed after Ended. Somebody must read it, or the session
	// waits.
	Updates() <-chan Update
}

// ErrNewSession is the error for an access that a running session cannot be given: one that is
// started with it can.
var ErrNewSession = errors.New("it takes a new session")

// Prompt is something for a session's context.
type Prompt struct {
	ID     string         // unique in the session
	Text   string         // what the agent is told
	Mail   []team.Message // the messages that Text tells of, for sessions without a model
	Urgent bool           // it interrupts a turn
}

// Update is one thing that a session did: one of the types below.
type Update interface{ update() }

// The updates of a session.
type (
	// Started says that the session runs.
	Started struct {
		Session string  // the agent's own id of it, for resuming; "" if it has none
		Resumed bool    // it goes on with the history of Spec.Resume
		Seen    []int64 // of a resumed session: the messages that its transcript has
	}
	// Received says that a prompt is in the agent's context.
	Received struct{ ID string }
	// NotTaken says that a prompt will not get into the agent's context any more: it may be given
	// again.
	NotTaken struct{ ID string }
	// TurnStarted says that the agent began to work.
	TurnStarted struct{ Summary string }
	// Text is something that the agent said, a whole block of it.
	Text struct{ Text string }
	// ToolStarted says that the agent uses a tool.
	ToolStarted struct{ ID, Tool, Input string }
	// ToolFinished says that it is done with it.
	ToolFinished struct {
		ID     string
		Failed bool
		Output string // as far as the agent's stream has it
	}
	// Used adds to the usage, by the agent's own figures.
	Used struct {
		Task    string // "" for what the member is at
		Usage   team.Usage
		Context int // percent of its context that is full; 0 where it does not say
	}
	// Compacted says that the agent shortened its context.
	Compacted struct{}
	// PermissionAsked says that the agent waits for leave to use a tool; Answer is called once.
	// Tool has Claude Code's name for its kind: Bash, Edit, Write, Read, WebFetch, or that of an
	// MCP tool, mcp__server__tool. Input is JSON; that of Bash may have the folder where it runs as
	// cwd.
	PermissionAsked struct {
		Tool, Input string
		Ruled       bool // a rule of the user's own settings for the agent wants it to be asked about
		Answer      func(allow bool, reason string)
	}
	// PlanProposed says that the agent lays a plan before its lead and waits; Answer is called
	// once.
	PlanProposed struct {
		Plan   string
		Answer func(approved bool, feedback string)
	}
	// Retrying says that the way to the model is in trouble and that the agent tries again by
	// itself; the turn goes on. With [ProblemLogin] it tries in vain.
	Retrying struct{ Problem Problem }
	// TurnEnded says that the agent waits for something to do.
	TurnEnded struct {
		Text        string   // the last text of the turn
		Interrupted bool     // somebody ended it
		Problem     *Problem // why it could not continue; nil when it came to its end
		GoesOn      bool     // another turn follows at once, by itself: the session is not idle
	}
	// Ended is the last update. Err is nil when the session was stopped, else it says why it ended
	// by itself.
	Ended struct{ Err error }
)

// Reader makes updates of what an agent says to somebody else who drives it, line by line: it reads
// along and answers nothing, so the Answer of an update is nil. A line that it cannot read says
// nothing. It is saved and read back as JSON between any two lines, and goes on as if nothing had
// happened. It belongs to one goroutine.
type Reader interface {
	Line(line []byte) []Update
	json.Marshaler
	json.Unmarshaler
}

// Parse reads JSON as far as it has the shapes that v knows: what another version of an agent, or a
// kind of thing that is of no interest, has in another shape is passed over.
func Parse(data []byte, v any) error {
	err := json.Unmarshal(data, v)
	if _, other := errors.AsType[*json.UnmarshalTypeError](err); other {
		return nil
	}
	return err
}

// Problem is why a turn failed, or a session could not be started or go on.
type Problem struct {
	Kind ProblemKind
	Text string // the agent's own words
}

func (p *Problem) Error() string { return p.Text }

// ProblemKind says what helps.
type ProblemKind string

// The kinds of problems.
const (
	ProblemLogin   ProblemKind = "login"   // it has no leave to use its model: nothing but a person helps
	ProblemLimit   ProblemKind = "limit"   // too many requests, or a quota: waiting helps
	ProblemModel   ProblemKind = "model"   // the model or the way to it failed: trying again may help
	ProblemContext ProblemKind = "context" // its context is full: a fresh session helps
	// the program is not there, or ends by itself before it has said anything: nothing but a person
	// helps
	ProblemMissing ProblemKind = "missing"
)

func (Started) update()         {}
func (Received) update()        {}
func (NotTaken) update()        {}
func (TurnStarted) update()     {}
func (Text) update()            {}
func (ToolStarted) update()     {}
func (ToolFinished) update()    {}
func (Used) update()            {}
func (Compacted) update()       {}
func (PermissionAsked) update() {}
func (PlanProposed) update()    {}
func (Retrying) update()        {}
func (TurnEnded) update()       {}
func (Ended) update()           {}
