package client

import (
	"context"
	"encoding/json"
	"errors"
	"iter"

	"cadre/internal/engine"
	"cadre/internal/inspect/catalog"
	core "cadre/internal/team"
	"cadre/pkg/teams"
)

// TeamFilter selects teams of a list.
type TeamFilter struct {
	Archived bool // also archived runs
}

// Teams lists the teams of the home. An unreadable team is listed with its error.
func (c *Client) Teams(ctx context.Context, f TeamFilter) ([]teams.Overview, error) {
	r := get("teams")
	if f.Archived {
		r = r.where("archive", "true")
	}
	all, err := ask[[]catalog.Overview](ctx, c, r)
	return overviewsOf(all), err
}

// TeamSpec describes a team to create. It works in the directory of the server, and the user leads
// it.
type TeamSpec struct {
	Name           string               `json:"name"`
	Goal           string               `json:"goal,omitempty"`
	Lead           string               `json:"lead,omitempty"` // its name; "" for lead
	PermissionMode teams.PermissionMode `json:"permissionMode,omitempty"`
	Delegate       bool                 `json:"delegate,omitempty"`     // the lead may only coordinate
	MaxTeammates   int                  `json:"maxTeammates,omitempty"` // at a time; 0 for the default
	MaxParallel    int                  `json:"maxParallel,omitempty"`  // turns at a time; 0 for no limit
	MaxDepth       int                  `json:"maxDepth,omitempty"`     // how deep teams may be nested in it; 0 for none
	Remote         string               `json:"remote,omitempty"`       // git remote for work between machines
	Budget         teams.Budget         `json:"-"`
	// they have to pass before its work is committed
	Checks   []CheckSpec                `json:"checks,omitempty"`
	Allow    []string                   `json:"allow,omitempty"`  // rules for tools that need no permission
	Policy   teams.PermissionPolicy     `json:"policy,omitempty"` // who answers if no rule does
	Metadata map[string]json.RawMessage `json:"metadata,omitempty"`
}

// CheckSpec is a command that has to pass before the work of a team is committed. /bin/sh runs it
// in the team's directory.
type CheckSpec struct {
	Name    string `json:"name,omitempty"` // "" for the command
	Command string `json:"command"`
}

// MarshalJSON writes the description as the server reads it.
func (s TeamSpec) MarshalJSON() ([]byte, error) {
	type plain TeamSpec
	return json.Marshal(struct {
		plain
		Budget budget `json:"budget,omitzero"`
	}{plain(s), budgetOf(s.Budget)})
}

// budget is a budget as the server reads it.
type budget struct {
	Tokens       int64 `json:"tokens,omitempty"`
	CostMicroUSD int64 `json:"costMicroUSD,omitempty"`
	Time         int64 `json:"millis,omitempty"`
}

func budgetOf(b teams.Budget) budget { return budget{b.Tokens, b.CostMicroUSD, b.Time.Milliseconds()} }

// CreateTeam creates a team.
func (c *Client) CreateTeam(ctx context.Context, s TeamSpec) (teams.TeamInfo, error) {
	return public[teams.TeamInfo, core.Team](ctx, c, post("teams").with(s))
}

// State is a team after a record.
type State struct {
	teams.Moment
	Last      int64 // the last record that there is
	Rules     []Rule
	Messages  int64 // number of all messages
	Budget    []Spent
	Standings map[string]string // what each member does, by its name
	// Now is what is known only of the present: which processes are alive. It is nil for the past.
	Now *teams.Overview
}

// Spent is how much of one budget is used: tokens, millionths of a US dollar, or milliseconds.
type Spent struct {
	What  teams.BudgetKind `json:"what"`
	Used  int64            `json:"used"`
	Limit int64            `json:"limit"`
}

// State returns a team as it is now. The events after its Seq are those that [Client.Events] yields
// after it.
func (c *Client) State(ctx context.Context, name string) (State, error) {
	return c.state(ctx, team("GET", name))
}

