package coordinator

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"cadre/internal/engine"
	"cadre/internal/journal"
	"cadre/internal/observe/present"
	"cadre/internal/server/api"
	"cadre/internal/team"
)

const (
	// maxSubscriptions bounds the teams that a connection follows.
	maxSubscriptions = 256
	// together is how long a subscription waits after it sent something, so that records that come
	// in quick succession are taken from the feed at once.
	together = 10 * time.Millisecond
)

// encoder is the [api.Encoder] to frames of events, one a line.
func encoder(ctx context.Context, t *engine.Team, after int64) (func(*team.Record) []byte, error) {
	s, err := stateAt(ctx, t, after)
	if err != nil {
		return nil, err
	}
	var live *present.Live
	if of := s.Team(); after == 0 || of.Observed != "" {
		live, _ = present.NewLive(observed{s})
	}
	return func(r *team.Record) []byte {
		s.Apply(r)
		of := s.Team()
		if of.Observed != "" && live != nil {
			return framesOf(idOf(&of), r.Seq, noticesOf(s, r, live))
		}
		return framesOf(idOf(&of), r.Seq, eventsOf(s, r))
	}, nil
}

// stateAt returns the state after the record seq.
func stateAt(ctx context.Context, t *engine.Team, seq int64) (*team.State, error) {
	if seq == 0 {
		return team.DecodeSnapshot(0, "")
	}
	return t.Past().At(ctx, seq)
}

// framesOf returns the frames of the events of a record, one a line. All but the last have the
// number of their part.
func framesOf(id string, seq int64, events []event) []byte {
	var lines [][]byte
	for i, e := range events {
		f := answerFrame{Type: e.kind, TeamID: id, Seq: seq, Payload: e.payload}
		if i < len(events)-1 {
			f.Part = int64(i + 1)
		}
		lines = append(lines, f.encode())
	}
	return bytes.Join(lines, []byte("\n"))
}

// subscription sends the events of a team to a client.
type subscription struct {
	end  context.CancelFunc
	done chan struct{} // closed when it has ended

	mu   sync.Mutex
	sent int64 // the events of the records up to this one were sent
	grew chan struct{}
}

// await waits until the events up to seq were sent, or the subscription or ctx has ended.
func (s *subscription) await(ctx context.Context, seq int64) {
	for {
		s.mu.Lock()
		sent, grew := s.sent, s.grew
		s.mu.Unlock()
		if sent >= seq {
			return
		}
		select {
		case <-grew:
		case <-s.done:
			return
		case <-ctx.Done():
			return
		}
	}
}

func (s *subscription) advance(seq int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sent = seq
	close(s.grew)
	s.grew = make(chan struct{})
}

// subscription returns the subscription to the team; nil for none.
func (c *conn) subscription(id string) *subscription {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.subs[id]
}

// seen returns up to which record the events of each subscription were sent.
func (c *conn) seen() map[string]int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	seen := map[string]int64{}
	for id, s := range c.subs {
		s.mu.Lock()
		seen[id] = s.sent
		s.mu.Unlock()
	}
	return seen
}

// follow subscribes to the team: the events of the records after that one follow, and if part is
// set, those of that record after its part.
func (c *conn) follow(t *engine.Team, after, part int64) error {
	of := t.Team()
	id := idOf(&of)
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.subs) >= maxSubscriptions {
		return team.Refuse(team.NotReady, "the connection follows %d teams, which is the most", len(c.subs))
	}
	feed, leave, err := c.server.feeds.Follow(of.ID, func() (*engine.Team, error) {
		return c.server.Engine.In(c.server.Dir).Look(context.Background(), t.Name)
	})
	if err != nil {
		return err
	}
	ctx, end := context.WithCancel(c.ctx)
	s := &subscription{end: end, done: make(chan struct{}), sent: after, grew: make(chan struct{})}
	if part > 0 {
		s.sent--
	}
	c.subs[id] = s
	c.work.Go(func() {
		defer leave()
		defer end()
		defer close(s.done)
		err := c.stream(ctx, s, feed, part)
		c.mu.Lock()
		delete(c.subs, id)
		c.mu.Unlock()
		c.over(ctx, id, err)
	})
	return nil
}

// stream sends events until ctx ends, the team is cleaned up, or there is an error. It leaves out
// so many parts of the first record.
func (c *conn) stream(ctx context.Context, s *subscription, feed *api.Feed, part int64) error {
	for after := s.sent; ; {
		frames, err := feed.Next(ctx, after)
		over, failed := c.sendAll(ctx, s, frames, part)
		switch {
		case failed != nil:
			return failed
		case over:
			return errOver
		case err != nil:
			return err
		}
		if n := len(frames); n > 0 {
			after, part = frames[n-1].Seq, 0
		}
		c.rest(ctx)
	}
}

