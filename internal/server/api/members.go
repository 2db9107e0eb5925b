package api

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"

	"cadre/internal/engine"
	"cadre/internal/server/auth"
	"cadre/internal/team"
)

// MemberSpec describes a teammate to add. Its agent is one that is installed: no request names a
// program, its arguments or its environment.
type MemberSpec struct {
	Name string `json:"name"` // name of the member, unique in the team
	// claude, codex, gemini, opencode, claude-tmux, external, or shell by default
	Agent  string `json:"agent,omitempty"`
	Model  string `json:"model,omitempty"`  // model; by default the agent's own choice
	Role   string `json:"role,omitempty"`   // role; tasks can be restricted to a role
	Prompt string `json:"prompt,omitempty"` // prompt of its first session
	// what it may do without asking; the lead's mode by default
	PermissionMode string `json:"permissionMode,omitempty"`
	PlanApproval   bool   `json:"planApproval,omitempty"` // it may change nothing before the lead approved its plan
	Isolation      string `json:"isolation,omitempty"`    // worktree for a git worktree and a branch of its own
	// labels of the machine that runs it; by default it runs where the team does
	RunsOn []string   `json:"runsOn,omitempty"`
	Budget BudgetSpec `json:"budget,omitzero"` // what it may spend
}

// ShutdownSpec asks a teammate to end.
type ShutdownSpec struct {
	Reason string `json:"reason,omitempty"` // why, for the teammate
	// milliseconds until it is ended, whatever it answers; 30 seconds by default
	Deadline *int64 `json:"deadlineMs,omitempty"`
}

// ShutdownAnswer is a member's answer to a request to shut down.
type ShutdownAnswer struct {
	Approved bool   `json:"approved"`         // the member leaves
	Reason   string `json:"reason,omitempty"` // a last word to the lead, or why it stays
}

// Leaving is a member's answer to a request to shut down, as it was recorded.
type Leaving struct {
	Member   string `json:"member"`            // who answered
	Request  string `json:"request,omitempty"` // id of the request; missing for a member that had ended before
	Approved bool   `json:"approved"`          // the member leaves
}

// ModeSpec is what a member may do without asking.
type ModeSpec struct {
	Mode string `json:"mode"` // default, acceptEdits, auto, bypassPermissions, dontAsk or plan
}

// shutdownTime is the usual deadline of a request to shut down.
const shutdownTime = 30 * time.Second

var memberRoutes = []Route{
	{Method: "GET", Path: "/v1/teams/{team}/members", ID: "listMembers", Command: "status", Role: auth.Observe,
		About: "List the lead and the teammates.", Answer: reflect.TypeFor[[]team.Member](),
		handle: (*call).listMembers},
	{Method: "POST", Path: "/v1/teams/{team}/members", ID: "spawnMember", Command: "spawn", Role: auth.Steer,
		About: "Add a teammate. The server keeps the team running from then on. The mode bypassPermissions needs the " +
			"role admin, also where the member has it from the lead.",
		Query: []Param{pageAs},
		Body:  reflect.TypeFor[MemberSpec](), Answer: reflect.TypeFor[team.Member](), handle: (*call).spawnMember},
	{Method: "GET", Path: "/v1/teams/{team}/members/{member}", ID: "getMember", Command: "status", Role: auth.Observe,
		About: "Show a member.", Answer: reflect.TypeFor[team.Member](), handle: (*call).getMember},
	{Method: "GET", Path: "/v1/teams/{team}/members/{member}/session", ID: "followSession", Command: "attach",
		Role: auth.Observe, Stream: true,
		About: "Follow what the sessions of a member show. Each event has the number of its entry as its id, but the " +
			"output of a running tool, which comes again to a client that comes back. The stream ends with the event " +
			"end when the member has ended.",
		Query: []Param{{"after", "integer", "the last entry that the client has; 0 for all that are kept"}},
		Event: "entry", Answer: sessionEntry, handle: (*call).followSession},
	{Method: "POST", Path: "/v1/teams/{team}/members/{member}/shutdown", ID: "shutDownMember", Command: "shutdown",
		Role:  auth.Steer,
		About: "Ask a teammate to finish and end. It is ended at the deadline, whatever it answers.",
		Query: []Param{pageAs, {"wait", "integer", "wait up to so many seconds until it has ended, at most 60"}},
		Body:  reflect.TypeFor[ShutdownSpec](), Answer: reflect.TypeFor[team.Member](), handle: (*call).shutDownMember},
	{Method: "DELETE", Path: "/v1/teams/{team}/members/{member}/shutdown", ID: "withdrawShutdown", Command: "shutdown",
		Role: auth.Steer, About: "Withdraw the request to a teammate to shut down.", Query: []Param{pageAs},
		Answer: reflect.TypeFor[team.Member](), handle: (*call).withdrawShutdown},
	{Method: "POST", Path: "/v1/teams/{team}/members/{member}/shutdown/answer", ID: "answerShutdown", Command: "leave",
		Role:  auth.Steer,
		About: "Answer a request to shut down as the member. It is for members that are a person or a program.",
		Body:  reflect.TypeFor[ShutdownAnswer](), Answer: reflect.TypeFor[Leaving](), handle: (*call).answerShutdown},
	{Method: "POST", Path: "/v1/teams/{team}/members/{member}/interrupt", ID: "interruptMember", Command: "interrupt",
		Role: auth.Steer, About: "End a member's turn. The member keeps its tasks and waits for a message.",
		Query: []Param{pageAs}, Answer: reflect.TypeFor[team.Member](), handle: (*call).interruptMember},
	{Method: "POST", Path: "/v1/teams/{team}/members/{member}/lift", ID: "liftRateLimit", Command: "lift",
		Role: auth.Steer, About: "Try the model of a rate-limited member again now, with all that share the limit.",
		Query: []Param{pageAs}, Answer: reflect.TypeFor[team.Member](), handle: (*call).liftRateLimit},
	{Method: "POST", Path: "/v1/teams/{team}/members/{member}/handover", ID: "handOver", Command: "handover",
		Role: auth.Steer, About: "Replace a member's session by a fresh one. It continues the task and the mail.",
		Query: []Param{pageAs}, Body: reflect.TypeFor[Reason](), Answer: reflect.TypeFor[team.Member](),
		handle: (*call).handOver},
	{Method: "PUT", Path: "/v1/teams/{team}/members/{member}/mode", ID: "setMode", Command: "mode", Role: auth.Steer,
		About: "Change what a member may do without asking. The mode bypassPermissions needs the role admin.",
		Query: []Param{pageAs}, Body: reflect.TypeFor[ModeSpec](), Answer: reflect.TypeFor[team.Member](),
		handle: (*call).setMode},
}

