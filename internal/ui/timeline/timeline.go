// Package timeline shows what the members of a team did over time: one lane of spans for each
// member, from the records of its history.
//
// It has no authority: the records say what happened. It knows no terminal and no clock. A front
// end adds each record once, in order, and asks for a frame of as many columns as it has.
//
// # Lanes
//
//	absent ──joins──▶ starting ──session runs──▶ working ◀──▶ tool
//	                     ▲                          │ ▲
//	                     │ session gone      turn ends │ has a task or mail
//	                     │                          ▼ │
//	                     └──────────── idle, dependency, person, limit ──▶ ended
//
// A member waits for a person while its request or plan is open, after an interrupt until it gets a
// message, and, once its turn is over, while a person has not read a question that it asked them.
// It waits for a limit while its agent or its host waits for a retry. It waits for a dependency
// while it is idle and all tasks that it could take are blocked. Tools are known only from session
// logs; see [Timeline.Tool].
//
// # Guarantees
//
//   - Adding a record costs the same at any length of the history: O(1) for the members that it
//     concerns, and O(members) when the queue of tasks runs empty or fills.
//   - A frame costs O(columns × members), at any length of the history whose spans are about as long as
//     each other. At worst it costs log(history) times as much. See BenchmarkFrame.
//   - The lanes as they were after any record cost O(members × log(history)), and no reading.
//   - Lanes never go back in time. A record with an earlier time counts as if it had the last one.
package timeline

import (
	"slices"

	"cadre/internal/team"
)

// Kind is what a member does.
type Kind uint8

// The kinds of spans.
const (
	Absent     Kind = iota // it has not joined yet
	Starting               // it has no session yet
	Working                // it is in a turn
	Tool                   // it is in a turn, and a tool runs
	Person                 // it waits for a person: for an answer, or for a message after an interrupt
	Limit                  // it waits for a retry, after a rate limit or another error
	Dependency             // it is idle, and the tasks that it could take are blocked
	Idle
	Ended
	kinds
)

// words are the names of the kinds.
var words = [kinds]string{"absent", "starting", "working", "tool", "person", "limit", "dependency", "idle", "ended"}

func (k Kind) String() string { return words[k] }

// works reports whether the kind is work. Time with work is never compressed.
func (k Kind) works() bool { return k == Working || k == Tool }

// MarkKind is something that happened at one time in a lane.
type MarkKind uint8

// The kinds of marks. A later kind hides an earlier one in the same column.
const (
	NoMark  MarkKind = iota
	Retry            // its agent or its host retries
	Plan             // it submitted a plan
	Failure          // a task or the member failed
	markKinds
)

// Span is a time in which a member does one thing.
type Span struct {
	From, To team.Time
	Kind     Kind
}

// Mark is a mark in a lane.
type Mark struct {
	At   team.Time
	Seq  int64 // of its record
	Kind MarkKind
}

// Long is how long an idle time must be to be compressed.
const Long = 120_000 // milliseconds

// Timeline holds the lanes of a team. The zero value starts a history. One goroutine owns it.
type Timeline struct {
	lanes []*lane
	named map[string]*lane
	lead  string
	tasks map[string]*task
	pools map[string]*load // tasks without an owner, by role
	asked map[string]asked // open permission requests
	// questions are messages to the lead that ask something and were not read; agentLeads says that
	// an agent's own session leads, and reads them
	questions  map[int64]*lane
	agentLeads bool
	through    int64

	began, last team.Time
	started     bool
	working     int       // lanes that work
	quietSince  team.Time // while working is 0
	quiet       []stretch // the ones longer than Long that have ended
	turned      bool      // a count of tasks changed from or to zero since the lanes were updated
	touched     []*lane
}

// stretch is a time in which no member worked.
type stretch struct {
	from, to team.Time
	before   int64 // milliseconds in earlier stretches
}

// load counts the pending tasks of a pool or a member.
type load struct{ ready, blocked int }

// asked is an open request. It ends with the member's session.
type asked struct {
	lane    *lane
	session int
}

// Through returns the seq of the last record that was added.
func (t *Timeline) Through() int64 { return t.through }

// Bounds returns the times of the first and the last record.
func (t *Timeline) Bounds() (first, last team.Time) { return t.began, t.last }

