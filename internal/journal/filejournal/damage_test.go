package filejournal_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"cadre/internal/journal"
	"cadre/internal/journal/filejournal"
	"cadre/internal/journal/journaltest"
	"cadre/internal/testkit/soak"
)

// numbered returns the records 1 to n, each with its seq as content.
func numbered(n int) []string {
	var records []string
	for seq := 1; seq <= n; seq++ {
		records = append(records, fmt.Sprintf(`{"n":%d}`, seq))
	}
	return records
}

func segmentPath(dir string, first int64) string {
	return filepath.Join(dir, "journal", filejournal.SegmentName(first))
}

func markerPath(dir string) string { return filepath.Join(dir, "journal", "durable") }

func read(t testing.TB, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func write(t testing.TB, path string, b []byte) {
	t.Helper()
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
}

// readAll opens the journal and reads it from the start until an error.
func readAll(dir string, opts filejournal.Options) (records []string, err error) {
	j, err := filejournal.Open(dir, opts)
	if err != nil {
		return nil, err
	}
	defer j.Close()
	for r, err := range j.Read(context.Background(), 0) {
		if err != nil {
			return records, err
		}
		if r.Seq != int64(len(records)+1) {
			return records, fmt.Errorf("seq %d, expected %d", r.Seq, len(records)+1)
		}
		records = append(records, string(r.Data))
	}
	return records, nil
}

// appendTo opens the journal and appends one record.
func appendTo(dir, data string, opts filejournal.Options) (int64, error) {
	j, err := filejournal.Open(dir, opts)
	if err != nil {
		return 0, err
	}
	defer j.Close()
	return journaltest.Add(context.Background(), j, 0, data)
}

// wantDamage expects that a reader gets at most the records in want and then an error, that a
// writer gets an error, that no file changed, and that a check finds the damage.
func wantDamage(t *testing.T, dir string, want []string, what string) {
	t.Helper()
	before := tree(t, dir)
	var damage *journal.DamageError
	got, err := readAll(dir, filejournal.Options{})
	if !errors.As(err, &damage) {
		t.Errorf("%s: read %d records, %v; want damage", what, len(got), err)
	} else if damage.Segment == "" || damage.Team != "team" {
		t.Errorf("%s: %v does not say where", what, err)
	}
	if len(got) > len(want) || !slices.Equal(got, want[:len(got)]) {
		t.Errorf("%s: read %q", what, got)
	}
	if seq, err := appendTo(dir, `0`, filejournal.Options{}); !errors.As(err, &damage) {
		t.Errorf("%s: append: %d, %v; want damage", what, seq, err)
	}
	if h, err := filejournal.Check(dir); err != nil || len(h.Problems) == 0 {
		t.Errorf("%s: check found nothing: %+v, %v", what, h, err)
	}
	if after := tree(t, dir); before != after {
		t.Errorf("%s: something was changed:\n%s\n%s", what, before, after)
	}
}

// tree returns all files with their content.
func tree(t testing.TB, dir string) string {
	var b strings.Builder
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			fmt.Fprintf(&b, "%s %q\n", path, read(t, path))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestFlips changes every byte of every segment. Since everything was acknowledged, each change is
// reported as damage, and never leads to a wrong record.
func TestFlips(t *testing.T) {
	soak.Long(t)
	t.Parallel()
	want := numbered(7)
	dir := create(t, filejournal.Options{SegmentSize: 80}, want...)
	paths, _ := filepath.Glob(filepath.Join(dir, "journal", "*.jsonl"))
	if len(paths) < 3 {
		t.Fatalf("%d segments", len(paths))
	}
	masks := []byte{0x01, 0x20, 0x80, 0x07}
	if testing.Short() {
		masks = masks[:1]
	}
	for _, path := range paths {
		good := read(t, path)
		for i := range good {
			for _, mask := range masks {
				bad := bytes.Clone(good)
				bad[i] ^= mask
				write(t, path, bad)
				wantDamage(t, dir, want, fmt.Sprintf("%s, byte %d ^ %#x", filepath.Base(path), i, mask))
			}
		}
		write(t, path, good)
	}
	if got, err := readAll(dir, filejournal.Options{}); err != nil || !slices.Equal(got, want) {
		t.Errorf("whole again: %q, %v", got, err)
	}
}

// TestTruncated cuts off an acknowledged record, completely or in part.
func TestTruncated(t *testing.T) {
	t.Parallel()
	want := numbered(3)
	dir := create(t, filejournal.Options{}, want...)
	path := segmentPath(dir, 1)
	good := read(t, path)
	for size := range len(good) {
		write(t, path, good[:size])
		wantDamage(t, dir, want, fmt.Sprintf("cut at byte %d", size))
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if _, err := appendTo(dir, `0`, filejournal.Options{}); err == nil {
		t.Error("appended to a journal without its segment")
	}
}

func TestMissingSegment(t *testing.T) {
	t.Parallel()
	want := numbered(7)
	for i := range 3 {
		dir := create(t, filejournal.Options{SegmentSize: 80}, want...)
		paths, _ := filepath.Glob(filepath.Join(dir, "journal", "*.jsonl"))
		if err := os.Remove(paths[i]); err != nil {
			t.Fatal(err)
		}
		wantDamage(t, dir, want, "without "+filepath.Base(paths[i]))
	}
}

// TestCutUnderHandle truncates the file under a handle that has already read beyond that.
func TestCutUnderHandle(t *testing.T) {
	t.Parallel()
	dir := create(t, filejournal.Options{}, numbered(3)...)
	j := open(t, dir, filejournal.Options{})
	if got := journaltest.All(t, j, 0); len(got) != 3 {
		t.Fatal(got)
	}
	path := segmentPath(dir, 1)
	good := read(t, path)
	write(t, path, good[:bytes.LastIndexByte(good[:len(good)-1], '\n')+1])
	var damage *journal.DamageError
	if seq, err := journaltest.Add(t.Context(), j, 3, `4`); !errors.As(err, &damage) {
		t.Errorf("append: %d, %v", seq, err)
	}
}

// TestTorn leaves every prefix of an unacknowledged record, as a dying writer does, with and
// without the marker.
func TestTorn(t *testing.T) {
	t.Parallel()
	dir := create(t, filejournal.Options{}, numbered(2)...)
	path := segmentPath(dir, 1)
	good := read(t, path)
	line := filejournal.AppendRecord(nil, 3, []byte(`{"n":3}`))
	for _, marker := range []string{string(filejournal.FormatMarker("team", 2)), "", "rubbish"} {
		for cut := range line {
			if testing.Short() && cut%4 != 0 {
				continue
			}
			what := fmt.Sprintf("marker %q, %d bytes", marker, cut)
			write(t, markerPath(dir), []byte(marker))
			write(t, path, append(bytes.Clone(good), line[:cut]...))
			if got, err := readAll(dir, filejournal.Options{}); err != nil || len(got) != 2 {
				t.Errorf("%s: read %q, %v", what, got, err)
			}
			if got := read(t, path); len(got) != len(good)+cut {
				t.Errorf("%s: a reader cut it", what)
			}
			if h, err := filejournal.Check(dir); err != nil || len(h.Torn) != min(cut, 1) || h.Last != 2 ||
				(len(h.Problems) > 0) != (marker != string(filejournal.FormatMarker("team", 2))) {
				t.Errorf("%s: check: %+v, %v", what, h, err)
			}
			var reports []string
			seq, err := appendTo(dir, `"new"`, filejournal.Options{
				Report: func(s string) { reports = append(reports, s) }})
			if err != nil || seq != 3 {
				t.Errorf("%s: append: %d, %v", what, seq, err)
			}
			if len(reports) != min(cut, 1) {
				t.Errorf("%s: reports: %q", what, reports)
			}
			if cut > 0 {
				aside := fmt.Sprintf("%s.torn-%d", path, len(good))
				if got := read(t, aside); !bytes.Equal(got, line[:cut]) {
					t.Errorf("%s: kept %q", what, got)
				}
				os.Remove(aside)
			}
			if got, err := readAll(dir, filejournal.Options{}); err != nil ||
				!slices.Equal(got, append(numbered(2), `"new"`)) {
				t.Errorf("%s: read %q, %v", what, got, err)
			}
		}
	}
}

// TestBadWholeLine has a complete but invalid line at the end. It is torn if the marker shows that
// it was never acknowledged, and damage without a marker.
func TestBadWholeLine(t *testing.T) {
	t.Parallel()
	want := numbered(2)
	dir := create(t, filejournal.Options{}, want...)
	path := segmentPath(dir, 1)
	good := read(t, path)
	line := filejournal.AppendRecord(nil, 3, []byte(`{"n":3}`))
	line[len(line)-4] ^= 1
	write(t, path, append(bytes.Clone(good), line...))
	if got, err := readAll(dir, filejournal.Options{}); err != nil || !slices.Equal(got, want) {
		t.Errorf("read %q, %v", got, err)
	}
	if seq, err := appendTo(dir, `3`, filejournal.Options{}); err != nil || seq != 3 {
		t.Errorf("append: %d, %v", seq, err)
	}
	write(t, path, append(bytes.Clone(good), line...))
	write(t, markerPath(dir), nil)
	wantDamage(t, dir, want, "no marker")
}

func TestNewer(t *testing.T) {
	t.Parallel()
	dir := create(t, filejournal.Options{}, numbered(2)...)
	path := segmentPath(dir, 1)
	good := read(t, path)
	newer := filejournal.AppendLine(nil, filejournal.KeyHeader, 2, []byte(`,"what":"ever"`))
	write(t, path, append(newer, "something else\n"...))
	if _, err := filejournal.Open(dir, filejournal.Options{}); !errors.Is(err, journal.ErrNewer) ||
		!strings.Contains(err.Error(), "version 2") {
		t.Errorf("open: %v", err)
	}
	if _, err := filejournal.Check(dir); !errors.Is(err, journal.ErrNewer) {
		t.Errorf("check: %v", err)
	}
	write(t, path, good)
	write(t, filepath.Join(dir, "state.json"), filejournal.AppendLine(nil, "cadre-state", 2))
	j := open(t, dir, filejournal.Options{})
	if _, err := j.Snapshot(t.Context()); !errors.Is(err, journal.ErrNewer) {
		t.Errorf("snapshot: %v", err)
	}
}

// TestSnapshotFlips changes every byte of a snapshot. The snapshot is ignored, this is reported,
// and the next one replaces it.
func TestSnapshotFlips(t *testing.T) {
	t.Parallel()
	dir := create(t, filejournal.Options{}, numbered(4)...)
	path := filepath.Join(dir, "state.json")
	save := func(j *filejournal.Journal, seq int64) {
		t.Helper()
		if err := j.SaveSnapshot(t.Context(), journal.Snapshot{Seq: seq, Data: `{"at":3}`}.Taken); err != nil {
			t.Error(err)
		}
	}
	save(open(t, dir, filejournal.Options{}), 3)
	good := read(t, path)
	for i := range good {
		bad := bytes.Clone(good)
		bad[i] ^= 1
		write(t, path, bad)
		reports := 0
		j, err := filejournal.Open(dir, filejournal.Options{Report: func(string) { reports++ }})
		if err != nil {
			t.Fatal(err)
		}
		if s, err := j.Snapshot(t.Context()); err != nil || s.Seq != 0 || s.Data != "" || reports != 1 {
			t.Errorf("byte %d: %+v, %v, %d reports", i, s, err, reports)
		}
		save(j, 3)
		if got := read(t, path); !bytes.Equal(got, good) {
			t.Errorf("byte %d: saved %q", i, got)
		}
		j.Close()
	}
	// A snapshot ahead of the history proves that the history has lost records.
	whole := read(t, segmentPath(dir, 1))
	write(t, segmentPath(dir, 1), whole[:len(whole)-2*len("{\"seq\":4,\"crc\":\"00000000\",\"data\":{\"n\":4}}\n")])
	write(t, markerPath(dir), nil)
	j := open(t, dir, filejournal.Options{})
	var damage *journal.DamageError
	if s, err := j.Snapshot(t.Context()); !errors.As(err, &damage) {
		t.Errorf("a snapshot ahead: %+v, %v", s, err)
	}
}

// TestMarkerFlips changes every byte of the marker. The history is complete, so this does no harm.
func TestMarkerFlips(t *testing.T) {
	t.Parallel()
	dir := create(t, filejournal.Options{}, numbered(2)...)
	good := read(t, markerPath(dir))
	for i := range good {
		bad := bytes.Clone(good)
		bad[i] ^= 1
		write(t, markerPath(dir), bad)
		seq, err := appendTo(dir, `"more"`, filejournal.Options{})
		if err != nil || seq != int64(3+i) {
			t.Errorf("byte %d: append: %d, %v", i, seq, err)
		}
		if got := read(t, markerPath(dir)); !bytes.Equal(got, filejournal.FormatMarker("team", seq)) {
			t.Errorf("byte %d: the marker says %q", i, got)
		}
	}
}

// TestSealOfNothing has a segment that is sealed before its first record, so that it would be its
// own successor.
func TestSealOfNothing(t *testing.T) {
	t.Parallel()
	dir := create(t, filejournal.Options{})
	path := segmentPath(dir, 1)
	write(t, path, append(read(t, path), filejournal.AppendLine(nil, "seal", 0)...))
	if got, err := readAll(dir, filejournal.Options{}); err != nil || len(got) != 0 {
		t.Errorf("read %q, %v", got, err)
	}
	if seq, err := appendTo(dir, `1`, filejournal.Options{SegmentSize: 1}); err != nil || seq != 1 {
		t.Errorf("append: %d, %v", seq, err)
	}
	if h, err := filejournal.Check(dir); err != nil || len(h.Problems)+len(h.Torn) > 0 || h.Last != 1 {
		t.Errorf("check: %+v, %v", h, err)
	}
}
