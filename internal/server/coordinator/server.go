package coordinator

import (
	"context"
	_ "embed"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"

	"cadre/internal/engine"
	"cadre/internal/inspect/attention"
	"cadre/internal/server/api"
	"cadre/internal/server/auth"
	"cadre/internal/server/supervisor"
	"cadre/internal/team"
)

// Options configure a Server.
type Options struct {
	// Engine opens the teams. It must keep shared replicas, so that all readers of a team have one.
	Engine *engine.Engine
	// Dir is the directory in which teams work that are created over the protocol.
	Dir string
	// Beat is how often a connection is asked whether it is alive; 0 for 30 seconds.
	Beat time.Duration
	// Grace is how long a teammate may take to end that is asked to; 0 for 10 seconds.
	Grace time.Duration
	// MaxSockets bounds the connections at a time; 0 for 500.
	MaxSockets int64
	// Keys remembers the requests with a key; nil for a memory of its own.
	Keys *api.Keys
	// Keeps has the teams that the server keeps running, and those that were found; nil for none.
	Keeps *supervisor.Supervisor
	// Totals returns the totals of all teams; nil for zeros.
	Totals func() (Metrics, TeamMetrics)
	// Refused is called with each refusal of the core, for the metrics; nil for nothing.
	Refused func(code team.Code)
	// Log gets a line for people; nil for nobody.
	Log func(string)
}

// Server speaks the protocol with any number of clients. Make one with [New].
type Server struct {
	Options
	began    time.Time
	feeds    api.Feeds
	sockets  atomic.Int64
	creating sync.Mutex

	mu      sync.Mutex
	conns   map[*conn]bool
	stopped bool
}

// New returns a server.
func New(o Options) *Server {
	if o.Beat == 0 {
		o.Beat = 30 * time.Second
	}
	if o.Grace == 0 {
		o.Grace = 10 * time.Second
	}
	if o.MaxSockets == 0 {
		o.MaxSockets = 500
	}
	if o.Keys == nil {
		o.Keys = &api.Keys{}
	}
	return &Server{Options: o, began: time.Now(), feeds: api.Feeds{Encoder: encoder}, conns: map[*conn]bool{}}
}

func (s *Server) note(text string) {
	if s.Log != nil {
		s.Log(text)
	}
}

// Description is the AsyncAPI description of the protocol.
//
//go:embed asyncapi.json
var Description []byte

// Describe answers with the description of the protocol.
func Describe(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	w.Write(Description)
}

// ServeHTTP accepts a connection, and speaks the protocol until it or the request's context ends.
// The request must have passed [auth.Guard.Handler].
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	defer s.sockets.Add(-1)
	if n := s.sockets.Add(1); n > s.MaxSockets {
		err := team.Refuse(team.NotReady, "%d connections are open, which is the most", s.MaxSockets)
		api.Refuse(w, r, api.ProblemOf(err).With(http.StatusServiceUnavailable))
		return
	}
	// The guard has checked Host and Origin, and more exactly than the library does.
	line := &corking{ResponseWriter: w}
	ws, err := websocket.Accept(line, r, &websocket.AcceptOptions{InsecureSkipVerify: true})
	if err != nil {
		return // the library has answered
	}
	ctx, end := context.WithCancel(context.WithoutCancel(r.Context()))
	c := &conn{server: s, who: auth.From(r.Context()), ws: ws, line: line.conn, ctx: ctx, end: end,
		subs: map[string]*subscription{}}
	stop := context.AfterFunc(r.Context(), func() {
		c.close(websocket.StatusPolicyViolation, context.Cause(r.Context()).Error())
	})
	defer stop()
	if !s.enter(c) {
		c.leave()
		return
	}
	c.serve()
	s.exit(c)
	ws.CloseNow()
}

// enter adds a connection, unless the server has stopped.
func (s *Server) enter(c *conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.stopped {
		s.conns[c] = true
	}
	return !s.stopped
}

func (s *Server) exit(c *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, c)
}

// Stop tells each client that the server has stopped, and closes its connection. It returns when
// all connections are closed, or ctx has ended.
func (s *Server) Stop(ctx context.Context) {
	s.mu.Lock()
	s.stopped = true
	var all sync.WaitGroup
	for c := range s.conns {
		all.Go(c.leave)
	}
	s.mu.Unlock()
	closed := make(chan struct{})
	go func() {
		all.Wait()
		close(closed)
	}()
	select {
	case <-closed:
	case <-ctx.Done():
	}
}

// stopping reports whether the server has stopped, or pauses its teams in order to stop.
func (s *Server) stopping() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stopped || s.Keeps != nil && s.Keeps.Stopping()
}

// status returns the state of the server, from what was found of the teams.
func (s *Server) status(now time.Time) DaemonStatus {
	is := DaemonStatus{Status: "initializing", Uptime: now.Sub(s.began).Milliseconds()}
	teams, kept := Subsystem{Status: "initializing"}, Subsystem{Status: "running"}
	var found []attention.Found
	if s.Keeps != nil {
		var seen bool
		if found, seen = s.Keeps.Found(); seen {
			is.Status, teams.Status = "running", "running"
		}
		for _, t := range s.Keeps.Teams() {
			if !t.Running && t.Tries > 1 {
				kept.Errors = append(kept.Errors, fmt.Sprintf("team %s: %s", t.Name, t.Why))
			}
		}
	}
	at := Time(engine.Now())
	kept.LastCheck = &at
	for _, f := range found {
		if f.Overview.LookedAt != 0 {
			at := Time(f.Overview.LookedAt)
			if teams.LastCheck == nil || *teams.LastCheck < at {
				teams.LastCheck = &at
			}
		}
		if f.Team.ID == "" {
			teams.Errors = append(teams.Errors, fmt.Sprintf("team %s cannot be read", f.Folder))
			continue
		}
		if f.Team.Ended() {
			continue
		}
		is.ActiveTeams++
		is.QueuedTasks += int64(f.Overview.Tasks[string(team.Pending)])
		if f.Overview.Hosted || f.Overview.Led {
			is.ActiveSessions += int64(f.Overview.Sessions)
		}
	}
	for _, part := range []*Subsystem{&teams, &kept} {
		if len(part.Errors) > 0 {
			part.Status, is.Status = "degraded", "degraded"
		}
	}
	if s.stopping() {
		kept.Status, is.Status = "stopped", "stopped"
	}
	is.Subsystems = map[string]Subsystem{"teams": teams, "supervisor": kept}
	if s.Totals != nil {
		is.Metrics, is.TeamMetrics = s.Totals()
	}
	return is
}
