package api

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"cadre/internal/engine"
	"cadre/internal/server/auth"
	"cadre/internal/server/supervisor"
	"cadre/internal/team"
)

// Server answers the requests of the API. Make one with [New].
type Server struct {
	Options
	feeds   Feeds
	cursors cursors
	board   board
	rooms   rooms
}

// Options configure a Server.
type Options struct {
	// Engine opens the teams. It must keep shared replicas, so that all readers of a team have one.
	Engine *engine.Engine
	// Dir is the directory in which teams work that are created over the API.
	Dir string
	// Beat is how often a stream that has nothing to say sends a comment; 0 for 30 seconds. A
	// client or a proxy that hears nothing for longer may take the connection for dead.
	Beat time.Duration
	// Keeps has the teams that the server keeps running.
	Keeps *supervisor.Supervisor
	// Refused is called with each refusal of the core, for the metrics; nil for nothing.
	Refused func(code team.Code)
	// Origins are the schemes and hosts at which browsers reach the server; nil for none.
	Origins func() []string
	// Tokens and Codes are what senders show.
	Tokens auth.Tokens
	Codes  *auth.Codes
	// Keys remembers the requests with a key; nil for a memory of its own.
	Keys *Keys
	// Version is the version of the program.
	Version string
}

// New returns the server of the API. Close it when no request is answered any more.
func New(o Options) *Server {
	if o.Beat == 0 {
		o.Beat = 30 * time.Second
	}
	if o.Keys == nil {
		o.Keys = &Keys{}
	}
	if o.Origins == nil {
		o.Origins = func() []string { return nil }
	}
	s := &Server{Options: o}
	s.board.changed = make(chan struct{})
	return s
}

// Register adds the routes of the API to the mux. Each passes the wrapper, which identifies the
// caller.
func (s *Server) Register(mux *http.ServeMux, identified func(http.Handler) http.Handler) {
	for _, route := range Routes() {
		mux.Handle(route.Method+" "+route.Path, identified(s.serve(route)))
	}
	mux.Handle("/v1/", identified(Unrouted(mux)))
}

// Unrouted refuses the requests that no route of the mux takes. If the path takes other methods,
// the answer lists them in Allow.
func Unrouted(mux *http.ServeMux) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		const more = "GET /v1/openapi.json describes the API"
		path, method := short(r.URL.Path), short(r.Method)
		if all := methodsOf(mux, r); len(all) > 0 {
			list := strings.Join(all, ", ")
			w.Header().Set("Allow", list)
			err := usageError{fmt.Errorf("%s does not take %s, only %s; %s", path, method, list, more)}
			Refuse(w, r, ProblemOf(err).With(http.StatusMethodNotAllowed))
			return
		}
		Refuse(w, r, ProblemOf(team.Refuse(team.NotFound, "the server has no %s %s; %s", method, path, more)))
	})
}

// methodsOf returns the methods with which the mux takes the path of the request.
func methodsOf(mux *http.ServeMux, r *http.Request) (all []string) {
	for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch,
		http.MethodDelete} {
		other := *r
		other.Method = method
		if _, pattern := mux.Handler(&other); strings.Contains(pattern, " ") { // it names a method
			all = append(all, method)
		}
	}
	return all
}

// Routes returns the table of routes.
func Routes() []Route {
	var all []Route
	for _, part := range [][]Route{serverRoutes, loginRoutes, teamRoutes, roomRoutes, memberRoutes, taskRoutes,
		messageRoutes, noteRoutes, requestRoutes, workRoutes, hookRoutes, attentionRoutes, searchRoutes, templateRoutes,
		descriptionRoutes} {
		all = append(all, part...)
	}
	return all
}

func (s *Server) refused(err error) {
	if code := team.CodeOf(err); code != "" && s.Refused != nil {
		s.Refused(code)
	}
}
