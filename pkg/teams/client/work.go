package client

import (
	"context"
	"encoding/json"
	"time"

	"cadre/internal/consolidate"
	"cadre/internal/engine"
	"cadre/internal/engine/upkeep"
	"cadre/internal/git/checkpoint"
	"cadre/internal/inspect"
	"cadre/internal/inspect/catalog"
	"cadre/pkg/teams"
)

// Limit is one part of a budget: tokens, millionths of a US dollar, or milliseconds.
type Limit struct {
	Member    string           `json:"member"` // "" for the team's
	What      teams.BudgetKind `json:"what"`
	Limit     int64            `json:"limit"` // 0 for none
	Spent     int64            `json:"spent"`
	Left      int64            `json:"left"`
	Exhausted bool             `json:"exhausted"`
}

// Limits returns what a team and its members may spend, and what is spent; of one member only,
// unless it is "".
func (c *Client) Limits(ctx context.Context, name, member string) ([]Limit, error) {
	return ask[[]Limit](ctx, c, team("GET", name, "budget").where("member", member))
}

// BudgetChange changes what a team or a member may spend. Fields that are nil stay; 0 removes a
// limit.
type BudgetChange struct {
	Member       string         `json:"member,omitempty"` // "" for the team's
	Tokens       *int64         `json:"tokens,omitempty"`
	CostMicroUSD *int64         `json:"costMicroUSD,omitempty"`
	Time         *time.Duration `json:"-"`
}

// MarshalJSON writes the change as the server reads it.
func (b BudgetChange) MarshalJSON() ([]byte, error) {
	type plain BudgetChange
	var millis *int64
	if b.Time != nil {
		millis = new(b.Time.Milliseconds())
	}
	return json.Marshal(struct {
		plain
		Time *int64 `json:"millis,omitempty"`
	}{plain(b), millis})
}

// SetBudget changes what a team or a member may spend. A team whose budget was spent continues.
func (c *Client) SetBudget(ctx context.Context, name string, b BudgetChange) ([]Limit, error) {
	return ask[[]Limit](ctx, c, team("PATCH", name, "budget").with(b))
}

// Checkpoints returns the checkpoints of a team in its repository.
func (c *Client) Checkpoints(ctx context.Context, name string) ([]teams.CheckpointInfo, error) {
	return list[teams.CheckpointInfo, catalog.Checkpoint](ctx, c, team("GET", name, "checkpoints"))
}

// Checkpoint is a checkpoint that was made, or the last one where nothing was new.
type Checkpoint struct {
	teams.Checkpoint
	At   time.Time // when the last of its records was written
	More int       // files that it leaves out besides Left
}

// MakeCheckpoint saves a team and its work on a branch of its repository.
func (c *Client) MakeCheckpoint(ctx context.Context, name string) (Checkpoint, error) {
	is, err := ask[struct {
		Seq     int64             `json:"seq"`
		At      int64             `json:"at"`
		Commit  string            `json:"commit"`
		Place   string            `json:"place"`
		Written bool              `json:"written"`
		Left    []checkpoint.Left `json:"left"`
		More    int               `json:"more"`
		Unknown string            `json:"unknown"`
	}](ctx, c, team("POST", name, "checkpoints"))
	if err != nil {
		return Checkpoint{}, err
	}
	made := Checkpoint{teams.Checkpoint{Records: is.Seq, Commit: is.Commit, Place: is.Place, Written: is.Written,
		NotInRepo: is.Unknown}, time.UnixMilli(is.At).UTC(), is.More}
	for _, left := range is.Left {
		made.Left = append(made.Left, left.String())
	}
	return made, nil
}

// ConsolidationSpec says what is committed, and how it is checked. Paths are relative to the top of
// the work tree, with / between names.
type ConsolidationSpec struct {
	// first lines of the commit message; "" for one made from the goal
	Message string `json:"message,omitempty"`
	// committed although they were changed before the team was created
	Include []string `json:"include,omitempty"`
	Only    []string `json:"only,omitempty"` // the only paths to commit; nil for all
	// tasks whose work is missing; the team is completed without it
	Without []string `json:"without,omitempty"`
	// run the checks in a clean checkout of what is to be committed
	CleanCheckout    bool `json:"clean,omitempty"`
	WithCheckChanges bool `json:"changes,omitempty"` // commit what the checks change, and run them again
	NoCommit         bool `json:"noCommit,omitempty"`
}

// ConsolidationPlan is what a consolidation would do, path by path.
type ConsolidationPlan struct {
	Team     string        `json:"team"`
	Parent   string        `json:"parent"` // the commit that the work would be committed on
	Paths    []PlannedPath `json:"paths"`  // what would be committed, and then what would not
	Checks   []string      `json:"checks"`
	Branches []string      `json:"branches"` // of members, that would be merged
	Obstacle string        `json:"obstacle"` // why a consolidation is refused now; "" if it is not
}

