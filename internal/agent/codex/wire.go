package codex

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/coder/websocket"
)

// errBroken means that the connection broke: whether what was asked for was done is not known.
var errBroken = errors.New("the connection to codex broke")

// wire is one connection to the app-server: JSON-RPC in WebSocket messages over a unix socket.
type wire struct {
	conn   *websocket.Conn
	broken chan struct{} // closed when nothing comes any more

	mu      sync.Mutex
	last    int
	waiting map[string]chan reply
}

type reply struct {
	result json.RawMessage
	err    error
}

// rpc is one message, of any kind.
type rpc struct {
	ID     json.RawMessage `json:"id,omitempty"`
	Method string          `json:"method,omitempty"`
	Params json.RawMessage `json:"params,omitempty"`
	Result json.RawMessage `json:"result,omitempty"`
	Error  *rpcError       `json:"error,omitempty"`
}

// maxMessage bounds what is read at once. A whole thread comes as one message.
const maxMessage = 256 << 20

// connect connects to the socket, which a program that has just started may not listen on yet.
func connect(ctx context.Context, socket string) (*wire, error) {
	client := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "unix", socket)
	}}}
	for {
		conn, _, err := websocket.Dial(ctx, "ws://codex/", &websocket.DialOptions{HTTPClient: client, CompressionMode: websocket.CompressionDisabled})
		if err == nil {
			conn.SetReadLimit(maxMessage)
			return &wire{conn: conn, broken: make(chan struct{}), waiting: map[string]chan reply{}}, nil
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(ctx.Err(), err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// read passes what comes to see until the connection breaks. Answers go to who waits for them.
func (w *wire) read(see func(rpc)) {
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
			see(m)
			continue
		}
		w.mu.Lock()
		answer := w.waiting[string(m.ID)]
		delete(w.waiting, string(m.ID))
		w.mu.Unlock()
		if answer != nil {
			if m.Error != nil {
				answer <- reply{err: m.Error}
			} else {
				answer <- reply{result: m.Result}
			}
		}
	}
	w.conn.CloseNow()
	close(w.broken)
}

func (w *wire) call(ctx context.Context, method string, params any, result any) error {
	answer := make(chan reply, 1)
	w.mu.Lock()
	w.last++
	id := strconv.Itoa(w.last)
	w.waiting[id] = answer
	w.mu.Unlock()
	if err := w.send(ctx, object{"id": w.numbered(id), "method": method, "params": params}); err != nil {
		return err
	}
	select {
	case r := <-answer:
		if r.err != nil || result == nil {
			return r.err
		}
		return json.Unmarshal(r.result, result)
	case <-w.broken:
		select {
		case r := <-answer:
			if r.err != nil || result == nil {
				return r.err
			}
			return json.Unmarshal(r.result, result)
		default:
			return errBroken
		}
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (*wire) numbered(id string) json.RawMessage { return json.RawMessage(id) }

func (w *wire) send(ctx context.Context, message object) error {
	data, err := json.Marshal(message)
	if err != nil {
		return err
	}
	if err := w.conn.Write(ctx, websocket.MessageText, data); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return errors.Join(errBroken, err)
	}
	return nil
}
