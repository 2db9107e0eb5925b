package coordinator

import (
	"context"
	"errors"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"

	"cadre/internal/server/auth"
	"cadre/internal/team"
)

// Limits of a connection.
const (
	// maxFrame bounds a request, in bytes: a text of a team has at most a megabyte, and JSON may
	// write a character in six.
	maxFrame = 8 << 20
	// maxWaste bounds how much of a longer frame is read, so that the connection can continue.
	maxWaste = 64 << 20
	// maxBeside bounds the requests that a connection waits for beside the present one.
	maxBeside = 64
)

// slowReader is how long a client may take to read a frame, before it is disconnected. It comes
// back and continues from its cursor. Tests take less.
var slowReader = 30 * time.Second

// conn is a connection.
type conn struct {
	server *Server
	who    auth.Principal
	ws     *websocket.Conn
	line   *corked // below ws
	ctx    context.Context
	end    context.CancelFunc
	busy   atomic.Bool // a request is carried out, and no frame is read meanwhile
	aside  atomic.Int64

	out  sync.Mutex
	left bool // the last frame was sent

	mu   sync.Mutex
	subs map[string]*subscription // by the ids of the teams
	work sync.WaitGroup
}

// serve reads requests and answers them until the connection or the context ends.
func (c *conn) serve() {
	defer c.work.Wait()
	defer c.end()
	c.work.Go(c.beat)
	c.ws.SetReadLimit(-1) // read keeps the limit, and the connection
	for {
		data, wrong, err := c.read()
		if err != nil {
			return
		}
		if wrong != nil {
			c.fail(frame{}, wrong)
			continue
		}
		c.busy.Store(true)
		c.handle(data)
		c.busy.Store(false)
	}
}

// read returns the next frame, or what is wrong with it.
func (c *conn) read() (data []byte, wrong, err error) {
	kind, r, err := c.ws.Reader(c.ctx)
	if err != nil {
		return nil, nil, err
	}
	if data, err = io.ReadAll(io.LimitReader(r, maxFrame+1)); err != nil {
		return nil, nil, err
	}
	if len(data) > maxFrame {
		n, err := io.Copy(io.Discard, io.LimitReader(r, maxWaste))
		if err == nil && n == maxWaste {
			err = errors.New("the frame has no end")
			c.ws.Close(websocket.StatusMessageTooBig, err.Error())
		}
		return nil, team.Refuse(team.TooLarge, "the frame has more than %d bytes", maxFrame), err
	}
	if kind != websocket.MessageText {
		return nil, usage("the frame is binary; requests are texts"), nil
	}
	return data, nil, nil
}

// handle carries out the request in a frame, and answers it.
func (c *conn) handle(data []byte) {
	f, row, payload, err := decode(data)
	if err != nil {
		c.fail(f, err)
		return
	}
	seen := c.seen()
	c.reply(f, seen, func() (answer, error) { return c.carryOut(f, row, payload, seen) })
}

// reply sends the answer to a request: a reply if it has an id, otherwise the events that it stands
// for, or nothing where a subscription has them. seen says up to which record the events of each
// subscription were sent before the request.
func (c *conn) reply(f frame, seen map[string]int64, do func() (answer, error)) {
	a, err := do()
	switch {
	case err != nil:
		c.fail(f, err)
		return
	case a.later:
		return
	}
	sub := c.subscription(a.team)
	_, was := seen[a.team]
	if sub != nil && (len(f.ID) > 0 || a.recorded <= seen[a.team]) {
		sub.await(c.ctx, a.seq)
	}
	if a.seq == forEver {
		a.seq = 0
	}
	switch {
	case len(f.ID) > 0:
		c.send(answerFrame{Type: "reply", ID: f.ID, TeamID: a.team, Seq: a.seq, Payload: a.reply})
	case (sub != nil || was) && a.recorded > seen[a.team]: // it comes, or came, with the record
	default:
		for _, e := range a.events {
			c.send(answerFrame{Type: e.kind, TeamID: a.team, Seq: a.seq, Payload: e.payload})
		}
	}
	if a.then != nil {
		a.then()
	}
}

// fail answers with an error.
func (c *conn) fail(f frame, err error) {
	if code := team.CodeOf(err); code != "" && c.server.Refused != nil {
		c.server.Refused(code)
	}
	is := failureOf(err)
	is.Request = clip(f.Type)
	c.send(answerFrame{Type: "error", ID: f.ID, Payload: is})
}

func (c *conn) send(f answerFrame) { c.write(f.encode()) }

// write sends a frame, unless the last one was sent.
func (c *conn) write(data []byte) {
	c.out.Lock()
	defer c.out.Unlock()
	if !c.left {
		c.put(data)
	}
}

// leave sends the last frame, and closes the connection.
func (c *conn) leave() {
	c.finish()
	c.close(websocket.StatusGoingAway, "the server stops")
}

// finish sends the last frame, which says that the server has stopped. A client that may not see
// the state of the server gets none.
func (c *conn) finish() {
	c.out.Lock()
	defer c.out.Unlock()
	if !c.left && c.may(requestOf(daemonStatus)) == nil {
		c.put(answerFrame{Type: daemonStatus, Payload: c.server.status(time.Now())}.encode())
	}
	c.left = true
}

// close closes the connection, and says why.
func (c *conn) close(code websocket.StatusCode, why string) {
	c.ws.Close(code, why)
	c.end()
}

// put sends a frame. A client that does not read it is disconnected.
func (c *conn) put(data []byte) {
	ctx, cancel := context.WithTimeout(c.ctx, slowReader)
	defer cancel()
	if err := c.ws.Write(ctx, websocket.MessageText, data); err != nil {
		c.end()
	}
}

// beside carries on with a request while others are read.
func (c *conn) beside(do func()) {
	if c.aside.Add(1) > maxBeside { // the client waits for its turn
		defer c.aside.Add(-1)
		do()
		return
	}
	c.work.Go(func() {
		defer c.aside.Add(-1)
		do()
	})
}

// beat asks the client from time to time whether it is alive, and ends the connection if it is not.
// No frame is read while a request is carried out, so that proves nothing then.
func (c *conn) beat() {
	timer := time.NewTicker(c.server.Beat)
	defer timer.Stop()
	for {
		select {
		case <-c.ctx.Done():
			return
		case <-timer.C:
		}
		ctx, cancel := context.WithTimeout(c.ctx, c.server.Beat)
		err := c.ws.Ping(ctx)
		cancel()
		if err != nil && !c.busy.Load() {
			c.end()
			return
		}
	}
}
