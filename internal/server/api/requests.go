package api

import (
	"errors"
	"reflect"
	"slices"

	"cadre/internal/engine"
	"cadre/internal/inspect/history"
	"cadre/internal/server/auth"
	"cadre/internal/team"
)

// PermissionAnswer answers a request for permission.
type PermissionAnswer struct {
	Allow  bool   `json:"allow"`            // allow it; otherwise it is refused
	Reason string `json:"reason,omitempty"` // why, for the member
	// allow the member the same always, by the narrowest rule; needs the role admin
	Always bool `json:"always,omitempty"`
}

// PlanAnswer answers a plan.
type PlanAnswer struct {
	Approved bool   `json:"approved"`           // the member may begin
	Feedback string `json:"feedback,omitempty"` // what the plan lacks, or advice
}

// Answered is a request for permission or a plan with its answer.
type Answered struct {
	Request string `json:"request"`        // id of the request or plan
	Member  string `json:"member"`         // who asked
	Outcome string `json:"outcome"`        // allowed or denied; for a plan approved or rejected; "" if it still waits
	Rule    string `json:"rule,omitempty"` // the rule that was added, with always
}

// PlanSpec is the plan of a member.
type PlanSpec struct {
	Plan string `json:"plan"` // the text
}

// Submitted is a plan that waits for its answer.
type Submitted struct {
	Member  string `json:"member"`  // who submitted the plan
	Request string `json:"request"` // id of the plan
}

// RuleSpec is a permission rule to add.
type RuleSpec struct {
	Rule   string `json:"rule"`             // as Claude Code writes it: Bash(go test:*)
	Member string `json:"member,omitempty"` // the only member that it is for; missing for all
	// add it although it sets no bounds, or is for a tool that no agent is known to have; needs the
	// role admin
	Unbounded bool `json:"unbounded,omitempty"`
}

// PermissionRule is a rule that lets members use a tool without asking.
type PermissionRule struct {
	Rule    string    `json:"rule"`              // as Claude Code writes it
	Member  string    `json:"member,omitempty"`  // the only member that it is for; missing for all
	Allows  string    `json:"allows"`            // what it allows, in words
	By      string    `json:"by,omitempty"`      // who added it; missing for rules that the team was created with
	At      team.Time `json:"at,omitempty"`      // when it was added
	Allowed []string  `json:"allowed,omitempty"` // requests that waited, and that it allowed when it was added
}