// StateAt returns a team as it was after the record seq.
func (c *Client) StateAt(ctx context.Context, name string, seq int64) (State, error) {
	return c.state(ctx, team("GET", name).number("seq", seq))
}

func (c *Client) state(ctx context.Context, r request) (State, error) {
	is, err := ask[struct {
		Seq         int64             `json:"seq"`
		Last        int64             `json:"last"`
		Team        core.Team         `json:"team"`
		Members     []core.Member     `json:"members"`
		Tasks       []core.Task       `json:"tasks"`
		Permissions []core.Permission `json:"permissions"`
		Notes       []core.Note       `json:"notes"`
		Rules       []rule            `json:"rules"`
		Messages    int64             `json:"messages"`
		Attention   []core.Item       `json:"attention"`
		Budget      []Spent           `json:"budget"`
		Standings   map[string]string `json:"standings"`
		Now         *catalog.Overview `json:"now"`
	}](ctx, c, r)
	if err != nil {
		return State{}, err
	}
	s := State{Moment: teams.Moment{Seq: is.Seq, At: clock(is.Team.UpdatedAt), Info: of[teams.TeamInfo](is.Team),
		Members: each[teams.Member](is.Members), Tasks: each[teams.Task](is.Tasks),
		Permissions: each[teams.Permission](is.Permissions), Notes: each[teams.Note](is.Notes),
		Attention: attentionOf(is.Team.Name, is.Attention)},
		Last: is.Last, Rules: rulesOf(is.Rules), Messages: is.Messages, Budget: is.Budget, Standings: is.Standings}
	if is.Now != nil {
		now := of[teams.Overview](*is.Now)
		s.Now = &now
	}
	return s, nil
}

// Status is a team at a glance.
type Status struct {
	teams.Overview
	Members     []teams.Member
	Standings   map[string]string // what each member does, by its name
	Permissions []teams.Permission
	Budget      []Spent
	Uncounted   []string // agents that do not report their cost, if there is a budget of money
	Checks      []Check
	Ready       int // tasks that a member could claim
	Blocked     int
	Failed      int          // tasks that are out of retries
	Underway    []teams.Task // the first tasks in progress
	Next        []teams.Task // the first tasks that a member could claim
	Failures    []teams.Task // the first failed tasks
}

// Check is a check of a team with its result in the last consolidation.
type Check struct {
	Name   string            `json:"name"`
	Result teams.CheckResult `json:"result"`
}

// Status returns a team at a glance.
func (c *Client) Status(ctx context.Context, name string) (Status, error) {
	is, err := ask[struct {
		catalog.Standing
		Budget    []Spent           `json:"budget"`
		Standings map[string]string `json:"standings"`
		Checks    []Check           `json:"checks"`
	}](ctx, c, team("GET", name, "status"))
	if err != nil {
		return Status{}, err
	}
	return Status{of[teams.Overview](is.Overview), each[teams.Member](is.Members), is.Standings,
		each[teams.Permission](is.Permissions), is.Budget, is.Uncounted, is.Checks, is.Ready, is.Blocked, is.Failed,
		each[teams.Task](is.Underway), each[teams.Task](is.Next), each[teams.Task](is.Failures)}, nil
}

// RecordFilter selects events of a history.
type RecordFilter struct {
	After   int64    // only later records
	Members []string // only events that concern one of these members
	// Kinds are the kinds of events, or the words with which they begin, as docs/events.md has
	// them: task_created, or task.
	Kinds []string
}

// Records yields the events that there are, in pages that it asks the server for, and ends. An
// error is the last pair.
func (c *Client) Records(ctx context.Context, name string, f RecordFilter) iter.Seq2[teams.Event, error] {
	return func(yield func(teams.Event, error) bool) {
		after := f.After
		for {
			r := team("GET", name, "records").number("after", after)
			for _, member := range f.Members {
				r = r.where("member", member)
			}
			for _, kind := range f.Kinds {
				r = r.where("kind", kind)
			}
			records, err := ask[[]*core.Record](ctx, c, r)
			if err != nil {
				yield(teams.Event{}, err)
				return
			}
			if len(records) == 0 {
				return
			}
			for _, one := range records {
				for _, e := range of[[]teams.Event](one) {
					if !yield(e, nil) {
						return
					}
				}
				after = one.Seq
			}
		}
	}
}

