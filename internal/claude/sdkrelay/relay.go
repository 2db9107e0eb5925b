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

// TokenVariable is how the program gets its bearer token.
const TokenVariable = "CLAUDE_CODE_SESSION_ACCESS_TOKEN"

// URLWord stands in a command for the address to connect to.
const URLWord = "{url}"

// MinToken is how many characters a bearer token has that somebody chose.
const MinToken = 16

// Options say what to relay. A consumer has to be among them: In and Out, or a consumer's
// WebSocket, or both.
type Options struct {
	// Listen is the address to listen on; without a host, loopback alone. "" for any port there.
	// One beyond loopback needs Insecure, because nothing that is said there is encrypted.
	Listen string
	// Command is the program and its arguments. [URLWord] in them becomes the address; if it is not
	// there, --sdk-url and the address are added. Without a command nothing is started, and Run
	// goes on until its context ends.
	Command []string
	Dir     string
	Env     []string // nil for the host's
	Stderr  io.Writer
	Procs   *proc.Register // starts the program
	Ladder  proc.Ladder    // ends it

	// In and Out are a consumer that speaks lines of JSON, such as standard input and output. In
	// that ends lets the program finish what it is at.
	In  io.Reader
	Out io.Writer
	// Consumer lets one consumer connect by WebSocket, with ConsumerToken.
	Consumer bool
	// Token and ConsumerToken are the bearer tokens; "" for random ones.
	// Given ones have at least [MinToken] characters.
	Token, ConsumerToken string
	Insecure             bool

	// See is called with each line of the program, as soon as it is on its way to the consumers.
	// The line may not be changed.
	See func(line []byte)
	// Lost is called when it is known that the program has written what did not get here. Not while
	// See runs.
	Lost func(reason string)
	// Warn is told what a person may want to know. From any goroutine.
	Warn func(words string)

	// Memory and Disk bound what waits for an end, in bytes; 0 for 16 MiB and 1 GiB. What waits for
	// the program waits in memory alone.
	Memory, Disk int64
	// Connect is how long the program may take to connect for the first time; 0 for a minute.
	Connect time.Duration
	// Quiet is how long nothing may have been said after the last turn, once In has ended; 0 for 5
	// s.
	Quiet time.Duration
	// Grace is how long a consumer may take for what it has not read when Run's context has ended;
	// 0 for 5 s.
	Grace time.Duration
}

