package server

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"cadre/internal/sys/unixsocket"
	"cadre/internal/testkit/soak"
)

// served is a server with small limits, and what its handler did.
type served struct {
	t    *testing.T
	at   string
	read chan error // how the body of a request ended
	sent chan error // how an answer ended
	said chan string
}

// serving serves with the limits on loopback. The paths say what the handler does.
func serving(t *testing.T, l limits) *served {
	t.Helper()
	s := &served{t: t, read: make(chan error, 100), sent: make(chan error, 100), said: make(chan string, 100)}
	mux := http.NewServeMux()
	mux.HandleFunc("/ignore", func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(http.StatusUnauthorized) })
	mux.HandleFunc("/body", func(w http.ResponseWriter, r *http.Request) {
		n, err := io.Copy(io.Discard, r.Body)
		s.read <- err
		fmt.Fprint(w, n)
	})
	mux.HandleFunc("/wait", func(w http.ResponseWriter, r *http.Request) { // longer than a request may take to come
		io.Copy(io.Discard, r.Body)
		timer := time.NewTimer(3 * l.request / 2)
		defer timer.Stop()
		select {
		case <-timer.C:
			if r.URL.Query().Has("empty") {
				w.WriteHeader(http.StatusNoContent)
				return
			}
			fmt.Fprint(w, "waited")
		case <-r.Context().Done():
			s.read <- context.Cause(r.Context())
		}
	})
	mux.HandleFunc("/much", func(w http.ResponseWriter, r *http.Request) {
		_, err := w.Write(make([]byte, 64<<20))
		s.sent <- err
	})
	mux.HandleFunc("/stream", func(w http.ResponseWriter, r *http.Request) {
		for {
			_, err := w.Write(make([]byte, chunk))
			if err == nil {
				err = http.NewResponseController(w).Flush()
			}
			if err != nil {
				s.sent <- err
				return
			}
		}
	})
	// it is logged
	mux.HandleFunc("/twice", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(200); w.WriteHeader(200) })
	mux.HandleFunc("/panic", func(http.ResponseWriter, *http.Request) { panic("on purpose") })
	mux.HandleFunc("/hijack", func(w http.ResponseWriter, r *http.Request) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			s.sent <- err
			return
		}
		defer conn.Close()
		timer := time.NewTimer(3 * l.write / 2)
		defer timer.Stop()
		<-timer.C
		fmt.Fprint(conn, "taken over")
	})
	httpd := l.server(context.Background(), mux, func(text string) { s.said <- text })
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.at = tcp.Addr().String()
	ended := make(chan struct{})
	go func() { defer close(ended); httpd.Serve(limit(buffered{tcp}, l.conns)) }()
	t.Cleanup(func() { httpd.Close(); <-ended })
	return s
}

// buffered is a listener whose connections buffer little, so that what is written soon waits for
// what is read.
type buffered struct{ net.Listener }

const buffer = 128 << 10

func (b buffered) Accept() (net.Conn, error) {
	c, err := b.Listener.Accept()
	if err == nil {
		err = c.(*net.TCPConn).SetWriteBuffer(buffer)
	}
	return c, err
}

// ample are limits that no test reaches by being slow itself. Each test makes those smaller that it
// is about.
var ample = limits{conns: 100, headBytes: 4 << 10, head: time.Minute, request: time.Minute, write: time.Minute,
	idle: time.Minute}

// brief is a limit of time that a test reaches.
const brief = 200 * time.Millisecond

// dial connects, and returns a reader of what comes.
func (s *served) dial() (net.Conn, *bufio.Reader) {
	s.t.Helper()
	conn, err := net.Dial("tcp", s.at)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { conn.Close() })
	conn.SetReadDeadline(time.Now().Add(20 * time.Second)) // so that a server that waits for ever fails the test
	return conn, bufio.NewReader(conn)
}

// status returns the status of the next answer; 0 if the connection ended instead.
func status(t *testing.T, r *bufio.Reader) int {
	t.Helper()
	answer, err := http.ReadResponse(r, nil)
	if timeout, is := errors.AsType[net.Error](err); is && timeout.Timeout() {
		t.Fatal("the server neither answers nor closes the connection")
	}
	if err != nil {
		return 0
	}
	io.Copy(io.Discard, answer.Body)
	answer.Body.Close()
	return answer.StatusCode
}

