package coordinator

import (
	"context"
	"fmt"
	"math"

	"cadre/internal/engine"
	"cadre/internal/server/api"
	"cadre/internal/team"
)

// call is one request.
type call struct {
	*conn
	frame
	engine  *engine.Engine   // scoped to what the caller may reach
	payload any              // a pointer to the request's Payload
	before  map[string]int64 // seen, as in [conn.reply]
	opened  []*engine.Team
}

// answer is the answer to a request.
type answer struct {
	team     string  // id of the team that it is about; "" for none
	seq      int64   // the record after which it is true; 0 for none, forEver for the end of the team
	recorded int64   // the record with its event, so that a subscriber gets it from there; 0 for none
	reply    any     // payload of the reply to a request with an id
	events   []event // what answers a request without one
	then     func()  // called when the answer was sent; nil for nothing
	later    bool    // the request continues, and answers by itself
}

// carryOut carries out a request. seen is as in [conn.reply].
func (c *conn) carryOut(f frame, row request, payload any, seen map[string]int64) (answer, error) {
	if err := c.may(row); err != nil {
		return answer{}, err
	}
	done, err := c.server.Keys.Check(f.Key, row.Type, payload, c.who.Caller.String())
	if err != nil {
		return answer{}, repeats()
	}
	e := c.server.Engine.In(c.server.Dir)
	e.Home = c.who.Scoped(e.Home)
	e.Stamp = stamp(f.Key, c.who.Via())
	q := &call{conn: c, frame: f, engine: e, payload: payload, before: seen}
	defer q.close()
	is, err := row.handle(q)
	if err == nil {
		done()
	}
	return is, err
}

// may refuses a request that the client may not send.
func (c *conn) may(row request) error {
	if err := c.who.Command(row.Command, func(string) bool { return false }); err != nil {
		if row.Command == "create" {
			err = at(atCreate, err)
		}
		return err
	}
	if row.Type == daemonStatus && !c.who.IsUser() {
		return team.Refuse(team.Denied, "the state of the server is for the user: it counts all teams of this "+
			"machine; health_check says whether the server answers")
	}
	return c.who.Needs(row.Role, row.Type)
}

// stamp returns what completes the commands of a request: their ids, if the client chose a key, and
// the token that they came with.
func stamp(key, via string) func(*team.Command) {
	n := 0
	return func(cmd *team.Command) {
		if key != "" && cmd.ID == "" {
			if n++; n == 1 {
				cmd.ID = key
			} else {
				cmd.ID = fmt.Sprintf("%s.%d", key, n)
			}
		}
		if cmd.Via == "" {
			cmd.Via = via
		}
	}
}

func (q *call) close() {
	for _, t := range q.opened {
		t.Close()
	}
}

// team opens a team for an actor, by its id or name, until the request is answered.
func (q *call) team(ref string) (*engine.Team, error) { return q.find(ref, q.engine.Open) }

// look opens a team for reading, until the request is answered.
func (q *call) look(ref string) (*engine.Team, error) { return q.find(ref, q.engine.Look) }

func (q *call) find(ref string, open func(context.Context, string) (*engine.Team, error)) (*engine.Team, error) {
	if !api.ValidRef(ref) {
		return nil, at(atTeam, team.Refuse(team.NotFound, "%q is not the name or the id of a team", clip(ref)))
	}
	t, err := open(q.ctx, ref)
	if err != nil {
		return nil, at(atTeam, engine.InTermsOf(ref, err))
	}
	q.opened = append(q.opened, t)
	return t, nil
}

// member returns the name of the member that the client calls by that id: its name, or for the lead
// also the session that leads.
func (q *call) member(t *engine.Team, id string) (name string, err error) {
	t.View(func(s *team.State) {
		of := s.Team()
		if id != "" && id == leadSession(&of) {
			id = of.Lead
		}
		_, err = s.Named(id)
	})
	return id, at(atMember, err)
}

// actor returns who acts: the member that the client calls by that id, or for @user the user. field
// is the field that named it.
func (q *call) actor(t *engine.Team, field, id string) (string, error) {
	if id == team.User && q.who.IsUser() {
		return team.User, nil
	}
	name, err := q.member(t, id)
	if err != nil {
		return "", err
	}
	return q.who.Actor(field, name)
}

// memberAndCaller returns the name of the member that the client calls by that id, and who acts.
func (q *call) memberAndCaller(t *engine.Team, id string) (name, actor string, err error) {
	if name, err = q.member(t, id); err != nil {
		return "", "", err
	}
	actor, err = q.caller()
	return name, actor, err
}

// caller returns who acts where the request does not say it: the user, or the member that calls.
func (q *call) caller() (string, error) { return q.who.Actor("", "") }

// do sends the command as the actor, and returns its record, which is nil if nothing changed.
func (q *call) do(t *engine.Team, actor string, body team.Body) (*team.Record, error) {
	ctx, cancel := context.WithTimeoutCause(q.ctx, engine.BusyTime, fmt.Errorf("team %s was busy for %s", t.Team().Name,
		team.Span(engine.BusyTime)))
	defer cancel()
	receipt, err := t.Do(ctx, team.Command{Actor: actor, Body: body})
	return receipt.Record, q.over(t, err)
}

// over marks the refusal to change a team that winds down or has ended.
func (q *call) over(t *engine.Team, err error) error {
	if active(t) {
		return err
	}
	return at(atChange, err)
}

// active reports whether a team neither winds down nor has ended.
func active(t *engine.Team) bool {
	of := t.Team()
	return !of.CleanedUp && (of.Status == team.TeamPending || of.Status == team.TeamActive)
}

// after returns an answer with the state as it is now. r is the record of the request, nil for
// none.
func after(t *engine.Team, r *team.Record, see func(*team.State) (reply any, events []event)) (a answer) {
	t.View(func(s *team.State) {
		of := s.Team()
		a = answer{team: idOf(&of), seq: s.Seq()}
		a.reply, a.events = see(s)
	})
	if r != nil {
		a.recorded = r.Seq
	}
	return a
}

// forEver is the seq of an answer that is true when a team and its records are removed.
const forEver = math.MaxInt64

// one returns the reply, and the event with the same payload.
func one(kind string, payload any) (any, []event) { return payload, []event{{kind, payload}} }

// repeats is the error for a key of another request.
func repeats() error {
	return usage("the key was used for another request; use a new one for each request")
}
