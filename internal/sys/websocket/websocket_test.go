package websocket_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	theirs "github.com/coder/websocket"
	"go.uber.org/goleak"

	"cadre/internal/sys/websocket"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const limit = 4 << 20

func within(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// listen calls serve for each connection until the test ends, and returns the address.
func listen(t testing.TB, serve func(net.Conn)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			serve(c)
			c.Close()
		}
	}()
	t.Cleanup(func() {
		l.Close()
		<-done
	})
	return l.Addr().String()
}

// accept performs our server's handshake.
func accept(t testing.TB, c net.Conn) *websocket.Conn {
	r, err := websocket.ReadRequest(c)
	if err != nil {
		t.Errorf("the request: %v", err)
		return nil
	}
	conn, err := r.Accept()
	if err != nil {
		t.Errorf("the handshake: %v", err)
		return nil
	}
	conn.SetReadLimit(limit)
	return conn
}

// sizes are message lengths around which the frame format or the read buffer changes.
var sizes = []int{0, 1, 7, 8, 9, 125, 126, 127, 65535, 65536, 65537, 1 << 20, 3<<20 + 1}

func message(size int) []byte {
	b := make([]byte, size)
	for i := range b {
		b[i] = byte('a' + i%23)
	}
	return b
}

// TestServer connects the library's client to our server, which echoes every message.
func TestServer(t *testing.T) {
	over := make(chan error, 1)
	address := listen(t, func(c net.Conn) {
		conn := accept(t, c)
		if conn == nil {
			return
		}
		for {
			kind, data, err := conn.Read(within(t))
			if err != nil {
				over <- err
				return
			}
			if err := conn.Write(within(t), kind, data); err != nil {
				t.Error(err)
			}
		}
	})
	c, _, err := theirs.Dial(within(t), "ws://"+address, nil)
	if err != nil {
		t.Fatal(err)
	}
	c.SetReadLimit(limit)
	same := func(kind theirs.MessageType, want []byte) {
		t.Helper()
		got, data, err := c.Read(within(t))
		if err != nil || got != kind || !bytes.Equal(data, want) {
			t.Fatalf("of %d bytes of kind %v come back %d of kind %v (%v)", len(want), kind, len(data), got, err)
		}
	}
	for _, size := range sizes {
		for _, kind := range []theirs.MessageType{theirs.MessageText, theirs.MessageBinary} {
			if err := c.Write(within(t), kind, message(size)); err != nil {
				t.Fatal(err)
			}
			same(kind, message(size))
		}
	}
	w, err := c.Writer(within(t), theirs.MessageText) // in fragments, with a ping in between
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if _, err := w.Write(message(70_000)); err != nil {
			t.Fatal(err)
		}
	}
	go func() { w.Close() }()
	same(theirs.MessageText, bytes.Repeat(message(70_000), 3))
	c.CloseRead(within(t))
	if err := c.Ping(within(t)); err != nil {
		t.Errorf("a ping: %v", err)
	}
	if err := c.Close(theirs.StatusGoingAway, "bye"); err != nil {
		t.Errorf("the close: %v", err)
	}
	closed, ok := errors.AsType[*websocket.CloseError](<-over)
	if !ok || closed.Code != int(theirs.StatusGoingAway) || closed.Reason != "bye" {
		t.Errorf("the close is seen as %v", closed)
	}
}

