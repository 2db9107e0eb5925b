package server

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"cadre/internal/engine"
	"cadre/internal/inspect/attention"
	"cadre/internal/layout"
	"cadre/internal/server/api"
	"cadre/internal/server/auth"
	"cadre/internal/server/coordinator"
	"cadre/internal/server/supervisor"
	"cadre/internal/sys/atomicfile"
	"cadre/internal/sys/filelock"
	"cadre/internal/sys/proc"
	"cadre/internal/sys/unixsocket"
	"cadre/internal/team"
)

// Options configure a server.
type Options struct {
	// Engine opens the teams. The server sets Shared.
	Engine *engine.Engine
	// Resume returns the command line that continues the team with that id.
	Resume func(id string) []string
	// Teams are added to the server's list.
	Teams []team.Team
	// Page answers with the page of the board and its files, and Data with what the page reads.
	Page, Data http.Handler
	// Listen is the TCP address to listen on besides the unix socket; "" for none.
	Listen string
	// Hosts are further addresses by which browsers reach the TCP listener: a host with its port,
	// or an address such as https://my-tunnel.example where a tunnel or a proxy ends TLS.
	Hosts []string
	// Certificate and Key are the files for TLS; "" for none. They are required beyond loopback.
	Certificate, Key string
	// Dir is the directory in which teams work that are created over the API.
	Dir string
	// MaxSessions bounds the teammates that run in all teams of the server together; 0 for no
	// bound.
	MaxSessions int
	// Heartbeat is how often a stream or socket that has nothing to say shows that it is alive; 0
	// for 30 seconds.
	Heartbeat time.Duration
	// Shutdown bounds how long the sessions may take to end when the server stops.
	Shutdown time.Duration
	// Version is the version of the program.
	Version string
	// Log gets a line for people.
	Log func(string)
}

// Folder returns the folder of a home's server.
func Folder(h layout.Home) string { return filepath.Join(h.Root, "server") }

// TokensOf returns the tokens of a home's server.
func TokensOf(h layout.Home, log func(string)) auth.Tokens {
	return auth.Tokens{Dir: filepath.Join(Folder(h), "tokens"), Log: auth.Once(log)}
}

const (
	lockFile   = "lock"
	socketFile = "socket"
	pageFile   = "page" // the address of the board
	teamsFile  = "teams.json"
	processes  = "processes" // folder with the records of what the server started
)

// RunningError says that another process is the home's server.
type RunningError struct{ Pid int }

func (e *RunningError) Error() string {
	return fmt.Sprintf("process %d is the server of this home already", e.Pid)
}

func (e *RunningError) Unwrap() error { return team.Refuse(team.NotReady, "%s", e.Error()) }

// Server is a running server.
type Server struct {
	Options
	folder  string
	began   time.Time
	tcp     net.Listener
	api     *api.Server
	guard   *auth.Guard
	keeps   *supervisor.Supervisor
	address string   // of the TCP listener
	named   []string // the origins that Hosts stand for
	stats   stats
}

// Run runs the server until ctx ends, and then pauses its teams. ready is called once it answers.
func Run(ctx context.Context, o Options, ready func(*Server)) (err error) {
	s := &Server{Options: o, folder: Folder(o.Engine.Home), began: time.Now()}
	if err := s.check(); err != nil {
		return err
	}
	if err := os.MkdirAll(s.folder, 0o700); err != nil {
		return err
	}
	if err := auth.Private(s.folder); err != nil {
		return err
	}
	lock, err := s.lock()
	if err != nil {
		return err
	}
	defer lock.Unlock()
	procs, err := s.list(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.unlist(ctx, procs)) }()
	s.Engine.Shared = &engine.Shared{}
	s.Engine.Appended = s.stats.ObserveAppend
	s.Engine.Shared.LogTo(s.Log)
	if s.keeps, err = supervisor.Open(supervisor.Options{Engine: s.Engine, File: filepath.Join(s.folder, teamsFile),
		Resume: s.Resume, MaxSessions: s.MaxSessions, Log: s.Log}); err != nil {
		return err
	}
	for _, of := range s.Teams {
		if err := s.keeps.Add(ctx, of); err != nil {
			return err
		}
	}
	return s.serve(ctx, ready)
}

