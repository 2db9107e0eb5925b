package sdkrelay

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"

	"cadre/internal/sys/proc"
)

const patience = 30 * time.Second

// scene is a running relay, with the consumer's ends of its pipes.
type scene struct {
	t     testing.TB
	ctx   context.Context
	r     *Relay
	in    *os.File
	out   *bufio.Reader
	pipes []*os.File
	stop  context.CancelFunc // ends the context of Run

	mu    sync.Mutex
	seen  []string
	lost  []string
	words []string

	done chan struct{}
	exit proc.Exit
	err  error
}

// play runs a relay, by default with a consumer that speaks lines.
func play(t testing.TB, o Options, after ...string) *scene {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*patience)
	s := &scene{t: t, ctx: ctx, done: make(chan struct{})}
	if !o.Consumer {
		for range 2 {
			r, w, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			s.pipes = append(s.pipes, r, w)
		}
		o.In, s.in, o.Out, s.out = s.pipes[0], s.pipes[1], s.pipes[3], bufio.NewReaderSize(s.pipes[2], 1<<16)
	}
	note := func(list *[]string) func(string) {
		return func(words string) {
			s.mu.Lock()
			defer s.mu.Unlock()
			*list = append(*list, words)
		}
	}
	if o.See == nil {
		o.See = func(line []byte) { note(&s.seen)(string(line)) }
	}
	if o.Lost == nil {
		o.Lost = note(&s.lost)
	}
	o.Warn = note(&s.words)
	if len(o.Command) > 0 && o.Procs == nil {
		procs, err := proc.Open("")
		if err != nil {
			t.Fatal(err)
		}
		o.Procs = procs
		t.Cleanup(func() { procs.Close(context.Background()) })
	}
	var err error
	if s.r, err = Listen(o); err != nil {
		t.Fatal(err)
	}
	for _, event := range after {
		s.r.After(event)
	}
	run, stop := context.WithCancel(ctx)
	s.stop = stop
	go func() {
		defer close(s.done)
		s.exit, s.err = s.r.Run(run)
	}()
	t.Cleanup(func() {
		stop()
		<-s.done
		cancel()
		for _, f := range s.pipes {
			f.Close()
		}
		if t.Failed() {
			s.mu.Lock()
			t.Logf("lost: %q; words: %q; %v %v", s.lost, s.words, s.exit, s.err)
			s.mu.Unlock()
		}
	})
	return s
}

// end waits for the relay to end.
func (s *scene) end() (proc.Exit, error) {
	s.t.Helper()
	select {
	case <-s.done:
	case <-s.ctx.Done():
		s.t.Fatal("the relay does not end")
	}
	return s.exit, s.err
}

func (s *scene) notes(list *[]string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string{}, *list...)
}

// await waits until is returns true.
func (s *scene) await(what string, is func() bool) {
	s.t.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for !is() {
		select {
		case <-tick.C:
		case <-s.ctx.Done():
			s.t.Fatalf("%s: never; words: %q", what, s.notes(&s.words))
		}
	}
}

// say sends a line to the program, as its consumer.
func (s *scene) say(line string) {
	s.t.Helper()
	s.in.SetWriteDeadline(time.Now().Add(patience))
	if _, err := io.WriteString(s.in, line); err != nil {
		s.t.Fatal(err)
	}
}

// hear reads a line, as the consumer.
func (s *scene) hear() string {
	s.t.Helper()
	s.pipes[2].SetReadDeadline(time.Now().Add(patience))
	line, err := s.out.ReadString('\n')
	if err != nil {
		s.t.Fatalf("heard %.100q, then %v", line, err)
	}
	return line
}

// client is the test's side of a WebSocket.
type client struct {
	s    *scene
	conn *websocket.Conn
}

func (s *scene) dial(url, token, last string, o websocket.DialOptions) (*client, *http.Response, error) {
	o.HTTPHeader = http.Header{}
	if token != "" {
		o.HTTPHeader.Set("Authorization", "Bearer "+token)
	}
	if last != "" {
		o.HTTPHeader.Set("X-Last-Request-Id", last)
	}
	conn, response, err := websocket.Dial(s.ctx, url, &o)
	if err != nil {
		return nil, response, err
	}
	conn.SetReadLimit(-1)
	s.t.Cleanup(func() { conn.CloseNow() })
	return &client{s, conn}, response, nil
}

