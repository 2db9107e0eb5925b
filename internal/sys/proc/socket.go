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

// socketsFile is the name, in a host's folder, of the file that holds the path of its sockets'
// folder.
const socketsFile = "sockets"

// socketsPrefix begins the name of a folder of sockets. A folder without this prefix is never
// removed.
const socketsPrefix = "cadre-"

// Socket returns an unused path for a unix socket of this host. It lies in a temporary folder of
// the host, which is removed after the host has ended, however it ended. It is not in the host's
// folder, because the path of a socket is limited to 104 bytes on macOS.
func (r *Register) Socket() (string, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return "", fmt.Errorf("create a socket path: %w", ErrClosed)
	}
	if r.sockets == "" {
		dir := filepath.Join(os.TempDir(), socketsPrefix+rand.Text()[:12])
		if r.dir != "" { // recorded first: nothing would ever remove an unrecorded folder
			if err := os.WriteFile(filepath.Join(r.dir, socketsFile), []byte(dir), 0o600); err != nil {
				return "", fmt.Errorf("create a socket path: %w", err)
			}
		}
		if err := os.Mkdir(dir, 0o700); err != nil {
			return "", fmt.Errorf("create a socket path: %w", err)
		}
		r.sockets = dir
	}
	r.socketCount++
	return filepath.Join(r.sockets, fmt.Sprint(r.socketCount)), nil
}

// removeSockets removes the sockets' folder of the host with this folder.
func removeSockets(dir string) error {
	data, err := regularfile.Read(filepath.Join(dir, socketsFile), maxFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if path := string(data); filepath.IsAbs(path) && strings.HasPrefix(filepath.Base(path), socketsPrefix) {
		return os.RemoveAll(path)
	}
	return nil // truncated by a crash: the folder was never created
}
