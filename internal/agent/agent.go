// Package agent is the contract of a session: one coding agent, or a stand-in for one, that works as one member of a team.
//
// # Authority
//
// A session is the agent and its processes. It knows its own task and its own mail; what the team makes of its work is decided by
// the team package, which it reaches through its [Desk]. Whoever runs sessions (coord) starts them, gives them their mail, and ends them.
//
// # States of a session
//
//	Start ──▶ working ──TurnEnded──▶ waiting ──Deliver, Wake──▶ working …
//	any ──Stop, the agent's own end──▶ Ended, and its updates are closed
//
// # Guarantees
//
//   - Updates come in order, and the last one is [Ended]; after it no process of the session is left.
//   - Stop returns when the session is over. It climbs a ladder: what the agent understands as a request, end of its standard
//     input, SIGTERM and SIGKILL to its process group, each with its time.
//   - Deliver returns nil only when the session has the messages; after an error it may have them or not.
package agent

import (
	"context"

	"cadre/internal/proc"
	"cadre/internal/team"
)

// Agent starts sessions of one kind. It may be used from any goroutine.
type Agent interface {
	// Start starts a session. ctx is for the start alone; the session goes on until it ends or is stopped. An error says why
	// the agent cannot work here, in its own words where it has some.
	Start(ctx context.Context, spec Spec, desk Desk) (Session, error)
}

// Spec says which session to start.
type Spec struct {
	TeamID      string
	Team        string
	Member      string
	Incarnation int64
	Lead        string
	Role        string
	Prompt      string
	Model       string
	Resume      string         // the agent's own id of an earlier session of the member, "" for none
	Dir         string         // where it works
	Scratch     string         // a folder for its own files, which its host removes after it
	Env         []string       // added to the environment
	Procs       *proc.Register // starts its processes, so that none outlives its host
}

// Desk is what a session may do in its team, always as its member.
type Desk interface {
	// Do sends a command and returns the record that it became; the record is nil when nothing had to change.
	Do(ctx context.Context, body team.Body) (*team.Record, error)
	// View calls see with the team as it is. The state must not be kept.
	View(see func(*team.State))
}

// Session is one running session.
type Session interface {
	// Deliver puts messages into the session's context.
	Deliver(ctx context.Context, mail []team.Message) error
	// Wake tells a waiting session that there is something for it on the task list.
	Wake(ctx context.Context) error
	// Interrupt ends what the session does at the moment; it goes on with what comes next.
	Interrupt(ctx context.Context) error
	// Stop ends the session. ctx bounds the friendly part; the rest is quick.
	Stop(ctx context.Context) error
	// Updates is what the session does, closed after Ended. Somebody must read it, or the session waits.
	Updates() <-chan Update
}

// Update is one thing that a session did: one of the types below.
type Update interface{ update() }

// The updates of a session.
type (
	// Started says that the session runs.
	Started struct {
		Session string // the agent's own id of it, for resuming; "" if it has none
	}
	// TurnStarted says that the agent began to work.
	TurnStarted struct{ Summary string }
	// Text is something that the agent said.
	Text struct{ Text string }
	// ToolStarted says that the agent uses a tool.
	ToolStarted struct{ ID, Tool, Input string }
	// ToolFinished says that it is done with it.
	ToolFinished struct {
		ID     string
		Failed bool
		Output string
	}
	// Used adds to the usage, by the agent's own figures.
	Used struct {
		Task  string
		Usage team.Usage
	}
	// PermissionAsked says that the agent waits for leave to use a tool; Answer is called once.
	PermissionAsked struct {
		Tool, Input string
		Answer      func(allow bool, reason string)
	}
	// TurnEnded says that the agent waits for something to do.
	TurnEnded struct {
		Reason   string // end_turn, error, interrupted, no_work
		Text     string // the last text of the turn
		Reported bool   // the agent reported to the lead itself in this turn
	}
	// Ended is the last update. Err is nil when the session was stopped, else it says why it ended by itself.
	Ended struct{ Err error }
)

func (Started) update()         {}
func (TurnStarted) update()     {}
func (Text) update()            {}
func (ToolStarted) update()     {}
func (ToolFinished) update()    {}
func (Used) update()            {}
func (PermissionAsked) update() {}
func (TurnEnded) update()       {}
func (Ended) update()           {}
