package api

import (
	"slices"

	"cadre/internal/engine"
	"cadre/internal/team"
)

// key returns the Idempotency-Key of the request; "" for none. It is the id of the request's
// command.
func (c *call) key() string { return c.Header.Get("Idempotency-Key") }

// stamp returns what completes the commands of the request: the id, if the client chose a key, and
// the token that they came with. Where a request takes several commands, the key is the id of the
// first one, or of the one that [call.decides] names.
func (c *call) stamp() func(*team.Command) {
	var first team.Body // which is sent again while it waits
	return func(cmd *team.Command) {
		if c.main == nil && first == nil {
			first = cmd.Body
		}
		if cmd.ID == "" && !c.again && (first == cmd.Body || c.main != nil && c.main(cmd.Body)) {
			cmd.ID = c.key()
		}
		if cmd.Via == "" {
			cmd.Via = c.who.Via()
		}
	}
}

// decides says that a command of its kind is the one that carries out the request: the key is its
// id.
func decides[B team.Body](c *call) {
	c.main = func(body team.Body) bool {
		_, is := body.(B)
		return is
	}
}

// made recognizes the event by which a record belongs to a request.
type made func(team.Event) bool

// makes returns what recognizes an event of its kind for which fits is true; nil for any of the
// kind.
func makes[E team.Event](fits func(E) bool) made {
	return func(e team.Event) bool {
		one, is := e.(E)
		return is && (fits == nil || fits(one))
	}
}

// check refuses the record of another request: the client used its Idempotency-Key twice. A request
// that changed nothing has no record.
func (m made) check(r *team.Record) error {
	if r == nil || slices.ContainsFunc(r.Events, m) {
		return nil
	}
	return ErrKeyUsed
}

// events returns the events of a record; none if nothing changed.
func events(r *team.Record) []team.Event {
	if r == nil {
		return nil
	}
	return r.Events
}

// event returns the event of its kind in the record of a request.
func event[E team.Event](r *team.Record) (E, error) {
	e, is := team.EventIn[E](r)
	if !is {
		return e, makes[E](nil).check(r)
	}
	return e, nil
}

// earlier returns the record that the request made when it was sent before; nil for a new request.
// It is for handlers that take several commands, or that cannot send theirs again.
func (c *call) earlier(t *engine.Team, m made) (*team.Record, error) {
	var seq int64
	t.View(func(s *team.State) { seq = s.Recorded(c.key()) })
	if seq == 0 {
		return nil, nil
	}
	for r, err := range t.Read(c.Context(), seq-1) {
		if err == nil {
			err = m.check(r)
		}
		if err != nil {
			return nil, err
		}
		c.again = true
		c.recorded(r)
		return r, nil
	}
	return nil, nil
}

// act sends the command to the team of the route as the caller, and calls see with the team and its
// record, which is nil if nothing changed. The record has an event that m recognizes.
func (c *call) act(body team.Body, m made, see func(*engine.Team, *team.Record) error) error {
	actor, err := c.actor()
	if err != nil {
		return err
	}
	return c.actAs(actor, func(s *team.State) (team.Body, error) { return s.Resolve(body) }, m, see)
}

// actAs is act as that actor, for a command that depends on the team's state.
func (c *call) actAs(actor string, make func(*team.State) (team.Body, error), m made,
	see func(*engine.Team, *team.Record) error) error {
	return c.engine.ActOn(c.Context(), c.PathValue("team"), actor, func(s *team.State) (team.Body, error) {
		if s.Recorded(c.key()) != 0 { // the state may not allow it any more
			return &team.MarkRead{}, nil // any command: with a known id it stands for that one
		}
		return make(s)
	}, func(t *engine.Team, r *team.Record) error {
		c.recorded(r)
		if err := m.check(r); err != nil {
			return err
		}
		return see(t, r)
	})
}

func (c *call) recorded(r *team.Record) {
	if r != nil {
		c.seq = r.Seq
	}
}
