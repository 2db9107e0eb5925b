package filejournal_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"cadre/internal/journal"
	"cadre/internal/journal/filejournal"
	"cadre/internal/journal/journaltest"
)

// createAs creates a journal with that id, and with records that contain it.
func createAs(t *testing.T, id string, n int, opts filejournal.Options) string {
	t.Helper()
	var records [][]byte
	for seq := 1; seq <= n; seq++ {
		records = append(records, fmt.Appendf(nil, `{"of":%q,"n":%d}`, id, seq))
	}
	dir := filepath.Join(t.TempDir(), "team")
	if err := filejournal.Create(dir, id, records, opts); err != nil {
		t.Fatal(err)
	}
	return dir
}

func saveSnapshot(t *testing.T, dir string, seq int64, data string) {
	t.Helper()
	j := open(t, dir, filejournal.Options{})
	if err := j.SaveSnapshot(t.Context(), journal.Snapshot{Seq: seq, Data: data}.Taken); err != nil {
		t.Fatal(err)
	}
}

func copyTo(t *testing.T, from, to string) {
	t.Helper()
	write(t, to, read(t, from))
}

// TestForeignSnapshot checks that a snapshot belongs to one history: a snapshot of another team is
// ignored, and so is one of a history with other records. The next snapshot replaces it.
func TestForeignSnapshot(t *testing.T) {
	t.Parallel()
	const at = 3
	for name, foreign := range map[string]func(t *testing.T) string{
		"of another team": func(t *testing.T) string {
			other := createAs(t, "team-2", 5, filejournal.Options{})
			saveSnapshot(t, other, at, `"theirs"`)
			return other
		},
		"of a history that went another way": func(t *testing.T) string {
			other := createAs(t, "team-1", 2, filejournal.Options{})
			if _, err := appendTo(other, `{"n":"another 3"}`, filejournal.Options{}); err != nil {
				t.Fatal(err)
			}
			saveSnapshot(t, other, at, `"theirs"`)
			return other
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := createAs(t, "team-1", 5, filejournal.Options{})
			copyTo(t, filepath.Join(foreign(t), "state.json"), filepath.Join(dir, "state.json"))
			var reports []string
			j := open(t, dir, filejournal.Options{Report: func(what string) { reports = append(reports, what) }})
			if s, err := j.Snapshot(t.Context()); err != nil || s.Seq != 0 {
				t.Errorf("the snapshot is believed: %+v, %v", s, err)
			}
			if len(reports) != 1 || !strings.Contains(reports[0], "ignored") {
				t.Errorf("reported: %q", reports)
			}
			if err := j.SaveSnapshot(t.Context(), journal.Snapshot{Seq: at, Data: `"ours"`}.Taken); err != nil {
				t.Fatal(err)
			}
			if s, err := open(t, dir, filejournal.Options{}).Snapshot(t.Context()); err != nil || s.Seq != at ||
				s.Data != `"ours"` {
				t.Errorf("after the next save: %+v, %v", s, err)
			}
		})
	}
}

// unbound removes the fields that bind a snapshot to its history, as in older versions.
func unbound(t *testing.T, dir string) {
	t.Helper()
	path := filepath.Join(dir, "state.json")
	parts := regexp.MustCompile(
		`^\{"cadre-state":1,"crc":"[0-9a-f]{8}"(.*),"journal":\d+,"record":\d+(,"data":.*)\}\n$`).FindStringSubmatch(
		string(read(t, path)))
	if parts == nil {
		t.Fatalf("not a snapshot as expected: %s", read(t, path))
	}
	write(t, path, filejournal.AppendLine(nil, "cadre-state", 1, []byte(parts[1]+parts[2])))
}

// TestUnboundSnapshot checks that a snapshot of an older version, which is not bound to a history,
// is used only if the history has a hole.
func TestUnboundSnapshot(t *testing.T) {
	t.Parallel()
	dir := create(t, filejournal.Options{SegmentSize: 80}, numbered(9)...)
	saveSnapshot(t, dir, 7, `"old"`)
	unbound(t, dir)
	if s, err := open(t, dir, filejournal.Options{}).Snapshot(t.Context()); err != nil || s.Seq != 0 {
		t.Errorf("with the whole history: %+v, %v", s, err)
	}
	if h, err := filejournal.Check(dir); err != nil || len(h.Problems) != 0 {
		t.Errorf("checked: %+v, %v", h, err)
	}
	spoil(t, dir, 5)
	if m, err := filejournal.Mend(t.Context(), dir); err != nil || m.Hole == nil || m.Last != 9 {
		t.Fatalf("mended: %+v, %v", m, err)
	}
	if s, err := open(t, dir, filejournal.Options{}).Snapshot(t.Context()); err != nil || s.Seq != 7 ||
		s.Data != `"old"` {
		t.Errorf("with a hole: %+v, %v", s, err)
	}
}

