package agenttest

import (
	"context"
	"io"
	"net"
	"os"
	"path/filepath"
	"sync"

	"cadre/internal/agent"
	"cadre/internal/agent/mcpserver"
)

// relayVariable names the socket for the test binary when it runs as the tool server of a session.
// The binary connects its standard input and output to the socket.
const relayVariable = "CADRE_TEST_RELAY"

// relay runs the relay if relayVariable is set. Then it never returns.
func relay() {
	socket := os.Getenv(relayVariable)
	if socket == "" {
		return
	}
	conn, err := net.Dial("unix", socket)
	if err != nil {
		os.Exit(1)
	}
	go func() {
		io.Copy(conn, os.Stdin)
		conn.(*net.UnixConn).CloseWrite()
	}()
	io.Copy(os.Stdout, conn)
	os.Exit(0)
}

// ServeTools serves the bench's tools on a socket. It returns the command line that connects to it.
func (b *Bench) ServeTools() []string { return b.Serve(b.Tools, agent.ToolServerName) }

// Serve serves tools on a socket, as an MCP server of that name. It returns the command line that
// connects to it.
func (b *Bench) Serve(tools agent.Tools, name string) []string {
	b.T.Helper()
	dir, err := os.MkdirTemp("", "cadre-test-")
	if err != nil {
		b.T.Fatal(err)
	}
	socket := filepath.Join(dir, "s")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		b.T.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var serving sync.WaitGroup
	b.T.Cleanup(func() {
		cancel()
		listener.Close()
		serving.Wait()
		os.RemoveAll(dir)
	})
	serving.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			serving.Go(func() {
				defer conn.Close()
				stop := context.AfterFunc(ctx, func() { conn.Close() })
				defer stop()
				mcpserver.Stdio(ctx, tools, conn, conn, mcpserver.Options{Name: name})
			})
		}
	})
	self, err := os.Executable()
	if err != nil {
		b.T.Fatal(err)
	}
	return []string{"/usr/bin/env", relayVariable + "=" + socket, self}
}