// sendAll sends the events of the records, and reports whether the team was removed with them. It
// leaves out so many parts of the first record.
func (c *conn) sendAll(ctx context.Context, s *subscription, frames []api.Frame, part int64) (over bool, err error) {
	c.line.hold()
	defer func() {
		if c.line.release() != nil {
			c.end()
		}
	}()
	for _, f := range frames {
		lines := bytes.Split(f.Data, []byte("\n"))
		over = slices.ContainsFunc(lines, endsTeam)
		lines, part = lines[min(int(part), len(lines)):], 0
		for _, line := range lines {
			if err := ctx.Err(); err != nil {
				return false, err
			}
			if len(line) > 0 {
				c.write(line)
			}
		}
		s.advance(f.Seq)
	}
	return over, nil
}

// endsTeam reports whether a frame says that its team was removed.
func endsTeam(line []byte) bool {
	return bytes.HasPrefix(line, []byte(`{"type":"`+teamCleanedUp+`"`)) ||
		bytes.HasPrefix(line, []byte(`{"type":"`+present.Deleted+`"`))
}

// errOver says that the client was told of the end of the team.
var errOver = errors.New("the team was cleaned up")

// over tells the client why its subscription ends, if it does not know.
func (c *conn) over(ctx context.Context, id string, err error) {
	switch {
	case ctx.Err() != nil || errors.Is(err, errOver):
	case errors.Is(err, journal.ErrGone): // its last records went with it
		c.send(answerFrame{Type: teamCleanedUp, TeamID: id, Payload: TeamRef{id}})
	default:
		is := failureOf(lost(err))
		is.Message = fmt.Sprintf("the subscription to %s ends: %s", id, is.Message)
		c.send(answerFrame{Type: "error", TeamID: id, Payload: is})
	}
}

// rest waits a moment, so that what comes meanwhile is taken at once.
func (c *conn) rest(ctx context.Context) {
	timer := time.NewTimer(together)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

func (q *call) subscribe() (answer, error) {
	p := q.payload.(*Subscribe)
	t, err := q.look(p.TeamID)
	if err != nil {
		return answer{}, err
	}
	of := t.Team()
	id := idOf(&of)
	if q.subscription(id) != nil {
		return answer{}, usage("this connection follows team %s already; unsubscribe first", of.Name)
	}
	is := Subscribed{TeamID: id}
	var shown []event
	t.View(func(s *team.State) {
		if is.Seq = s.Seq(); p.After == nil {
			shown = presentOf(s)
		}
	})
	if is.After = is.Seq; p.After != nil {
		is.After = *p.After
	}
	if err := q.continuable(t, is, p.Part); err != nil {
		return answer{}, err
	}
	a := answer{team: id, reply: is, events: []event{{"subscribed", is}}} // without a seq: the events are still to come
	q.opened = nil                                                        // until it is followed
	a.then = func() {
		defer t.Close()
		for _, e := range shown {
			q.send(answerFrame{Type: e.kind, TeamID: id, Seq: is.Seq, Payload: e.payload})
		}
		if err := q.follow(t, is.After, p.Part); err != nil {
			q.fail(q.frame, err)
		}
	}
	return a, nil
}

// continuable refuses a cursor after which no records can follow.
func (q *call) continuable(t *engine.Team, is Subscribed, part int64) error {
	switch {
	case is.After < 0 || part < 0 || part > 0 && is.After == 0:
		return usage("after and part are the seq and the part of an event")
	case is.After > is.Seq:
		err := fmt.Errorf("team %s has no record %d yet; its last one is %d", t.Team().Name, is.After, is.Seq)
		return protocolError{err, codeAhead, is.Seq}
	case is.After == is.Seq && part == 0:
		return nil
	}
	if part > 0 {
		is.After--
	}
	if _, err := stateAt(q.ctx, t, is.After); err != nil {
		return lost(err)
	}
	for _, err := range t.Read(q.ctx, is.After) {
		var damage *journal.DamageError
		if errors.As(err, &damage) {
			return protocolError{err, codeGone, 0}
		}
		return err
	}
	return nil
}

// presentOf returns the events that show the present state of the team.
func presentOf(s *team.State) []event {
	if of := s.Team(); of.Observed != "" {
		_, whole := present.NewLive(observed{s})
		return []event{{whole.Type, whole}}
	}
	return []event{{teamStatusUpdate, TeamPayload{teamOf(s)}}}
}

func (q *call) unsubscribe() (answer, error) {
	ref := q.payload.(*OneTeam).TeamID
	s := q.subscription(ref)
	if s == nil {
		t, err := q.look(ref)
		if err != nil {
			return answer{}, err
		}
		of := t.Team()
		ref = idOf(&of)
		if s = q.subscription(ref); s == nil {
			return answer{}, usage("this connection does not follow team %s", of.Name)
		}
	}
	s.end()
	<-s.done
	is := TeamRef{ref}
	return answer{team: ref, reply: is, events: []event{{"unsubscribed", is}}}, nil
}

func (q *call) ping() (answer, error) {
	return answer{reply: Empty{}, events: []event{{"pong", Empty{}}}}, nil
}

func (q *call) health() (answer, error) {
	is := Health{true}
	return answer{reply: is, events: []event{{"health_check_response", is}}}, nil
}

func (q *call) daemonStatus() (answer, error) {
	is := q.server.status(time.Now())
	return answer{reply: is, events: []event{{daemonStatus, is}}}, nil
}
