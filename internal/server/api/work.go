package api

import (
	"context"
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"time"

	"cadre/internal/consolidate"
	"cadre/internal/engine"
	"cadre/internal/engine/upkeep"
	"cadre/internal/git/checkpoint"
	"cadre/internal/inspect"
	"cadre/internal/inspect/catalog"
	"cadre/internal/server/auth"
	"cadre/internal/team"
)

// BudgetChange changes what a team or a member may spend. What is missing stays; 0 removes a limit.
type BudgetChange struct {
	Member       string `json:"member,omitempty"`       // whose budget it is; missing for the team's
	Tokens       *int64 `json:"tokens,omitempty"`       // tokens of all kinds together
	CostMicroUSD *int64 `json:"costMicroUSD,omitempty"` // millionths of a US dollar
	Time         *int64 `json:"millis,omitempty"`       // milliseconds since the team was created or the member joined
}

// Checkpoint is a checkpoint that was made, or the last one where nothing was new.
type Checkpoint struct {
	Team    string            `json:"team"`              // id of the team
	Seq     int64             `json:"seq"`               // number of records in the checkpoint
	At      team.Time         `json:"at"`                // when the last of these records was written
	Commit  string            `json:"commit"`            // id of the checkpoint's commit; "" outside a repository
	Place   string            `json:"place"`             // branch of the checkpoint; outside a repository a folder
	Written bool              `json:"written"`           // the team had changed, so a new checkpoint was made
	Left    []checkpoint.Left `json:"left"`              // files that the checkpoint does not contain
	More    int               `json:"more,omitempty"`    // number of further files that it does not contain
	Unknown string            `json:"unknown,omitempty"` // why it contains no files of the team's directory
}

// ConsolidationSpec says what is committed, and how it is checked. Its paths begin at the top of
// the work tree, with / between names, and have no .. in them.
type ConsolidationSpec struct {
	Message string `json:"message,omitempty"` // first lines of the commit's message; by default made from the goal
	// paths that are committed although they were changed before the team was created
	Include []string `json:"include,omitempty"`
	Only    []string `json:"only,omitempty"`    // the only paths that are committed
	Without []string `json:"without,omitempty"` // tasks with missing work that the team is completed without
	Clean   bool     `json:"clean,omitempty"`   // the checks run in a clean checkout
	// files that the checks change are committed, too, and the checks run again
	Changes  bool `json:"changes,omitempty"`
	NoCommit bool `json:"noCommit,omitempty"` // the team is completed without a commit
}

// Consolidated is the record of a team that was consolidated.
type Consolidated struct {
	Record *consolidate.Record `json:"record"` // as in the file COMPLETED
	// files that the commit changes, each after git's status letter, as in "M main.go"
	Staged []string `json:"staged"`
}

