package api

import (
	"fmt"
	"net/http"
	"sync"
	"time"
)

// Events returns the handler that serves several streams as one answer of server-sent events: for
// pages that get no WebSocket, because a proxy passes none. The client gives the addresses of all
// its streams as at=, and they have the numbers 1, 2 and so on, in that order. The data of an event
// "part" is a text of [Server.Streams], as a JSON string. A client that wants other streams asks
// again, with the cursors that it has come to. The answer ends when all streams have ended.
//
// Each request passed [auth.Guard.Handler]; the routes check who may read what.
func (s *Server) Events() http.Handler {
	mux := s.streamRoutes()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		at := r.URL.Query()["at"]
		if len(at) == 0 || len(at) > mostStreams {
			Refuse(w, r, ProblemOf(usageError{fmt.Errorf("at= must name 1 to %d streams, and names %d", mostStreams,
				len(at))}))
			return
		}
		beginEvents(w)
		l := newLine(r, mux)
		l.write = eventsTo(w)
		var all sync.WaitGroup
		defer all.Wait()
		for i, address := range at {
			stream, _ := l.enter(r.Context(), int64(i+1)) // there is room
			all.Go(func() { l.follow(stream, ask{Open: int64(i + 1), At: address}) })
		}
	})
}

// eventsTo returns what sends each text as an event.
func eventsTo(w http.ResponseWriter) func(data []byte, limit time.Duration) error {
	var mu sync.Mutex // of the streams, which send one at a time
	to := http.NewResponseController(w)
	return func(data []byte, limit time.Duration) error {
		text := marshal(string(data))
		mu.Lock()
		defer mu.Unlock()
		to.SetWriteDeadline(time.Now().Add(limit))
		if _, err := fmt.Fprintf(w, "event: part\ndata: %s\n\n", text); err != nil {
			return err
		}
		return to.Flush()
	}
}
