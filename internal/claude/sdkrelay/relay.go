package sdkrelay

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"cadre/internal/sys/proc"
	"cadre/internal/sys/websocket"
)

// TokenVariable is the environment variable with the program's bearer token.
const TokenVariable = "CLAUDE_CODE_SESSION_ACCESS_TOKEN"

// URLWord is replaced in the command by the address to connect to.
const URLWord = "{url}"

// MinToken is the minimum length of a bearer token that a user chooses, in characters.
const MinToken = 16

// Options configures a relay. At least one consumer is required: In and Out, or a consumer that
// connects by WebSocket, or both.
type Options struct {
	// Listen is the address to listen on. The default host is loopback, and "" means any port
	// there. An address beyond loopback requires Insecure, because the connection is not encrypted.
	Listen string
	// Command is the program with its arguments. [URLWord] in them is replaced by the address;
	// without it, --sdk-url and the address are appended. With an empty Command nothing is started,
	// and Run returns when its context ends.
	Command []string
	Dir     string
	Env     []string // nil for the host's
	Stderr  io.Writer
	Procs   *proc.Register // starts the program
	Ladder  proc.Ladder    // stops it

	// In and Out are a consumer that speaks lines of JSON, such as standard input and output. When
	// In ends, the program may finish its present turn.
	In  io.Reader
	Out io.Writer
	// Consumer lets one consumer connect by WebSocket, with ConsumerToken.
	Consumer bool
	// Token and ConsumerToken are the bearer tokens; "" for random ones. Others must have at least
	// [MinToken] characters.
	Token, ConsumerToken string
	Insecure             bool

	// See is called with each line of the program, after it was queued for the consumers. It must
	// not modify the line.
	See func(line []byte)
	// Lost is called when the program is known to have written events that did not arrive. It is
	// never called concurrently with See.
	Lost func(reason string)
	// Warn is called with messages for a person, from any goroutine.
	Warn func(words string)

	// Memory and Disk limit the queue of each receiver, in bytes; 0 means 16 MiB and 1 GiB. The
	// queue of the program uses only memory.
	Memory, Disk int64
	// Connect is how long the program may take to connect for the first time; 0 means a minute.
	Connect time.Duration
	// Quiet is how long neither side must have sent anything after the last turn before the relay
	// ends, once In has ended; 0 means 5 s.
	Quiet time.Duration
	// Grace is how long a consumer may take to read the rest after Run's context has ended; 0 means
	// 5 s.
	Grace time.Duration
}

func (o *Options) complete() error {
	switch {
	case (o.In == nil) != (o.Out == nil):
		return errors.New("relay: set both In and Out, or neither")
	case o.In == nil && !o.Consumer:
		return errors.New("relay: no consumer: set In and Out, or let a consumer connect")
	case len(o.Command) > 0 && o.Procs == nil:
		return errors.New("relay: Procs is nil, but is needed to start the program")
	}
	host, port, err := net.SplitHostPort(cmp.Or(o.Listen, ":0"))
	if err != nil {
		return fmt.Errorf("relay: %q is not an address to listen on. Use :PORT or HOST:PORT", o.Listen)
	}
	if err := o.resolve(cmp.Or(host, "127.0.0.1"), port); err != nil {
		return err
	}
	for what, token := range map[string]string{"the program": o.Token, "the consumer": o.ConsumerToken} {
		if token != "" && len(token) < MinToken {
			return fmt.Errorf("relay: the bearer token of %s has %d characters, but needs at least %d; "+
				"use a longer one, or leave it out for a random one", what, len(token), MinToken)
		}
	}
	o.Token, o.ConsumerToken = cmp.Or(o.Token, rand.Text()), cmp.Or(o.ConsumerToken, rand.Text())
	if o.See == nil {
		o.See = func([]byte) {}
	}
	if o.Lost == nil {
		o.Lost = func(string) {}
	}
	if o.Warn == nil {
		o.Warn = func(string) {}
	}
	o.Connect, o.Quiet, o.Grace = cmp.Or(o.Connect, time.Minute), cmp.Or(o.Quiet, 5*time.Second),
		cmp.Or(o.Grace, 5*time.Second)
	o.Memory, o.Disk = cmp.Or(o.Memory, 16<<20), cmp.Or(o.Disk, 1<<30)
	return nil
}

// resolve looks the host up once, so that the address that is checked is the address that is used.
func (o *Options) resolve(host, port string) error {
	at, err := net.ResolveTCPAddr("tcp", net.JoinHostPort(host, port))
	if err != nil {
		return fmt.Errorf("relay: %q is not an address to listen on: %w", o.Listen, err)
	}
	if !at.IP.IsLoopback() && !o.Insecure {
		return &ExposedError{Address: at.String()}
	}
	o.Listen = at.String()
	return nil
}

// ExposedError reports that other machines could connect to the address, which was not allowed.
type ExposedError struct{ Address string }

func (e *ExposedError) Error() string {
	return "other machines can connect to " + e.Address +
		", and a machine on the network between can read the session and impersonate both sides"
}

// Relay connects one program and its consumers.
type Relay struct {
	o        Options
	listener net.Listener

	program  *peer
	consumer *peer
	lines    *lines
	outs     []*queue // queues of the consumers

	first         sync.Once
	connectedOnce chan struct{} // closed when the program has connected for the first time

	failed chan error

	quiet       *quietTimer
	last        string // uuid of the last event received; used by the program's connection only
	connections int    // number of connections of the program
}

