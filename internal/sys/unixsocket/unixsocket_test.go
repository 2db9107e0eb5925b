package unixsocket_test

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cadre/internal/sys/unixsocket"
)

// TestLongPath checks that both ends of a socket meet at a path of any length, and leave no link.
func TestLongPath(t *testing.T) {
	links := t.TempDir()
	t.Setenv("TMPDIR", links)
	for _, part := range []string{"short", strings.Repeat("long", 40)} {
		dir, err := os.MkdirTemp("/tmp", "s") // the folder of a test can be long itself
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(dir)
		dir = filepath.Join(dir, part)
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, "socket")
		l, err := unixsocket.Listen(path)
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		if is, err := os.Stat(path); err != nil || is.Mode().Perm() != 0o600 {
			t.Errorf("%s: the socket has the mode %v, %v", part, is.Mode(), err)
		}
		c, err := unixsocket.Dial(t.Context(), path)
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		other, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		io.WriteString(c, "hello")
		c.Close()
		if said, err := io.ReadAll(other); string(said) != "hello" || err != nil {
			t.Errorf("%s: got %q, %v", part, said, err)
		}
		other.Close()
		l.Close()
		if _, err := os.Stat(path); err != nil {
			t.Errorf("%s: the file is gone after the listener was closed: %v", part, err)
		}
	}
	if left, err := os.ReadDir(links); len(left) > 0 || err != nil {
		t.Errorf("links are left: %v, %v", left, err)
	}
}