// Members returns the names of the lanes: the lead, then the others in the order in which they
// joined.
func (t *Timeline) Members() []string {
	names := make([]string, len(t.lanes))
	for i, l := range t.lanes {
		names[i] = l.name
	}
	return names
}

// Add adds the next record. It ignores a record that was added before.
func (t *Timeline) Add(r *team.Record) {
	if r.Seq <= t.through {
		return
	}
	t.through = r.Seq
	t.clock(r.At)
	for _, e := range r.Events {
		if !t.member(e, r) && !t.request(e, r) {
			t.task(e, r)
		}
	}
	t.settle()
}

// late is by how much a session log may be read later than the records.
const late = 2_000 // milliseconds

// Tool adds that a tool of the member started or ended, from its session log. A member's uses must
// come in order. Logs and records are read separately, so a time shortly before the last record
// counts as the time of that record. A use that began earlier appears in frames, but is not a span.
func (t *Timeline) Tool(member string, at team.Time, runs bool) {
	l := t.named[member]
	if l == nil {
		return
	}
	l.note(at, runs)
	if runs && at < t.last-late {
		return
	}
	t.clock(at)
	if runs {
		l.tools++
	} else {
		l.tools = max(0, l.tools-1)
	}
	t.touch(l)
	t.settle()
}

// clock advances the timeline to that time.
func (t *Timeline) clock(at team.Time) {
	if !t.started {
		t.started, t.began, t.last, t.quietSince = true, at, at, at
	}
	t.last = max(t.last, at)
}

func (t *Timeline) touch(l *lane) {
	if l != nil && !slices.Contains(t.touched, l) {
		t.touched = append(t.touched, l)
	}
}

// settle updates the spans of the lanes that the record changed. If the queue of tasks became empty
// or stopped being empty, that may be any lane.
func (t *Timeline) settle() {
	if t.turned {
		t.turned = false
		t.touched = append(t.touched[:0], t.lanes...)
	}
	for _, l := range t.touched {
		kind := t.kind(l)
		t.working += toInt(kind.works()) - toInt(l.kind().works())
		l.become(kind, t.last, t.through)
	}
	t.touched = t.touched[:0]
	switch {
	case t.working == 0 && t.quietSince < 0:
		t.quietSince = t.last
	case t.working > 0 && t.quietSince >= 0:
		if t.last-t.quietSince >= Long {
			t.quiet = append(t.quiet, stretch{t.quietSince, t.last, t.quietBefore()})
		}
		t.quietSince = -1
	}
}

func toInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

// quietBefore returns the milliseconds of all stretches that have ended.
func (t *Timeline) quietBefore() int64 {
	if len(t.quiet) == 0 {
		return 0
	}
	s := t.quiet[len(t.quiet)-1]
	return s.before + int64(s.to-s.from)
}

// kind returns the present activity of the member.
func (t *Timeline) kind(l *lane) Kind {
	switch {
	case l.status == "":
		return Absent
	case !l.status.Running():
		return Ended
	case l.limited:
		return Limit
	case l.status == team.Spawning:
		return Starting
	case l.requests > 0 || l.plan || l.status == team.Blocked:
		return Person
	case l.status == team.Active && (!l.external || l.busy) || l.external && l.held > 0:
		if l.tools > 0 {
			return Tool
		}
		return Working
	case l.interrupted && l.status == team.Idle || l.questions > 0 && t.ledByPerson():
		return Person
	case t.depends(l):
		return Dependency
	}
	return Idle
}

// ledByPerson reports whether a person reads the mail of the lead.
func (t *Timeline) ledByPerson() bool {
	lead := t.named[t.lead]
	return lead != nil && lead.external && !t.agentLeads
}

// depends reports whether there are tasks that the idle member could take, and all of them are
// blocked.
func (t *Timeline) depends(l *lane) bool {
	all := l.own
	if l.name != t.lead { // an agent that leads takes only its own tasks, and a person waits for none
		for _, role := range []string{"", l.role} {
			if pool := t.pools[role]; pool != nil {
				all.ready += pool.ready
				all.blocked += pool.blocked
			}
		}
	}
	return all.ready == 0 && all.blocked > 0
}
