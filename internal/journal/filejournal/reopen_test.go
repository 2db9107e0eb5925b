package filejournal_test

import (
	"errors"
	"testing"

	"cadre/internal/journal"
	"cadre/internal/journal/filejournal"
	"cadre/internal/journal/filejournal/disktest"
	"cadre/internal/journal/journaltest"
)

// TestAFailedSync checks that a handle accepts no record after a failed sync, even if the disk
// works again, and that the error says to reopen the journal. A new handle works.
func TestAFailedSync(t *testing.T) {
	t.Parallel()
	disk := disktest.New()
	opts := filejournal.Options{Disk: disk.Process("writer")}
	if err := filejournal.Create(teamDir, "team", nil, opts); err != nil {
		t.Fatal(err)
	}
	open := func() *filejournal.Journal {
		j, err := filejournal.Open(teamDir, opts)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { j.Close() })
		return j
	}
	j := open()
	if _, err := journaltest.Add(t.Context(), j, 0, `"one"`); err != nil {
		t.Fatal(err)
	}
	disk.Before = func(op *disktest.Op) (f disktest.Fault) {
		if op.Kind == disktest.Sync {
			f.Err = errors.New("input/output error")
			f.Choose = func(int) int { return 0 }
		}
		return f
	}
	if _, err := journaltest.Add(t.Context(), j, 1, `"two"`); !errors.Is(err, journal.ErrUncertain) {
		t.Fatal(err)
	}
	disk.Before = nil
	if _, err := journaltest.Add(t.Context(), j, 2, `"three"`); !errors.Is(err, journal.ErrReopen) ||
		errors.Is(err, journal.ErrUncertain) {
		t.Errorf("a record after that: %v", err)
	}
	if _, err := journaltest.Add(t.Context(), open(), 2, `"three"`); err != nil {
		t.Errorf("by a new handle: %v", err)
	}
}
