package pgjournal_test

import (
	"encoding/binary"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// proxy stands between a store and the server, and fails as networks do.
type proxy struct {
	network, address string // of the server
	listener         net.Listener

	mu    sync.Mutex
	fault fault // of the next bytes from a client
	down  bool  // connections are refused
	deaf  bool  // notifications are dropped
	mute  bool  // answers do not reach the client, which loses its connection; the server does all
	heard int   // notifications that were carried
	open  map[net.Conn]bool
	ended sync.WaitGroup
}

// fault is what happens to the next bytes from a client.
type fault int

const (
	none      fault = iota
	cutBefore       // they do not reach the server
	cutAfter        // they reach the server, and its answer does not reach the client
	cutLate         // the client loses its connection first, and they reach the server later
	cutAll          // they do not reach the server, and the server cannot be reached any more
)

// late is how much later.
const late = 400 * time.Millisecond

// between starts a proxy and returns the schema as it is reached through it.
func between(t testing.TB, at where) (*proxy, where) {
	t.Helper()
	config, err := pgx.ParseConfig(at.DSN)
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{open: map[net.Conn]bool{}}
	p.network, p.address = pgconn.NetworkAddress(config.Host, config.Port)
	if p.listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	p.ended.Go(p.accept)
	t.Cleanup(func() {
		p.listener.Close()
		p.cut()
		p.ended.Wait()
	})
	return p, at.through("127.0.0.1", p.listener.Addr().(*net.TCPAddr).Port)
}

func (p *proxy) set(change func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change()
}

// cut cuts all connections.
func (p *proxy) cut() {
	p.set(func() {
		for conn := range p.open {
			conn.Close()
		}
	})
}

func (p *proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.mu.Lock()
		down := p.down
		p.mu.Unlock()
		if down {
			client.Close()
			continue
		}
		server, err := net.Dial(p.network, p.address)
		if err != nil {
			client.Close()
			continue
		}
		p.set(func() { p.open[client], p.open[server] = true, true })
		p.ended.Go(func() { p.toServer(client, server) })
		p.ended.Go(func() { p.toClient(client, server) })
	}
}

// toServer carries what the client sends.
func (p *proxy) toServer(client, server net.Conn) {
	defer server.Close()
	defer client.Close()
	buf := make([]byte, 64<<10)
	for {
		n, err := client.Read(buf)
		if err != nil {
			return
		}
		p.mu.Lock()
		fault := p.fault
		p.fault = none
		p.down = p.down || fault == cutAll
		p.mu.Unlock()
		switch fault {
		case cutBefore, cutAll:
			return
		case cutAfter:
			p.set(func() { delete(p.open, client) }) // toClient drops the answer
		case cutLate:
			client.Close()
			time.Sleep(late)
			_, _ = server.Write(buf[:n])
			time.Sleep(50 * time.Millisecond) // a server does not read what a closed connection has sent
			return
		}
		if _, err := server.Write(buf[:n]); err != nil {
			return
		}
	}
}

// toClient carries the messages of the server.
func (p *proxy) toClient(client, server net.Conn) {
	defer server.Close()
	defer client.Close()
	connected := false
	head := make([]byte, 5) // the type and the length, which counts itself
	for {
		if _, err := io.ReadFull(server, head); err != nil {
			return
		}
		message := make([]byte, 1+binary.BigEndian.Uint32(head[1:]))
		copy(message, head)
		if _, err := io.ReadFull(server, message[len(head):]); err != nil {
			return
		}
		p.mu.Lock()
		drop := p.deaf && head[0] == 'A'
		if head[0] == 'A' && !p.deaf {
			p.heard++
		}
		answers := p.open[client] && !(p.mute && connected)
		p.mu.Unlock()
		connected = connected || head[0] == 'Z'
		if !answers {
			if head[0] == 'Z' { // the server has done everything
				return
			}
			continue
		}
		if drop {
			continue
		}
		if _, err := client.Write(message); err != nil {
			return
		}
	}
}