// program connects like the program.
func (s *scene) program(last string) *client {
	s.t.Helper()
	c, _, err := s.dial(s.r.URL(), s.r.Token(), last, websocket.DialOptions{})
	if err != nil {
		s.t.Fatal(err)
	}
	return c
}

func (c *client) say(text string) {
	c.s.t.Helper()
	if err := c.conn.Write(c.s.ctx, websocket.MessageText, []byte(text)); err != nil {
		c.s.t.Fatal(err)
	}
}

func (c *client) hear() string {
	c.s.t.Helper()
	_, data, err := c.conn.Read(c.s.ctx)
	if err != nil {
		c.s.t.Fatal(err)
	}
	return string(data)
}

// listen answers pings and returns the messages in a channel.
func (c *client) listen() <-chan string {
	all := make(chan string, 1000)
	go func() {
		defer close(all)
		for {
			_, data, err := c.conn.Read(c.s.ctx)
			if err != nil {
				return
			}
			all <- string(data)
		}
	}()
	return all
}

// TestNextRelay checks that a program whose relay has died finds its successor at the same address,
// and that a loss in between is reported.
func TestNextRelay(t *testing.T) {
	before := play(t, Options{Token: "token-of-program"})
	p := before.program("")
	p.say("{\"type\":\"system\",\"uuid\":\"e1\"}\n")
	before.hear()
	before.stop()
	before.end()
	address := before.r.URL()
	for _, c := range []struct{ after, last, lost string }{{"", "", ""},
		{"", "e2", `up to event "e2" before it connected here`}, {"e1", "e1", ""},
		{"e1", "e2", `and the last event received is "e1"`}} {
		next := play(t, Options{Token: "token-of-program", Listen: before.r.listener.Addr().String()}, c.after)
		p, _, err := next.dial(address, "token-of-program", c.last, websocket.DialOptions{})
		if err != nil {
			t.Fatal(err)
		}
		p.say("{\"type\":\"system\",\"uuid\":\"e3\"}\n")
		next.hear()
		if lost := strings.Join(next.notes(&next.lost), " "); !strings.Contains(lost, c.lost) ||
			c.lost == "" && lost != "" {
			t.Errorf("of a program that wrote up to %q: %q", c.last, lost)
		}
		next.stop()
		next.end()
	}
}

// TestBytesArePassedOn checks that messages of any content are passed on unchanged in both
// directions.
func TestBytesArePassedOn(t *testing.T) {
	s := play(t, Options{})
	p := s.program("")
	huge := `{"type":"user","text":"` + strings.Repeat("x", 12<<20) + "\"}\n"
	for name, line := range map[string]string{
		"a line": "{\"type\":\"user\"}\n", "spaces": "  {\"a\" : 1e3}  \r\n", "garbage": "garbage\n", "empty": "\n",
		"no UTF-8": "{\"a\":\"\xff\xfe\"}\n", "huge": huge,
		"truncated": "{\"type\":\"assistant\",\"message\":\n", "NUL": "\x00\n",
	} {
		heard := make(chan string, 1)
		go func() { heard <- p.hear() }()
		s.say(line)
		if got := <-heard; got != line {
			t.Errorf("%s: the program hears %.60q (%d bytes)", name, got, len(got))
		}
		reading := p.listenOnce(line)
		if got := s.hear(); got != line {
			t.Errorf("%s: the consumer hears %.60q (%d bytes)", name, got, len(got))
		}
		<-reading
	}
	p.say(`{"no":"break"}`)
	if got := s.hear(); got != "{\"no\":\"break\"}\n" {
		t.Errorf("a frame without a line break becomes %q", got)
	}
	p.say("{\"a\":1}\n{\"a\":2}\n")
	if got := s.hear() + s.hear(); got != "{\"a\":1}\n{\"a\":2}\n" {
		t.Errorf("a frame of two lines becomes %q", got)
	}
	s.await("the observer sees the last line", func() bool { return len(s.notes(&s.seen)) >= 11 })
	seen := s.notes(&s.seen)
	if n := len(seen); n != 11 || seen[n-1] != "{\"a\":2}\n" || seen[n-2] != "{\"a\":1}\n" {
		t.Errorf("the observer saw %d lines", n)
	}
}

// listenOnce sends a line from another goroutine.
func (c *client) listenOnce(line string) <-chan struct{} {
	done := make(chan struct{})
	go func() {
		defer close(done)
		c.conn.Write(c.s.ctx, websocket.MessageText, []byte(line))
	}()
	return done
}