// Marks returns the records that are worth a look: failures, waits for a person, and commits.
func (c *Client) Marks(ctx context.Context, name string) ([]teams.Mark, error) {
	is, err := ask[struct {
		Marks []struct {
			Seq    int64          `json:"seq"`
			At     core.Time      `json:"at"`
			Kind   teams.MarkKind `json:"kind"`
			Member string         `json:"member"`
			Task   string         `json:"task"`
		} `json:"marks"`
	}](ctx, c, team("GET", name, "marks"))
	var all []teams.Mark
	for _, m := range is.Marks {
		all = append(all, teams.Mark{Seq: m.Seq, At: clock(m.At), Kind: m.Kind, Member: m.Member, Task: m.Task})
	}
	return all, err
}

// Summary sums up what happened after a record.
type Summary struct {
	From  int64    `json:"from"` // the first record; 0 if nothing happened
	To    int64    `json:"to"`
	Lines []string `json:"lines"` // the most urgent first; for people only
}

// Since sums up what happened after the record seq; 0 for the whole history.
func (c *Client) Since(ctx context.Context, name string, seq int64) (Summary, error) {
	return ask[Summary](ctx, c, team("GET", name, "since").number("after", seq))
}

// PauseTeam ends the sessions of a team until it is resumed.
func (c *Client) PauseTeam(ctx context.Context, name string) (teams.Paused, error) {
	return public[teams.Paused, engine.Paused](ctx, c, team("POST", name, "pause"))
}

// ResumeTeam continues a team on the server, which keeps it running.
func (c *Client) ResumeTeam(ctx context.Context, name string) (teams.TeamInfo, error) {
	return c.info(ctx, team("POST", name, "resume"))
}

func (c *Client) info(ctx context.Context, r request) (teams.TeamInfo, error) {
	return public[teams.TeamInfo, core.Team](ctx, c, r)
}

// Delegation says what the lead of a team may do.
type Delegation struct {
	On bool `json:"on"` // it may only coordinate
}

// SetDelegate restricts the lead to coordination, or lifts that. A member can do it.
func (c *Client) SetDelegate(ctx context.Context, name string, d Delegation) (teams.TeamInfo, error) {
	return c.info(ctx, team("POST", name, "delegate").with(d).by(c))
}

// WindDown lets a team finish its tasks in progress and begin no others.
func (c *Client) WindDown(ctx context.Context, name string) (teams.TeamInfo, error) {
	return c.info(ctx, team("POST", name, "wind-down"))
}

// because is the body with the reason for something.
func because(reason string) map[string]string { return map[string]string{"reason": reason} }

// AbortTeam ends a team and all its sessions at once. Its record and its work stay.
func (c *Client) AbortTeam(ctx context.Context, name, reason string) (teams.TeamInfo, error) {
	return c.info(ctx, team("POST", name, "abort").with(because(reason)))
}

// CleanUpTeam removes a team and everything that belongs to it.
func (c *Client) CleanUpTeam(ctx context.Context, name string, o teams.RemoveOptions) error {
	is, err := c.Status(ctx, name)
	if err != nil {
		return err
	}
	// By its id, so that a request that is sent again cannot remove a later team of that name.
	body := map[string]bool{"force": o.Force, "branches": o.Branches}
	return c.do(ctx, team("POST", is.Team.ID, "cleanup").with(body), nil)
}

// awaited asks again while nothing came in the time that a request waits.
func awaited[T any](ctx context.Context, ask func(context.Context) (T, error)) (T, error) {
	ctx = WithKey(ctx, keyOf(ctx)) // all are one call
	for {
		v, err := ask(ctx)
		if !errors.Is(err, teams.ErrNoTask) || ctx.Err() != nil {
			return v, err
		}
	}
}
