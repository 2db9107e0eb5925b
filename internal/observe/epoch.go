package observe

import (
	"fmt"
	"slices"
	"strings"

	"cadre/internal/team"
)

// One team is observed at a time: the one that began last. A team may end without a word, because
// its session ended, and its successor is in the same folder of transcripts or log. Which one began
// last is told by the time of each one's beginning, so that it does not matter which is read first.

// epoch is one team's life, as far as it is no part of its state.
type epoch struct {
	// by which its agents know it; "" while that is not known, because what it was read back from
	// does not say
	Name        string `json:"name,omitempty"`
	LeadSession string `json:"leadSession,omitempty"`
	LeadSource  string `json:"leadSource,omitempty"`
	// the session that teammates without a process of their own work in: their lead's
	Within  string `json:"within,omitempty"`
	Mate    string `json:"mate,omitempty"` // session of the teammate who was heard first
	Founded stamp  `json:"founded"`
	// as its config.json says, where that was read: a team that is made anew under the same name
	// has another
	Created team.Time        `json:"created,omitempty"`
	Gone    map[string]stamp `json:"gone,omitempty"`   // teams that are not observed any more, and since when
	Before  int              `json:"before,omitempty"` // how many teams were observed before this one
}

// leads reports whether the session leads the team: it made it, or has had it from its start, or
// comes from where that one came from.
func (o *Observer) leads(session, source string) bool {
	if !o.here() {
		return false
	}
	e := &o.epoch
	switch {
	case session != "" && (e.LeadSession == session || implicit(session) == e.Name):
		return true
	case e.LeadSource == anySource:
		return true
	}
	return e.LeadSource != "" && e.LeadSource == source
}

// precedes reports whether that was before the team was made: its lead had a list of its own then,
// or another team of that name. A session that has its team from its start had no other.
func (o *Observer) precedes(at stamp) bool {
	e := &o.epoch
	return o.here() && at.At < min(e.Created, e.Founded.At) && e.Name != implicit(e.LeadSession)
}

// anySource leads a team that was read back and whose lead's session is not known.
const anySource = "*"

// unnamed is what a team is called whose name nobody has said yet.
const unnamed = "team"

// joins reports whether a teammate's doings are the observed team's. A teammate shows that there is
// one, also where it does not name it.
func (o *Observer) joins(by speaker, at stamp, source string) bool {
	if o.here() {
		if o.older(at, source) || o.precedes(at) || !o.called(by.Team) {
			return false
		}
	} else {
		if by.Team == "" && o.unnameable() || !o.wanted(by.Team, at) {
			return false
		}
		o.found(by.Team, "", "", at, "")
	}
	if by.Side && o.epoch.Within == "" {
		o.epoch.Within = by.Session
	}
	if o.epoch.Mate == "" {
		o.epoch.Mate = by.Session
	}
	if p := o.roster.at(by.Member); p != nil && !p.Joined.V {
		p.Joined.learn(true, at)
		p.Doing.assume(active)
		o.retry = true
	}
	return true
}

// unnameable reports whether a team that nobody has named is not to be observed: a certain one is,
// or it may be one that was there before.
func (o *Observer) unnameable() bool { return o.s != nil || o.options.Of != "" }

// found begins the observation of a team, in the place of another one if that was observed. A
// lead's own list of tasks becomes the team's where the team is one that its session has from its
// start.
func (o *Observer) found(name, session, source string, at stamp, goal string) {
	if o.here() {
		o.settle(o.anID("last"), o.lead(), at)
		o.ended(o.anID("end"), at, fmt.Sprintf("%s began after it", name))
	}
	before := o.epoch.Before
	if o.s != nil {
		before++
	}
	o.s, o.placed, o.mailed = &team.State{}, 0, 0
	o.board, o.roster, o.mail = newBoard(), newRoster(), newMailbag()
	o.epoch = epoch{Name: name, LeadSession: session, LeadSource: source, Founded: at, Gone: o.epoch.Gone,
		Before: before}
	id := o.options.ID
	if id == "" || before > 0 {
		id = fmt.Sprintf("%s-%08x", word(name), uint32(hash(fmt.Sprint(first(o.options.ID, session), before))))
	}
	dir := ""
	if one := o.sessions[session]; one != nil {
		dir = one.Dir
	}
	name = first(name, unnamed)
	o.emit(&team.TeamCreated{Team: team.Team{ID: id, Name: first(o.options.Name, name), Observed: name,
		Status: team.TeamPending, Goal: goal, Dir: dir},
		Lead: team.Member{Name: o.options.Lead, Agent: team.External, Status: team.Active, Session: session,
			Incarnation: 1}})
	for _, id := range slices.Clone(o.order) {
		if implicit(id) == name {
			o.board.join(o.sessions[id].Board)
			o.sessions[id].Board = newBoard()
		}
	}
	o.retry, o.unbilled = true, true
}

// word is what of a name can be the beginning of a team's id, which is the name of a folder
// somewhere: the name was chosen by an agent, and may be a path, or of any length.
func word(name string) string {
	name = strings.Map(func(r rune) rune {
		if !team.ValidName("a" + string(r)) {
			return '-'
		}
		return r
	}, name)
	const suffix = len("-01234567")
	if name = strings.TrimLeft(name, "-_"); len(name) > team.MaxName-suffix {
		name = name[:team.MaxName-suffix]
	}
	return first(name, "team")
}

