package api

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"cadre/internal/engine"
	"cadre/internal/server/auth"
	"cadre/internal/team"
)

var roomRoutes = []Route{
	{Method: "PUT", Path: "/v1/teams/{team}/rooms/{member}", ID: "reserveRoom", Command: "spawn", Role: auth.Steer,
		About: "Reserve room for a teammate that joins within 45 seconds. It is refused if the server runs as many " +
			"teammates as it may.",
		handle: (*call).reserveRoom},
	{Method: "DELETE", Path: "/v1/teams/{team}/rooms/{member}", ID: "giveBackRoom", Command: "spawn",
		Role: auth.Steer, About: "Give back the room of a teammate that does not join.",
		handle: (*call).giveBackRoom},
}

// roomTime is how long room is reserved for a teammate that another process adds. That process
// waits for other writers of the team for [engine.BusyTime] at most, after it has the answer.
const roomTime = engine.BusyTime + 15*time.Second

// rooms are the reservations for other processes. The zero rooms is ready for use.
type rooms struct {
	mu  sync.Mutex
	all map[roomOf][]*func() // what ends them, the newest last
	// when room in a team was last reserved. Its host may run already, and the server was not told
	// yet that it keeps the team.
	last map[string]time.Time
}

// recent reports whether room in the team was reserved a moment ago.
func (r *rooms) recent(id string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return time.Since(r.last[id]) < roomTime
}

type roomOf struct{ id, member string }

// add adds a reservation that end ends. Call what it returns when it has ended.
func (r *rooms) add(of roomOf, end func()) (ended func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.all == nil {
		r.all, r.last = map[roomOf][]*func(){}, map[string]time.Time{}
	}
	for id, at := range r.last {
		if time.Since(at) >= roomTime {
			delete(r.last, id)
		}
	}
	r.last[of.id] = time.Now()
	one := &end
	r.all[of] = append(r.all[of], one)
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.all[of] = slices.DeleteFunc(r.all[of], func(is *func()) bool { return is == one })
		if len(r.all[of]) == 0 {
			delete(r.all, of)
		}
	}
}

// end ends the newest reservation for the teammate, if there is one.
func (r *rooms) end(of roomOf) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if all := r.all[of]; len(all) > 0 {
		(*all[len(all)-1])()
		r.all[of] = all[:len(all)-1]
	}
}

// reserveRoom reserves room for a teammate, until it has joined, the room is given back or the time
// is over. A team that runs and is not kept by the server does not count: its teammates run
// elsewhere.
func (c *call) reserveRoom() (any, error) {
	of, member, err := c.roomer()
	if err != nil {
		return nil, err
	}
	if !c.server.Keeps.Has(of.ID) && !c.server.rooms.recent(of.ID) {
		t, err := c.look()
		if err != nil {
			return nil, err
		}
		is, err := t.Standing(c.Context())
		if err != nil || is.Hosted {
			return nil, err
		}
	}
	release, err := c.server.Keeps.Reserve(c.Context(), of, member)
	if err != nil {
		return nil, err
	}
	t, err := c.engine.Look(c.Context(), c.PathValue("team"))
	if err != nil {
		release()
		return nil, err
	}
	seq := t.Seq()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.Context()), roomTime)
	ended := c.server.rooms.add(roomOf{of.ID, member}, func() {
		cancel()
		release()
	})
	go func() {
		defer cancel()
		defer t.Close()
		defer release()
		defer ended()
		for r, err := range t.Watch(ctx, seq) {
			if err != nil || slices.ContainsFunc(r.Events, func(e team.Event) bool {
				is, joins := e.(*team.MemberSpawned)
				return joins && is.Member.Name == member
			}) {
				return
			}
		}
	}()
	return nil, nil
}

func (c *call) giveBackRoom() (any, error) {
	of, member, err := c.roomer()
	if err == nil {
		c.server.rooms.end(roomOf{of.ID, member})
	}
	return nil, err
}

// roomer returns the team and the teammate of the route. Only who may add a teammate may ask for
// its room.
func (c *call) roomer() (of team.Team, member string, err error) {
	member = c.PathValue("member")
	if !team.ValidName(member) {
		return of, "", usageError{fmt.Errorf("%q is not the name of a member", short(member))}
	}
	if of, err = c.engine.Glance(c.Context(), c.PathValue("team")); err != nil {
		return of, "", err
	}
	if !c.who.IsUser() && c.who.Member() != of.Lead {
		err = team.Refuse(team.Denied, "room for a teammate of team %s must be reserved by its lead", of.Name)
	}
	return of, member, err
}