func TestBearer(t *testing.T) {
	s := play(t, Options{Consumer: true, Token: "token-of-program", ConsumerToken: "token-of-consumer"})
	for _, try := range []struct{ what, url, token string }{
		{"no token", s.r.URL(), ""}, {"a wrong token", s.r.URL(), "programme"}, {"the consumer's for the program",
			s.r.URL(), "token-of-consumer"},
		{"the program's for the consumer", s.r.ConsumerURL(), "token-of-program"},
		{"nothing for the consumer", s.r.ConsumerURL(), ""},
	} {
		if _, response, err := s.dial(try.url, try.token, "", websocket.DialOptions{}); err == nil || response == nil ||
			response.StatusCode != http.StatusUnauthorized {
			t.Errorf("%s: %v, %v", try.what, response, err)
		}
	}
	if len(s.notes(&s.words)) != 5 {
		t.Errorf("said: %q", s.notes(&s.words))
	}
	p := s.program("")
	c, _, err := s.dial(s.r.ConsumerURL(), "token-of-consumer", "", websocket.DialOptions{})
	if err != nil {
		t.Fatal(err)
	}
	hearing := p.listen()
	c.say("hello\n")
	if got := <-hearing; got != "hello\n" {
		t.Errorf("the program hears %q", got)
	}
	p.say("and you\n")
	if got := <-c.listen(); got != "and you\n" {
		t.Errorf("the consumer hears %q", got)
	}
}

// TestProgramComesAgain checks that messages for a disconnected program wait for it, that
// unacknowledged ones are sent again, and acknowledged ones are not.
func TestProgramComesAgain(t *testing.T) {
	s := play(t, Options{})
	s.say("one\n")
	p := s.program("")
	if got := p.hear(); got != "one\n" {
		t.Fatal(got)
	}
	go p.conn.Read(s.ctx) // answers the ping
	s.await("one has arrived", s.r.program.out.idle)
	p.conn.CloseNow()

	deaf, _, err := s.dial(s.r.URL(), s.r.Token(), "",
		websocket.DialOptions{OnPingReceived: func(context.Context, []byte) bool { return false }})
	if err != nil {
		t.Fatal(err)
	}
	s.say("two\n")
	if got := deaf.hear(); got != "two\n" {
		t.Fatal(got)
	}
	deaf.conn.CloseNow()
	s.say("three\n")

	p = s.program("")
	if got := p.hear() + p.hear(); got != "two\nthree\n" {
		t.Errorf("after the connection that answered for nothing it hears %q", got)
	}
	if lost := s.notes(&s.lost); len(lost) > 0 {
		t.Errorf("nothing was lost: %q", lost)
	}
}

// TestNewConnectionTakesThePlace checks that a new connection replaces an open one, and that
// messages of the old connection come before those of the new one.
func TestNewConnectionTakesThePlace(t *testing.T) {
	s := play(t, Options{})
	old := s.program("")
	old.say("{\"type\":\"assistant\",\"uuid\":\"a\"}\n")
	s.hear()
	fresh := s.program("a")
	fresh.say("{\"type\":\"assistant\",\"uuid\":\"b\"}\n")
	if got := s.hear(); !strings.Contains(got, `"b"`) {
		t.Error(got)
	}
	if _, _, err := old.conn.Read(s.ctx); err == nil || s.ctx.Err() != nil {
		t.Error("the old connection continues")
	}
	if lost := s.notes(&s.lost); len(lost) > 0 {
		t.Errorf("nothing was lost: %q", lost)
	}
	s.program("c")
	s.await("the loss is noticed", func() bool { return len(s.notes(&s.lost)) == 1 })
	for n, last := range []string{"c", ""} {
		s.program(last) // a connection replaced before it was open does not count
		s.await("it is there", func() bool { return len(s.notes(&s.words)) == 3+n })
	}
	if lost := s.notes(&s.lost); len(lost) != 1 {
		t.Errorf("one loss is said once: %q", lost)
	}
}

// TestPoison checks that a message that breaks every connection does not block the others for ever.
func TestPoison(t *testing.T) {
	s := play(t, Options{})
	s.say("poison\n")
	s.say("after\n")
	for n := 0; ; n++ {
		p, _, err := s.dial(s.r.URL(), s.r.Token(), "",
			websocket.DialOptions{OnPingReceived: func(context.Context, []byte) bool { return false }})
		if err != nil {
			t.Fatal(err)
		}
		got := p.hear()
		p.conn.CloseNow()
		if got == "after\n" {
			if n != maxBroken {
				t.Errorf("it came %d times", n)
			}
			break
		}
		if n > maxBroken {
			t.Fatal("it comes again and again")
		}
		s.await("the connection is over", func() bool {
			select {
			case <-s.r.program.present():
				return true
			default:
				return false
			}
		})
	}
	if words := strings.Join(s.notes(&s.words), "\n"); !strings.Contains(words, "a message of 7 bytes broke 5 "+
		"connections") {
		t.Errorf("said: %s", words)
	}
}

