package model

import (
	"maps"
	"slices"

	"cadre/internal/team"
)

// What a member does, as far as it is known. Whether it has ended is another thing, so that a last
// notice of idleness does not bring it back.
const (
	active   = "active"
	idle     = "idle"
	shutdown = "shutdown" // ended as it was asked to
	failed   = "failed"   // ended by itself
	left     = "left"     // is not on the team's roster any more
)

// person is what is known of a teammate.
type person struct {
	Joined known[bool]   `json:"joined"`
	About  known[about]  `json:"about"`
	Doing  known[string] `json:"doing"`
	Ended  known[string] `json:"ended"` // "" while it runs
	Plan   known[string] `json:"plan"`  // what was said last of its plan
	Began  stamp         `json:"began"` // when it was said last that it begins a task, by the call
	Asked  known[string] `json:"asked"` // the request to shut down that it was sent last
	Reason string        `json:"askedWhy,omitempty"`
	Turn   stamp         `json:"turn,omitzero"`     // when it was last given a message, which begins a turn of its own
	Detail string        `json:"detail,omitempty"`  // of its being idle
	Fault  string        `json:"failure,omitempty"` // why it failed
}

// end is how the teammate ended; "" while it runs. A message that it was given later has it work
// again, whichever of the two is read first.
func (p *person) end() string {
	if p.Ended.V == shutdown && p.Ended.When.before(p.Turn) {
		return ""
	}
	return p.Ended.V
}

// about is what a spawn says of a teammate.
type about struct {
	AgentID string `json:"agentId,omitempty"`
	Type    string `json:"type,omitempty"`
	Model   string `json:"model,omitempty"`
	Color   string `json:"color,omitempty"`
	Prompt  string `json:"prompt,omitempty"`
	Planned bool   `json:"planned,omitempty"` // it may write nothing before a plan is approved
}

// roster is what is known of the teammates of a team.
type roster struct {
	People map[string]*person `json:"people"`
	Spawns map[string]string  `json:"spawns"` // who was spawned by a tool use
	// by request: what was said of it already, so that the letter of a call is not a second one
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

// at returns the person of that name to write to, and nil when there are too many.
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

// joined are the names of those who joined, in order.
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

// promptedWith is who was spawned with that prompt; "" for nobody, or for several.
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

// answered reports whether an answer to that request was seen.
func (r *roster) answered(request string) bool {
	said := r.Said[request]
	return slices.Contains(said, answer(true)) || slices.Contains(said, answer(false))
}

// pending reports whether the teammate has been asked to shut down, and has neither answered nor
// ended since.
func (r *roster) pending(p *person) bool {
	return p.Asked.Some && !r.answered(p.Asked.V) && !(p.Ended.Some && p.Asked.When.before(p.Ended.When))
}

// saidAnew reports whether that is said of the request for the first time, and remembers it.
func (r *roster) saidAnew(request, what string) bool {
	if request == "" {
		return true
	}
	said, ok := r.Said[request]
	if slices.Contains(said, what) {
		return false
	}
	if !ok {
		r.Order = append(r.Order, request)
		if len(r.Order) > maxRequests {
			delete(r.Said, r.Order[0])
			r.Order = r.Order[1:]
		}
	}
	r.Said[request] = append(said, what)
	return true
}

// adopt takes a teammate as a state has it.
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
	r.saidAnew(m.Shutdown.Request, "asked")
	r.saidAnew(m.Plan.Request, "asked")
}

// recall takes a teammate as consumers saw it. It holds as long as nobody says otherwise.
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