func (o *Options) complete() error {
	switch {
	case (o.In == nil) != (o.Out == nil):
		return errors.New("relay: a consumer has both an input and an output")
	case o.In == nil && !o.Consumer:
		return errors.New("relay: there is nobody to relay to: give it In and Out, or let a consumer connect")
	case len(o.Command) > 0 && o.Procs == nil:
		return errors.New("relay: Procs is nil; it starts the program")
	}
	host, port, err := net.SplitHostPort(cmp.Or(o.Listen, ":0"))
	if err != nil {
		return fmt.Errorf("relay: %q is no address to listen on; :PORT or HOST:PORT is one", o.Listen)
	}
	if err := o.resolve(cmp.Or(host, "127.0.0.1"), port); err != nil {
		return err
	}
	for what, token := range map[string]string{"the program": o.Token, "the consumer": o.ConsumerToken} {
		if token != "" && len(token) < MinToken {
			return fmt.Errorf("relay: the bearer token of %s has %d characters, and fewer than %d can be guessed; "+
				"choose a longer one, or none for a random one", what, len(token), MinToken)
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

// resolve looks the host up once, so that what is checked is what is listened on.
func (o *Options) resolve(host, port string) error {
	at, err := net.ResolveTCPAddr("tcp", net.JoinHostPort(host, port))
	if err != nil {
		return fmt.Errorf("relay: %q is no address to listen on: %w", o.Listen, err)
	}
	if !at.IP.IsLoopback() && !o.Insecure {
		return &ExposedError{Address: at.String()}
	}
	o.Listen = at.String()
	return nil
}

// ExposedError says that other machines could connect to the address, which was not allowed.
type ExposedError struct{ Address string }

func (e *ExposedError) Error() string {
	return "other machines can connect to " + e.Address +
		", and whoever is on the way can read along and speak for both ends"
}

// Relay is one program and its consumers.
type Relay struct {
	o        Options
	listener net.Listener

	program  *peer
	consumer *peer
	lines    *lines
	outs     []*queue // of the consumers

	first sync.Once
	there chan struct{} // closed when the program has connected once

	failed chan error

	talk *talk
	last string // uuid of the last event that came; of the program's connection
	seen int    // connections of the program
}

// Listen begins to listen. What it returns is to be run, or closed.
func Listen(o Options) (*Relay, error) {
	if err := o.complete(); err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", o.Listen)
	if err != nil {
		return nil, fmt.Errorf("relay: %w", err)
	}
	r := &Relay{o: o, listener: listener, there: make(chan struct{}), failed: make(chan error, 1),
		talk: newTalk(o.Quiet)}
	r.program = &peer{name: "the program", out: newQueue(o.Memory, 0), begins: r.connected, fail: r.fail, warn: o.Warn}
	r.lines = &lines{r: r}
	if o.Out != nil {
		r.lines.out = newQueue(o.Memory, o.Disk)
		r.outs = append(r.outs, r.lines.out)
	}
	if o.Consumer {
		out := newQueue(o.Memory, o.Disk)
		r.outs = append(r.outs, out)
		r.consumer = &peer{name: "the consumer", out: out, begins: func(*websocket.Request) {}, fail: r.fail, warn: o.Warn}
	}
	return r, nil
}

// Close is for a relay that is not run.
func (r *Relay) Close() error { return r.listener.Close() }

// URL is the address for the program.
func (r *Relay) URL() string { return r.address(programPath) }

// ConsumerURL is the address for the consumer that connects.
func (r *Relay) ConsumerURL() string { return r.address(consumerPath) }

// Token is the bearer token of the program, ConsumerToken that of the consumer.
func (r *Relay) Token() string { return r.o.Token }

// ConsumerToken is the bearer token of the consumer.
func (r *Relay) ConsumerToken() string { return r.o.ConsumerToken }

// The paths of both ends. They are always the same: a program that was started with the address
// finds a relay that has taken the place of this one, where that listens at the same port with the
// same tokens.
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

// argv is the command with the address in it.
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

// fail ends Run with an error.
func (r *Relay) fail(err error) {
	select {
	case r.failed <- err:
	default:
	}
}

// hello bounds the request of who connects.
const hello = 10 * time.Second

// admit lets the program or the consumer in, and nobody else. life is that of its connection, which
// has ended when admit returns.
func (r *Relay) admit(life context.Context, c net.Conn) {
	defer c.Close()
	defer context.AfterFunc(life, func() { c.Close() })()
	late := time.AfterFunc(hello, func() { c.Close() })
	defer late.Stop()
	req, err := websocket.ReadRequest(c)
	if err != nil {
		return // whoever it is speaks something else
	}
	p, token := r.program, r.o.Token
	switch {
	case req.Path == consumerPath && r.consumer != nil:
		p, token = r.consumer, r.o.ConsumerToken
	case req.Path != programPath:
		req.Refuse("404 Not Found", "", "there is nothing here")
		return
	}
	given, ok := strings.CutPrefix(req.Header("Authorization"), "Bearer ")
	if !ok || subtle.ConstantTimeCompare([]byte(given), []byte(token)) != 1 {
		r.o.Warn(fmt.Sprintf("somebody at %s without the bearer token was refused", c.RemoteAddr()))
		req.Refuse("401 Unauthorized", "WWW-Authenticate: Bearer\r\n", "the bearer token is missing or wrong")
		return
	}
	if late.Stop() {
		p.serve(life, req)
	}
}

// After says which event of the program was the last that came to a relay before this one, so that
// nothing behind it is missed in vain. It is called before Run.
func (r *Relay) After(event string) { r.last = event }

// Last is the id of the last event that came; "" for none. It is called from See.
func (r *Relay) Last() string { return r.last }

// connected looks whether anything was lost since the connection before.
func (r *Relay) connected(req *websocket.Request) {
	r.first.Do(func() { close(r.there) })
	r.seen++
	wrote := req.Header("X-Last-Request-Id")
	if r.seen > 1 {
		r.o.Warn(fmt.Sprintf("the program is connected again, for the %d. time", r.seen))
	}
	switch {
	case wrote == "" || wrote == r.last:
		return
	case r.last == "" && r.seen == 1:
		r.o.Lost(fmt.Sprintf("the program wrote up to event %.60q before it connected here", wrote))
	default:
		r.o.Lost(fmt.Sprintf("the program wrote up to event %.60q while it was not connected, and what came here "+
			"ends with %.60q", wrote, r.last))
	}
	r.last = wrote
}

// RefusedError says that the program does not let itself be relayed.
type RefusedError struct{ Words string } // its own

func (e *RefusedError) Error() string {
	return fmt.Sprintf("this version of Claude Code takes --sdk-url for its maker's own addresses alone: %s\n"+
		"2.1.47 takes any. A session of a newer one is observed by its stream (claude -p --output-format stream-json "+
		"--verbose … | cadre observe -) or by its transcripts (cadre observe --transcripts DIR)", e.Words)
}

// refusal is how the program's own words begin when it refuses an address.
const refusal = "--sdk-url rejected"

// died tells why the program ended before it connected.
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
