package client

import (
	"context"
	"encoding/json"
	"time"

	core "cadre/internal/team"
	"cadre/pkg/teams"
)

// MemberSpec describes a teammate to add. Its agent is one that is installed where the server is:
// no request names a program, its arguments or its environment.
type MemberSpec struct {
	Name   string `json:"name"`
	Agent  string `json:"agent,omitempty"` // "" for [teams.Shell]
	Model  string `json:"model,omitempty"`
	Role   string `json:"role,omitempty"`
	Prompt string `json:"prompt,omitempty"`
	// PermissionMode is what it may do without asking; "" for the lead's mode. [teams.ModeBypass]
	// needs the role admin.
	PermissionMode teams.PermissionMode `json:"permissionMode,omitempty"`
	// PlanApproval means that it may change nothing before the lead approved its plan.
	PlanApproval bool            `json:"planApproval,omitempty"`
	Isolation    teams.Isolation `json:"isolation,omitempty"`
	// RunsOn are labels of the machine that runs it; none where the team is run.
	RunsOn []string     `json:"runsOn,omitempty"`
	Budget teams.Budget `json:"-"`
}

// MarshalJSON writes the description as the server reads it.
func (s MemberSpec) MarshalJSON() ([]byte, error) {
	type plain MemberSpec
	return json.Marshal(struct {
		plain
		Budget budget `json:"budget,omitzero"`
	}{plain(s), budgetOf(s.Budget)})
}

// Members returns the lead and the teammates.
func (c *Client) Members(ctx context.Context, name string) ([]teams.Member, error) {
	return list[teams.Member, core.Member](ctx, c, team("GET", name, "members"))
}

// Member returns a member.
func (c *Client) Member(ctx context.Context, name, member string) (teams.Member, error) {
	return c.one(ctx, team("GET", name, "members", member))
}

func (c *Client) one(ctx context.Context, r request) (teams.Member, error) {
	return public[teams.Member, core.Member](ctx, c, r)
}

// Spawn adds a teammate. The server keeps the team running from then on. A member can do it.
func (c *Client) Spawn(ctx context.Context, name string, s MemberSpec) (teams.Member, error) {
	return c.one(ctx, team("POST", name, "members").with(s).by(c))
}

// ShutdownSpec describes a request to a teammate to end.
type ShutdownSpec struct {
	Reason string `json:"reason,omitempty"`
	// Deadline is the time after which it is ended, whatever it answers; nil for 30 seconds.
	Deadline *time.Duration `json:"-"`
	// Wait is how long Shutdown waits until it has ended, at most a minute; 0 to return at once. If
	// it has not ended by then, Shutdown returns an error.
	Wait time.Duration `json:"-"`
}

// MarshalJSON writes the request as the server reads it.
func (s ShutdownSpec) MarshalJSON() ([]byte, error) {
	type plain ShutdownSpec
	var deadline *int64
	if s.Deadline != nil {
		deadline = new(s.Deadline.Milliseconds())
	}
	return json.Marshal(struct {
		plain
		Deadline *int64 `json:"deadlineMs,omitempty"`
	}{plain(s), deadline})
}

// Shutdown asks a teammate to finish and end. A member can do it.
func (c *Client) Shutdown(ctx context.Context, name, member string, s ShutdownSpec) (teams.Member, error) {
	seconds := int64((s.Wait + time.Second - 1) / time.Second)
	return c.one(ctx, team("POST", name, "members", member, "shutdown").number("wait", seconds).with(s).by(c))
}

// WithdrawShutdown withdraws the request to a teammate to end. A member can do it.
func (c *Client) WithdrawShutdown(ctx context.Context, name, member string) (teams.Member, error) {
	return c.one(ctx, team("DELETE", name, "members", member, "shutdown").by(c))
}

// ShutdownAnswer is a member's answer to the request to end.
type ShutdownAnswer struct {
	Approved bool   `json:"approved"`         // it ends
	Reason   string `json:"reason,omitempty"` // a last word to the lead, or why it stays
}

// AnswerShutdown answers the request to end as the member, which is a person or a program, and
// returns the id of the request; "" for a member that had ended before.
func (c *Client) AnswerShutdown(ctx context.Context, name, member string, a ShutdownAnswer) (request string,
	err error) {
	is, err := ask[struct {
		Request string `json:"request"`
	}](ctx, c, team("POST", name, "members", member, "shutdown", "answer").with(a))
	return is.Request, err
}

// Interrupt ends a member's turn. The member keeps its tasks and waits for a message. A member can
// do it.
func (c *Client) Interrupt(ctx context.Context, name, member string) (teams.Member, error) {
	return c.one(ctx, team("POST", name, "members", member, "interrupt").by(c))
}

// LiftRateLimit has the model of a member tried again now, although its provider named a later
// time. A lead can do it.
func (c *Client) LiftRateLimit(ctx context.Context, name, member string) (teams.Member, error) {
	return c.one(ctx, team("POST", name, "members", member, "lift").by(c))
}

// HandOver replaces a member's session by a fresh one, which continues its task and its mail. A
// member can do it.
func (c *Client) HandOver(ctx context.Context, name, member, reason string) (teams.Member, error) {
	return c.one(ctx, team("POST", name, "members", member, "handover").with(because(reason)).by(c))
}

// SetMode changes what a member may do without asking. A member can do it.
func (c *Client) SetMode(ctx context.Context, name, member string, mode teams.PermissionMode) (teams.Member, error) {
	return c.one(ctx, team("PUT", name, "members", member, "mode").with(map[string]any{"mode": mode}).by(c))
}
