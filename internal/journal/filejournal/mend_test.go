package filejournal_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"cadre/internal/journal"
	"cadre/internal/journal/filejournal"
	"cadre/internal/journal/journaltest"
)

// spoil damages the line of the record seq.
func spoil(t *testing.T, dir string, seq int) {
	t.Helper()
	paths, _ := filepath.Glob(filepath.Join(dir, "journal", "*.jsonl"))
	for _, path := range paths {
		text := string(read(t, path))
		if good := fmt.Sprintf(`{"n":%d}`, seq); strings.Contains(text, good) {
			write(t, path, []byte(strings.Replace(text, good, `{"n":x}`, 1)))
			return
		}
	}
	t.Fatalf("no record %d", seq)
}

// TestMend damages a journal of nine records in four segments, with and without a snapshot, and
// mends it. Afterwards the journal opens, appends and has no problem. It has lost exactly the
// records that Mend reported.
func TestMend(t *testing.T) {
	t.Parallel()
	type r = filejournal.Range
	tests := []struct {
		name       string
		spoil      []int
		snapshot   int64
		last       int64
		hole, lost *r
	}{
		{"in the middle", []int{5}, 0, 4, nil, &r{5, 9}},
		{"the first record", []int{1}, 0, 0, nil, &r{1, 9}},
		{"the last record", []int{9}, 0, 8, nil, &r{9, 9}},
		{"two", []int{3, 7}, 0, 2, nil, &r{3, 9}},
		{"behind the snapshot", []int{7}, 4, 6, nil, &r{7, 9}},
		{"before the snapshot", []int{5}, 7, 9, &r{5, 7}, nil},
		{"right at the snapshot", []int{5}, 5, 9, &r{5, 5}, nil},
		{"the first, before the snapshot", []int{1}, 2, 9, &r{1, 2}, nil},
		{"before and behind the snapshot", []int{2, 8}, 6, 7, &r{2, 6}, &r{8, 9}},
		{"before a snapshot of the end", []int{6}, 9, 9, &r{6, 9}, nil},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			dir := create(t, filejournal.Options{SegmentSize: 80}, numbered(9)...)
			old := open(t, dir, filejournal.Options{})
			state := fmt.Sprintf(`{"at":%d}`, test.snapshot)
			if test.snapshot > 0 {
				if err := old.SaveSnapshot(t.Context(), journal.Snapshot{Seq: test.snapshot,
					Data: state}.Taken); err != nil {
					t.Fatal(err)
				}
			}
			for _, seq := range test.spoil {
				spoil(t, dir, seq)
			}
			m, err := filejournal.Mend(t.Context(), dir)
			if err != nil {
				t.Fatal(err)
			}
			if m.Last != test.last || !reflect.DeepEqual(m.Hole, test.hole) || !reflect.DeepEqual(m.Lost, test.lost) {
				t.Errorf("mended: %+v, hole %v, lost %v", m, m.Hole, m.Lost)
			}
			if len(m.Aside) == 0 {
				t.Error("no original was set aside")
			}
			for _, path := range m.Aside {
				if len(read(t, path)) == 0 {
					t.Errorf("%s is empty", path)
				}
			}
			h, err := filejournal.Check(dir)
			if err != nil || len(h.Problems) > 0 || h.Last != test.last {
				t.Errorf("check: %+v, %v", h, err)
			}
			if _, err := journaltest.Add(t.Context(), old, 0, `0`); !errors.Is(err, journal.ErrGone) {
				t.Errorf("a handle from before: %v", err)
			}
			j := open(t, dir, filejournal.Options{SegmentSize: 80})
			s, err := j.Snapshot(t.Context())
			if err != nil || s.Seq != test.snapshot || (s.Seq > 0 && s.Data != state) {
				t.Errorf("snapshot: %d %s, %v", s.Seq, s.Data, err)
			}
			for n := range int64(4) { // enough to rotate
				if seq, err := journaltest.Add(t.Context(), j, s.Seq,
					fmt.Sprintf(`{"n":%d}`, test.last+1+n)); err != nil || seq != test.last+1+n {
					t.Fatalf("append: %d, %v", seq, err)
				}
			}
			for i, data := range journaltest.All(t, j, s.Seq) {
				if want := fmt.Sprintf(`{"n":%d}`, s.Seq+int64(i)+1); data != want {
					t.Errorf("got %s, want %s", data, want)
				}
			}
			var damage *journal.DamageError
			if _, err := readAll(dir, filejournal.Options{}); (test.hole != nil) != errors.As(err, &damage) {
				t.Errorf("read across: %v", err)
			}
			again, err := filejournal.Mend(t.Context(), dir)
			if err != nil || again.Last != test.last+4 || again.Aside != nil {
				t.Errorf("mended again: %+v, %v", again, err)
			}
		})
	}
}

// TestMendTwice has a hole, and then new damage on either side of it.
func TestMendTwice(t *testing.T) {
	t.Parallel()
	for _, seq := range []int{2, 8} {
		dir := create(t, filejournal.Options{SegmentSize: 80}, numbered(9)...)
		j := open(t, dir, filejournal.Options{})
		if err := j.SaveSnapshot(t.Context(), journal.Snapshot{Seq: 6, Data: `6`}.Taken); err != nil {
			t.Fatal(err)
		}
		spoil(t, dir, 4)
		if m, err := filejournal.Mend(t.Context(), dir); err != nil || m.Last != 9 {
			t.Fatalf("%+v, %v", m, err)
		}
		spoil(t, dir, seq)
		m, err := filejournal.Mend(t.Context(), dir)
		if err != nil || m.Last < 7 {
			t.Fatalf("%+v, %v", m, err)
		}
		if h, err := filejournal.Check(dir); err != nil || len(h.Problems) > 0 {
			t.Errorf("check: %+v, %v", h, err)
		}
		j = open(t, dir, filejournal.Options{})
		if s, err := j.Snapshot(t.Context()); err != nil || s.Seq != 6 {
			t.Errorf("snapshot: %d, %v", s.Seq, err)
		}
		if n, err := journaltest.Add(t.Context(), j, 6, `1`); err != nil || n != m.Last+1 {
			t.Errorf("append: %d, %v", n, err)
		}
	}
}

// TestMendFlips mends a journal after any byte was flipped. The result opens and appends.
func TestMendFlips(t *testing.T) {
	t.Parallel()
	dir := create(t, filejournal.Options{SegmentSize: 80}, numbered(4)...)
	paths, _ := filepath.Glob(filepath.Join(dir, "journal", "*.jsonl"))
	for _, path := range paths {
		for i := range read(t, path) {
			if testing.Short() && i%10 != 0 {
				continue
			}
			copied := filepath.Join(t.TempDir(), "team")
			if err := os.CopyFS(copied, os.DirFS(dir)); err != nil {
				t.Fatal(err)
			}
			bad := read(t, path)
			bad[i] ^= 1
			write(t, filepath.Join(copied, "journal", filepath.Base(path)), bad)
			m, err := filejournal.Mend(t.Context(), copied)
			if err != nil {
				t.Fatalf("%s, byte %d: %v", path, i, err)
			}
			if h, err := filejournal.Check(copied); err != nil || len(h.Problems) > 0 {
				t.Errorf("%s, byte %d: check: %+v, %v", path, i, h, err)
			}
			if seq, err := appendTo(copied, `"new"`, filejournal.Options{}); err != nil || seq != m.Last+1 {
				t.Errorf("%s, byte %d: append: %d, %v", path, i, seq, err)
			}
		}
	}
}