// PlannedPath is a path in a [ConsolidationPlan].
type PlannedPath struct {
	Path   string   `json:"path"`
	Fate   string   `json:"fate"`   // conflict, unclear, commit or left_out
	Change string   `json:"change"` // git's letter: A, D, M or T
	From   []string `json:"from"`   // the members whose tasks changed it
	Branch string   `json:"branch"` // that it comes from; "" for the work tree
	Why    string   `json:"why"`    // why it is not simply committed
}

// PlanConsolidation returns what a consolidation would commit, and changes nothing.
func (c *Client) PlanConsolidation(ctx context.Context, name string, s ConsolidationSpec) (ConsolidationPlan, error) {
	return ask[ConsolidationPlan](ctx, c, team("POST", name, "consolidation", "plan").with(s))
}

// TryChecks runs the checks, commits nothing, and returns the names of the checks, all of which
// passed.
func (c *Client) TryChecks(ctx context.Context, name string, s ConsolidationSpec) (passed []string, err error) {
	is, err := ask[consolidate.Trial](ctx, c, team("POST", name, "consolidation", "trial").with(s))
	for _, check := range is.Checks {
		passed = append(passed, check.Name)
	}
	return passed, err
}

// Consolidated is a consolidation that was done.
type Consolidated struct {
	Record teams.ConsolidatedRecord
	Staged []string // files that the commit changes, each after git's letter for its status
}

// Consolidate checks and commits what a team did, and completes the team. It stops if ctx ends; the
// same call continues.
func (c *Client) Consolidate(ctx context.Context, name string, s ConsolidationSpec) (Consolidated, error) {
	is, err := ask[struct {
		Record *consolidate.Record `json:"record"`
		Staged []string            `json:"staged"`
	}](ctx, c, team("POST", name, "consolidation").with(s))
	if err != nil {
		return Consolidated{}, err
	}
	return Consolidated{*of[*teams.ConsolidatedRecord](is.Record), is.Staged}, nil
}

// RollBackConsolidation abandons an unfinished consolidation, or lets a team continue that winds
// down.
func (c *Client) RollBackConsolidation(ctx context.Context, name string) (teams.TeamInfo, error) {
	return c.info(ctx, team("POST", name, "consolidation", "rollback"))
}

// Facts compares the shared facts of a team with their recorded state.
func (c *Client) Facts(ctx context.Context, name string) ([]teams.FactState, error) {
	return public[[]teams.FactState, []inspect.Fact](ctx, c, team("GET", name, "facts"))
}

// RecordFacts records the present state of the shared facts.
func (c *Client) RecordFacts(ctx context.Context, name string) ([]teams.FactState, error) {
	return public[[]teams.FactState, []inspect.Fact](ctx, c, team("POST", name, "facts", "record"))
}

// Probe finds out which members are alive, and what is missing. It changes nothing.
func (c *Client) Probe(ctx context.Context, name string) (teams.Probe, error) {
	return public[teams.Probe, *inspect.Examination](ctx, c, team("GET", name, "probe"))
}

// Review returns the record of a team that has ended. The server does not compare it with the
// history, so Intact is not set.
func (c *Client) Review(ctx context.Context, name string) (teams.Review, error) {
	return public[teams.Review, engine.Review](ctx, c, team("GET", name, "review"))
}

// CheckTeam reads all files of a team, and reports damage. It changes nothing.
func (c *Client) CheckTeam(ctx context.Context, name string) (teams.Health, error) {
	return public[teams.Health, upkeep.Health](ctx, c, team("GET", name, "health"))
}

// Hooks are the hooks of a team.
type Hooks struct {
	Hooks []teams.TeamHook // in the order in which they run
	Notes []string         // what is wrong with the settings files
}

// Hooks returns the hooks of a team.
func (c *Client) Hooks(ctx context.Context, name string) (Hooks, error) {
	is, err := ask[struct {
		Hooks []engine.Hook `json:"hooks"`
		Notes []string      `json:"notes"`
	}](ctx, c, team("GET", name, "hooks"))
	return Hooks{each[teams.TeamHook](is.Hooks), is.Notes}, err
}

// DisableHook switches a hook off for a team. hook is its ID, or an event that has just one hook.
func (c *Client) DisableHook(ctx context.Context, name, hook string) (teams.TeamHook, error) {
	return public[teams.TeamHook, engine.Hook](ctx, c, team("POST", name, "hooks", hook, "disable"))
}

// EnableHook switches a hook on again.
func (c *Client) EnableHook(ctx context.Context, name, hook string) (teams.TeamHook, error) {
	return public[teams.TeamHook, engine.Hook](ctx, c, team("POST", name, "hooks", hook, "enable"))
}

// TryHook runs a hook once, and returns its answer. Nothing changes in the team. event is what the
// hook reads; nil for a sample. It returns [teams.ErrUncertain] if the connection broke after the
// hook may have been started.
func (c *Client) TryHook(ctx context.Context, name, hook string, event json.RawMessage) (teams.HookTrial, error) {
	r := team("POST", name, "hooks", hook, "try").with(struct {
		Event json.RawMessage `json:"event,omitempty"`
	}{event})
	r.once = true
	return public[teams.HookTrial, engine.HookTrial](ctx, c, r)
}