// Listen opens the listener. The caller must run the relay or close it.
func Listen(o Options) (*Relay, error) {
	if err := o.complete(); err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", o.Listen)
	if err != nil {
		return nil, fmt.Errorf("relay: %w", err)
	}
	r := &Relay{o: o, listener: listener, connectedOnce: make(chan struct{}), failed: make(chan error, 1),
		quiet: newQuietTimer(o.Quiet)}
	r.program = &peer{name: "the program", out: newQueue(o.Memory, 0), begins: r.connected, fail: r.fail, warn: o.Warn}
	r.lines = &lines{r: r}
	if o.Out != nil {
		r.lines.out = newQueue(o.Memory, o.Disk)
		r.outs = append(r.outs, r.lines.out)
	}
	if o.Consumer {
		out := newQueue(o.Memory, o.Disk)
		r.outs = append(r.outs, out)
		r.consumer = &peer{name: "the consumer", out: out, begins: func(*websocket.Request) {}, fail: r.fail,
			warn: o.Warn}
	}
	return r, nil
}

// Close closes a relay that is not run.
func (r *Relay) Close() error { return r.listener.Close() }

// URL returns the address for the program.
func (r *Relay) URL() string { return r.address(programPath) }

// ConsumerURL returns the address for a consumer that connects.
func (r *Relay) ConsumerURL() string { return r.address(consumerPath) }

// Token returns the bearer token of the program.
func (r *Relay) Token() string { return r.o.Token }

// ConsumerToken returns the bearer token of the consumer.
func (r *Relay) ConsumerToken() string { return r.o.ConsumerToken }

// The paths for program and consumer are constant. So a running program finds a relay that replaces
// this one on the same port with the same tokens.
const (
	programPath  = "/session"
	consumerPath = "/consumer"
)

func (r *Relay) address(path string) string {
	at := r.listener.Addr().(*net.TCPAddr)
	host := at.IP
	if host.IsUnspecified() {
		host = net.IPv4(127, 0, 0, 1)
	}
	return fmt.Sprintf("ws://%s%s", net.JoinHostPort(host.String(), fmt.Sprint(at.Port)), path)
}

// argv returns the command with the address in it.
func (r *Relay) argv() []string {
	args := slices.Clone(r.o.Command)
	there := false
	for i, arg := range args {
		there = there || strings.Contains(arg, URLWord)
		args[i] = strings.ReplaceAll(arg, URLWord, r.URL())
	}
	if !there {
		args = append(args, "--sdk-url", r.URL())
	}
	return args
}

// fail makes Run return an error.
func (r *Relay) fail(err error) {
	select {
	case r.failed <- err:
	default:
	}
}

// requestTimeout is how long a client may take to send its request.
const requestTimeout = 10 * time.Second

// admit checks a new connection and serves it if it is the program's or the consumer's. The
// connection closes when life ends, and has ended when admit returns.
func (r *Relay) admit(life context.Context, c net.Conn) {
	defer c.Close()
	defer context.AfterFunc(life, func() { c.Close() })()
	late := time.AfterFunc(requestTimeout, func() { c.Close() })
	defer late.Stop()
	req, err := websocket.ReadRequest(c)
	if err != nil {
		return // the client speaks another protocol
	}
	p, token := r.program, r.o.Token
	switch {
	case req.Path == consumerPath && r.consumer != nil:
		p, token = r.consumer, r.o.ConsumerToken
	case req.Path != programPath:
		req.Refuse("404 Not Found", "", "not found")
		return
	}
	given, ok := strings.CutPrefix(req.Header("Authorization"), "Bearer ")
	if !ok || subtle.ConstantTimeCompare([]byte(given), []byte(token)) != 1 {
		r.o.Warn(fmt.Sprintf("refused a connection from %s without the bearer token", c.RemoteAddr()))
		req.Refuse("401 Unauthorized", "WWW-Authenticate: Bearer\r\n", "the bearer token is missing or wrong")
		return
	}
	if late.Stop() {
		p.serve(life, req)
	}
}

// After sets the id of the last event that an earlier relay received, so that the gap since then is
// not reported needlessly. It must be called before Run.
func (r *Relay) After(event string) { r.last = event }

// Last returns the id of the last event received; "" for none. It must be called from See.
func (r *Relay) Last() string { return r.last }

// connected checks whether events were lost since the previous connection.
func (r *Relay) connected(req *websocket.Request) {
	r.first.Do(func() { close(r.connectedOnce) })
	r.connections++
	wrote := req.Header("X-Last-Request-Id")
	if r.connections > 1 {
		r.o.Warn(fmt.Sprintf("the program reconnected (connection %d)", r.connections))
	}
	switch {
	case wrote == "" || wrote == r.last:
		return
	case r.last == "" && r.connections == 1:
		r.o.Lost(fmt.Sprintf("the program wrote up to event %.60q before it connected here", wrote))
	default:
		r.o.Lost(fmt.Sprintf("the program wrote up to event %.60q while it was not connected, and the last "+
			"event received is %.60q", wrote, r.last))
	}
	r.last = wrote
}

// RefusedError reports that the program refused to connect to the relay.
type RefusedError struct{ Words string } // the program's own words

func (e *RefusedError) Error() string {
	return fmt.Sprintf("this version of Claude Code accepts only Anthropic's own addresses for --sdk-url: %s\n"+
		"2.1.47 accepts any. A newer version can be observed by its stream or by its transcripts.", e.Words)
}

// refusal is the beginning of the program's message when it refuses an address.
const refusal = "--sdk-url rejected"

// died returns the reason why the program ended before it connected.
func died(exit proc.Exit, stderr string) error {
	words := strings.TrimSpace(stderr)
	if strings.Contains(words, refusal) {
		return &RefusedError{Words: words}
	}
	if words != "" {
		words = ": " + words
	}
	return fmt.Errorf("the program ended before it connected: %v%s", exit, words)
}
