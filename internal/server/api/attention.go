package api

import (
	"context"
	"encoding/json"
	"reflect"
	"sync"
	"time"

	"cadre/internal/inspect/attention"
	"cadre/internal/inspect/catalog"
	"cadre/internal/server/auth"
	"cadre/internal/team"
)

// Teams are all teams at some moment, with what waits for a person in them.
type Teams struct {
	Teams     []catalog.Overview `json:"teams"`     // the teams, sorted by name
	Attention []attention.Item   `json:"attention"` // what waits, in the order of GET /v1/attention
}

var attentionRoutes = []Route{
	{Method: "GET", Path: "/v1/attention", ID: "listAttention", Command: "attention", Role: auth.Observe,
		About:  "List what waits for a person in all teams. Teams with a deadline come first, then the others by name.",
		Query:  []Param{pageAttention},
		Answer: reflect.TypeFor[[]attention.Item](), handle: (*call).listAttention},
	{Method: "GET", Path: "/v1/teams/{team}/attention", ID: "listTeamAttention", Command: "attention",
		Role: auth.Observe, About: "List what waits for a person in a team.", Query: []Param{pageAttention},
		Answer: reflect.TypeFor[[]attention.Item](), handle: (*call).listTeamAttention},
	{Method: "GET", Path: "/v1/watch", ID: "watchTeams", Command: "ls", Role: auth.Observe, Stream: true,
		About: "Follow all teams, with what waits for a person: the present state, and then each new one. A client " +
			"that reads slowly skips states, and gets the newest.",
		Event: "teams", Answer: reflect.TypeFor[Teams](), handle: (*call).watchTeams},
}

var pageAttention = Param{"wait", "integer",
	"wait up to so many seconds until something waits for a person, at most 60"}

func (c *call) listAttention() (any, error) { return c.attention("") }

func (c *call) listTeamAttention() (any, error) {
	name := c.PathValue("team")
	if _, err := c.engine.Home.Folder(name); err != nil {
		return nil, err
	}
	return c.attention(name)
}

// attention returns what waits in the team, or in all teams.
func (c *call) attention(only string) (any, error) {
	wait, err := c.wait()
	if err != nil {
		return nil, err
	}
	f := c.engine.Attention(only)
	defer f.Close()
	if wait == 0 {
		return f.List(c.Context())
	}
	ctx, cancel := context.WithTimeoutCause(c.Context(), wait,
		team.Refuse(team.Nothing, "nothing waited for you within %s", team.Span(wait)))
	defer cancel()
	return f.Wait(ctx)
}

// board has the teams as they were found last, for all that watch them.
type board struct {
	mu      sync.Mutex
	changed chan struct{} // closed and replaced at each change
	n       int64         // counts the changes; 0 before the first look
	found   []attention.Found
	text    []byte // for comparison: the teams without the time of the look
	data    []byte // what the user is sent
}

// See takes note of the teams as they were found, and tells those that watch them if something
// changed.
func (s *Server) See(found []attention.Found) {
	is := teamsOf(found)
	data := marshal(is)
	for i := range is.Teams {
		is.Teams[i].LookedAt = 0
	}
	text := marshal(is)
	b := &s.board
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.n > 0 && string(text) == string(b.text) {
		return
	}
	b.n++
	b.found, b.text, b.data = found, text, data
	close(b.changed)
	b.changed = make(chan struct{})
}

// next returns the newest state after the change with the number after, as soon as there is one.
func (b *board) next(ctx context.Context, after int64) (n int64, found []attention.Found, data []byte, err error) {
	for {
		b.mu.Lock()
		n, found, data = b.n, b.found, b.data
		changed := b.changed
		b.mu.Unlock()
		if n > after {
			return n, found, data, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return n, nil, nil, context.Cause(ctx)
		}
	}
}

// teamsOf returns the teams as the API shows them. A damaged team has a name and what is wrong.
func teamsOf(found []attention.Found) Teams {
	is := Teams{Teams: []catalog.Overview{}, Attention: attention.Waiting(found)}
	for _, f := range found {
		if f.Overview.ID == "" {
			f.Overview = catalog.Overview{Name: f.Folder, Attention: f.Items, Tasks: map[string]int{}}
		}
		is.Teams = append(is.Teams, f.Overview)
	}
	return is
}

// marshal encodes a value of ours, which can always be written.
func marshal(v any) []byte {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return data
}

func (c *call) watchTeams() (any, error) {
	s := c.stream()
	if s.flush() != nil {
		return nil, answered
	}
	var n int64
	var last []byte
	for {
		var found []attention.Found
		var data []byte
		err := s.waiting(func(ctx context.Context) (err error) {
			n, found, data, err = c.server.board.next(ctx, n)
			return err
		})
		if err != nil {
			c.server.ends(s, err)
			return nil, answered
		}
		if !c.who.IsUser() {
			if data = c.reachable(found); string(data) == string(last) {
				continue
			}
			last = data
		}
		s.add("", "teams", data)
		if s.flush() != nil {
			return nil, answered
		}
		s.rest(watchPace)
	}
}

// watchPace is the shortest time between two states that a client is sent.
const watchPace = 100 * time.Millisecond

// reachable returns the teams that the caller may see.
func (c *call) reachable(all []attention.Found) []byte {
	var found []attention.Found
	for _, f := range all {
		if _, err := c.engine.Home.Folder(f.Folder); err == nil {
			found = append(found, f)
		}
	}
	return marshal(teamsOf(found))
}