// TestForeignSegment checks that a segment of another journal is damage, that the error has the
// team's usual name, and that mending sets the segment aside.
func TestForeignSegment(t *testing.T) {
	t.Parallel()
	opts := filejournal.Options{SegmentSize: 80}
	dir, other := createAs(t, "team-1", 9, opts), createAs(t, "team-2", 9, opts)
	segments, err := filepath.Glob(filepath.Join(dir, "journal", "*.jsonl"))
	if err != nil || len(segments) < 3 {
		t.Fatalf("%d segments, %v", len(segments), err)
	}
	second := segments[1]
	copyTo(t, filepath.Join(other, "journal", filepath.Base(second)), second)
	var damage *journal.DamageError
	records, err := readAll(dir, filejournal.Options{})
	if !errors.As(err, &damage) || damage.Segment != second || damage.Team != "team" {
		t.Errorf("read: %v", err)
	}
	for _, r := range records {
		if !strings.Contains(r, "team-1") {
			t.Errorf("the other's record was shown: %s", r)
		}
	}
	if _, err := appendTo(dir, `0`, filejournal.Options{}); err != nil && !errors.As(err, &damage) {
		t.Errorf("append: %v", err)
	}
	h, err := filejournal.Check(dir)
	if err != nil || !slices.ContainsFunc(h.Problems, func(p filejournal.Problem) bool { return p.File == second }) ||
		h.Team != "team" {
		t.Errorf("checked: %+v, %v", h, err)
	}
	m, err := filejournal.Mend(t.Context(), dir)
	if err != nil || m.Lost == nil || len(m.Aside) == 0 {
		t.Errorf("mended: %+v, %v", m, err)
	}
	records, err = readAll(dir, filejournal.Options{})
	if err != nil || len(records) == 0 {
		t.Errorf("after that: %q, %v", records, err)
	}
	for _, r := range records {
		if !strings.Contains(r, "team-1") {
			t.Errorf("the other's record is in: %s", r)
		}
	}
}

// TestSwappedBetweenHomes swaps files between teams of the same name in two homes. None of the
// swapped files is used, and nothing is mended if the owner cannot be known.
func TestSwappedBetweenHomes(t *testing.T) {
	t.Parallel()
	const snapshot, marker = "state.json", "journal/durable"
	segments := []string{"journal/" + filejournal.SegmentName(1)}
	for _, c := range []struct {
		name    string
		files   []string
		swapped bool // the marker has nothing in common with the segments
	}{
		{"segments and snapshot", append(segments, snapshot), true},
		{"segments", segments, true},
		{"marker", []string{marker}, true},
		{"marker and snapshot", []string{marker, snapshot}, true},
		{"snapshot", []string{snapshot}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			ours, theirs := createAs(t, "team-1", 5, filejournal.Options{}),
				createAs(t, "team-2", 5, filejournal.Options{})
			for _, dir := range []string{ours, theirs} {
				saveSnapshot(t, dir, 3, `"`+dir+`"`)
			}
			for _, name := range c.files {
				copyTo(t, filepath.Join(theirs, name), filepath.Join(ours, name))
			}
			before := tree(t, ours)
			h, err := filejournal.Check(ours)
			if err != nil || len(h.Problems) == 0 || (h.Swapped != "") != c.swapped {
				t.Errorf("checked: %+v, %v", h, err)
			}
			if !c.swapped {
				if s, err := open(t, ours, filejournal.Options{}).Snapshot(t.Context()); err != nil || s.Seq != 0 {
					t.Errorf("the snapshot is believed: %+v, %v", s, err)
				}
				return
			}
			if j, err := filejournal.Open(ours, filejournal.Options{}); !isDamage(err) {
				t.Errorf("it opens: %v, %v", j, err)
			}
			if m, err := filejournal.Mend(t.Context(), ours); !errors.Is(err, filejournal.ErrSwapped) ||
				!strings.Contains(err.Error(), "team-1") || !strings.Contains(err.Error(), "team-2") {
				t.Errorf("mended: %+v, %v", m, err)
			}
			if after := tree(t, ours); after != before {
				t.Errorf("something was changed:\n%s\n%s", before, after)
			}
		})
	}
	t.Run("a pipe beside them", func(t *testing.T) {
		ours, theirs := createAs(t, "team-1", 5, filejournal.Options{}), createAs(t, "team-2", 5, filejournal.Options{})
		copyTo(t, segmentPath(theirs, 1), segmentPath(ours, 1))
		lock := filepath.Join(ours, "journal", "lock")
		if err := errors.Join(os.Remove(lock), syscall.Mkfifo(lock, 0o600)); err != nil {
			t.Fatal(err)
		}
		if _, err := filejournal.Mend(t.Context(), ours); !errors.Is(err, filejournal.ErrSwapped) {
			t.Errorf("mended: %v", err)
		}
		if info, err := os.Lstat(lock); err != nil || info.Mode().Type() != os.ModeNamedPipe {
			t.Errorf("what lies in the place of the lock was moved: %v, %v", info, err)
		}
	})
}

func isDamage(err error) bool {
	_, ok := errors.AsType[*journal.DamageError](err)
	return ok
}