// check refuses options that make no sense, or do not go together.
func (s *Server) check() (err error) {
	switch {
	case s.MaxSessions < 0:
		return team.Refuse(team.Invalid, "%d teammates cannot run; allow at least one, or 0 for any number",
			s.MaxSessions)
	case s.Heartbeat < 0:
		return team.Refuse(team.Invalid, "a heartbeat every %v is not possible; give a time, or 0 for 30 seconds",
			s.Heartbeat)
	case s.Shutdown < 0:
		return team.Refuse(team.Invalid, "the sessions cannot end in %v; give a time, or 0 to wait for none",
			s.Shutdown)
	case s.Listen == "" && (s.Certificate != "" || s.Key != "" || len(s.Hosts) > 0):
		return team.Refuse(team.Invalid, "a certificate, a key and names of hosts are for a TCP address: also say "+
			"where to listen")
	case s.Listen == "":
		return nil
	}
	if s.named, err = s.namedOrigins(); err != nil {
		return err
	}
	host, _, err := net.SplitHostPort(s.Listen)
	if err != nil {
		return team.Refuse(team.Invalid, "%q is not an address: give a host and a port, as in 127.0.0.1:7433", s.Listen)
	}
	ip := net.ParseIP(host)
	if local := host == "localhost" || ip != nil && ip.IsLoopback(); !local && s.Certificate == "" {
		return notLocal(s.Listen)
	}
	if ip.IsUnspecified() && len(s.Hosts) == 0 {
		return team.Refuse(team.Invalid, "%s is every address of this machine: also say by which host and port it is "+
			"reached", s.Listen)
	}
	if (s.Certificate == "") != (s.Key == "") {
		return team.Refuse(team.Invalid, "TLS needs both the certificate and its key")
	}
	return nil
}

func notLocal(address string) error {
	return team.Refuse(team.Invalid, "%s is not on loopback, so others could read along: give a certificate and its "+
		"key for TLS, or listen on 127.0.0.1", address)
}

// lock makes this process the home's server.
func (s *Server) lock() (*filelock.Lock, error) {
	path := filepath.Join(s.folder, lockFile)
	lock, err := filelock.New(path)
	if errors.Is(err, filelock.ErrHeld) {
		h, _, _ := proc.HolderOf(path)
		return nil, &RunningError{h.Pid}
	}
	if err != nil {
		return nil, err
	}
	if err := proc.Sign(lock); err != nil {
		lock.Unlock()
		return nil, err
	}
	return lock, nil
}

// list lists this process among the hosts of the home. The server starts programs for whoever asks,
// such as git, which runs what a repository's settings name. Whatever runs below the server is
// therefore not the user, unless a record says so. That includes what is left of a host that was
// killed.
func (s *Server) list(ctx context.Context) (*proc.Register, error) {
	dir := filepath.Join(s.folder, processes)
	if _, err := proc.EndStrays(ctx, dir); err != nil {
		return nil, err
	}
	return proc.OpenWhole(dir, s.Engine.Home.Running())
}

// unlist ends what is left below this process, and takes it off the list.
func (s *Server) unlist(ctx context.Context, procs *proc.Register) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.Shutdown)
	defer cancel()
	return procs.Close(ctx)
}

// Pid returns the process that is the server of a home; 0 for none.
func Pid(h layout.Home) int {
	holder, _, err := proc.HolderOf(filepath.Join(Folder(h), lockFile))
	if err != nil {
		return 0
	}
	return holder.Pid
}

// serve listens, and answers until ctx ends.
func (s *Server) serve(ctx context.Context, ready func(*Server)) error {
	listeners, err := s.listen()
	if err != nil {
		return err
	}
	handler, sockets, err := s.routes()
	if err != nil {
		return err
	}
	running, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	var beside sync.WaitGroup
	defer beside.Wait()
	defer end()
	beside.Go(func() { s.keeps.Run(running) })
	beside.Go(func() { s.watch(running) })
	beside.Go(func() { s.traces().Run(running) })

	httpd := standardLimits.server(running, secured(handler), s.Log)
	failed := make(chan error, len(listeners))
	for _, l := range listeners {
		beside.Go(func() { failed <- httpd.Serve(l) })
	}
	defer httpd.Close()
	if ready != nil {
		ready(s)
	}
	select {
	case err = <-failed:
	case <-ctx.Done():
	}
	stopping, cancel := context.WithTimeout(running, s.Shutdown)
	defer cancel()
	err = errors.Join(err, s.keeps.Stop(stopping))
	leaving, cancel := context.WithTimeout(running, leaveTime)
	defer cancel()
	sockets.Stop(leaving)
	return err
}