var workRoutes = []Route{
	{Method: "GET", Path: "/v1/teams/{team}/budget", ID: "listLimits", Command: "budget", Role: auth.Observe,
		About:  "Show what a team and its members may spend, and what is spent.",
		Query:  []Param{{"member", "string", "only the budget of this member"}},
		Answer: reflect.TypeFor[[]engine.Limit](), handle: (*call).listLimits},
	{Method: "PATCH", Path: "/v1/teams/{team}/budget", ID: "setBudget", Command: "budget", Role: auth.Steer,
		Query: []Param{pageAs},
		About: "Change what a team or a member may spend. A team whose budget was spent continues.",
		Body:  reflect.TypeFor[BudgetChange](), Answer: reflect.TypeFor[[]engine.Limit](),
		Flags: func(body any) []string {
			set := []string{"unlimited"} // it changes the budget, whatever is in it
			if b := body.(*BudgetChange); b.Tokens != nil {
				set = append(set, "tokens")
			} else if b.CostMicroUSD != nil {
				set = append(set, "usd")
			} else if b.Time != nil {
				set = append(set, "time")
			}
			return set
		}, handle: (*call).setBudget},
	{Method: "GET", Path: "/v1/teams/{team}/checkpoints", ID: "listCheckpoints", Command: "status", Role: auth.Observe,
		About:  "List the checkpoints of a team in its repository.",
		Answer: reflect.TypeFor[[]catalog.Checkpoint](), handle: (*call).listCheckpoints},
	{Method: "POST", Path: "/v1/teams/{team}/checkpoints", ID: "makeCheckpoint", Command: "checkpoint",
		Role: auth.Steer, About: "Save the team and its work on a branch of its repository.",
		Answer: reflect.TypeFor[Checkpoint](), handle: (*call).makeCheckpoint},
	{Method: "POST", Path: "/v1/teams/{team}/consolidation/plan", ID: "planConsolidation", Command: "consolidate",
		Role:  auth.Observe,
		Query: []Param{pageAs}, About: "Show what a consolidation would commit, path by path, and change nothing.",
		Body: reflect.TypeFor[ConsolidationSpec](), Answer: reflect.TypeFor[consolidate.Plan](),
		handle: (*call).planConsolidation},
	{Method: "POST", Path: "/v1/teams/{team}/consolidation/trial", ID: "tryChecks", Command: "consolidate",
		Role:  auth.Admin,
		Query: []Param{pageAs}, About: "Run the checks, and commit nothing. It stops if the client goes away.",
		Body: reflect.TypeFor[ConsolidationSpec](), Answer: reflect.TypeFor[consolidate.Trial](),
		handle: (*call).tryChecks},
	{Method: "POST", Path: "/v1/teams/{team}/consolidation", ID: "consolidate", Command: "consolidate",
		Role:  auth.Admin,
		Query: []Param{pageAs}, About: "Check and commit what a team did, and complete the team. It stops if the client " +
			"goes away; the same request continues.", Body: reflect.TypeFor[ConsolidationSpec](),
		Answer: reflect.TypeFor[Consolidated](), handle: (*call).consolidate},
	{Method: "POST", Path: "/v1/teams/{team}/consolidation/rollback", ID: "rollBack", Command: "consolidate",
		Role:  auth.Admin,
		Query: []Param{pageAs}, About: "Abandon an unfinished consolidation, or let a team continue that winds down.",
		Answer: reflect.TypeFor[team.Team](), handle: (*call).rollBack},
	{Method: "GET", Path: "/v1/teams/{team}/facts", ID: "listFacts", Command: "facts", Role: auth.Observe,
		About:  "Show the files that all members rely on, and whether they changed.",
		Answer: reflect.TypeFor[[]inspect.Fact](), handle: (*call).listFacts},
	{Method: "POST", Path: "/v1/teams/{team}/facts/record", ID: "recordFacts", Command: "facts", Role: auth.Steer,
		Query:  []Param{pageAs},
		About:  "Record the present state of the files that all members rely on.",
		Answer: reflect.TypeFor[[]inspect.Fact](),
		Flags:  func(any) []string { return []string{"record"} }, handle: (*call).recordFacts},
	{Method: "GET", Path: "/v1/teams/{team}/probe", ID: "probe", Command: "probe", Role: auth.Observe,
		About:  "Show which members are alive, and which files of the team are missing.",
		Answer: reflect.TypeFor[inspect.Examination](), handle: (*call).probe},
	{Method: "GET", Path: "/v1/teams/{team}/review", ID: "review", Command: "review", Role: auth.Observe,
		About: "Show a team that has ended.", Answer: reflect.TypeFor[engine.Review](), handle: (*call).review},
	{Method: "GET", Path: "/v1/teams/{team}/health", ID: "checkTeam", Command: "fsck", Role: auth.Observe,
		About:  "Read all files of a team, and report damage. Nothing is changed.",
		Answer: reflect.TypeFor[upkeep.Health](), handle: (*call).checkTeam},
}

func (c *call) listLimits() (any, error) {
	t, err := c.look()
	if err != nil {
		return nil, err
	}
	return t.Limits(c.URL.Query().Get("member"))
}

func (c *call) setBudget() (any, error) {
	change := c.body.(*BudgetChange)
	body := &team.SetBudget{Member: change.Member}
	spec := BudgetSpec{}
	for _, one := range []struct {
		what string
		from *int64
		to   *int64
	}{{"cost", change.CostMicroUSD, &spec.CostMicroUSD}, {"time", change.Time, &spec.Time},
		{"tokens", change.Tokens, &spec.Tokens}} {
		if one.from != nil {
			*one.to = *one.from
			body.Only = append(body.Only, one.what)
		}
	}
	if body.Only == nil {
		return nil, usageError{errors.New("name a limit: tokens, costMicroUSD or millis; 0 removes it")}
	}
	var err error
	if body.Budget, err = spec.budget(); err != nil {
		return nil, err
	}
	var all []engine.Limit
	spent := c.spent(change.Member)
	err = c.act(body, func(e team.Event) bool {
		of, member := e.(*team.MemberBudgetChanged)
		_, whole := e.(*team.BudgetChanged)
		return whole && change.Member == "" || member && of.Member == change.Member
	}, func(t *engine.Team, _ *team.Record) (err error) {
		if all, err = t.Limits(change.Member); err != nil || !spent || c.server.Keeps.Has(t.Team().ID) {
			return err
		}
		_, _, err = t.Rehost(c.Context())
		return err
	})
	return all, err
}

// spent reports whether the budget of the team, or of that member, is spent.
func (c *call) spent(member string) (spent bool) {
	if t, err := c.look(); err == nil {
		t.View(func(s *team.State) {
			m, _ := s.Member(member)
			spent = s.Team().Exhausted != "" && member == "" || m.Exhausted != ""
		})
	}
	return spent
}

func (c *call) listCheckpoints() (any, error) {
	t, err := c.look()
	if err != nil {
		return nil, err
	}
	of := t.Team()
	all, err := c.engine.Checkpoints(c.Context(), of.Dir)
	return listed(slices.DeleteFunc(all, func(one catalog.Checkpoint) bool { return one.Team != of.ID })), err
}

