package present

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"

	"cadre/internal/observe/protocol"
	"cadre/internal/team"
)

// Session is an observed session as consumers see it: one JSON object.
type Session struct {
	// Team is absent if there is no team.
	Team *TeamState `json:"team,omitempty"`
	// Agents are the names of the teammates, in the order of Team.Members. Without a team, they are
	// the agents that the session listed at its start.
	Agents []string `json:"agents"`
}

// Observed is the source of a [Session].
type Observed interface {
	// Team returns nil if there has never been a team.
	Team() *team.State
	// Agents returns the value of [Session.Agents].
	Agents() []string
}

// SessionOf returns the session that o observes.
func SessionOf(o Observed) Session { return Session{StateOf(o.Team()), o.Agents()} }

// Types of [StateLine].
const (
	SessionUpdate = "session:update"
	SessionPatch  = "session:patch"
)

// StateLine is a line that keeps a consumer's view of a session up to date: the whole session, or
// the changes.
type StateLine struct {
	Type    string   `json:"type"`
	Session *Session `json:"session,omitempty"`
	Patch   Patch    `json:"patch,omitempty"`
}

// Patch is a JSON Patch (RFC 6902) of a [Session].
type Patch []Operation

// Operation is one operation of a [Patch]: add, remove or replace.
type Operation struct {
	Op    string          `json:"op"`
	Path  string          `json:"path"`
	Value json.RawMessage `json:"value,omitempty"` // absent for remove
}

// Live follows a session for a consumer that has received the whole session once. After each line
// it returns the changes as a patch. The size of a patch, and the time to compute it, depend on the
// change and not on the size of the team. Live belongs to one goroutine.
type Live struct {
	known Session        // the consumer's present view
	at    map[string]int // indexes of members in it, by name
	patch Patch
}

// NewLive returns a Live for the present session. The returned line is the first one for the
// consumer.
func NewLive(o Observed) (*Live, StateLine) {
	l := &Live{}
	l.renew(SessionOf(o))
	whole := l.known
	if whole.Team != nil {
		team := *whole.Team
		team.Members, team.Tasks = slices.Clone(team.Members), slices.Clone(team.Tasks)
		whole.Team = &team
	}
	whole.Agents = slices.Clone(whole.Agents)
	return l, StateLine{Type: SessionUpdate, Session: &whole}
}

func (l *Live) renew(s Session) {
	l.known, l.at = s, map[string]int{}
	if s.Team != nil {
		for i, m := range s.Team.Members {
			l.at[m.Name] = i
		}
	}
}

// Next returns the changes made by the latest records. It must be called once after each line of o.
// The patch is nil if nothing changed.
func (l *Live) Next(o Observed, records []*team.Record) Patch {
	l.patch = nil
	s := o.Team()
	there := s != nil && s.Exists()
	switch had := l.known.Team != nil; {
	case !there && had:
		l.remove("/team")
		l.renew(Session{Agents: l.known.Agents})
	case there && (!had || begins(records)):
		now := SessionOf(o)
		l.add("/team", now.Team)
		agents := l.known.Agents
		l.renew(now)
		l.known.Agents = agents
	case there:
		l.follow(s, records)
		return l.patch // includes the agents, which are the members
	}
	if agents := o.Agents(); !slices.Equal(agents, l.known.Agents) {
		l.replace("/agents", agents)
		l.known.Agents = agents
	}
	return l.patch
}

// begins reports whether one of the records begins a team.
func begins(records []*team.Record) bool {
	return slices.ContainsFunc(records, func(r *team.Record) bool { return r.Seq == 1 })
}

// follow updates the team to s, which differs from the last view only by the records.
func (l *Live) follow(s *team.State, records []*team.Record) {
	touched := touch{tasks: map[string]bool{}, members: map[string]bool{}}
	for _, r := range records {
		for _, e := range r.Events {
			touched.addEvent(e)
		}
	}
	if touched.all {
		touched.everything(s, l.known.Team)
	}
	if touched.team {
		l.head(s)
	}
	if len(touched.members) > 0 {
		l.members(s, touched.members)
	}
	if len(touched.tasks) > 0 {
		l.tasks(s, touched.tasks)
	}
}

