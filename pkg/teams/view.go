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

// View is what there is to see of a team. A [Team] is a View, too; one without a Team is given by
// [Manager.View], which starts nothing and changes nothing.
type View struct {
	of *engine.Team

	id, name, dir, lead string // fixed for the team's life
}

func viewOf(of *engine.Team) *View {
	info := of.Team()
	return &View{of: of, id: info.ID, name: info.Name, dir: info.Dir, lead: info.Lead}
}

// look calls see with the team as it is now. The state must not be kept.
func (v *View) look(ctx context.Context, see func(*team.State)) error {
	if err := v.of.Refresh(ctx); err != nil {
		return public(err)
	}
	v.of.View(see)
	return nil
}

// ID is unique for ever, while the name can be used again once the team is gone.
func (v *View) ID() string { return v.id }

// Name is the team's name.
func (v *View) Name() string { return v.name }

// Dir is where the members work, an absolute path.
func (v *View) Dir() string { return v.dir }

// Lead is the name of the lead, which nobody else ever becomes.
func (v *View) Lead() string { return v.lead }

// Info returns what holds for the team as a whole.
func (v *View) Info(ctx context.Context) (info TeamInfo, err error) {
	err = v.look(ctx, func(s *team.State) { info = infoOf(s.Team()) })
	return info, err
}

// Members returns the lead and then the teammates in the order in which they joined, also those
// that have ended.
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

// missing refuses a name that no member of the team has.
func missing(s *team.State, name string) error {
	_, err := s.Named(name)
	return public(err)
}

// member refuses a name that no member has, as far as the team was read.
func (v *View) member(name string) (err error) {
	v.of.View(func(s *team.State) { err = missing(s, name) })
	return err
}

// Tasks reads the task list.
func (v *View) Tasks() *TaskReader { return &TaskReader{v} }

// Permissions returns the requests that wait for an answer.
func (v *View) Permissions(ctx context.Context) (open []Permission, err error) {
	err = v.look(ctx, func(s *team.State) {
		for _, p := range s.Permissions() {
			open = append(open, permissionOf(p))
		}
	})
	return open, err
}

// Allows says whether delegate mode lets the member use a tool. It restricts the lead and nobody
// else: the error has the code ErrDenied and lists what the lead may use.
func (v *View) Allows(ctx context.Context, member, tool string) error {
	var refused error
	if err := v.look(ctx, func(s *team.State) { refused = s.AllowsTool(member, tool) }); err != nil {
		return err
	}
	return public(refused)
}

// Life is whether a member's session is alive.
type Life string

// The lives of a member.
const (
	LifeOnline  Life = "online"
	LifeOffline Life = "offline" // its heartbeats stopped, or its process is gone
	LifePaused  Life = "paused"  // it has no session at the moment, and will get one
	LifeOutside Life = "outside" // its session is run by somebody else, who says nothing of it
	LifeEnded   Life = "ended"
	LifeUnknown Life = "unknown" // a clock is wrong, or the heartbeat is damaged
)

// MemberLife is what is known of a member's session.
type MemberLife struct {
	Name     string
	Agent    string
	Status   MemberStatus // that was recorded last
	Life     Life         // that was found
	Why      string       // of its life, in words
	LastSeen time.Time    // zero for never
	Task     string       // that it has in progress
	Saved    bool         // work of it was saved while there was no lead, and waits
}

// LeadLife is what is known of who leads.
type LeadLife struct {
	Session  string // "" for none
	LastSeen time.Time
	Alive    bool      // its process, on this machine
	Taking   bool      // another process on this machine is about to lead
	Machine  string    // another machine, where its process may be alive; "" for this one
	Lost     time.Time // since when the team has no lead; zero where it has one
	Stale    bool      // another session may take the lead
}

// Probe is what a team is found to be: what was recorded, compared with processes, files and
// heartbeats.
type Probe struct {
	Team        TeamInfo
	Lead        LeadLife
	Members     []MemberLife
	Missing     []string // what the team works with and is not in its place, in words
	Facts       []FactState
	Messages    int64 // that were sent
	Undelivered int   // messages that wait for their recipients
	Held        int   // of them: they wait for a lead
	Late        int   // of them: they wait for long
	Pending     int   // tasks
	InProgress  int
	Completed   int
	Left        time.Duration // an estimate of the time until all tasks are done; 0 where nobody can tell
	Attention   []Attention
}

// Probe finds out who of the team is alive, and what of it is not in its place. It changes nothing.
func (v *View) Probe(ctx context.Context) (Probe, error) {
	if err := v.of.Refresh(ctx); err != nil {
		return Probe{}, public(err)
	}
	found, err := v.of.Examine(ctx)
	if err != nil {
		return Probe{}, public(err)
	}
	return v.probeOf(found), nil
}

