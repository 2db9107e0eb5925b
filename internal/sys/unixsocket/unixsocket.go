// Package unixsocket listens on and connects to unix sockets, whatever the length of their paths.
//
// # Authority
//
// The system takes only about a hundred bytes for the path of a socket, and a home may lie deeper.
// This package reaches a longer path through a link in a temporary folder. The caller decides who
// may use the socket.
//
// # Guarantees
//
//   - The temporary folder is removed before Listen and Dial return.
//   - The socket that Listen makes can be used by its owner alone.
package unixsocket

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
)

// longest is the longest path of a unix socket, in bytes: macOS allows 104 with the end of the
// text.
const longest = 103

// Listen makes the socket and listens on it. Closing the listener leaves the file.
func Listen(path string) (*net.UnixListener, error) {
	short, done, err := shortened(path)
	if err != nil {
		return nil, err
	}
	defer done()
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: short, Net: "unix"})
	if err != nil {
		return nil, err
	}
	l.SetUnlinkOnClose(false)
	if err := os.Chmod(path, 0o600); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

// Dial connects to the socket.
func Dial(ctx context.Context, path string) (net.Conn, error) {
	short, done, err := shortened(path)
	if err != nil {
		return nil, err
	}
	defer done()
	var d net.Dialer
	return d.DialContext(ctx, "unix", short)
}

// shortened returns a path to the socket that is short enough. done removes the link that it may
// contain.
func shortened(path string) (short string, done func(), err error) {
	if len(path) <= longest {
		return path, func() {}, nil
	}
	dir, err := os.MkdirTemp("", "cadre-")
	if err != nil {
		return "", nil, err
	}
	link := filepath.Join(dir, "s")
	if path, err = filepath.Abs(path); err == nil {
		err = os.Symlink(filepath.Dir(path), link)
	}
	if err != nil {
		return "", nil, errors.Join(err, os.RemoveAll(dir))
	}
	return filepath.Join(link, filepath.Base(path)), func() { os.RemoveAll(dir) }, nil
}
