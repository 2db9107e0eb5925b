package api

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"runtime/debug"
	"sync"
	"time"

	"github.com/coder/websocket"
)

// Limits of a connection of [Server.Streams].
const (
	mostStreams = 16               // at a time, each until its handler has returned
	maxAsk      = 8 << 10          // bytes of what the client sends at a time
	maxPart     = 64 << 10         // bytes of events that are sent at a time, unless one event is longer
	leaving     = time.Second      // how long a new stream waits for an old one to end that was closed
	unused      = 2 * time.Minute  // how long a connection without streams is kept
	pings       = 30 * time.Second // how often the client has to show that it is there
)

// ask is what a client of [Server.Streams] sends. Open and Close are a number that the client gives
// to a stream.
type ask struct {
	Open  int64  `json:"open"`
	At    string `json:"at"` // address of the stream to open, such as /v1/watch
	Close int64  `json:"close"`
}

// Streams returns the handler that serves several streams over one WebSocket: for pages, because a
// browser opens at most six connections to a host and does not count WebSockets among them. The
// client sends texts with [ask], and the server answers with texts of two parts. The first line is
// the number of the stream with a word, and then comes:
//
//	N events   server-sent events, as the route answers with them; at first none
//	N end      nothing: the stream has ended
//	N refused  the problem that the route answers with
//
// Each request passed [auth.Guard.Handler]; the routes check who may read what. [Server.Events]
// serves the same streams without a WebSocket.
func (s *Server) Streams() http.Handler {
	mux := s.streamRoutes()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// The guard has checked Host and Origin, and more exactly than the library does.
		ws, err := websocket.Accept(w, r, &websocket.AcceptOptions{InsecureSkipVerify: true})
		if err != nil {
			return // the library has answered
		}
		defer ws.CloseNow()
		if status, why := socketLine(ws, r, mux).serve(ws); why != "" {
			ws.Close(status, why)
		}
	})
}

// streamRoutes returns the handler of the routes that answer with a stream.
func (s *Server) streamRoutes() *http.ServeMux {
	mux := http.NewServeMux()
	for _, route := range Routes() {
		if route.Stream {
			mux.Handle(route.Method+" "+route.Path, s.serve(route))
		}
	}
	mux.Handle("/", Unrouted(mux))
	return mux
}

// line is a connection with several streams.
type line struct {
	ctx     context.Context
	host    string
	streams http.Handler
	// write sends a part of a stream, for which the client may take so long
	write func(data []byte, limit time.Duration) error

	mu    sync.Mutex
	open  map[int64]*opened // by the numbers of the streams, until their handlers have returned
	empty time.Time         // since when no stream is open
}

func newLine(r *http.Request, streams http.Handler) *line {
	return &line{ctx: r.Context(), host: r.Host, streams: streams, open: map[int64]*opened{}}
}

// socketLine returns the line of a WebSocket.
func socketLine(ws *websocket.Conn, r *http.Request, streams http.Handler) *line {
	ws.SetReadLimit(maxAsk)
	l := newLine(r, streams)
	l.write = func(data []byte, limit time.Duration) error {
		ctx, cancel := context.WithTimeout(l.ctx, limit)
		defer cancel()
		return ws.Write(ctx, websocket.MessageText, data)
	}
	return l
}

// opened is a stream whose handler has not returned.
type opened struct {
	ctx   context.Context
	end   context.CancelFunc
	leave bool          // it was closed, or sends its last part
	ended chan struct{} // closed when its handler has returned and its last part is sent
}

// serve opens and closes streams as the client asks. It returns when the connection has ended, or
// why it ends it.
func (l *line) serve(ws *websocket.Conn) (websocket.StatusCode, string) {
	var all sync.WaitGroup
	defer all.Wait()
	ctx, end := context.WithCancelCause(l.ctx)
	defer end(nil)
	l.empty = time.Now()
	all.Go(func() { l.check(ctx, ws, end) })
	for {
		_, data, err := ws.Read(ctx)
		if err != nil {
			return 0, ""
		}
		var is ask
		if err := json.Unmarshal(data, &is); err != nil || (is.Open > 0) == (is.Close > 0) {
			return websocket.StatusPolicyViolation, "this is not the opening or the end of a stream"
		}
		if is.Close > 0 {
			l.close(is.Close)
			continue
		}
		stream, why := l.enter(ctx, is.Open)
		if why != "" {
			return websocket.StatusPolicyViolation, why
		}
		all.Go(func() { l.follow(stream, is) })
	}
}

// check ends the connection when the client does not answer a ping in time, or has had no stream
// open for long.
func (l *line) check(ctx context.Context, ws *websocket.Conn, end context.CancelCauseFunc) {
	every := time.NewTicker(pings)
	defer every.Stop()
	for {
		select {
		case <-every.C:
		case <-ctx.Done():
			return
		}
		l.mu.Lock()
		over := len(l.open) == 0 && time.Since(l.empty) >= unused
		l.mu.Unlock()
		if over {
			ws.Close(websocket.StatusNormalClosure, "no stream is open")
			end(nil)
			return
		}
		answered, cancel := context.WithTimeout(ctx, slowReader)
		err := ws.Ping(answered)
		cancel()
		if err != nil {
			end(err)
			return
		}
	}
}