// TestSlowConsumer checks that with a consumer that reads nothing, the program still gets answers
// to its pings, loses no line, and the memory stays within its limit.
func TestSlowConsumer(t *testing.T) {
	const size, count = 64 << 10, 400 // 25 MiB
	s := play(t, Options{Memory: 1 << 20, See: func([]byte) {}})
	p := s.program("")
	p.listen()
	filler := strings.Repeat("y", size)
	line := func(n int) string { return fmt.Sprintf("{\"n\":%d,\"x\":\"%s\"}\n", n, filler) }
	for n := range count {
		p.say(line(n))
		if n%100 == 0 {
			ctx, cancel := context.WithTimeout(s.ctx, 10*time.Second) // like the program's timeout
			if err := p.conn.Ping(ctx); err != nil {
				t.Fatalf("after %d lines the program's ping is not answered: %v", n, err)
			}
			cancel()
		}
	}
	q := s.r.outs[0]
	s.await("what does not fit into memory is on disk", func() bool {
		q.mu.Lock()
		defer q.mu.Unlock()
		if q.bytes > 1<<20 {
			t.Errorf("%d bytes in memory", q.bytes)
		}
		return q.file.end >= 20<<20
	})
	for n := range count {
		if got := s.hear(); got != line(n) {
			t.Fatalf("line %d is %.40q", n, got)
		}
	}
	s.await("all was taken", q.idle)
	if q.file.end != 0 {
		t.Error("the file is not empty")
	}
}

// TestBackPressure checks that the relay stops reading from the program when its queue is full, and
// continues later without a loss.
func TestBackPressure(t *testing.T) {
	s := play(t, Options{Memory: 1 << 20, Disk: 1 << 20, See: func([]byte) {}})
	p := s.program("")
	line := "{\"x\":\"" + strings.Repeat("y", 1<<20-9) + "\"}\n"
	const count = 32
	said := make(chan int, count)
	go func() {
		defer close(said)
		for n := range count {
			p.say(line)
			said <- n
		}
	}()
	q := s.r.outs[0]
	s.await("it is full", func() bool {
		q.mu.Lock()
		defer q.mu.Unlock()
		return q.bytes+q.file.end >= 1<<20 &&
			len(said) > 1
	})
	for range 3 * count { // it stays so during this many checks
		q.mu.Lock()
		if q.bytes+q.file.end > 3<<20 {
			t.Errorf("%d bytes wait", q.bytes+q.file.end)
		}
		q.mu.Unlock()
	}
	if len(said) == count {
		t.Error("the program was never held up")
	}
	for n := range count {
		if got := s.hear(); got != line {
			t.Fatalf("line %d has %d bytes", n, len(got))
		}
	}
}

// TestConsumerComesAgain checks that a reconnected WebSocket consumer gets all unacknowledged
// messages again, without a gap.
func TestConsumerComesAgain(t *testing.T) {
	const count = 500
	s := play(t, Options{Consumer: true, Memory: 1000})
	p := s.program("")
	p.listen()
	for n := range count {
		p.say(fmt.Sprintf("{\"n\":%d}\n", n))
	}
	next, twice := 0, 0
	take := func(line string) {
		var n int
		fmt.Sscanf(line, `{"n":%d}`, &n)
		switch {
		case n > next:
			t.Fatalf("line %d comes where %d is missing", n, next)
		case n < next:
			twice++
		default:
			next++
		}
	}
	for next < count {
		c, _, err := s.dial(s.r.ConsumerURL(), s.r.ConsumerToken(), "", websocket.DialOptions{})
		if err != nil {
			t.Fatal(err)
		}
		hearing := c.listen()
		for enough := min(next+100, count); next < enough; {
			line, ok := <-hearing
			if !ok {
				t.Fatal("the connection is gone")
			}
			take(line)
		}
		if next < count {
			c.conn.CloseNow()
			for line := range hearing { // messages that it acknowledged before the test read them
				take(line)
			}
		}
	}
	if twice > count {
		t.Errorf("%d lines came twice", twice)
	}
}
