package model

import (
	"maps"
	"slices"

	"cadre/internal/team"
)

// Activities of a member, and ways in which it ended. The two are kept apart, so that a late idle
// notice does not bring a member back.
const (
	active   = "active"
	idle     = "idle"
	shutdown = "shutdown" // ended as requested
	failed   = "failed"   // ended by itself
	left     = "left"     // was removed from the team's roster
)

// person is the knowledge about a teammate.
type person struct {
	Joined known[bool]   `json:"joined"`
	About  known[about]  `json:"about"`
	Doing  known[string] `json:"doing"`
	Ended  known[string] `json:"ended"` // "" while it is running
	Plan   known[string] `json:"plan"`  // the last event about its plan
	Began  stamp         `json:"began"` // when it last started a task, by the time of the call
	Asked  known[string] `json:"asked"` // the last request to shut down
	Reason string        `json:"askedWhy,omitempty"`
	Turn   stamp         `json:"turn,omitzero"`     // when it last received a message that begins a turn
	Detail string        `json:"detail,omitempty"`  // detail of its idleness
	Fault  string        `json:"failure,omitempty"` // why it failed
}

// end returns how the teammate ended, or "" while it is running. A message received after its
// shutdown makes it active again, in whatever order the two are read.
func (p *person) end() string {
	if p.Ended.V == shutdown && p.Ended.When.before(p.Turn) {
		return ""
	}
	return p.Ended.V
}

// about is the description of a teammate in its spawn.
type about struct {
	AgentID string `json:"agentId,omitempty"`
	Type    string `json:"type,omitempty"`
	Model   string `json:"model,omitempty"`
	Color   string `json:"color,omitempty"`
	Prompt  string `json:"prompt,omitempty"`
	Planned bool   `json:"planned,omitempty"` // it must not write before a plan is approved
}

// roster is the knowledge about the teammates of a team.
type roster struct {
	People map[string]*person `json:"people"`
	Spawns map[string]string  `json:"spawns"` // name of the teammate by the id of the tool use that spawned it
	// Said has the events already seen for each request, so that a call and its message do not
	// count twice.
	Said  map[string][]string `json:"said"`
	Order []string            `json:"order"` // of the requests in Said

	dirty map[string]bool
}

const (
	maxPeople   = 4096
	maxRequests = 4096
)

func newRoster() *roster {
	return &roster{People: map[string]*person{}, Spawns: map[string]string{}, Said: map[string][]string{},
		dirty: map[string]bool{}}
}

// at returns the person of that name for writing, or nil if there are too many.
func (r *roster) at(name string) *person {
	p := r.People[name]
	if p == nil {
		if name == "" || len(r.People) >= maxPeople {
			return nil
		}
		p = &person{}
		r.People[name] = p
	}
	r.dirty[name] = true
	return p
}

// joined returns the names of the members, sorted.
func (r *roster) joined() []string {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(r.People)) {
		if r.People[name].Joined.V {
			names = append(names, name)
		}
	}
	return names
}

func (r *roster) isMember(name string) bool {
	p := r.People[name]
	return p != nil && p.Joined.V
}

// promptedWith returns the teammate that was spawned with that prompt; "" for none or several.
func (r *roster) promptedWith(prompt string) string {
	found := ""
	for name, p := range r.People {
		if p.About.V.Prompt == prompt {
			if found != "" {
				return ""
			}
			found = name
		}
	}
	return found
}

// answered reports whether an answer to the request was seen.
func (r *roster) answered(request string) bool {
	said := r.Said[request]
	return slices.Contains(said, answer(true)) || slices.Contains(said, answer(false))
}

// pending reports whether the teammate was asked to shut down, and has neither answered nor ended
// since.
func (r *roster) pending(p *person) bool {
	return p.Asked.Some && !r.answered(p.Asked.V) && !(p.Ended.Some && p.Asked.When.before(p.Ended.When))
}

// firstReport records an event about a request, and reports whether it is the first such event.
func (r *roster) firstReport(request, what string) bool {
	if request == "" {
		return true
	}
	said, ok := r.Said[request]
	if slices.Contains(said, what) {
		return false
	}
	if !ok {
		r.Order = remember(r.Said, r.Order, request, maxRequests)
	}
	r.Said[request] = append(said, what)
	return true
}

// adopt applies a teammate from a state.
func (r *roster) adopt(m *team.Member) {
	p := r.at(m.Name)
	if p == nil {
		return
	}
	when, joined := stamp{At: m.Since}, stamp{At: m.JoinedAt}
	p.Joined.learn(true, joined)
	p.About.learn(about{AgentID: m.Session, Type: m.Role, Model: m.Model, Color: m.Color, Prompt: m.Prompt,
		Planned: m.Plan.Required}, joined)
	switch {
	case m.Status == team.Failed:
		p.Ended.learn(failed, when)
	case !m.Status.Running() || m.Status == team.ShuttingDown:
		p.Ended.learn(shutdown, when)
	case m.Status == team.Idle:
		p.Doing.learn(idle, when)
	default:
		p.Doing.learn(active, when)
	}
	r.firstReport(m.Shutdown.Request, "asked")
	r.firstReport(m.Plan.Request, "asked")
}

// recall applies a teammate as consumers saw it, as an assumption.
func (r *roster) recall(m *team.Member) {
	p := r.at(m.Name)
	if p == nil {
		return
	}
	p.Joined.assume(true)
	p.About.assume(about{AgentID: m.Session, Type: m.Role, Model: m.Model, Color: m.Color})
	switch m.Status {
	case team.Stopped:
		p.Ended.assume(shutdown)
	case team.Idle:
		p.Doing.assume(idle)
	default:
		p.Doing.assume(active)
	}
}