// TestClient connects our client to the library's server, which echoes every message.
func TestClient(t *testing.T) {
	over := make(chan error, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, err := theirs.Accept(w, r, nil)
		if err != nil {
			t.Error(err)
			return
		}
		defer c.CloseNow()
		c.SetReadLimit(limit)
		for {
			kind, data, err := c.Read(within(t))
			if err != nil {
				over <- err
				return
			}
			part, err := c.Writer(within(t), kind)
			if err != nil {
				t.Error(err)
				return
			}
			part.Write(data[:len(data)/2])
			part.Write(data[len(data)/2:])
			part.Close()
		}
	}))
	defer server.Close()
	raw, err := net.Dial("tcp", strings.TrimPrefix(server.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	c, err := websocket.Dial(within(t), raw, "localhost", "/")
	if err != nil {
		t.Fatal(err)
	}
	c.SetReadLimit(limit)
	for _, size := range sizes {
		for _, kind := range []websocket.Kind{websocket.Text, websocket.Binary} {
			if err := c.Write(within(t), kind, message(size)); err != nil {
				t.Fatal(err)
			}
			got, data, err := c.Read(within(t))
			if err != nil || got != kind || !bytes.Equal(data, message(size)) {
				t.Fatalf("of %d bytes of kind %v come back %d of kind %v (%v)", size, kind, len(data), got, err)
			}
		}
	}
	read := make(chan error, 1)
	go func() {
		_, _, err := c.Read(within(t))
		read <- err
	}()
	if err := c.Ping(within(t)); err != nil {
		t.Errorf("a ping: %v", err)
	}
	if err := c.Close(websocket.StatusNormal, "all"); err != nil {
		t.Errorf("the close: %v", err)
	}
	if err := <-read; err == nil {
		t.Error("reading continues after the end")
	}
	if err := <-over; theirs.CloseStatus(err) != theirs.StatusNormalClosure {
		t.Errorf("the server saw %v", err)
	}
	if err := c.Write(within(t), websocket.Text, nil); !errors.Is(err, net.ErrClosed) {
		t.Errorf("after the end: %v", err)
	}
}

const handshake = "GET /x?y HTTP/1.1\r\nHost: a.test\r\nConnection: keep-alive, Upgrade\r\nUpgrade: WebSocket\r\n" +
	"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"

// TestBrokenFrames checks that a client that violates the protocol loses its connection, with a
// close code where possible.
func TestBrokenFrames(t *testing.T) {
	for name, c := range map[string]struct {
		frames string
		code   string // expected close code; "" for none
		is     error
	}{
		"not masked":                {"\x81\x01a", "\x03\xea", nil},
		"of an extension":           {"\xc1\x81\x00\x00\x00\x00a", "\x03\xea", nil},
		"of no kind":                {"\x83\x81\x00\x00\x00\x00a", "\x03\xea", nil},
		"of no control kind":        {"\x8b\x80\x00\x00\x00\x00", "\x03\xea", nil},
		"continues nothing":         {"\x80\x81\x00\x00\x00\x00a", "\x03\xea", nil},
		"begins in another":         {"\x01\x81\x00\x00\x00\x00a\x81\x81\x00\x00\x00\x00a", "\x03\xea", nil},
		"ping in parts":             {"\x09\x80\x00\x00\x00\x00", "\x03\xea", nil},
		"long ping":                 {"\x89\xfe\x00\x7e\x00\x00\x00\x00" + strings.Repeat("x", 126), "\x03\xea", nil},
		"half a code":               {"\x88\x81\x00\x00\x00\x00a", "\x03\xea", nil},
		"over the limit":            {"\x81\xff\x00\x00\x00\x00\x00\x40\x00\x01\x00\x00\x00\x00", "\x03\xf1", websocket.ErrTooBig},
		"over all limits":           {"\x82\xff\xff\xff\xff\xff\xff\xff\xff\xff\x00\x00\x00\x00", "\x03\xf1", websocket.ErrTooBig},
		"over the limit in parts":   {"\x01\x81\x00\x00\x00\x00a\x80\xff\x00\x00\x00\x00\x00\x40\x00\x00\x00\x00\x00\x00", "\x03\xf1", websocket.ErrTooBig},
		"ends within a frame":       {"\x81\x85\x00\x00\x00\x00ab", "", io.ErrUnexpectedEOF},
		"ends within the beginning": {"\x81\xff\x00", "", io.ErrUnexpectedEOF},
		"says much, sends little":   {"\x81\xff\x00\x00\x00\x00\x00\x3f\x00\x00\x00\x00\x00\x00abc", "", io.ErrUnexpectedEOF},
		"ends":                      {"", "", io.EOF},
	} {
		t.Run(name, func(t *testing.T) {
			over := make(chan error, 1)
			address := listen(t, func(raw net.Conn) {
				conn := accept(t, raw)
				if conn == nil {
					return
				}
				_, data, err := conn.Read(within(t))
				if err == nil {
					err = fmt.Errorf("it was taken for the message %q", data)
				}
				over <- err
			})
			raw, err := net.Dial("tcp", address)
			if err != nil {
				t.Fatal(err)
			}
			defer raw.Close()
			io.WriteString(raw, handshake+"\r\n"+c.frames)
			raw.(*net.TCPConn).CloseWrite()
			err = <-over
			if c.is != nil && !errors.Is(err, c.is) || strings.Contains(err.Error(), "taken for") {
				t.Errorf("the error is %v", err)
			}
			if c.is == nil && !strings.Contains(err.Error(), "violated the protocol") {
				t.Errorf("the error is %v", err)
			}
			answer, _ := io.ReadAll(raw)
			_, frames, _ := strings.Cut(string(answer), "\r\n\r\n")
			if c.code == "" && frames != "" || c.code != "" &&
				(len(frames) < 4 || frames[0] != 0x88 || frames[2:4] != c.code) {
				t.Errorf("it is told %q", frames)
			}
		})
	}
}

// TestHandshakes checks that only WebSocket handshakes are accepted.
func TestHandshakes(t *testing.T) {
	for name, c := range map[string]struct{ request, want string }{
		"as in the standard": {handshake, "101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n" +
			"Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n"},
		"of its own page":     {handshake + "Origin: http://A.test\r\n", "101 "},
		"of another page":     {handshake + "Origin: http://b.test\r\n", "403 "},
		"of a page in a file": {handshake + "Origin: null\r\n", "403 "},
		"of two pages":        {handshake + "Origin: http://a.test\r\nOrigin: http://b.test\r\n", "403 "},
		"no upgrade":          {strings.Replace(handshake, "Upgrade: WebSocket", "Upgrade: h2c", 1), "426 "},
		"old":                 {strings.Replace(handshake, "13", "8", 1), "426 "},
		"no key":              {strings.Replace(handshake, "dGhl", "", 1), "400 "},
		"no GET":              {strings.Replace(handshake, "GET", "POST", 1), ""},
		"no version":          {strings.Replace(handshake, " HTTP/1.1", "", 1), ""},
		"HTTP/1.0":            {strings.Replace(handshake, "/1.1", "/1.0", 1), ""},
		"no colon":            {handshake + "what\r\n", ""},
		"folded":              {handshake + " folded: x\r\n", ""},
		"a space":             {handshake + "Origin : x\r\n", ""},
		"long":                {handshake + "X: " + strings.Repeat("x", 20<<10) + "\r\n", ""},
		"many":                {handshake + strings.Repeat("X: x\r\n", 200), ""},
		"nothing":             {"\x00", ""},
	} {
		t.Run(name, func(t *testing.T) {
			address := listen(t, func(raw net.Conn) {
				if r, err := websocket.ReadRequest(raw); err == nil {
					if r.Path != "/x" {
						t.Errorf("the path is %s", r.Path)
					}
					r.Accept()
				}
			})
			raw, err := net.Dial("tcp", address)
			if err != nil {
				t.Fatal(err)
			}
			defer raw.Close()
			io.WriteString(raw, c.request+"\r\n")
			raw.(*net.TCPConn).CloseWrite()
			answer, _ := io.ReadAll(raw) // fails if the server closed before it had read everything
			if got, ok := strings.CutPrefix(string(answer), "HTTP/1.1 "); !ok && c.want != "" ||
				!strings.HasPrefix(got, c.want) ||
				c.want == "" && got != "" {
				t.Errorf("the answer is %q, not %q", answer, c.want)
			}
		})
	}
}

// TestOtherServers checks that a client refuses servers that do not speak WebSocket.
func TestOtherServers(t *testing.T) {
	for name, answer := range map[string]string{
		"no WebSocket":   "HTTP/1.1 200 OK\r\n\r\n",
		"another's key":  "HTTP/1.1 101 X\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n",
		"silence":        "",
		"something else": "SSH-2.0-x\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			address := listen(t, func(raw net.Conn) {
				if _, err := websocket.ReadRequest(raw); err != nil {
					t.Error(err)
				}
				io.WriteString(raw, answer)
			})
			raw, err := net.Dial("tcp", address)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := websocket.Dial(within(t), raw, "x", "/"); err == nil {
				t.Error("it is taken for one")
			}
			if _, err := raw.Read(make([]byte, 1)); !errors.Is(err, net.ErrClosed) {
				t.Errorf("the connection is not closed: %v", err)
			}
		})
	}
}