// wanted reports whether a team of that name that was there at that time may be observed: it is not
// one that has ended since.
func (o *Observer) wanted(name string, at stamp) bool {
	gone, past := o.epoch.Gone[name]
	return (o.options.Of == "" || o.options.Of == name) && !(past && at.before(gone))
}

// succeeds reports whether a team that the session has begun at that time takes the place of the
// one that is observed.
func (o *Observer) succeeds(name, session string, at stamp) bool {
	e := &o.epoch
	switch _, past := e.Gone[name]; {
	case o.strangeLead(session):
	case e.Name == "", session == "":
		return false
	case name == e.Name && (session == e.LeadSession || e.LeadSession == ""):
		return false
	case past && name == implicit(session): // of which a session has but one
		return false
	}
	return e.Founded.before(at)
}

// strangeLead reports whether a session leads another team than the one that is observed, of which
// nothing is known but the session that its teammates work in.
func (o *Observer) strangeLead(session string) bool {
	e := &o.epoch
	return e.Name == "" && e.LeadSession == "" && e.Within != "" && session != "" && session != e.Within
}

// madeAnew reports whether a config.json of the observed team's name is of another team, which was
// made when that one was gone, while nobody looked.
func (o *Observer) madeAnew(name, session string, created team.Time) bool {
	e := &o.epoch
	switch {
	case name != e.Name, created == 0, name == implicit(session):
		return false
	case e.Created != 0:
		return e.Created != created
	}
	return e.LeadSession != "" && e.LeadSession != session && e.Founded.At < created
}

// past takes note of a team that began before the one that is observed.
func (o *Observer) past(name string, began stamp) {
	if _, known := o.epoch.Gone[name]; !known && o.options.Of == "" {
		o.warn("team %s began before %s, which is the one that is observed", name, o.epoch.Name)
		o.epoch.gone(name, began)
	}
}

func (e *epoch) gone(name string, since stamp) {
	if e.Gone == nil {
		e.Gone = map[string]stamp{}
	}
	e.Gone[name] = since
}

// ended ends the observation of the team.
func (o *Observer) ended(id string, at stamp, reason string) {
	for _, m := range o.s.Members() {
		if m.Name != o.lead() && m.Status.Running() {
			o.emit(&team.MemberStopped{Member: m.Name, Reason: "its team ended"})
		}
	}
	o.emit(&team.TeamStatusChanged{Status: team.TeamComplete, Reason: reason}, &team.TeamCleanedUp{})
	for session, one := range o.spent {
		if o.pays(session, one) {
			one.Before = one.most()
		}
	}
	o.epoch.gone(o.epoch.Name, at)
	o.commit(id, o.lead(), at)
	o.board, o.roster = newBoard(), newRoster()
}

// waits reports whether a teammate's doings wait until more is known: whose it is, or of a team
// whose beginning was not read yet.
func (o *Observer) waits(by speaker, at stamp, source string) bool {
	return by.Team == "" && !o.here() && o.unnameable() || o.strange(by) && !o.older(at, source)
}

// strange reports whether a teammate is of another team than the one that is observed, which may
// begin after it.
func (o *Observer) strange(by speaker) bool {
	e := &o.epoch
	_, past := e.Gone[by.Team]
	switch {
	case !o.here() || past:
		return false
	case by.Team == "":
		return by.Side && by.Session != "" && (e.LeadSession != "" && !o.leads(by.Session, "") || e.LeadSession == "" &&
			e.Within != "" && e.Within != by.Session)
	}
	return o.options.Of == "" && e.Name != "" && by.Team != e.Name // none but one is waited for
}

// older reports whether that was before the team began, by clocks that can be compared.
func (o *Observer) older(at stamp, source string) bool {
	return at.before(o.epoch.Founded) && (o.epoch.Before > 0 || o.timed(source) && o.timed(o.epoch.LeadSource))
}

func (o *Observer) timed(source string) bool {
	src := o.sources[source]
	return src != nil && src.Timed
}

// hold keeps a fact until more is known. Where there are too many, those of other teams go first;
// any other is a loss.
func (o *Observer) hold(f fact) {
	if o.held = append(o.held, f); len(o.held) <= maxHeld {
		return
	}
	oldest := slices.IndexFunc(o.held, func(f fact) bool { return o.strange(f.by()) })
	if oldest < 0 {
		oldest = 0
		if o.counts.Dropped++; !o.dropping {
			o.dropping = true
			o.gap(f.source(), o.source(f.source()), "too much was said by teammates of whom it is not known yet who "+
				"they are", f.Result.At.At)
		}
	}
	o.held = slices.Delete(o.held, oldest, oldest+1)
}

// led says that the session leads the team, which was known through its teammates alone until now.
func (o *Observer) led(session, source string, at stamp) {
	o.epoch.LeadSession, o.epoch.LeadSource = session, source
	if at.before(o.epoch.Founded) {
		o.epoch.Founded = at
	}
	o.emit(&team.MemberDescribed{Member: o.lead(), Session: session})
	o.unbilled = true
}
