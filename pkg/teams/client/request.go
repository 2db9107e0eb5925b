package client

import (
	"context"
	"time"

	core "cadre/internal/team"
	"cadre/pkg/teams"
)

// Permissions returns the requests for permission that are open.
func (c *Client) Permissions(ctx context.Context, name string) ([]teams.Permission, error) {
	return list[teams.Permission, core.Permission](ctx, c, team("GET", name, "permissions"))
}

// PermissionAnswer answers a request for permission.
type PermissionAnswer struct {
	Allow  bool   `json:"allow"`
	Reason string `json:"reason,omitempty"` // for the member
	// Always allows the member the same from now on, by the narrowest rule. It needs the role
	// steer.
	Always bool `json:"always,omitempty"`
}

// Answered is a request for permission or a plan with its answer.
type Answered struct {
	Request string `json:"request"` // its id
	Member  string `json:"member"`  // who asked
	Outcome string `json:"outcome"` // allowed or denied; for a plan approved or rejected
	Rule    string `json:"rule"`    // the rule that was added, with Always
}

// AnswerPermission answers a request for permission. The first answer counts. A member can do it.
func (c *Client) AnswerPermission(ctx context.Context, name, request string, a PermissionAnswer) (Answered, error) {
	return ask[Answered](ctx, c, team("POST", name, "permissions", request, "answer").with(a).by(c))
}

// PlanUnanswered is the state of a plan whose member no longer waits. It got no answer.
const PlanUnanswered teams.PlanState = "unanswered"

// Plan is a plan that was submitted, with its answer.
type Plan struct {
	Member     string
	State      teams.PlanState // or [PlanUnanswered]
	Request    string          // its id
	Text       string
	Feedback   string
	AskedAt    time.Time
	AnsweredAt time.Time // zero if it waits
	AnsweredBy string    // "" if its deadline passed
}

// plan is a Plan as the server sends it.
type plan struct {
	Member     string          `json:"member"`
	State      teams.PlanState `json:"state"`
	Request    string          `json:"request"`
	Plan       string          `json:"plan"`
	Feedback   string          `json:"feedback"`
	AskedAt    core.Time       `json:"askedAt"`
	AnsweredAt core.Time       `json:"answeredAt"`
	AnsweredBy string          `json:"answeredBy"`
}

func (p plan) public() Plan {
	return Plan{p.Member, p.State, p.Request, p.Plan, p.Feedback, clock(p.AskedAt), clock(p.AnsweredAt), p.AnsweredBy}
}

// Plans returns every plan that was submitted and is in that state, the oldest first; "" for any
// state.
func (c *Client) Plans(ctx context.Context, name string, state teams.PlanState) (all []Plan, err error) {
	is, err := ask[[]plan](ctx, c, team("GET", name, "plans").where("state", string(state)))
	for _, p := range is {
		all = append(all, p.public())
	}
	return all, err
}

// Plan returns a plan by its id.
func (c *Client) Plan(ctx context.Context, name, request string) (Plan, error) {
	is, err := ask[plan](ctx, c, team("GET", name, "plans", request))
	return is.public(), err
}

// PlanAnswer answers a plan.
type PlanAnswer struct {
	Approved bool   `json:"approved"`
	Feedback string `json:"feedback,omitempty"` // what the plan lacks, or advice
}

// AnswerPlan approves or rejects a plan. The first answer counts. A member can do it.
func (c *Client) AnswerPlan(ctx context.Context, name, request string, a PlanAnswer) (Answered, error) {
	return ask[Answered](ctx, c, team("POST", name, "plans", request, "answer").with(a).by(c))
}

// SubmitPlan submits the plan of a member, as the member, and returns its id.
func (c *Client) SubmitPlan(ctx context.Context, name, member, plan string) (request string, err error) {
	is, err := ask[struct {
		Request string `json:"request"`
	}](ctx, c, team("POST", name, "members", member, "plan").with(map[string]string{"plan": plan}))
	return is.Request, err
}

// Rule is a permission rule of a team.
type Rule struct {
	teams.PermissionRule
	Allows  string   // what it allows, in words
	Allowed []string // ids of the requests that waited, and that it allowed when it was added
}

// rule is a Rule as the server sends it.
type rule struct {
	Rule    string    `json:"rule"`
	Member  string    `json:"member"`
	Allows  string    `json:"allows"`
	By      string    `json:"by"`
	At      core.Time `json:"at"`
	Allowed []string  `json:"allowed"`
}

func rulesOf(all []rule) (found []Rule) {
	for _, r := range all {
		public := teams.PermissionRule{Rule: r.Rule, Member: r.Member, By: r.By, At: clock(r.At)}
		found = append(found, Rule{public, r.Allows, r.Allowed})
	}
	return found
}

// Rules returns the permission rules of a team.
func (c *Client) Rules(ctx context.Context, name string) ([]Rule, error) {
	all, err := ask[[]rule](ctx, c, team("GET", name, "rules"))
	return rulesOf(all), err
}

// AddRule adds a permission rule. Open requests that it covers are allowed at once. An Unbounded
// rule needs the role admin.
func (c *Client) AddRule(ctx context.Context, name string, r teams.PermissionRule) (Rule, error) {
	added, err := ask[rule](ctx, c, team("POST", name, "rules").with(ruleSpec{r.Rule, r.Member, r.Unbounded}))
	return rulesOf([]rule{added})[0], err
}

// ruleSpec is a rule to add, as the server reads it.
type ruleSpec struct {
	Rule      string `json:"rule"`
	Member    string `json:"member,omitempty"`
	Unbounded bool   `json:"unbounded,omitempty"`
}

// RemoveRule removes a rule that was added, for the same member.
func (c *Client) RemoveRule(ctx context.Context, name string, r teams.PermissionRule) error {
	return c.do(ctx, team("DELETE", name, "rules").where("rule", r.Rule).where("member", r.Member), nil)
}
