package api

import (
	"bytes"
	"context"
	"net/http"
	"time"
)

const (
	// slowReader is how long a client may take to read what was sent, before it is disconnected. It
	// comes back and continues from its cursor.
	slowReader = 30 * time.Second
	// together is the shortest time that a stream of records waits after it sent something, so that
	// records that come in quick succession are sent at once.
	together = 10 * time.Millisecond
)

// stream is an answer of server-sent events.
type stream struct {
	call *call
	to   *http.ResponseController
	buf  bytes.Buffer
	beat time.Duration
}

// stream begins an answer of server-sent events.
func (c *call) stream() *stream {
	beginEvents(c.w)
	return &stream{call: c, to: http.NewResponseController(c.w), beat: c.server.Beat}
}

// beginEvents begins an answer of server-sent events.
func beginEvents(w http.ResponseWriter) {
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no")
	w.WriteHeader(http.StatusOK)
}

// add adds an event to what is sent next: with that id, unless it is "". data is one line.
func (s *stream) add(id, kind string, data []byte) {
	if id != "" {
		s.buf.WriteString("id: ")
		s.buf.WriteString(id)
		s.buf.WriteByte('\n')
	}
	s.buf.WriteString("event: ")
	s.buf.WriteString(kind)
	s.buf.WriteString("\ndata: ")
	s.buf.Write(data)
	s.buf.WriteString("\n\n")
}

// flush sends what was added.
func (s *stream) flush() error {
	s.to.SetWriteDeadline(time.Now().Add(slowReader))
	_, err := s.call.w.Write(s.buf.Bytes())
	s.buf.Reset()
	if err == nil {
		err = s.to.Flush()
	}
	return err
}

// waiting calls next, which waits for something to send until its context ends. It sends a comment
// each time that nothing came for a while. It returns the error of next, and of the connection.
func (s *stream) waiting(next func(ctx context.Context) error) error {
	for {
		ctx, cancel := context.WithTimeout(s.call.Context(), s.beat)
		err := next(ctx)
		idle := ctx.Err() != nil && s.call.Context().Err() == nil
		cancel()
		if err == nil || !idle {
			return err
		}
		s.buf.WriteString(": nothing new\n\n")
		if err := s.flush(); err != nil {
			return err
		}
	}
}

// rest waits for that time, so that what comes meanwhile is sent at once.
func (s *stream) rest(pace time.Duration) {
	timer := time.NewTimer(pace)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-s.call.Context().Done():
	}
}
