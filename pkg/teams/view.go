package teams

import (
	"cmp"
	"context"
	"iter"
	"time"

	"cadre/internal/engine"
	"cadre/internal/inspect"
	"cadre/internal/team"
)

// View reads a team. A [Team] is a View, too. [Manager.View] returns one that starts nothing and
// changes nothing.
type View struct {
	of *engine.Team

	id, name, dir, lead string // fixed for the team's life
}

func viewOf(of *engine.Team) *View {
	info := of.Team()
	return &View{of: of, id: info.ID, name: info.Name, dir: info.Dir, lead: info.Lead}
}

// look calls see with the team's present state. see must not keep the state.
func (v *View) look(ctx context.Context, see func(*team.State)) error {
	if err := v.of.Refresh(ctx); err != nil {
		return public(err)
	}
	v.of.View(see)
	return nil
}

// ID returns the team's id, which is never reused. The name can be used again once the team is
// removed.
func (v *View) ID() string { return v.id }

// Name returns the team's name.
func (v *View) Name() string { return v.name }

// Dir returns the absolute path of the directory in which the members work.
func (v *View) Dir() string { return v.dir }

// Lead returns the name of the lead, which never changes.
func (v *View) Lead() string { return v.lead }

// Info returns the state of the team as a whole.
func (v *View) Info(ctx context.Context) (info TeamInfo, err error) {
	err = v.look(ctx, func(s *team.State) { info = infoOf(s.Team()) })
	return info, err
}

// Members returns the lead and then the teammates in the order in which they joined, including
// those that have ended.
func (v *View) Members(ctx context.Context) (members []Member, err error) {
	err = v.look(ctx, func(s *team.State) {
		for _, m := range s.Roster() {
			members = append(members, memberOf(m))
		}
	})
	return members, err
}

// Member returns the member of that name, or ErrNotFound.
func (v *View) Member(ctx context.Context, name string) (m Member, err error) {
	var unknown error
	if err := v.look(ctx, func(s *team.State) {
		unknown = missing(s, name)
		for _, one := range s.Roster() {
			if one.Name == name {
				m = memberOf(one)
			}
		}
	}); err != nil {
		return m, err
	}
	return m, unknown
}

// missing returns the error for a name that no member has.
func missing(s *team.State, name string) error {
	_, err := s.Named(name)
	return public(err)
}

// member returns an error for an unknown name, without reading the team again.
func (v *View) member(name string) (err error) {
	v.of.View(func(s *team.State) { err = missing(s, name) })
	return err
}

// Tasks returns a reader of the task list.
func (v *View) Tasks() *TaskReader { return &TaskReader{v} }

// Permissions returns the requests that are open.
func (v *View) Permissions(ctx context.Context) (open []Permission, err error) {
	err = v.look(ctx, func(s *team.State) {
		for _, p := range s.Permissions() {
			open = append(open, permissionOf(p))
		}
	})
	return open, err
}

// Allows returns nil if delegate mode lets the member use a tool. It restricts only the lead: for a
// denied tool it returns ErrDenied, whose text lists the tools that the lead may use.
func (v *View) Allows(ctx context.Context, member, tool string) error {
	var refused error
	if err := v.look(ctx, func(s *team.State) { refused = s.AllowsTool(member, tool) }); err != nil {
		return err
	}
	return public(refused)
}

// Life is the state of a member's session, as the failure detector finds it.
type Life string

// The values of Life.
const (
	LifeOnline  Life = "online"
	LifeOffline Life = "offline" // its heartbeats stopped, or its process has ended
	LifePaused  Life = "paused"  // it has no session now, and will get one
	LifeOutside Life = "outside" // its session runs outside cadre, and sends no heartbeats
	LifeEnded   Life = "ended"
	LifeUnknown Life = "unknown" // a clock is wrong, or the heartbeat is damaged
)

// MemberLife describes a member's session.
type MemberLife struct {
	Name     string
	Agent    string
	Status   MemberStatus // the last recorded status
	Life     Life         // the state that was found
	Why      string       // of Life, in words
	LastSeen time.Time    // zero for never
	Task     string       // that it has in progress
	Saved    bool         // its work was saved while the lead was lost, and waits
}

