package server

import (
	"net"
	"sync"
)

// limited has at most so many connections at a time. A further one is closed at once: if it waited,
// the process that opened it could end meanwhile, and another one have its pid when it is looked
// up.
type limited struct {
	net.Listener
	free chan struct{}
}

func limit(l net.Listener, most int) net.Listener {
	return &limited{Listener: l, free: make(chan struct{}, most)}
}

func (l *limited) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		select {
		case l.free <- struct{}{}:
			return &counted{Conn: c, done: sync.OnceFunc(func() { <-l.free })}, nil
		default:
			c.Close()
		}
	}
}

// counted is a connection of a limited listener.
type counted struct {
	net.Conn
	done func()
}

func (c *counted) Close() error {
	defer c.done()
	return c.Conn.Close()
}

// NetConn returns the connection below.
func (c *counted) NetConn() net.Conn { return c.Conn }
