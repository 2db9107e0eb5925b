package codex

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"strconv"
	"sync"
	"time"

	"cadre/internal/agent"
	"cadre/internal/sys/sleep"
	"cadre/internal/sys/websocket"
)

// errBroken reports a broken connection: it is unknown whether the request was carried out.
var errBroken = errors.New("the connection to codex broke")

// wire is one connection to the app-server: JSON-RPC in WebSocket messages over a unix socket.
type wire struct {
	conn   *websocket.Conn
	broken chan struct{} // closed when no more messages arrive

	mu      sync.Mutex
	last    int
	waiting map[string]question
}

// question is a request of ours that waits for its answer.
type question struct {
	answer chan reply
	// called by the reader, before it reads what follows the answer; nil for none
	then func(result json.RawMessage)
}

type reply struct {
	result json.RawMessage
	err    error
}

// rpc is one message of any kind.
type rpc struct {
	ID     json.RawMessage `json:"id,omitempty"`
	Method string          `json:"method,omitempty"`
	Params json.RawMessage `json:"params,omitempty"`
	Result json.RawMessage `json:"result,omitempty"`
	Error  *rpcError       `json:"error,omitempty"`
}

// maxMessage bounds one message. A whole thread comes as one message.
const maxMessage = 256 << 20

// connect connects to the socket. A program that has just started may not listen on it yet.
func connect(ctx context.Context, socket string) (*wire, error) {
	for {
		conn, err := dial(ctx, socket)
		if err == nil {
			conn.SetReadLimit(maxMessage)
			return &wire{conn: conn, broken: make(chan struct{}), waiting: map[string]question{}}, nil
		}
		if ended := sleep.For(ctx, 20*time.Millisecond); ended != nil {
			return nil, errors.Join(ended, err)
		}
	}
}

func dial(ctx context.Context, socket string) (*websocket.Conn, error) {
	var d net.Dialer
	c, err := d.DialContext(ctx, "unix", socket)
	if err != nil {
		return nil, err
	}
	return websocket.Dial(ctx, c, "codex", "/")
}

// read passes messages to see until the connection breaks. Answers go to the waiting questions.
func (w *wire) read(see func(*wire, rpc)) {
	for {
		_, data, err := w.conn.Read(context.Background())
		if err != nil {
			break
		}
		var m rpc
		if json.Unmarshal(data, &m) != nil {
			continue
		}
		if m.Method != "" {
			see(w, m)
			continue
		}
		w.mu.Lock()
		q := w.waiting[string(m.ID)]
		delete(w.waiting, string(m.ID))
		w.mu.Unlock()
		switch {
		case q.answer == nil:
		case m.Error != nil:
			q.answer <- reply{err: m.Error}
		default:
			q.answer <- reply{result: m.Result}
			if q.then != nil {
				q.then(m.Result)
			}
		}
	}
	w.conn.CloseNow()
	close(w.broken)
}

// call sends a request to the program and waits for the answer.
func (w *wire) call(ctx context.Context, method string, params any, result any) error {
	return w.ask(ctx, method, params, result, nil)
}

func (w *wire) ask(ctx context.Context, method string, params any, result any, then func(json.RawMessage)) error {
	answer := make(chan reply, 1)
	w.mu.Lock()
	w.last++
	id := strconv.Itoa(w.last)
	w.waiting[id] = question{answer, then}
	w.mu.Unlock()
	if err := w.send(ctx, object{"id": json.RawMessage(id), "method": method, "params": params}); err != nil {
		return err
	}
	var r reply
	select {
	case r = <-answer:
	case <-w.broken:
		select {
		case r = <-answer:
		default:
			return errBroken
		}
	case <-ctx.Done():
		return ctx.Err()
	}
	if r.err != nil || result == nil {
		return r.err
	}
	return agent.Parse(r.result, result)
}

func (w *wire) send(ctx context.Context, message object) error {
	data, err := json.Marshal(message)
	if err != nil {
		return err
	}
	if err := w.conn.Write(ctx, websocket.Text, data); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return errors.Join(errBroken, err)
	}
	return nil
}
