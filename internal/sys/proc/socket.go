package proc

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"cadre/internal/sys/regularfile"
)

// socketsFile is the name, in a host's folder, of the file with the path of the folder of its
// sockets.
const socketsFile = "sockets"

// socketsPrefix begins the name of a folder of sockets. Nothing else is ever removed as one.
const socketsPrefix = "cadre-"

// Socket returns a path for a unix socket of this host that nothing has yet. It lies in a folder of
// the host's own, which goes with the host, however that ends, and not in the host's folder: the
// path of a socket has 104 bytes at most on macOS.
func (r *Register) Socket() (string, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return "", fmt.Errorf("a place for a socket: %w", ErrClosed)
	}
	if r.sockets == "" {
		dir := filepath.Join(os.TempDir(), socketsPrefix+rand.Text()[:12])
		if r.dir != "" { // recorded first: what nobody knows of stays for ever
			if err := os.WriteFile(filepath.Join(r.dir, socketsFile), []byte(dir), 0o600); err != nil {
				return "", fmt.Errorf("a place for a socket: %w", err)
			}
		}
		if err := os.Mkdir(dir, 0o700); err != nil {
			return "", fmt.Errorf("a place for a socket: %w", err)
		}
		r.sockets = dir
	}
	r.socketCount++
	return filepath.Join(r.sockets, fmt.Sprint(r.socketCount)), nil
}

// removeSockets removes the folder of sockets of the host with that folder.
func removeSockets(dir string) error {
	data, err := regularfile.Read(filepath.Join(dir, socketsFile), maxNote)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if path := string(data); filepath.IsAbs(path) && strings.HasPrefix(filepath.Base(path), socketsPrefix) {
		return os.RemoveAll(path)
	}
	return nil // torn: it was never made
}