// LeadLife describes the session that leads.
type LeadLife struct {
	Session  string // "" for none
	LastSeen time.Time
	Alive    bool      // its process on this machine is alive
	Taking   bool      // another process on this machine is about to lead
	Machine  string    // another machine, on which its process may be alive; "" for this one
	Lost     time.Time // since when the team has no lead; zero if it has one
	Stale    bool      // another session may take the lead
}

// Probe is the result of an examination: the team's records, compared with processes, files and
// heartbeats.
type Probe struct {
	Team        TeamInfo
	Lead        LeadLife
	Members     []MemberLife
	Missing     []string // what the team needs and is missing, in words
	Facts       []FactState
	Messages    int64 // that were sent
	Undelivered int   // pending messages
	Held        int   // of them: they wait for a lead
	Late        int   // of them, those that are late
	Pending     int   // tasks
	InProgress  int
	Completed   int
	Left        time.Duration // an estimate of the time until all tasks are done; 0 if unknown
	Attention   []Attention
}

// Probe finds out which members are alive, and what is missing. It changes nothing.
func (v *View) Probe(ctx context.Context) (Probe, error) {
	if err := v.of.Refresh(ctx); err != nil {
		return Probe{}, public(err)
	}
	found, err := v.of.Examine(ctx)
	if err != nil {
		return Probe{}, public(err)
	}
	return probeOf(found), nil
}

func probeOf(e *inspect.Examination) Probe {
	p := Probe{Team: infoOf(e.Team), Facts: factsOf(e.Facts), Messages: e.Messages, Undelivered: e.Unread, Held: e.Held,
		Late: e.Late, Pending: e.Tasks["pending"], InProgress: e.Tasks["in_progress"], Completed: e.Tasks["completed"],
		Left: e.Left.Std(), Attention: attentionOf(e.Team.Name, e.Attention),
		Lead: LeadLife{Session: e.Lead.Session,
			LastSeen: clock(e.Lead.LastSeen), Alive: e.Lead.Alive, Taking: e.Lead.Taking, Machine: e.Lead.Machine,
			Lost: clock(e.Lead.Lost), Stale: e.Lead.Stale}}
	for _, m := range e.Members {
		p.Members = append(p.Members, MemberLife{Name: m.Name, Agent: m.Agent, Status: MemberStatus(m.Status),
			Life: Life(m.Life), Why: m.Why, LastSeen: clock(m.LastSeen), Task: m.Task, Saved: m.Saved})
	}
	for _, one := range e.Place {
		p.Missing = append(p.Missing, one.String())
	}
	return p
}

// FactState is the state of a file that all members rely on.
type FactState struct {
	SharedFact
	Stale bool   // it differs from what was recorded
	State string // in words: unchanged, changed, missing …
}

func factsOf(all []inspect.Fact) (facts []FactState) {
	for _, f := range all {
		facts = append(facts, FactState{SharedFact: SharedFact{Name: f.Name, Path: f.Path}, Stale: f.Stale,
			State: f.State()})
	}
	return facts
}

// Facts compares the shared facts with their recorded state.
func (v *View) Facts(ctx context.Context) ([]FactState, error) {
	p, err := v.Probe(ctx)
	return p.Facts, err
}

// Review is the record of a team that has ended.
type Review struct {
	Probe
	Tasks        []Task
	LastWords    string              // of the lead
	Consolidated *ConsolidatedRecord // nil for a team that was not consolidated
	// Intact reports whether the history is the one that the record describes.
	Intact bool
}

// Review returns the record of a team that is complete or was aborted. Before that it returns
// ErrNotReady.
func (v *View) Review(ctx context.Context) (Review, error) {
	if err := v.of.Refresh(ctx); err != nil {
		return Review{}, public(err)
	}
	found, err := v.of.Review(ctx)
	if err != nil {
		return Review{}, public(err)
	}
	return reviewOf(found), nil
}

func reviewOf(found engine.Review) Review {
	r := Review{Probe: probeOf(found.Examination), LastWords: found.Team.LastWords, Intact: found.Intact}
	for _, t := range found.All {
		r.Tasks = append(r.Tasks, taskOf(t))
	}
	if found.Record != nil {
		r.Consolidated = recordOf(found.Record)
	}
	return r
}

// TaskReader reads a team's task list.
type TaskReader struct{ view *View }

