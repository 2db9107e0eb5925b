package filejournal_test

import (
	"path/filepath"
	"testing"

	"cadre/internal/journal"
	"cadre/internal/journal/filejournal"
	"cadre/internal/journal/journaltest"
	"cadre/internal/testkit/soak"
)

// create creates a journal and returns its team's folder.
func create(t testing.TB, opts filejournal.Options, records ...string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "team")
	var data [][]byte
	for _, r := range records {
		data = append(data, []byte(r))
	}
	if err := filejournal.Create(dir, "team", data, opts); err != nil {
		t.Fatal(err)
	}
	return dir
}

// open returns a handle that is closed at the end of the test.
func open(t testing.TB, dir string, opts filejournal.Options) *filejournal.Journal {
	t.Helper()
	j, err := filejournal.Open(dir, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { j.Close() })
	return j
}

func handles(opts filejournal.Options) journaltest.Open {
	return func(t testing.TB) func() journal.Journal {
		dir := create(t, opts)
		return func() journal.Journal { return open(t, dir, opts) }
	}
}

func TestContract(t *testing.T) {
	soak.Long(t)
	t.Parallel()
	t.Run("one segment", func(t *testing.T) {
		if testing.Short() {
			t.Skip("tiny segments have more cases; not with -short")
		}
		journaltest.Run(t, handles(filejournal.Options{}))
	})
	t.Run("tiny segments", func(t *testing.T) { journaltest.Run(t, handles(filejournal.Options{SegmentSize: 200})) })
}

func BenchmarkContract(b *testing.B) { journaltest.Benchmark(b, handles(filejournal.Options{})) }
