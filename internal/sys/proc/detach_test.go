package proc

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"cadre/internal/testkit/soak"
)

// TestDetachFromAHost checks that a listed process starts programs of the user, also programs that
// end at once.
func TestDetachFromAHost(t *testing.T) {
	soak.Long(t)
	list, dir, at := t.TempDir(), t.TempDir(), t.TempDir()
	r, err := OpenListed(dir, Listing{Folder: list})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close(context.Background())
	output, err := os.Create(filepath.Join(at, "output"))
	if err != nil {
		t.Fatal(err)
	}
	defer output.Close()
	for n := range 60 {
		file := filepath.Join(at, fmt.Sprint(n))
		ended, err := DetachWatched(list, []string{"/bin/sh", "-c", ": >" + file}, os.Environ(), output)
		if err != nil {
			t.Fatalf("program %d: %v", n, err)
		}
		<-ended
		if _, err := os.Stat(file); err != nil {
			t.Errorf("program %d ended, and did not run: %v", n, err)
		}
	}
}