// ends waits until the server closes the connection.
func ends(t *testing.T, r *bufio.Reader) {
	t.Helper()
	_, err := io.Copy(io.Discard, r)
	if timeout, is := errors.AsType[net.Error](err); is && timeout.Timeout() {
		t.Fatal("the server does not close the connection")
	}
}

// together runs tests that mostly wait at the same time: t.Parallel runs only as many as there are
// processors.
type together struct {
	*testing.T
	all sync.WaitGroup
}

func (g *together) Run(name string, test func(t *testing.T)) {
	g.all.Go(func() { g.T.Run(name, test) })
}

func result(t *testing.T, from chan error) error {
	t.Helper()
	select {
	case err := <-from:
		return err
	case <-time.After(20 * time.Second):
		t.Fatal("it does not end")
		return nil
	}
}

// TestSlowClients checks that a client that stops in the middle is disconnected, whether or not its
// request is read.
func TestSlowClients(t *testing.T) {
	t.Parallel()
	all := &together{T: t}
	defer all.all.Wait()
	for name, request := range map[string]string{
		"nothing":              "",
		"half a line":          "GET /bo",
		"half a head":          "POST /body HTTP/1.1\r\nHost: x\r\n",
		"half a body":          "POST /body HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nabc",
		"half a chunk":         "POST /body HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab",
		"half a body, ignored": "POST /ignore HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nabc",
		"a promised body":      "POST /body HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\nExpect: 100-continue\r\n\r\n",
		"an idle connection":   "GET /ignore HTTP/1.1\r\nHost: x\r\n\r\n",
	} {
		all.Run(name, func(t *testing.T) {
			l := ample
			switch {
			case name == "an idle connection":
				l.idle = brief
			case strings.Contains(name, "body") || strings.Contains(name, "chunk"):
				l.request = brief
			default:
				l.head = brief
			}
			conn, r := serving(t, l).dial()
			fmt.Fprint(conn, request)
			ends(t, r)
		})
	}
}

// TestSlowRead checks that a client that does not read its answer is disconnected, and holds up
// nobody else.
func TestSlowRead(t *testing.T) {
	t.Parallel()
	all := &together{T: t}
	defer all.all.Wait()
	for _, path := range []string{"/much", "/stream"} {
		all.Run(path, func(t *testing.T) {
			l := ample
			l.write = time.Second
			s := serving(t, l)
			conn, _ := s.dial()
			fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: x\r\n\r\n", path)
			other, r := s.dial()
			fmt.Fprint(other, "GET /body HTTP/1.1\r\nHost: x\r\n\r\n")
			if got := status(t, r); got != 200 {
				t.Errorf("another client gets %d", got)
			}
			if err := result(t, s.sent); !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("the answer ends with %v", err)
			}
		})
	}
}

// TestSteadyRead checks that a client that reads slowly, but does, gets all of a long answer,
// although that takes longer than one write may.
func TestSteadyRead(t *testing.T) {
	soak.Long(t)
	t.Parallel()
	l := ample
	l.write = time.Second
	s := serving(t, l)
	conn, r := s.dial()
	if err := conn.(*net.TCPConn).SetReadBuffer(2 * buffer); err != nil {
		t.Fatal(err)
	}
	fmt.Fprint(conn, "GET /much HTTP/1.1\r\nHost: x\r\n\r\n")
	answer, err := http.ReadResponse(r, nil)
	if err != nil {
		t.Fatal(err)
	}
	begin, read := time.Now(), int64(0)
	for pause := time.NewTicker(l.write / 20); time.Since(begin) < 3*l.write/2; <-pause.C {
		n, err := io.CopyN(io.Discard, answer.Body, chunk)
		if read += n; err != nil {
			t.Fatalf("after %d bytes: %v", read, err)
		}
	}
	n, err := io.Copy(io.Discard, answer.Body)
	if err != nil || read+n != 64<<20 {
		t.Errorf("%d bytes came: %v", read+n, err)
	}
	if err := result(t, s.sent); err != nil {
		t.Error(err)
	}
}

