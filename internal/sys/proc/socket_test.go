package proc

import (
	"net"
	"os"
	"path/filepath"
	"testing"
)

func TestSocketsGoWithTheirHost(t *testing.T) {
	for _, how := range []string{"closed", "dead"} {
		t.Run(how, func(t *testing.T) {
			dir := t.TempDir()
			r, err := Open(filepath.Join(dir, "host"))
			if err != nil {
				t.Fatal(err)
			}
			first, err := r.Socket()
			if err != nil {
				t.Fatal(err)
			}
			second, err := r.Socket()
			if err != nil || second == first || len(second) > 100 {
				t.Errorf("%q after %q, %v", second, first, err)
			}
			l, err := net.Listen("unix", first)
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			if how == "closed" {
				if err := r.Close(within(t)); err != nil {
					t.Error(err)
				}
				if _, err := r.Socket(); err == nil {
					t.Error("a closed register has places for sockets")
				}
			} else {
				r.alive.Unlock() // as the kernel does at the end of a process
				if err := Remove(filepath.Join(dir, "host")); err != nil {
					t.Error(err)
				}
			}
			if _, err := os.Stat(filepath.Dir(first)); !os.IsNotExist(err) {
				t.Errorf("the folder of sockets: %v", err)
			}
		})
	}
	t.Run("a file that names something else", func(t *testing.T) {
		dir, other := t.TempDir(), t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, socketsFile), []byte(other), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := removeSockets(dir); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(other); err != nil {
			t.Errorf("what is no folder of sockets: %v", err)
		}
	})
}
