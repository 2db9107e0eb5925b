package coordinator

import (
	"slices"
	"strconv"

	"cadre/internal/observe/present"
	"cadre/internal/team"
)

func number(n int64) string { return strconv.FormatInt(n, 10) }

// event is something that happened, as clients see it.
type event struct {
	kind    string
	payload any
}

// The types of events.
const (
	teamCreated      = "team_created"
	teammateSpawned  = "teammate_spawned"
	teamMessage      = "team_message"
	messageDelivered = "team_message_delivered"
	messageRead      = "team_message_read"
	teamTaskUpdate   = "team_task_update"
	teamTaskDeleted  = "team_task_deleted"
	teamNoteUpdate   = "team_note_update"
	teamNoteDeleted  = "team_note_deleted"
	teamStatusUpdate = "team_status_update"
	teammateIdle     = "teammate_idle"
	teammateShutdown = "teammate_shutdown"
	teamCleanedUp    = "team_cleaned_up"
)

// eventsOf returns the events for a record. s is the state after it.
func eventsOf(s *team.State, r *team.Record) []event {
	c := &collector{s: s, of: s.Team(), at: r.At}
	for _, e := range r.Events {
		c.see(e)
	}
	for _, id := range slices.SortedFunc(slices.Values(c.tasks), team.CompareIDs) {
		if t, ok := s.Task(id); ok && t.Status != team.Deleted {
			c.add(teamTaskUpdate, TaskPayload{taskOf(s, &t)})
		}
	}
	c.all = append(c.all, c.ends...)
	if c.status {
		c.add(teamStatusUpdate, TeamPayload{teamOf(s)})
	}
	if c.of.CleanedUp {
		c.add(teamCleanedUp, TeamRef{c.of.ID})
	}
	return c.all
}

// collector collects the events for a record.
type collector struct {
	s      *team.State
	of     team.Team
	at     team.Time
	all    []event
	tasks  []string // ids of the tasks that changed
	ends   []event  // of members, after what became of their tasks
	status bool     // the team or a member changed otherwise
}

func (c *collector) add(kind string, payload any) { c.all = append(c.all, event{kind, payload}) }

// changed notes that tasks changed.
func (c *collector) changed(ids ...string) {
	for _, id := range ids {
		if !slices.Contains(c.tasks, id) {
			c.tasks = append(c.tasks, id)
		}
	}
}

// changedFor notes that the task changed, and with it whether the tasks wait that it blocks.
func (c *collector) changedFor(id string) {
	c.changed(id)
	if t, ok := c.s.Task(id); ok {
		c.changed(t.Blocks...)
	}
}

// see takes note of an event of the core. Clients are told nothing of other kinds: these change
// nothing that clients see. TestTold compares what clients are told with the state.
func (c *collector) see(e team.Event) {
	ref := func(member string) MemberRef { return MemberRef{member, c.of.ID} }
	switch e := e.(type) {
	case *team.TeamCreated:
		c.add(teamCreated, TeamPayload{teamOf(c.s)})
	case *team.TeamRestored: // the team continues as a checkpoint had it
		c.status = true
		for t := range c.s.Tasks() {
			c.changed(t.ID)
		}
		for _, n := range c.s.Notes() {
			c.noteChanged(n.Key)
		}
	case *team.MemberSpawned:
		c.add(teammateSpawned, MemberPayload{memberIn(c.s, e.Member.Name)})
	case *team.MemberReturned:
		c.add(teammateSpawned, MemberPayload{memberIn(c.s, e.Member.Name)})
	case *team.MemberStopped:
		c.ends = append(c.ends, event{teammateShutdown, ref(e.Member)})
	case *team.MemberFailed:
		c.ends = append(c.ends, event{teammateShutdown, ref(e.Member)})
	case *team.MemberStatusChanged:
		if m, ok := c.s.Member(e.Member); ok && m.Status == team.Idle && m.Name != c.of.Lead {
			c.ends = append(c.ends, event{teammateIdle, ref(e.Member)})
		} else {
			c.status = true
		}
	case *team.MessageSent:
		c.add(teamMessage, MessagePayload{messageOf(&c.of, &e.Message, c.at)})
	case *team.MessagesDelivered:
		is := Delivery{MemberID: e.Member, TeamID: c.of.ID, DeliveredAt: Time(c.at)}
		for _, seq := range e.Seqs {
			is.MessageIDs = append(is.MessageIDs, number(seq))
		}
		c.add(messageDelivered, is)
	case *team.MessagesRead:
		c.add(messageRead, Reading{e.Member, c.of.ID, number(e.Through), Time(c.at)})
	case *team.TaskDeleted:
		c.add(teamTaskDeleted, TaskRef{e.Task, c.of.ID})
		c.changedFor(e.Task)
		c.changed(e.Unblocked...)
	default:
		c.seeTask(e)
	}
}

func (c *collector) seeTask(e team.Event) {
	switch e := e.(type) {
	case *team.TaskCreated:
		c.changed(e.Task.ID)
	case *team.TaskExpanded:
		c.changed(e.Task)
	case *team.TaskFolded:
		c.changedFor(e.Task)
	case *team.TaskUpdated:
		c.changed(e.Task)
		c.changed(e.AddBlocks...)
		c.changed(e.RemoveBlocks...)
	case *team.TaskClaimed:
		c.changed(e.Task)
		if m, ok := c.s.Member(e.Member); ok && m.Agent != team.External { // it may have been idle
			c.status = true
		}
	case *team.TaskReleased:
		c.changedFor(e.Task)
	case *team.TaskFailed:
		c.changedFor(e.Task)
	case *team.TaskCompleted:
		c.changedFor(e.Task)
	case *team.TaskSkipped:
		c.changedFor(e.Task)
	case *team.TaskSubmitted:
		c.changedFor(e.Task)
	case *team.TaskRejected:
		c.changedFor(e.Task)
	case *team.TaskRevised:
		c.changedFor(e.Task.ID)
	case *team.TaskRolledBack:
		c.changedFor(e.Task)
	case *team.TeamStatusChanged, *team.TeamCleanedUp, *team.DelegateChanged, *team.TeamRevised, *team.LeadAttached,
		*team.MemberStarted, *team.MemberDetached, *team.MemberDescribed, *team.MemberRevised, *team.MemberTroubled,
		*team.RateLimited,
		*team.ShutdownRequested, *team.ShutdownAnswered, *team.ShutdownWithdrawn, *team.TeamConsolidated:
		c.status = true
	default:
		c.seeNote(e)
	}
}

// noticesOf returns the events for a record of an observed team, and what the record changed of its
// state. s is the state after it.
func noticesOf(s *team.State, r *team.Record, live *present.Live) []event {
	lead, _ := s.Member(s.Team().Lead)
	var all []event
	for _, n := range present.NoticesOf(s, r, lead.Session) {
		all = append(all, event{n.Type, n})
	}
	if patch := live.Next(observed{s}, []*team.Record{r}); len(patch) > 0 {
		all = append(all, event{present.SessionPatch, present.StateLine{Type: present.SessionPatch, Patch: patch}})
	}
	return all
}

// observed is a recorded team as an observer would see it.
type observed struct{ *team.State }

func (o observed) Team() *team.State { return o.State }

func (o observed) Agents() []string {
	agents := []string{}
	for _, m := range o.Members() {
		if m.Name != o.State.Team().Lead {
			agents = append(agents, m.Name)
		}
	}
	return agents
}
