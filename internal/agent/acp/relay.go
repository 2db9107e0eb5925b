package acp

import (
	"context"
	"io"
	"net"

	"cadre/internal/team"
)

// Relay runs in the process that an agent starts as its MCP server. It connects in and out with the
// socket on which the session's host serves the team's tools, until either ends. It returns nil
// when ctx is cancelled.
func Relay(ctx context.Context, socket string, in io.Reader, out io.Writer) error {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "unix", socket)
	if err != nil {
		return &team.Error{Code: team.NotReady, Text: "the session of these tools has ended: " + err.Error()}
	}
	defer conn.Close()
	ended := make(chan error, 2)
	go func() {
		_, err := io.Copy(conn, in)
		if half, ok := conn.(*net.UnixConn); ok {
			half.CloseWrite()
		}
		if err != nil {
			ended <- err
		}
	}()
	go func() {
		_, err := io.Copy(out, conn)
		ended <- err
	}()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
		return nil
	}
}