// head updates the fields of the team itself.
func (l *Live) head(s *team.State) {
	t := l.known.Team
	if name := s.Team().Name; name != t.Name {
		l.replace("/team/name", name)
		t.Name = name
	}
	if role := roleOf(s); role != t.Role {
		l.replace("/team/role", role)
		t.Role = role
	}
}

// members updates the named members. New members come last, as in the state.
func (l *Live) members(s *team.State, names map[string]bool) {
	t := l.known.Team
	lead := s.Team().Lead
	fresh := 0
	for _, name := range slices.Sorted(maps.Keys(names)) {
		m, ok := s.Member(name)
		if !ok || name == lead {
			continue
		}
		i, known := l.at[name]
		if !known {
			fresh++
			continue
		}
		now := memberOf(s, &m)
		path := "/team/members/" + strconv.Itoa(i)
		was := &t.Members[i]
		l.text(path+"/agentId", was.AgentID, now.AgentID)
		l.text(path+"/agentType", was.AgentType, now.AgentType)
		l.text(path+"/status", was.Status, now.Status)
		l.optional(path+"/model", was.Model, now.Model)
		l.optional(path+"/color", was.Color, now.Color)
		*was = now
	}
	if fresh == 0 {
		return
	}
	all := s.Members()
	for i := len(all) - 1; i >= 0 && fresh > 0; i-- { // new members are at the end
		if _, known := l.at[all[i].Name]; !known && all[i].Name != lead {
			fresh--
		}
		if fresh == 0 {
			all = all[i:]
		}
	}
	for _, m := range all {
		if _, known := l.at[m.Name]; known || m.Name == lead {
			continue
		}
		now := memberOf(s, &m)
		l.at[m.Name] = len(t.Members)
		t.Members = append(t.Members, now)
		l.known.Agents = append(l.known.Agents, m.Name)
		l.add("/team/members/-", now)
		l.add("/agents/-", m.Name)
	}
}

// tasks updates the given tasks. If a task appeared or disappeared, it also updates the tasks named
// in its dependencies. A state keeps the dependencies of deleted tasks, but they are not shown.
func (l *Live) tasks(s *team.State, ids map[string]bool) {
	for _, id := range slices.Sorted(maps.Keys(ids)) {
		t, ok := s.Task(id)
		_, known := l.place(id)
		if shown := ok && t.Status != team.Deleted; shown == known {
			continue
		}
		for _, other := range [][]string{t.BlockedBy, t.Blocks} {
			for _, id := range other {
				ids[id] = true
			}
		}
	}
	ordered := slices.Sorted(maps.Keys(ids))
	protocol.SortTasks(ordered)
	for _, id := range ordered {
		l.task(s, id)
	}
}

// place returns the index at which a task is shown, or would be.
func (l *Live) place(id string) (int, bool) {
	n := protocol.TaskNumber(id)
	return slices.BinarySearchFunc(l.known.Team.Tasks, n,
		func(t TeamTask, n int) int { return protocol.TaskNumber(t.ID) - n })
}

func (l *Live) task(s *team.State, id string) {
	shown := &l.known.Team.Tasks
	i, known := l.place(id)
	path := "/team/tasks/" + strconv.Itoa(i)
	t, ok := s.Task(id)
	switch there := ok && t.Status != team.Deleted; {
	case !there && known:
		l.remove(path)
		*shown = slices.Delete(*shown, i, i+1)
		return
	case !there:
		return
	case !known:
		now := taskOf(s, &t)
		l.add(path, now)
		*shown = slices.Insert(*shown, i, now)
		return
	}
	was, now := &(*shown)[i], taskOf(s, &t)
	l.text(path+"/subject", was.Subject, now.Subject)
	l.optional(path+"/description", was.Description, now.Description)
	l.text(path+"/status", was.Status, now.Status)
	l.optional(path+"/owner", was.Owner, now.Owner)
	l.optional(path+"/activeForm", was.ActiveForm, now.ActiveForm)
	l.ids(path+"/blockedBy/", was.BlockedBy, now.BlockedBy)
	l.ids(path+"/blocks/", was.Blocks, now.Blocks)
	*was = now
}

