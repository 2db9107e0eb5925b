package filejournal_test

import (
	"fmt"
	"sync"
	"testing"

	"cadre/internal/journal/filejournal"
	"cadre/internal/journal/journaltest"
)

// TestReadersBesideWriters has readers and writers share a handle. A record that is acknowledged
// between a reader's look at the file and its look at the marker does not count as missing.
func TestReadersBesideWriters(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := filejournal.Create(dir, "busy", nil, filejournal.Options{}); err != nil {
		t.Fatal(err)
	}
	j := open(t, dir, filejournal.Options{})
	var writers, readers sync.WaitGroup
	for w := range 16 {
		writers.Go(func() {
			var seq int64
			for i := range 100 {
				var err error
				if seq, err = journaltest.Add(t.Context(), j, seq, fmt.Sprintf(`"%d/%d"`, w, i)); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	const all = 16 * 100
	for range 4 {
		readers.Go(func() {
			for r, err := range journaltest.Watch(t.Context(), j, 0) {
				if err != nil {
					t.Error(err)
				}
				if err != nil || r.Seq == all {
					return
				}
			}
		})
	}
	writers.Wait()
	readers.Wait()
	if got := len(journaltest.All(t, j, 0)); got != all {
		t.Errorf("%d records of %d", got, all)
	}
}
