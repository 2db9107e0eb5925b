package sdkrelay

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/coder/websocket"
)

// BenchmarkRelay carries lines of 1 KB from a program to a consumer on standard output. The
// baseline only reads them from the same WebSocket, which is the minimum for any server.
func BenchmarkRelay(b *testing.B) {
	line := fmt.Sprintf("{\"type\":\"assistant\",\"uuid\":\"u\",\"x\":%q}\n", strings.Repeat("y", 1000))
	b.Run("baseline", func(b *testing.B) {
		read := make(chan struct{})
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			conn, err := websocket.Accept(w, r, nil)
			if err != nil {
				return
			}
			defer conn.CloseNow()
			for range b.N {
				conn.Read(b.Context())
			}
			close(read)
		}))
		defer server.Close()
		conn, _, err := websocket.Dial(b.Context(), "ws"+strings.TrimPrefix(server.URL, "http"), nil)
		if err != nil {
			b.Fatal(err)
		}
		defer conn.CloseNow()
		b.SetBytes(int64(len(line)))
		for range b.N {
			conn.Write(b.Context(), websocket.MessageText, []byte(line))
		}
		<-read
	})
	b.Run("relay", func(b *testing.B) {
		s := play(b, Options{See: func([]byte) {}})
		p := s.program("")
		heard := make(chan struct{})
		b.SetBytes(int64(len(line)))
		n := b.N
		go func() {
			defer close(heard)
			for range n {
				s.out.ReadString('\n')
			}
		}()
		for range n {
			p.say(line)
		}
		<-heard
	})
	// One line at a time, from the program's write to the consumer's read.
	b.Run("latency", func(b *testing.B) {
		s := play(b, Options{See: func([]byte) {}})
		p := s.program("")
		for b.Loop() {
			p.say(line)
			s.out.ReadString('\n')
		}
	})
}
