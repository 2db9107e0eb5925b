package mcpserver

import (
	"context"
	"errors"
	"net"
	"sync"
	"syscall"

	"cadre/internal/agent"
)

// Listener serves tools on a unix socket, for agents that need a program as their MCP server: that
// program connects the two.
type Listener struct {
	listener net.Listener
	stop     context.CancelFunc
	serving  sync.WaitGroup
}

// Listen serves the tools to clients until Close. admit can refuse a connection because of its
// peer; nil admits all. log receives refused connections, and those that end early.
func Listen(socket string, tools agent.Tools, o Options, admit func(syscall.Conn) error,
	log func(string)) (*Listener, error) {
	listener, err := net.Listen("unix", socket)
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(context.Background())
	l := &Listener{listener: listener, stop: stop}
	l.serving.Go(func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			l.serving.Go(func() {
				defer c.Close()
				if admit != nil {
					if err := admit(c.(*net.UnixConn)); err != nil {
						log("a connection was refused: " + err.Error())
						return
					}
				}
				defer context.AfterFunc(ctx, func() { c.Close() })()
				if err := Stdio(ctx, tools, c, c, o); err != nil && ctx.Err() == nil && !errors.Is(err, net.ErrClosed) {
					log(err.Error())
				}
			})
		}
	})
	return l, nil
}

// Close ends the socket and its connections. Afterwards no goroutine of them is running.
func (l *Listener) Close() {
	l.stop()
	l.listener.Close()
	l.serving.Wait()
}