// checkpointTime bounds a checkpoint.
const checkpointTime = time.Minute

func (c *call) makeCheckpoint() (any, error) {
	t, err := c.look()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeoutCause(c.Context(), checkpointTime,
		fmt.Errorf("the checkpoint was not made within %s", team.Span(checkpointTime)))
	defer cancel()
	made, err := t.Checkpoint(ctx)
	return Checkpoint{made.Team, made.Seq, made.At, made.Commit, made.Place, made.Written, listed(made.Left), made.More,
		made.Unknown}, err
}

// gitPaths refuses paths that do not begin at the top of a work tree.
func gitPaths(what string, paths []string) error {
	for _, p := range paths {
		if p == "" || p == "." || path.Clean(p) != p || !filepath.IsLocal(p) || strings.ContainsAny(p, "\\\x00") ||
			strings.HasPrefix(p, ":") { // git's notation for patterns
			return team.Refuse(team.Invalid, "%s: %q is not a path from the top of the work tree, such as docs/api.md",
				what, short(p))
		}
	}
	return nil
}

// consolidating opens the team of the route for its consolidation.
func (c *call) consolidating() (*engine.Team, consolidate.Options, error) {
	spec := c.body.(*ConsolidationSpec)
	o := consolidate.Options{Message: spec.Message, Include: spec.Include, Only: spec.Only, Without: spec.Without,
		Clean: spec.Clean, Changes: spec.Changes, NoCommit: spec.NoCommit, Restart: !reflect.ValueOf(*spec).IsZero()}
	if err := errors.Join(gitPaths("include", o.Include), gitPaths("only", o.Only)); err != nil {
		return nil, o, err
	}
	t, actor, err := c.acting()
	o.Actor = actor
	return t, o, err
}

func (c *call) planConsolidation() (any, error) {
	t, o, err := c.consolidating()
	if err != nil {
		return nil, err
	}
	return t.PlanConsolidation(c.Context(), o)
}

func (c *call) tryChecks() (any, error) {
	t, o, err := c.consolidating()
	if err != nil {
		return nil, err
	}
	return t.TryChecks(c.Context(), o)
}

func (c *call) consolidate() (any, error) {
	t, o, err := c.consolidating()
	if err != nil {
		return nil, err
	}
	decides[*team.Consolidate](c)
	began, err := c.earlier(t, makes[*team.ConsolidationBegan](nil))
	if err != nil {
		return nil, err
	}
	if began != nil { // it continues with the options that it began with
		o.Restart = false
	}
	done := Consolidated{Staged: []string{}}
	o.Staged = func(changes []string) { done.Staged = listed(changes) }
	if done.Record, err = t.Consolidate(c.Context(), o); err != nil {
		return nil, err
	}
	c.seq = t.Seq()
	return done, nil
}

func (c *call) rollBack() (any, error) {
	t, actor, err := c.acting()
	if err != nil {
		return nil, err
	}
	r, err := c.earlier(t, func(e team.Event) bool {
		_, abandoned := e.(*team.ConsolidationAbandoned)
		status, changed := e.(*team.TeamStatusChanged)
		return abandoned || changed && status.Status == team.TeamActive
	})
	if err == nil && r == nil {
		if err = t.RollBack(c.Context(), consolidate.Options{Actor: actor}, "it was rolled back"); err == nil {
			c.seq = t.Seq()
		}
	}
	return t.Team(), err
}

func (c *call) listFacts() (any, error) {
	t, err := c.look()
	if err != nil {
		return nil, err
	}
	return factsOf(c.Context(), t)
}

func factsOf(ctx context.Context, t *engine.Team) ([]inspect.Fact, error) {
	found, err := t.Examine(ctx)
	if err != nil {
		return nil, err
	}
	return listed(found.Facts), nil
}

func (c *call) recordFacts() (any, error) {
	t, actor, err := c.acting()
	if err != nil {
		return nil, err
	}
	r, err := c.earlier(t, makes[*team.FactsRecorded](nil))
	if err == nil && r == nil {
		if err = upkeep.RecordFacts(c.Context(), t.Upkeep(actor)); err == nil {
			c.seq = t.Seq()
		}
	}
	if err != nil {
		return nil, err
	}
	return factsOf(c.Context(), t)
}

func (c *call) probe() (any, error) {
	t, err := c.look()
	if err != nil {
		return nil, err
	}
	return t.Examine(c.Context())
}

func (c *call) review() (any, error) {
	t, err := c.look()
	if err != nil {
		return nil, err
	}
	return t.Review(c.Context())
}

func (c *call) checkTeam() (any, error) {
	x := upkeep.FileCheck{Home: c.engine.Home, Log: c.engine.Note, Dir: c.server.Dir, ReadOnly: true}
	return x.Check(c.Context(), c.PathValue("team"))
}