// TestUnboundMarker checks that a marker of an older version is valid for any journal, and that the
// next write binds it. A marker that a power loss left half bound is used as far as it is readable.
func TestUnboundMarker(t *testing.T) {
	t.Parallel()
	old, bound := filejournal.FormatMarker("", 2), filejournal.FormatMarker("team", 2)
	for cut := len(old); cut < len(bound); cut++ {
		dir := create(t, filejournal.Options{}, numbered(2)...)
		write(t, markerPath(dir), bound[:cut])
		if h, err := filejournal.Check(dir); err != nil || h.Durable != 2 ||
			(len(h.Problems) == 0) != (cut == len(old)) {
			t.Errorf("%d bytes: checked: %+v, %v", cut, h, err)
		}
		if seq, err := appendTo(dir, `{"n":3}`, filejournal.Options{}); err != nil || seq != 3 {
			t.Errorf("%d bytes: appended as %d, %v", cut, seq, err)
		}
		if got := read(t, markerPath(dir)); string(got) != string(filejournal.FormatMarker("team", 3)) {
			t.Errorf("%d bytes: the marker is %q after a write", cut, got)
		}
	}

	// An older cadre overwrites the first line and leaves the second.
	dir := create(t, filejournal.Options{}, numbered(2)...)
	if _, err := appendTo(dir, `{"n":3}`, filejournal.Options{}); err != nil {
		t.Fatal(err)
	}
	write(t, markerPath(dir), append(old, read(t, markerPath(dir))[len(old):]...))
	if h, err := filejournal.Check(dir); err != nil || h.Durable != 2 || len(h.Problems) != 0 {
		t.Errorf("after an older cadre: %+v, %v", h, err)
	}

	// Only the segments tell to which journal an unbound marker belongs.
	whole := createAs(t, "team-1", 2, filejournal.Options{})
	write(t, markerPath(whole), old)
	copyTo(t, segmentPath(createAs(t, "mate-1", 2, filejournal.Options{}), 1), segmentPath(whole, 1))
	if id := open(t, whole, filejournal.Options{}).ID(); id != "mate-1" {
		t.Errorf("the journal is that of %q", id)
	}
}

// TestSpecialFiles replaces each file by something that is not a regular file. No call blocks. The
// result is damage, or an ignored snapshot, and mending sets it aside without losing readable
// records.
func TestSpecialFiles(t *testing.T) {
	kinds := map[string]func(path string) error{
		"directory": func(path string) error { return os.Mkdir(path, 0o700) },
		"pipe":      func(path string) error { return syscall.Mkfifo(path, 0o600) },
		"device":    func(path string) error { return os.Symlink("/dev/zero", path) },
	}
	for _, name := range []string{"journal/lock", "journal/durable", "journal/snapshot.lock",
		"journal/" + filejournal.SegmentName(1), "state.json"} {
		for kind, put := range kinds {
			t.Run(strings.ReplaceAll(name, "/", " ")+" is a "+kind, func(t *testing.T) {
				t.Parallel()
				dir := create(t, filejournal.Options{}, numbered(3)...)
				saveSnapshot(t, dir, 2, `"two"`)
				path := filepath.Join(dir, filepath.FromSlash(name))
				if err := errors.Join(os.Remove(path), put(path)); err != nil {
					t.Fatal(err)
				}
				done := background(func() { special(t, dir, path, kind) })
				select {
				case <-done:
				case <-time.After(2 * time.Minute):
					t.Fatal("something waits for it")
				}
			})
		}
	}
}

func background(do func()) <-chan struct{} {
	done := make(chan struct{})
	go func() { defer close(done); do() }()
	return done
}

func special(t *testing.T, dir, path, kind string) {
	snapshot, segment := filepath.Base(path) == "state.json", strings.HasSuffix(path, ".jsonl")
	use := func() error {
		j, err := filejournal.Open(dir, filejournal.Options{})
		if err != nil {
			return err
		}
		defer j.Close()
		_, err = j.Snapshot(t.Context())
		return err
	}
	var damage *journal.DamageError
	if err := use(); snapshot && kind != "directory" {
		if err != nil {
			t.Errorf("the snapshot is not ignored: %v", err)
		}
	} else if !errors.As(err, &damage) || damage.Segment != path {
		t.Errorf("opened: %v", err)
	}
	h, err := filejournal.Check(dir)
	if err != nil || !slices.ContainsFunc(h.Problems, func(p filejournal.Problem) bool { return p.File == path }) {
		t.Errorf("checked: %+v, %v", h, err)
	}
	m, err := filejournal.Mend(t.Context(), dir)
	if err != nil || len(m.Aside) == 0 {
		t.Errorf("mended: %+v, %v", m, err)
	}
	if h, err := filejournal.Check(dir); err != nil || len(h.Problems) != 0 {
		t.Errorf("checked again: %+v, %v", h, err)
	}
	if segment && (m.Last != 2 || m.Hole == nil) { // the marker says to which journal the snapshot must belong
		t.Errorf("what the snapshot has is lost: %+v", m)
	}
	if seq, err := journaltest.Add(t.Context(), open(t, dir, filejournal.Options{}), m.Last, `{"n":4}`); err != nil ||
		seq != m.Last+1 {
		t.Errorf("appended as %d, %v; want %d", seq, err, m.Last+1)
	}
}