func (c *call) listMembers() (any, error) {
	t, err := c.look()
	if err != nil {
		return nil, err
	}
	var all []team.Member
	t.View(func(s *team.State) { all = listed(s.Members()) })
	return all, nil
}

func (c *call) getMember() (any, error) {
	t, err := c.look()
	if err != nil {
		return nil, err
	}
	return memberOf(t, c.PathValue("member"))
}

func memberOf(t *engine.Team, name string) (m team.Member, err error) {
	t.View(func(s *team.State) { m, err = s.Named(name) })
	return m, err
}

// checkSpec refuses an agent that is a command, and a role that is a path.
func (c *call) checkSpec(spec *MemberSpec) error {
	if strings.HasPrefix(spec.Agent, team.ACP) {
		return team.Refuse(team.Denied, "a request names no command of this machine, and the agent %s is one; add "+
			"such a member on the command line", short(spec.Agent))
	}
	if spec.Role != "" && !team.ValidName(spec.Role) {
		return team.Refuse(team.Invalid, "%q is not the name of a role", short(spec.Role))
	}
	return engine.CheckAgent(spec.Agent)
}

func (c *call) spawnMember() (any, error) {
	spec := c.body.(*MemberSpec)
	if spec.Agent == "" {
		spec.Agent = team.Shell
	}
	if err := c.checkSpec(spec); err != nil {
		return nil, err
	}
	budget, err := spec.Budget.budget()
	if err != nil {
		return nil, err
	}
	t, actor, err := c.acting()
	if err != nil {
		return nil, err
	}
	if err := t.MaySpawn(c.who.Caller, spec.Agent); err != nil {
		return nil, err
	}
	if err := c.who.MayMode(t.SpawnMode(spec.PermissionMode)); err != nil {
		return nil, err
	}
	joins := makes(func(e *team.MemberSpawned) bool { return e.Member.Name == spec.Name })
	if _, err := c.earlier(t, joins); err != nil {
		return nil, err
	}
	if spec.Agent == team.External {
		return c.spawn(t, actor, spec, budget)
	}
	if !c.again {
		release, err := c.server.Keeps.Reserve(c.Context(), t.Team(), spec.Name)
		if err != nil {
			return nil, err
		}
		defer release()
	}
	if err := c.server.Keeps.Keep(t.Team()); err != nil {
		return nil, err
	}
	return c.spawn(t, actor, spec, budget)
}

// spawn adds the member, and starts its host. For a request that was carried out before it only
// makes sure that there is a host.
func (c *call) spawn(t *engine.Team, actor string, spec *MemberSpec, budget team.Budget) (m team.Member, err error) {
	if c.again {
		if m, err = memberOf(t, spec.Name); err == nil && m.Agent != team.External && m.Status.Running() && len(m.RunsOn) == 0 {
			err = t.EnsureHost(c.Context(), m.Name)
		}
		return m, err
	}
	decides[*team.SpawnMember](c)
	err = t.Spawn(c.Context(), actor, &team.SpawnMember{Name: spec.Name, Agent: spec.Agent, Model: spec.Model,
		Role: spec.Role, Prompt: spec.Prompt, Mode: spec.PermissionMode, PlanApproval: spec.PlanApproval,
		Isolation: spec.Isolation, RunsOn: spec.RunsOn, Budget: budget}, func(joined team.Member) error {
		m, c.seq = joined, t.Seq()
		return nil
	})
	return m, err
}