func (v *View) probeOf(e *inspect.Examination) Probe {
	p := Probe{Team: infoOf(e.Team), Facts: factsOf(e.Facts), Messages: e.Messages, Undelivered: e.Unread, Held: e.Held,
		Late: e.Late, Pending: e.Tasks["pending"], InProgress: e.Tasks["in_progress"], Completed: e.Tasks["completed"],
		Left: e.Left(), Attention: attentionOf(v.name, e.Attention), Lead: LeadLife{Session: e.Lead.Session,
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

// FactState is what became of a file that everybody relies on.
type FactState struct {
	SharedFact
	Stale bool   // it is not as it was recorded
	State string // in words: as it was, changed, gone …
}

func factsOf(all []inspect.Fact) (facts []FactState) {
	for _, f := range all {
		facts = append(facts, FactState{SharedFact: SharedFact{Name: f.Name, Path: f.Path}, Stale: f.Stale, State: f.State()})
	}
	return facts
}

// Facts compares the files that everybody relies on with what was recorded of them.
func (v *View) Facts(ctx context.Context) ([]FactState, error) {
	p, err := v.Probe(ctx)
	return p.Facts, err
}

// Review is what became of a team that has ended.
type Review struct {
	Probe
	Tasks        []Task
	LastWords    string              // of the lead
	Consolidated *ConsolidatedRecord // nil for a team that was not consolidated
	// Intact reports whether the history is the one that the record was made of.
	Intact bool
}

// Review returns what became of a team that is complete or was aborted. It is refused with
// ErrNotReady before.
func (v *View) Review(ctx context.Context) (Review, error) {
	if err := v.of.Refresh(ctx); err != nil {
		return Review{}, public(err)
	}
	found, err := v.of.Review(ctx)
	if err != nil {
		return Review{}, public(err)
	}
	r := Review{Probe: v.probeOf(found.Examination), LastWords: found.Team.LastWords, Intact: found.Intact}
	for _, t := range found.All {
		r.Tasks = append(r.Tasks, taskOf(t))
	}
	if found.Record != nil {
		r.Consolidated = recordOf(found.Record)
	}
	return r, nil
}

// TaskReader reads a team's task list.
type TaskReader struct{ view *View }

// TaskFilter says which tasks are meant; the zero filter is for all that were not deleted. A task
// has to pass every field that is set.
type TaskFilter struct {
	Status TaskStatus // "" for any but deleted
	Owner  string
	Role   string // that the task is meant for
	// Unblocked is for pending tasks that wait for no other and are not out of retries, in the
	// order in which they are claimed.
	Unblocked bool
	// ClaimableBy is for the tasks that this member could claim now, in the order in which it would
	// get them.
	ClaimableBy  string
	OutOfRetries bool
}

func (f TaskFilter) passes(t Task) bool {
	return (f.Status == "" || t.Status == f.Status) && (f.Owner == "" || t.Owner == f.Owner) &&
		(f.Role == "" || t.Role == f.Role) && (!f.OutOfRetries || t.OutOfRetries)
}

// Get returns the task with that id or name, a deleted one too, or ErrNotFound.
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

// List returns the tasks that pass the filter, in the order of their ids, or in that of the filter.
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

// Patch returns what was done of a task, as git apply takes it: its work where that is recorded,
// else what its member saved. It is refused with ErrNoTask where there is neither.
func (r *TaskReader) Patch(ctx context.Context, id string) ([]byte, error) {
	if err := r.view.of.Refresh(ctx); err != nil {
		return nil, public(err)
	}
	patch, err := r.view.of.Patch(ctx, id)
	return patch, public(err)
}

// Events yields what happens from now on, which is when Events is called, as it happens. A slow
// consumer misses nothing as long as the team is there.
//
// It ends without an error once the team is complete, aborted or cleaned up and everything that was
// recorded by then has been yielded. What is recorded of a team after its end, such as a
// consolidation, is seen by another call of EventsAfter. When ctx ends, or the manager lets go of
// the team, the last pair has the error: that of ctx, or one with the code ErrFinished.
func (v *View) Events(ctx context.Context) iter.Seq2[Event, error] {
	return v.EventsAfter(ctx, v.of.Seq())
}

// EventsAfter yields what happened after the record seq, 0 for the whole history, and continues as
// Events does.
func (v *View) EventsAfter(ctx context.Context, seq int64) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		for r, err := range v.records(ctx, seq) {
			if err != nil {
				yield(Event{}, public(err))
				return
			}
			for _, e := range r.Events {
				fact := factOf(e, r)
				if fact != nil && !yield(Event{Seq: r.Seq, At: clock(r.At), By: r.Actor, Fact: fact}, nil) {
					return
				}
				if _, last := fact.(TeamCleanedUp); last {
					return
				}
			}
		}
	}
}

// records yields the records after seq after as they come, until the team has ended and all of them
// are yielded. An error is the last pair.
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
