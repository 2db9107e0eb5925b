package catalog

import (
	"slices"

	"cadre/internal/layout"
	"cadre/internal/replica"
	"cadre/internal/team"
)

// How many tasks of a kind a Standing has. The list of tasks has all of them.
const (
	mostUnderway = 10
	mostNext     = 5
	mostFailed   = 5
	mostUsed     = 10
)

// Standing is what a person sees of a team at a glance: its progress, what each member does, what
// comes next, and what waits.
type Standing struct {
	Overview
	Members []team.Member `json:"members"` // the lead and the teammates
	// what each member does, from what was recorded and what was found
	Standings   map[string]team.Phase `json:"standings"`
	Permissions []team.Permission     `json:"permissions"` // requests that wait for an answer
	Budget      []team.Spent          `json:"budget"`      // use of each of the team's budgets
	// the rate limits for which members wait
	RateLimits []team.ReportedRateLimit `json:"rateLimits,omitempty"`
	// agents that do not report their cost, if there is a budget of money
	Uncounted []string `json:"uncounted,omitempty"`
	// the checks, and how they ended in the last consolidation
	Checks   []Checked   `json:"checks"`
	Ready    int         `json:"ready"`              // number of tasks that a member could claim
	Blocked  int         `json:"blocked"`            // number of tasks that wait for others
	Failed   int         `json:"failed"`             // number of tasks that are out of retries
	Underway []team.Task `json:"underway"`           // the first tasks in progress
	Next     []team.Task `json:"next"`               // the first tasks that a member could claim
	Failures []team.Task `json:"failures,omitempty"` // the first failed tasks
	// the teams that its members run, in the order in which they began, each before the teams in it
	ChildTeams []ChildTeam `json:"childTeams,omitempty"`
	// tokens and cost by the id of the task, without tasks that used none
	TaskUsage map[string]team.Usage `json:"taskUsage,omitempty"`

	Used  []team.Task      `json:"-"` // the last completed tasks that used something
	Rules team.Permissions `json:"-"`
	Added []team.Rule      `json:"-"` // permission rules that were added
	// Sealed says that the team was consolidated.
	Sealed bool `json:"-"`
}

// ChildTeam is a team that a member runs for a task.
type ChildTeam struct {
	ID     string `json:"id"`     // id of the team
	Name   string `json:"name"`   // name of the team
	Parent string `json:"parent"` // id of the team of its member
	Level  int    `json:"level"`  // how deep it is below the team that is shown, from 1
	Member string `json:"member"` // member that runs it
	Task   string `json:"task"`   // id of the task whose result its report is
	// pending, active, consolidating, complete, aborted, or removed
	Status    team.TeamStatus `json:"status"`
	Over      bool            `json:"over,omitempty"` // nothing more is expected of it
	Tasks     int             `json:"tasks"`          // number of its tasks
	Completed int             `json:"completed"`      // number of those that are completed
}

// Removed is the status of a child team that is not in the home any more.
const Removed team.TeamStatus = "removed"

// Describe adds how the child team stands.
func (c *ChildTeam) Describe(s *team.State) {
	c.Status = s.Team().Status
	c.Completed = s.Count(team.Completed)
	c.Tasks = c.Completed + s.Count(team.Pending) + s.Count(team.InProgress)
}

// Checked is a check, and how it ended in the last consolidation: passed, failed, or "" if it did
// not run.
type Checked struct {
	Name   string `json:"name"`             // name of the check
	Result string `json:"result,omitempty"` // passed, failed, or "" if it did not run
}

// Stand describes a team of a home, from its state and what was found outside.
func Stand(home layout.Home, s *team.State, outside *team.Outside) Standing {
	t := s.Team()
	n := Standing{Overview: Summarize(home, s, outside), Members: s.Roster(), Standings: map[string]team.Phase{},
		Permissions: append([]team.Permission{}, s.Permissions()...), Rules: t.Permissions, Added: t.Rules,
		Budget: append([]team.Spent{}, s.Spending(replica.Now())...), Uncounted: s.Uncounted(), Checks: Checks(&t),
		RateLimits: s.RateLimits(),
		Blocked:    s.Blocked(), Underway: []team.Task{}, Next: []team.Task{},
		Sealed: t.Consolidation.Step == team.Done}
	for _, m := range n.Members {
		n.Standings[m.Name] = s.Standing(m.Name, outside)
	}
	for task := range s.Underway() {
		if len(n.Underway) == mostUnderway {
			break
		}
		n.Underway = append(n.Underway, task)
	}
	var first []team.Task
	n.Ready, first = s.Ready(mostNext)
	n.Next = append(n.Next, first...)
	for task := range s.OutOfRetries() {
		if n.Failed++; n.Failed <= mostFailed {
			n.Failures = append(n.Failures, task)
		}
	}
	for task := range s.Used() {
		if n.TaskUsage == nil {
			n.TaskUsage = map[string]team.Usage{}
		}
		n.TaskUsage[task.ID] = task.Usage
		if task.Status == team.Completed {
			n.Used = append(n.Used, task)
		}
	}
	n.Used = n.Used[max(0, len(n.Used)-mostUsed):]
	return n
}

// Checks returns the team's checks, in their order, and how each ended.
func Checks(t *team.Team) []Checked {
	all := []Checked{}
	for _, c := range t.Checks {
		one := Checked{Name: c.Name}
		switch last := &t.Consolidation; {
		case slices.Contains(last.Passed, c.Name):
			one.Result = "passed"
		case last.Failed == c.Name:
			one.Result = "failed"
		}
		all = append(all, one)
	}
	return all
}

// Step is what a person does next with a team.
type Step int

// The values of [Step].
const (
	Follow  Step = iota // nothing: the team works, and no item waits for the user
	Answer              // answer the first item that waits for the user
	Pull                // fetch it: another machine continues it
	Observe             // continue to observe it
	Seal                // check and commit its work: it is complete without a consolidation
	Bring               // bring it to its end: all tasks are done, and no session leads
	Review              // read how it ended
	Staff               // add a teammate
	Plan                // add a task
)

// Step returns what a person does next with the team. pending says whether a consolidation would
// have something to do. It is called only for a complete team.
func (n *Standing) Step(pending func() bool) Step {
	all := n.Tasks["pending"] + n.Tasks["in_progress"] + n.Tasks["completed"]
	switch {
	case slices.ContainsFunc(n.Attention, func(i team.Item) bool { return i.WaitsFor == team.ForUser }):
		return Answer
	case n.Released != 0:
		return Pull
	case n.Observed != "" && n.Watched, n.Status == team.TeamConsolidating, n.Hosted && n.Tasks["in_progress"] > 0:
		return Follow
	case n.Observed != "":
		return Observe
	case n.Status == team.TeamComplete && !n.Sealed && pending():
		return Seal
	case n.Status == team.TeamComplete || n.Status == team.TeamAborted:
		return Review
	case all > 0 && n.Tasks["completed"] == all && !n.Led:
		return Bring
	case n.Teammates == 0:
		return Staff
	case all == 0:
		return Plan
	}
	return Follow
}