// enter adds a stream, or returns why it does not. It waits a while for the handlers of closed
// streams, so that a client may close a stream and open the next one at once.
func (l *line) enter(of context.Context, n int64) (*opened, string) {
	ctx, cancel := context.WithTimeout(of, leaving)
	defer cancel()
	for {
		stream, leaves, why := l.tryEnter(of, n)
		if stream != nil || leaves == nil {
			return stream, why
		}
		select {
		case <-leaves.ended:
		case <-ctx.Done():
			return nil, why
		}
	}
}

// tryEnter adds a stream. If it does not, it returns why, and a stream that leaves room when it has
// ended; nil if none is about to end.
func (l *line) tryEnter(ctx context.Context, n int64) (stream, leaves *opened, why string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if old := l.open[n]; old != nil {
		if old.leave {
			leaves = old
		}
		return nil, leaves, fmt.Sprintf("the stream %d is open", n)
	}
	if len(l.open) >= mostStreams {
		for _, one := range l.open {
			if one.leave {
				leaves = one
			}
		}
		return nil, leaves, fmt.Sprintf("%d streams are open, which is the most", mostStreams)
	}
	stream = &opened{ended: make(chan struct{})}
	stream.ctx, stream.end = context.WithCancel(ctx)
	l.open[n] = stream
	return stream, nil, ""
}

// close has the stream with that number end, if there is one.
func (l *line) close(n int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if is := l.open[n]; is != nil {
		is.leave = true
		is.end()
	}
}

// left gives back the number and the room of a stream whose handler has returned.
func (l *line) left(n int64, stream *opened) {
	l.mu.Lock()
	defer l.mu.Unlock()
	stream.end()
	delete(l.open, n)
	if len(l.open) == 0 {
		l.empty = time.Now()
	}
	close(stream.ended)
}

// follow sends a stream until it ends or is closed.
func (l *line) follow(stream *opened, is ask) {
	defer l.left(is.Open, stream)
	p := &part{line: l, n: is.Open, header: http.Header{}}
	l.answer(stream.ctx, p, is.At)
	l.mu.Lock()
	closed := stream.leave || stream.ctx.Err() != nil
	stream.leave = true // its number may be used again when the client knows of its end
	l.mu.Unlock()
	switch {
	case closed:
	case p.status == http.StatusOK:
		l.send(p.n, "end", nil)
	default:
		l.send(p.n, "refused", p.refusal.Bytes())
	}
}

// answer has the route of the address answer. A panic ends this stream alone, and is logged as
// net/http logs it: in a goroutine of its own it would end the server.
func (l *line) answer(ctx context.Context, p *part, at string) {
	defer func() {
		is := recover()
		if is == nil {
			return
		}
		if is != http.ErrAbortHandler {
			l.log("http: panic serving %s: %v\n%s", at, is, debug.Stack())
		}
		if p.status != 0 {
			return // what it has begun to answer only ends
		}
		Refuse(p, nil, ProblemOf(fmt.Errorf("the server failed to answer %s; its log says why", short(at))))
	}()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, at, nil)
	if err != nil {
		Refuse(p, nil, ProblemOf(usageError{fmt.Errorf("%s is not an address", short(at))}))
		return
	}
	r.Host = l.host
	l.streams.ServeHTTP(p, r)
}

// log writes to the log of the HTTP server that has the connection.
func (l *line) log(format string, args ...any) {
	if s, is := l.ctx.Value(http.ServerContextKey).(*http.Server); is && s.ErrorLog != nil {
		s.ErrorLog.Printf(format, args...)
	}
}

// send sends a part of a stream. A client that does not read 64 KiB of it in time loses the
// connection, and so does one whose context ends meanwhile; the context of one stream must
// therefore not end it.
func (l *line) send(n int64, what string, data []byte) error {
	limit := slowReader * time.Duration(1+max(len(data)-1, 0)/maxPart)
	return l.write(fmt.Appendf(nil, "%d %s\n%s", n, what, data), limit)
}

// part is the answer of one stream.
type part struct {
	line    *line
	n       int64
	header  http.Header
	status  int // 0 before the answer begins
	refusal bytes.Buffer
}

func (p *part) Header() http.Header { return p.header }

func (p *part) WriteHeader(status int) {
	if p.status == 0 {
		p.status = status
	}
}

func (p *part) Write(data []byte) (int, error) {
	p.WriteHeader(http.StatusOK)
	if p.status != http.StatusOK {
		return p.refusal.Write(data)
	}
	sent := 0
	for {
		n := cutEvents(data[sent:])
		if err := p.line.send(p.n, "events", data[sent:sent+n]); err != nil {
			return sent, err
		}
		if sent += n; sent == len(data) {
			return sent, nil
		}
	}
}

// cutEvents returns how many bytes of the events the next part has: whole events of at most maxPart
// together, or one event that is longer.
func cutEvents(data []byte) int {
	if len(data) <= maxPart {
		return len(data)
	}
	const end = "\n\n"
	if at := bytes.LastIndex(data[:maxPart], []byte(end)); at >= 0 {
		return at + len(end)
	}
	if at := bytes.Index(data, []byte(end)); at >= 0 {
		return at + len(end)
	}
	return len(data)
}

// FlushError does nothing: what is written is sent at once.
func (p *part) FlushError() error { return nil }

// SetWriteDeadline does nothing: send has a deadline.
func (p *part) SetWriteDeadline(time.Time) error { return nil }