var requestRoutes = []Route{
	{Method: "GET", Path: "/v1/teams/{team}/permissions", ID: "listPermissions", Command: "permit list",
		Role: auth.Observe, About: "List the requests for permission that wait for an answer.",
		Answer: reflect.TypeFor[[]team.Permission](), handle: (*call).listPermissions},
	{Method: "POST", Path: "/v1/teams/{team}/permissions/{request}/answer", ID: "answerPermission", Command: "permit",
		Role: auth.Answer, About: "Answer a request for permission. The first answer counts.", Query: []Param{pageAs},
		Body: reflect.TypeFor[PermissionAnswer](), Answer: reflect.TypeFor[Answered](),
		Flags: func(body any) []string {
			if body.(*PermissionAnswer).Always {
				return []string{"always"}
			}
			return nil
		}, handle: (*call).answerPermission},
	{Method: "GET", Path: "/v1/teams/{team}/plans", ID: "listPlans", Command: "plan list", Role: auth.Observe,
		About:  "List every plan that was submitted, with its answer.",
		Query:  []Param{{"state", "string", "only plans in this state: submitted, approved, rejected or unanswered"}},
		Answer: reflect.TypeFor[[]history.Plan](), handle: (*call).listPlans},
	{Method: "GET", Path: "/v1/teams/{team}/plans/{request}", ID: "getPlan", Command: "plan", Role: auth.Observe,
		About: "Show a plan with its answer.", Answer: reflect.TypeFor[history.Plan](), handle: (*call).getPlan},
	{Method: "POST", Path: "/v1/teams/{team}/plans/{request}/answer", ID: "answerPlan", Command: "plan",
		Role: auth.Answer, About: "Approve or reject a plan. The first answer counts.", Query: []Param{pageAs},
		Body: reflect.TypeFor[PlanAnswer](), Answer: reflect.TypeFor[Answered](),
		Flags: func(body any) []string {
			if body.(*PlanAnswer).Approved {
				return []string{"approve"}
			}
			return []string{"reject"}
		}, handle: (*call).answerPlan},
	{Method: "POST", Path: "/v1/teams/{team}/members/{member}/plan", ID: "submitPlan", Command: "plan submit",
		Role: auth.Steer, About: "Submit the plan of a member to the lead, as the member.",
		Body: reflect.TypeFor[PlanSpec](), Answer: reflect.TypeFor[Submitted](), handle: (*call).submitPlan},
	{Method: "GET", Path: "/v1/teams/{team}/rules", ID: "listRules", Command: "permission", Role: auth.Observe,
		About:  "List the rules by which members use tools without asking.",
		Answer: reflect.TypeFor[[]PermissionRule](), handle: (*call).listRules},
	{Method: "POST", Path: "/v1/teams/{team}/rules", ID: "addRule", Command: "permission add", Role: auth.Admin,
		Query: []Param{pageAs},
		About: "Let members use a tool without asking. Requests that wait and that the rule covers are allowed " +
			"at once.", Body: reflect.TypeFor[RuleSpec](), Answer: reflect.TypeFor[PermissionRule](),
		handle: (*call).addRule},
	{Method: "DELETE", Path: "/v1/teams/{team}/rules", ID: "removeRule", Command: "permission rm", Role: auth.Steer,
		About: "Remove a permission rule that was added.",
		Query: []Param{{"rule", "string", "the rule"},
			{"member", "string", "the member that it was added for; all by default"}, pageAs},
		handle: (*call).removeRule},
}

func (c *call) listPermissions() (any, error) {
	t, err := c.look()
	if err != nil {
		return nil, err
	}
	var open []team.Permission
	t.View(func(s *team.State) { open = listed(s.Permissions()) })
	return open, nil
}

func (c *call) answerPermission() (any, error) {
	answer, request := c.body.(*PermissionAnswer), c.PathValue("request")
	if answer.Always {
		if !answer.Allow || answer.Reason != "" {
			return nil, usageError{errors.New("always allows the request by a rule: set allow, and leave reason out")}
		}
		if err := c.who.Needs(auth.Admin, "a permission rule"); err != nil {
			return nil, err
		}
	}
	actor, err := c.actor()
	if err != nil {
		return nil, err
	}
	is := Answered{Request: request}
	err = c.actAs(actor, func(s *team.State) (team.Body, error) {
		if !answer.Always {
			return &team.AnswerPermission{Request: request, Allow: answer.Allow, Reason: answer.Reason}, nil
		}
		p, err := s.Pending(request)
		if err != nil {
			return nil, err
		}
		rule, err := s.RuleFor(p)
		return &team.AddRule{Rule: rule, Member: p.Member}, err
	}, func(e team.Event) bool {
		answered, is := e.(*team.PermissionAnswered)
		_, added := e.(*team.RuleAdded)
		return is && answered.Request == request || added && answer.Always
	},
		func(_ *engine.Team, r *team.Record) error {
			for _, e := range events(r) {
				switch e := e.(type) {
				case *team.PermissionAnswered:
					if e.Request == request {
						is.Member, is.Outcome = e.Member, e.Outcome
					}
				case *team.RuleAdded:
					is.Rule = e.Rule
				}
			}
			return nil
		})
	return is, err
}

func (c *call) plans() ([]history.Plan, error) {
	t, err := c.look()
	if err != nil {
		return nil, err
	}
	return t.Plans(c.Context())
}

func (c *call) listPlans() (any, error) {
	plans, err := c.plans()
	state := c.URL.Query().Get("state")
	return slices.DeleteFunc(plans, func(p history.Plan) bool { return !fits(state, p.State) }), err
}