// ids updates a list of task ids, which is ordered by number.
func (l *Live) ids(path string, was, now []string) {
	at := 0
	for len(was) > 0 || len(now) > 0 {
		place := path + strconv.Itoa(at)
		switch {
		case len(now) == 0 || len(was) > 0 && protocol.TaskNumber(was[0]) < protocol.TaskNumber(now[0]):
			l.remove(place)
			was = was[1:]
			continue
		case len(was) == 0 || protocol.TaskNumber(now[0]) < protocol.TaskNumber(was[0]):
			l.add(place, now[0])
			now = now[1:]
		default:
			was, now = was[1:], now[1:]
		}
		at++
	}
}

func (l *Live) text(path, was, now string) {
	if was != now {
		l.replace(path, now)
	}
}

// optional updates a text field that is absent if it is empty.
func (l *Live) optional(path, was, now string) {
	switch {
	case was == now:
	case now == "":
		l.remove(path)
	case was == "":
		l.add(path, now)
	default:
		l.replace(path, now)
	}
}

func (l *Live) add(path string, v any) { l.patch = append(l.patch, Operation{"add", path, encode(v)}) }
func (l *Live) replace(path string, v any) {
	l.patch = append(l.patch, Operation{"replace", path, encode(v)})
}
func (l *Live) remove(path string) { l.patch = append(l.patch, Operation{Op: "remove", Path: path}) }

func encode(v any) json.RawMessage {
	out, _ := json.Marshal(v) // plain values always marshal
	return out
}

// touch is the part of the consumers' view that events may have changed.
type touch struct {
	team    bool
	members map[string]bool
	tasks   map[string]bool
	all     bool
}

// addEvent records the effect of an event. An event kind that is not listed may have changed
// anything and causes a comparison of everything.
func (c *touch) addEvent(e team.Event) {
	switch e := e.(type) {
	case *team.MemberSpawned:
		c.members[e.Member.Name] = true
	case *team.MemberReturned:
		c.members[e.Member.Name] = true
	case *team.MemberDescribed:
		c.members[e.Member] = true
		c.team = true // the lead's session determines the role
	case *team.MemberStatusChanged:
		c.members[e.Member] = true
	case *team.MemberTroubled:
		c.members[e.Member] = true
	case *team.MemberStopped:
		c.members[e.Member] = true
	case *team.MemberFailed:
		c.members[e.Member] = true
	case *team.ShutdownAnswered:
		c.members[e.Member] = true
	case *team.TaskCreated:
		c.task(e.Task.ID)
		c.task(e.Task.BlockedBy...)
	case *team.TaskUpdated:
		c.task(e.Task)
		c.task(e.AddBlockedBy...)
		c.task(e.RemoveBlockedBy...)
		c.task(e.AddBlocks...)
		c.task(e.RemoveBlocks...)
	case *team.TaskClaimed:
		c.task(e.Task)
	case *team.TaskReleased:
		c.task(e.Task)
	case *team.TaskCompleted:
		c.task(e.Task)
	case *team.TaskDeleted:
		c.task(e.Task)
	case *team.TasksSkipped, *team.MessageSent, *team.MessagesDelivered, *team.ShutdownRequested, *team.PlanSubmitted,
		*team.PlanAnswered,
		*team.UsageReported, *team.GapNoticed:
		// These are not visible to consumers.
	default:
		c.all = true
	}
}

func (c *touch) task(ids ...string) {
	for _, id := range ids {
		c.tasks[id] = true
	}
}

// everything marks everything that exists or was shown.
func (c *touch) everything(s *team.State, shown *TeamState) {
	c.team = true
	for _, m := range s.Members() {
		c.members[m.Name] = true
	}
	for t := range s.Tasks() {
		c.task(t.ID)
	}
	for _, t := range shown.Tasks {
		c.task(t.ID)
	}
}