// TestLongRequest checks that the limits on a body and an answer end no request that takes long by
// itself.
func TestLongRequest(t *testing.T) {
	soak.Long(t)
	t.Parallel()
	all := &together{T: t}
	defer all.all.Wait()
	l := ample
	l.request, l.write = time.Second, time.Second
	for name, request := range map[string]string{
		"without a body": "GET /wait HTTP/1.1\r\nHost: x\r\n\r\n",
		"with a body":    "POST /wait HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc",
	} {
		all.Run(name, func(t *testing.T) {
			conn, r := serving(t, l).dial()
			fmt.Fprint(conn, request)
			answer, err := http.ReadResponse(r, nil)
			if err != nil {
				t.Fatal(err)
			}
			if text, err := io.ReadAll(answer.Body); string(text) != "waited" {
				t.Errorf("the answer is %q: %v", text, err)
			}
			fmt.Fprint(conn, "GET /body HTTP/1.1\r\nHost: x\r\n\r\n")
			if got := status(t, r); got != 200 {
				t.Errorf("the next answer is %d", got)
			}
		})
	}
	all.Run("without an answer", func(t *testing.T) {
		conn, r := serving(t, l).dial()
		fmt.Fprint(conn, "GET /wait?empty HTTP/1.1\r\nHost: x\r\n\r\n")
		if got := status(t, r); got != 204 {
			t.Errorf("the answer is %d", got)
		}
	})
	all.Run("taken over", func(t *testing.T) {
		conn, r := serving(t, l).dial()
		fmt.Fprint(conn, "GET /hijack HTTP/1.1\r\nHost: x\r\n\r\n")
		if text, err := io.ReadAll(r); string(text) != "taken over" {
			t.Errorf("%q: %v", text, err)
		}
	})
	all.Run("its client leaves", func(t *testing.T) {
		s := serving(t, ample)
		conn, _ := s.dial()
		fmt.Fprint(conn, "POST /wait HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc")
		conn.Close()
		if err := result(t, s.read); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
}

// TestOversized checks that a request that is too large is refused.
func TestOversized(t *testing.T) {
	t.Parallel()
	all := &together{T: t}
	defer all.all.Wait()
	s := serving(t, ample)
	long := strings.Repeat("a", 2*ample.headBytes+8<<10) // net/http adds 4 KiB
	for name, test := range map[string]struct {
		request string
		want    int
	}{
		"a header":     {"GET /body HTTP/1.1\r\nHost: x\r\nA: " + long + "\r\n\r\n", 431},
		"many headers": {"GET /body HTTP/1.1\r\nHost: x\r\n" + strings.Repeat("A: b\r\n", len(long)/6) + "\r\n", 431},
		"a query":      {"GET /body?" + long + " HTTP/1.1\r\nHost: x\r\n\r\n", 431},
		"a path":       {"GET /" + long + " HTTP/1.1\r\nHost: x\r\n\r\n", 431},
		"a method":     {long + " / HTTP/1.1\r\nHost: x\r\n\r\n", 431},
		"a length":     {"POST /body HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999999999999\r\n\r\n", 400},
		"a body that nobody reads": {"POST /ignore HTTP/1.1\r\nHost: x\r\nContent-Length: 10000000\r\n\r\n" +
			strings.Repeat("a", 1<<20), 401},
	} {
		all.Run(name, func(t *testing.T) {
			conn, r := s.dial()
			go io.WriteString(conn, test.request) // the server may close while it is sent
			if got := status(t, r); got != test.want {
				t.Errorf("the answer is %d, want %d", got, test.want)
			}
			ends(t, r)
		})
	}
}

// TestPipelining checks that requests that are sent at once are answered one after the other, and
// that the rest does not count after a client has stopped reading.
func TestPipelining(t *testing.T) {
	t.Parallel()
	l := ample
	l.write = time.Second
	s := serving(t, l)
	conn, r := s.dial()
	fmt.Fprint(conn, strings.Repeat("GET /body HTTP/1.1\r\nHost: x\r\n\r\n", 100))
	for i := range 100 {
		if got := status(t, r); got != 200 {
			t.Fatalf("answer %d is %d", i, got)
		}
	}
	conn, _ = s.dial()
	fmt.Fprint(conn, strings.Repeat("GET /much HTTP/1.1\r\nHost: x\r\n\r\n", 100))
	if err := result(t, s.sent); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the answer ends with %v", err)
	}
	conn.Close()
	if len(s.sent) > 0 {
		t.Error("a second one was begun")
	}
}

// TestConnectionLimit checks that a connection too many is closed at once, and that there is room
// again when one has ended.
func TestConnectionLimit(t *testing.T) {
	l := ample
	l.conns = 3
	s := serving(t, l)
	var all []net.Conn
	for range l.conns {
		conn, r := s.dial()
		fmt.Fprint(conn, "GET /body HTTP/1.1\r\nHost: x\r\n\r\n")
		if got := status(t, r); got != 200 {
			t.Fatal(got)
		}
		all = append(all, conn)
	}
	_, r := s.dial()
	ends(t, r)
	all[0].Close()
	deadline := time.Now().Add(20 * time.Second)
	for got := 0; got != 200; {
		if time.Now().After(deadline) {
			t.Fatal("there is no room again")
		}
		conn, r := s.dial()
		fmt.Fprint(conn, "GET /body HTTP/1.1\r\nHost: x\r\n\r\n")
		got = status(t, r)
	}
}

// TestServerLog checks that a panic is logged, and that clients cannot fill the log.
func TestServerLog(t *testing.T) {
	s := serving(t, ample)
	conn, r := s.dial()
	fmt.Fprint(conn, "GET /twice HTTP/1.1\r\nHost: x\r\n\r\n")
	status(t, r)
	conn, r = s.dial()
	fmt.Fprint(conn, "GET /panic HTTP/1.1\r\nHost: x\r\n\r\n")
	ends(t, r)
	select {
	case text := <-s.said:
		if !strings.Contains(text, "on purpose") || len(s.said) > 0 {
			t.Errorf("the log has %q, and %d more", text, len(s.said))
		}
	case <-time.After(20 * time.Second):
		t.Error("a panic is not logged")
	}
}

// TestSocketIsClosedToOthers checks that the socket and its folder each keep other users away.
func TestSocketIsClosedToOthers(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can start a process of another user")
	}
	curl, err := exec.LookPath("curl")
	if err != nil {
		t.Skip(err)
	}
	root, err := os.MkdirTemp("", "cadre-socket-")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(root)
	if err := os.Chmod(root, 0o755); err != nil {
		t.Fatal(err)
	}
	folder := filepath.Join(root, "server")
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(folder, "socket")
	l, err := unixsocket.Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	httpd := ample.server(context.Background(), http.NotFoundHandler(), nil)
	ended := make(chan struct{})
	go func() { defer close(ended); httpd.Serve(l) }()
	defer func() { httpd.Close(); <-ended }()
	if is, err := os.Stat(path); err != nil || is.Mode().Perm() != 0o600 {
		t.Errorf("the socket has the mode %v: %v", is.Mode(), err)
	}
	asks := func() bool {
		c := exec.Command(curl, "-sS", "--unix-socket", path, "http://cadre/")
		c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		c.Dir = "/"
		return c.Run() == nil
	}
	for _, test := range []struct {
		folder, socket os.FileMode
		want           bool
	}{{0o700, 0o600, false}, {0o700, 0o666, false}, {0o755, 0o600, false}, {0o755, 0o666, true}} {
		if err := errors.Join(os.Chmod(folder, test.folder), os.Chmod(path, test.socket)); err != nil {
			t.Fatal(err)
		}
		if got := asks(); got != test.want {
			t.Errorf("with the modes %o and %o another user connects: %t", test.folder, test.socket, got)
		}
	}
}

// TestListenAddress checks that without TLS only loopback is listened on.
func TestListenAddress(t *testing.T) {
	for listen, ok := range map[string]bool{"127.0.0.1:0": true, "[::1]:0": true, "localhost:0": true,
		"127.1.2.3:0": true, "0.0.0.0:0": false, ":0": false, "[::]:0": false, "10.0.0.1:0": false,
		"example.test:0": false, "127.0.0.1.example.test:0": false,
		"127.0.0.1": false, "localhost": false} {
		s := &Server{Options: Options{Listen: listen}}
		if err := s.check(); (err == nil) != ok {
			t.Errorf("%s: %v", listen, err)
		}
	}
	for _, o := range []Options{{Listen: "127.0.0.1:0", Certificate: "c"}, {Listen: "127.0.0.1:0", Key: "k"}} {
		if (&Server{Options: o}).check() == nil {
			t.Errorf("half of TLS is enough: %+v", o)
		}
	}
}