func (c *call) getPlan() (any, error) {
	plans, err := c.plans()
	for _, p := range plans {
		if p.Request == c.PathValue("request") {
			return p, err
		}
	}
	if err == nil {
		err = team.Refuse(team.NotFound, "team %s has no plan %q", c.PathValue("team"), short(c.PathValue("request")))
	}
	return nil, err
}

func (c *call) answerPlan() (any, error) {
	answer, is := c.body.(*PlanAnswer), Answered{Request: c.PathValue("request")}
	err := c.act(&team.AnswerPlan{Request: is.Request, Approved: answer.Approved, Feedback: answer.Feedback},
		makes(func(e *team.PlanAnswered) bool { return e.Request == is.Request }),
		func(_ *engine.Team, r *team.Record) error {
			e, err := event[*team.PlanAnswered](r)
			if err != nil {
				return err
			}
			is.Member, is.Outcome = e.Member, "rejected"
			if e.Approved {
				is.Outcome = "approved"
			}
			return nil
		})
	return is, err
}

func (c *call) submitPlan() (any, error) {
	name, err := c.who.Actor("member", c.PathValue("member"))
	if err != nil {
		return nil, err
	}
	var is Submitted
	plan := &team.SubmitPlan{Plan: c.body.(*PlanSpec).Plan}
	err = c.actAs(name, func(*team.State) (team.Body, error) { return plan, nil },
		makes(func(e *team.PlanSubmitted) bool { return e.Member == name }),
		func(_ *engine.Team, r *team.Record) error {
			e, err := event[*team.PlanSubmitted](r)
			if err == nil {
				is = Submitted{e.Member, e.Request}
			}
			return err
		})
	return is, err
}

func (c *call) listRules() (any, error) {
	t, err := c.look()
	if err != nil {
		return nil, err
	}
	var all []PermissionRule
	t.View(func(s *team.State) { all = rulesOf(s) })
	return all, nil
}

func rulesOf(s *team.State) []PermissionRule {
	all := []PermissionRule{}
	for _, r := range s.Rules() {
		all = append(all, ruleOf(r))
	}
	return all
}

func ruleOf(r team.Rule) PermissionRule {
	return PermissionRule{Rule: r.Rule, Member: r.Member, Allows: team.RuleMeaning(r.Rule), By: r.By, At: r.At}
}

func (c *call) addRule() (any, error) {
	spec := c.body.(*RuleSpec)
	if tool, _ := team.UnknownTool(spec.Rule); tool != "" && !spec.Unbounded {
		return nil, team.Refuse(team.Invalid, "the rule was not added: no agent has a tool called %s; to add it all "+
			"the same, set unbounded", short(tool))
	}
	actor, err := c.actor()
	if err != nil {
		return nil, err
	}
	added := ruleOf(team.Rule{Rule: spec.Rule, Member: spec.Member})
	err = c.actAs(actor, func(*team.State) (team.Body, error) {
		return &team.AddRule{Rule: spec.Rule, Member: spec.Member, Unbounded: spec.Unbounded}, nil
	}, makes(func(e *team.RuleAdded) bool { return e.Rule == spec.Rule && e.Member == spec.Member }),
		func(t *engine.Team, r *team.Record) error {
			t.View(func(s *team.State) {
				for _, rule := range s.Rules() {
					if rule.Rule == spec.Rule && rule.Member == spec.Member {
						added.By, added.At = rule.By, rule.At
					}
				}
			})
			for _, e := range events(r) {
				if e, is := e.(*team.PermissionAnswered); is {
					added.Allowed = append(added.Allowed, e.Request)
				}
			}
			return nil
		})
	return added, err
}

func (c *call) removeRule() (any, error) {
	query := c.URL.Query()
	rule, member := query.Get("rule"), query.Get("member")
	if rule == "" {
		return nil, usageError{errors.New("rule= names the rule to remove")}
	}
	return nil, c.act(&team.RemoveRule{Rule: rule, Member: member},
		makes(func(e *team.RuleRemoved) bool { return e.Rule == rule && e.Member == member }),
		func(*engine.Team, *team.Record) error { return nil })
}