// routes assembles what the server answers. The connections of sockets outlive their requests.
func (s *Server) routes() (handler http.Handler, sockets *coordinator.Server, err error) {
	tokens := TokensOf(s.Engine.Home, s.Log)
	codes := &auth.Codes{Tokens: tokens}
	if s.tcp != nil {
		if _, err := tokens.Ensure(auth.AdminToken, auth.Admin); err != nil {
			return nil, nil, err
		}
	}
	keys := &api.Keys{}
	s.api = api.New(api.Options{Keys: keys, Engine: s.Engine, Dir: s.Dir, Beat: s.Heartbeat, Keeps: s.keeps,
		Tokens: tokens, Codes: codes, Version: s.Version, Refused: s.refused, Origins: s.origins})
	s.guard = &auth.Guard{Home: s.Engine.Home, Tokens: tokens, Codes: codes, Origins: s.origins,
		Tunnel: len(s.named) > 0,
		Refuse: func(w http.ResponseWriter, r *http.Request, status int, err error) {
			api.Refuse(w, r, api.ProblemOf(err).With(status))
		}}
	mux := http.NewServeMux()
	s.api.Register(mux, s.guard.Handler)
	sockets = coordinator.New(coordinator.Options{Keys: keys, Engine: s.Engine, Dir: s.Dir, Beat: s.Heartbeat,
		Grace: s.Shutdown, Keeps: s.keeps, Log: s.Log, Totals: s.totals, Refused: s.refused})
	for _, b := range api.Besides() {
		h := s.beside(b, sockets)
		if b.Open {
			mux.Handle(b.Pattern(), s.guard.Page(b.Known(h)))
		} else {
			mux.Handle(b.Pattern(), s.guard.Handler(b.Known(h)))
		}
	}
	mux.Handle("/board/", s.guard.Handler(s.Data)) // refuses the rest in its words
	mux.Handle("/", s.guard.Page(api.Unrouted(mux)))
	return mux, sockets, nil
}

// beside returns what answers an address beside the API.
func (s *Server) beside(b api.Beside, sockets http.Handler) http.Handler {
	switch b.ID {
	case "getMetrics":
		return http.HandlerFunc(s.metrics)
	case "getSocketDescription":
		return http.HandlerFunc(coordinator.Describe)
	case "openSocket":
		return sockets
	case "logIn":
		return s.api.LogIn(s.guard.Secure)
	case "getPage", "getPageFile":
		return s.Page
	case "openStreams":
		return s.api.Streams()
	case "openEvents":
		return s.api.Events()
	}
	return s.Data
}

// leaveTime bounds how long the clients of WebSockets may take to read that the server has stopped.
const leaveTime = 2 * time.Second

// watch gives the supervisor and the API the teams as they are found, until ctx ends.
func (s *Server) watch(ctx context.Context) {
	follower := s.Engine.Attention("")
	defer follower.Close()
	for ctx.Err() == nil {
		err := follower.Watch(ctx, func(found []attention.Found) bool {
			found = slices.Clone(found)
			s.keeps.See(found, time.Now())
			s.api.See(found)
			return false
		})
		if err != nil && ctx.Err() == nil {
			s.Log(err.Error())
		}
	}
}

// listen opens the listeners.
func (s *Server) listen() (all []net.Listener, err error) {
	path := filepath.Join(s.folder, socketFile)
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) { // of a server that was killed
		return nil, err
	}
	unix, err := unixsocket.Listen(path) // the next server removes the file, so that it removes none but its own
	if err != nil {
		return nil, err
	}
	all = append(all, limit(unix, standardLimits.conns))
	if err := os.Remove(filepath.Join(s.folder, pageFile)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, errors.Join(err, unix.Close())
	}
	if s.Listen == "" {
		return all, nil
	}
	if s.tcp, err = net.Listen("tcp", s.Listen); err != nil {
		return nil, errors.Join(err, unix.Close())
	}
	s.address = s.tcp.Addr().String()
	// as localhost may be elsewhere
	if at, ok := s.tcp.Addr().(*net.TCPAddr); s.Certificate == "" && !(ok && at.IP.IsLoopback()) {
		return nil, errors.Join(notLocal(s.address), unix.Close(), s.tcp.Close())
	}
	if err := atomicfile.Write(filepath.Join(s.folder, pageFile), []byte(s.Board()+"\n")); err != nil {
		return nil, errors.Join(err, unix.Close(), s.tcp.Close())
	}
	l := limit(s.tcp, standardLimits.conns)
	if s.Certificate != "" {
		pair, err := tls.LoadX509KeyPair(s.Certificate, s.Key)
		if err != nil {
			return nil, errors.Join(err, unix.Close(), s.tcp.Close())
		}
		l = tls.NewListener(l, &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12,
			NextProtos: []string{"http/1.1"}})
	}
	return append(all, l), nil
}

// Address returns the address of the TCP listener; "" for none.
func (s *Server) Address() string { return s.address }

// Socket returns the path of the unix socket.
func (s *Server) Socket() string { return filepath.Join(s.folder, socketFile) }

// secured sets the headers of every answer.
func secured(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		next.ServeHTTP(w, r)
	})
}