// member sends the command about the member of the route, and returns the member.
func (c *call) member(body team.Body, m made) (is team.Member, err error) {
	err = c.act(body, m, func(t *engine.Team, _ *team.Record) (err error) {
		is, err = memberOf(t, c.PathValue("member"))
		return err
	})
	return is, err
}

func (c *call) shutDownMember() (any, error) {
	spec, name := c.body.(*ShutdownSpec), c.PathValue("member")
	wait, err := c.wait()
	if err != nil {
		return nil, err
	}
	deadline := shutdownTime
	if spec.Deadline != nil {
		if deadline = time.Duration(*spec.Deadline) * time.Millisecond; deadline < 0 {
			return nil, team.Refuse(team.Invalid, "a deadline cannot lie in the past")
		}
	}
	t, actor, err := c.acting()
	if err != nil {
		return nil, err
	}
	decides[*team.RequestShutdown](c)
	before := t.Seq()
	if _, err := c.earlier(t, makes(func(e *team.ShutdownRequested) bool { return e.Member == name })); err != nil {
		return nil, err
	}
	if !c.again {
		receipt, err := t.Do(c.Context(), team.Command{Actor: actor, Body: &team.RequestShutdown{Member: name,
			Reason: spec.Reason, Deadline: t.Now().Add(deadline)}})
		// it was asked before: wait for that request
		if err != nil && !(team.CodeOf(err) == team.Conflict && wait > 0) {
			return nil, err
		}
		c.recorded(receipt.Record)
	}
	if wait == 0 {
		return memberOf(t, name)
	}
	return c.awaitEnd(t, name, before, wait)
}

// awaitEnd waits until the member has ended.
func (c *call) awaitEnd(t *engine.Team, name string, after int64, wait time.Duration) (team.Member, error) {
	ctx, cancel := context.WithTimeoutCause(c.Context(), wait,
		fmt.Errorf("%s has not ended within %s", name, team.Span(wait)))
	defer cancel()
	refused := ""
	m, err := t.AwaitEnd(ctx, name, after, func(_ team.Member, reason string) { refused = reason })
	switch {
	case errors.Is(err, engine.ErrWithdrawn):
		return m, team.Refuse(team.NotReady, "%s no longer has to shut down: the request was withdrawn", name)
	case err != nil && refused != "":
		return m, team.Refuse(team.NotReady, "%v; it refuses: %s", err, refused)
	}
	c.seq = t.Seq()
	return m, err
}

func (c *call) withdrawShutdown() (any, error) {
	name := c.PathValue("member")
	return c.member(&team.WithdrawShutdown{Member: name},
		makes(func(e *team.ShutdownWithdrawn) bool { return e.Member == name }))
}

func (c *call) answerShutdown() (any, error) {
	answer := c.body.(*ShutdownAnswer)
	name, err := c.who.Actor("member", c.PathValue("member"))
	if err != nil {
		return nil, err
	}
	t, err := c.look()
	if err != nil {
		return nil, err
	}
	r, err := c.earlier(t, makes(func(e *team.ShutdownAnswered) bool { return e.Member == name }))
	if err != nil {
		return nil, err
	}
	if e, is := team.EventIn[*team.ShutdownAnswered](r); is {
		return Leaving{e.Member, e.Request, e.Approved}, nil
	}
	left := Leaving{Member: name, Approved: true}
	err = c.engine.AnswerShutdown(c.Context(), c.PathValue("team"), name, answer.Approved, answer.Reason,
		func(t *engine.Team, e *team.ShutdownAnswered) error {
			left, c.seq = Leaving{e.Member, e.Request, e.Approved}, t.Seq()
			return nil
		})
	if team.CodeOf(err) == team.Finished && answer.Approved { // it is as was asked
		err = nil
	}
	return left, err
}

func (c *call) interruptMember() (any, error) {
	name := c.PathValue("member")
	return c.member(&team.Interrupt{Member: name},
		makes(func(e *team.InterruptRequested) bool { return e.Member == name }))
}

func (c *call) liftRateLimit() (any, error) {
	return c.member(&team.LiftLimit{Member: c.PathValue("member")},
		makes(func(*team.RateLimitLifted) bool { return true }))
}

func (c *call) handOver() (any, error) {
	name := c.PathValue("member")
	return c.member(&team.HandOver{Member: name, Reason: c.body.(*Reason).Reason}, func(e team.Event) bool {
		asked, is := e.(*team.HandoverRequested)
		detached, ready := e.(*team.MemberDetached) // no session has to end first
		return is && asked.Member == name || ready && detached.Member == name
	})
}

func (c *call) setMode() (any, error) {
	name, mode := c.PathValue("member"), c.body.(*ModeSpec).Mode
	if err := c.who.MayMode(mode); err != nil {
		return nil, err
	}
	return c.member(&team.SetMode{Member: name, Mode: mode},
		makes(func(e *team.ModeChanged) bool { return e.Member == name && e.Mode == mode }))
}