// TestContexts checks that a context that ends during a call closes the connection.
func TestContexts(t *testing.T) {
	for name, call := range map[string]func(context.Context, *websocket.Conn) error{
		"read": func(ctx context.Context, c *websocket.Conn) error { _, _, err := c.Read(ctx); return err },
		"ping": func(ctx context.Context, c *websocket.Conn) error { return c.Ping(ctx) },
		"write": func(ctx context.Context, c *websocket.Conn) error { // until the buffers are full
			for {
				if err := c.Write(ctx, websocket.Binary, message(1<<20)); err != nil {
					return err
				}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			stop := make(chan struct{})
			address := listen(t, func(raw net.Conn) {
				accept(t, raw)
				<-stop // it never reads
			})
			defer close(stop)
			raw, err := net.Dial("tcp", address)
			if err != nil {
				t.Fatal(err)
			}
			c, err := websocket.Dial(within(t), raw, "x", "/")
			if err != nil {
				t.Fatal(err)
			}
			defer c.CloseNow()
			ctx, cancel := context.WithCancel(within(t))
			time.AfterFunc(20*time.Millisecond, cancel)
			if err := call(ctx, c); !errors.Is(err, context.Canceled) {
				t.Errorf("it ends with %v", err)
			}
		})
	}
}

// FuzzFrames checks that reading ends, whatever the client sends.
func FuzzFrames(f *testing.F) {
	f.Add([]byte("\x81\x81\x00\x00\x00\x00a"))
	f.Add([]byte("\x01\x81\x00\x00\x00\x00a\x89\x81\x00\x00\x00\x00p\x80\x81\x00\x00\x00\x00b\x88\x82\x00\x00\x00\x00\x03\xe8"))
	f.Fuzz(func(t *testing.T, frames []byte) {
		ours, theirs := net.Pipe()
		done := make(chan struct{})
		go func() { // writes the frames and discards the answers
			defer close(done)
			go io.Copy(io.Discard, bufio.NewReader(theirs))
			io.WriteString(theirs, handshake+"\r\n")
			theirs.Write(frames)
			theirs.Close()
		}()
		c := accept(t, ours)
		for c != nil {
			if _, data, err := c.Read(within(t)); err != nil {
				break
			} else if len(data) > len(frames) {
				t.Errorf("%d bytes of %d", len(data), len(frames))
			}
		}
		ours.Close()
		<-done
	})
}