// TaskFilter selects tasks. A task must match every field that is set. The zero filter selects all
// tasks that are not deleted.
type TaskFilter struct {
	Status TaskStatus // "" for any but deleted
	Owner  string
	Role   string // the role that the task is for
	// Unblocked selects the pending tasks that are neither blocked nor out of retries, in the order
	// in which members claim them.
	Unblocked bool
	// ClaimableBy selects the tasks that this member could claim now, in the order in which it
	// would get them.
	ClaimableBy  string
	OutOfRetries bool
}

func (f TaskFilter) passes(t Task) bool {
	return (f.Status == "" || t.Status == f.Status) && (f.Owner == "" || t.Owner == f.Owner) &&
		(f.Role == "" || t.Role == f.Role) && (!f.OutOfRetries || t.OutOfRetries)
}

// Get returns the task with that id or name, even a deleted one, or ErrNotFound.
func (r *TaskReader) Get(ctx context.Context, id string) (t Task, err error) {
	known := false
	err = r.view.look(ctx, func(s *team.State) {
		var core team.Task
		if core, known = s.Lookup(id); known {
			t = taskOf(core)
		}
	})
	if err == nil && !known {
		err = refuse(ErrNotFound, "no task "+id+" in team "+r.view.name)
	}
	return t, err
}

// List returns the tasks that match the filter, in the order of their ids, or in the order that the
// filter defines.
func (r *TaskReader) List(ctx context.Context, f TaskFilter) (all []Task, err error) {
	var unknown error
	err = r.view.look(ctx, func(s *team.State) {
		if f.ClaimableBy != "" {
			if unknown = missing(s, f.ClaimableBy); unknown != nil {
				return
			}
		}
		take := func(core team.Task) {
			if t := taskOf(core); f.passes(t) {
				all = append(all, t)
			}
		}
		if f.Unblocked || f.ClaimableBy != "" {
			for _, t := range s.Claimable(f.ClaimableBy) {
				take(t)
			}
			return
		}
		for t := range s.Tasks() {
			take(t)
		}
	})
	return all, cmp.Or(err, unknown)
}

// WithPaths returns the tasks in progress to which paths belong, and then those that wait for
// paths.
func (r *TaskReader) WithPaths(ctx context.Context) (all []Task, err error) {
	err = r.view.look(ctx, func(s *team.State) {
		for _, t := range s.WithPaths() {
			all = append(all, taskOf(t))
		}
	})
	return all, err
}

// Patch returns the work on a task as a patch for git apply: the recorded work, else what its
// member saved. It returns ErrNoTask if neither exists.
func (r *TaskReader) Patch(ctx context.Context, id string) ([]byte, error) {
	if err := r.view.of.Refresh(ctx); err != nil {
		return nil, public(err)
	}
	patch, err := r.view.of.Patch(ctx, id)
	return patch, public(err)
}

// Events yields the events after the call, as they happen. A slow consumer misses no event while
// the team exists.
//
// The sequence ends without an error once the team is complete, aborted or cleaned up, and it has
// yielded all earlier events. Later events, such as those of a consolidation, are yielded by a
// later call of EventsAfter. When ctx ends, or the manager releases the team, the last pair has the
// error: that of ctx, or ErrFinished.
func (v *View) Events(ctx context.Context) iter.Seq2[Event, error] {
	return v.EventsAfter(ctx, v.of.Seq())
}

// EventsAfter yields the events after the record seq (0 for the whole history), and continues as
// Events does.
func (v *View) EventsAfter(ctx context.Context, seq int64) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		for r, err := range v.records(ctx, seq) {
			if err != nil {
				yield(Event{}, public(err))
				return
			}
			for _, e := range eventsOf(r) {
				if !yield(e, nil) {
					return
				}
				if _, last := e.Fact.(TeamCleanedUp); last {
					return
				}
			}
		}
	}
}

// records yields the records after the one with that seq as they are written, until the team has
// ended and all of them are yielded. An error is the last pair.
func (v *View) records(ctx context.Context, after int64) iter.Seq2[*team.Record, error] {
	return func(yield func(*team.Record, error) bool) {
		for {
			for r, err := range v.of.Read(ctx, after) {
				if !yield(r, err) || err != nil {
					return
				}
				after = r.Seq
			}
			err := v.of.Refresh(ctx)
			over := false
			v.of.View(func(s *team.State) { over = ended(s) && s.Seq() <= after })
			if err == nil && over {
				return
			}
			if err == nil {
				err = v.of.Await(ctx, after)
			}
			if err != nil {
				yield(nil, err)
				return
			}
		}
	}
}
