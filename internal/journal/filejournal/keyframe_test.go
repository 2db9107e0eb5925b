package filejournal_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"cadre/internal/journal"
	"cadre/internal/journal/filejournal"
	"cadre/internal/journal/journaltest"
)

func keyframePath(dir string, seq int64) string {
	return filepath.Join(dir, "journal", "keyframes", fmt.Sprintf("%020d.json", seq))
}

// framed returns the state after a record in these tests.
func framed(seq int64) journal.Snapshot {
	return journal.Snapshot{Seq: seq, Data: fmt.Sprintf(`{"at":%d}`, seq)}
}

// withSnapshots creates a journal of n records, and saves a snapshot after each one.
func withSnapshots(t *testing.T, n int, opts filejournal.Options) string {
	t.Helper()
	dir := create(t, opts, numbered(n)...)
	j := open(t, dir, opts)
	for seq := int64(1); seq <= int64(n); seq++ {
		if err := j.SaveSnapshot(t.Context(), framed(seq).Taken); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// expectKeyframes checks which states the journal has, and that it reads on from each of them.
func expectKeyframes(t *testing.T, dir string, last int64, want ...int64) {
	t.Helper()
	j := open(t, dir, filejournal.Options{})
	seqs, err := j.Keyframes(t.Context())
	if err != nil || !slices.Equal(seqs, want) {
		t.Errorf("the keyframes are %d, %v, not %d", seqs, err, want)
	}
	for seq := int64(0); seq <= last+1; seq++ {
		expected := journal.Snapshot{}
		if slices.Contains(want, seq) {
			expected = framed(seq)
		}
		if s, err := j.Keyframe(t.Context(), seq); err != nil || s != expected {
			t.Errorf("the keyframe of record %d is %+v, %v, not %+v", seq, s, err, expected)
		}
		if all := journaltest.All(t, j, seq); int64(len(all)) != max(0, last-seq) {
			t.Errorf("there are %d records after record %d", len(all), seq)
		}
	}
}

// TestKeyframes checks that snapshots are kept when newer ones replace them, and at which
// distances.
func TestKeyframes(t *testing.T) {
	t.Parallel()
	expectKeyframes(t, withSnapshots(t, 10, filejournal.Options{KeyframeEvery: 3, SegmentSize: 80}), 10, 3, 6, 9, 10)
	expectKeyframes(t, withSnapshots(t, 10, filejournal.Options{}), 10, 10)
	expectKeyframes(t, create(t, filejournal.Options{}, numbered(3)...), 3)

	// The size of all keyframes is bounded, and those that are left are spread over the history.
	dir := withSnapshots(t, 64, filejournal.Options{KeyframeEvery: 1, KeyframeBytes: 1200})
	seqs, err := open(t, dir, filejournal.Options{}).Keyframes(t.Context())
	if err != nil || len(seqs) < 6 || len(seqs) > 11 {
		t.Fatalf("the keyframes are %d, %v", seqs, err)
	}
	before := int64(0)
	for _, seq := range seqs {
		if seq-before > 20 {
			t.Errorf("no keyframe is between %d and %d: %d", before, seq, seqs)
		}
		before = seq
	}

	// A large state is kept after as much history as it is long.
	dir = create(t, filejournal.Options{}, numbered(20)...)
	j := open(t, dir, filejournal.Options{KeyframeEvery: 1})
	for seq := int64(1); seq <= 20; seq++ {
		large := fmt.Sprintf("%q", strings.Repeat("x", 5*256))
		if err := j.SaveSnapshot(t.Context(), journal.Snapshot{Seq: seq, Data: large}.Taken); err != nil {
			t.Fatal(err)
		}
	}
	if seqs, err := j.Keyframes(t.Context()); err != nil || !slices.Equal(seqs, []int64{5, 10, 15, 20}) {
		t.Errorf("the keyframes of large states are %d, %v", seqs, err)
	}
}

// TestSaveKeyframe saves keyframes of a history that has none, in any order.
func TestSaveKeyframe(t *testing.T) {
	t.Parallel()
	dir := create(t, filejournal.Options{SegmentSize: 80}, numbered(12)...)
	j := open(t, dir, filejournal.Options{KeyframeEvery: 3})
	for _, seq := range []int64{8, 2, 3, 5, 6, 10, 11} {
		if err := j.SaveKeyframe(t.Context(), framed(seq)); err != nil {
			t.Error(err)
		}
	}
	expectKeyframes(t, dir, 12, 3, 8, 11)
	if err := j.SaveKeyframe(t.Context(), framed(20)); err == nil {
		t.Error("a keyframe of a state that is not there yet was taken")
	}
	if names, _ := filepath.Glob(filepath.Join(dir, "journal", "keyframes", "*.tmp")); names != nil {
		t.Errorf("left behind: %q", names)
	}
}

// TestKeyframeFlips changes every byte of a keyframe. It gives no state, and makes room for another
// one.
func TestKeyframeFlips(t *testing.T) {
	t.Parallel()
	dir := withSnapshots(t, 5, filejournal.Options{KeyframeEvery: 3})
	path := keyframePath(dir, 3)
	good := read(t, path)
	j := open(t, dir, filejournal.Options{KeyframeEvery: 3})
	for i := range good {
		bad := bytes.Clone(good)
		bad[i] ^= 1
		write(t, path, bad)
		if s, err := j.Keyframe(t.Context(), 3); err != nil || s != (journal.Snapshot{}) {
			t.Errorf("byte %d: %+v, %v", i, s, err)
		}
		if _, err := os.Stat(path); err == nil {
			t.Errorf("byte %d: the bad keyframe is still there", i)
		}
		if err := j.SaveKeyframe(t.Context(), framed(3)); err != nil {
			t.Fatal(err)
		}
		if got := read(t, path); !bytes.Equal(got, good) {
			t.Errorf("byte %d: saved %q, not %q", i, got, good)
		}
	}
}

// TestForeignKeyframes puts keyframes in place that are of another history, of a newer version, or
// no files.
func TestForeignKeyframes(t *testing.T) {
	t.Parallel()
	opts := filejournal.Options{KeyframeEvery: 3}
	for name, spoil := range map[string]func(t *testing.T, dir string){
		"of another team": func(t *testing.T, dir string) {
			other := createAs(t, "team-2", 5, opts)
			if err := open(t, other, opts).SaveKeyframe(t.Context(), framed(3)); err != nil {
				t.Fatal(err)
			}
			copyTo(t, keyframePath(other, 3), keyframePath(dir, 3))
		},
		"of a history that went another way": func(t *testing.T, dir string) {
			other := createAs(t, "team-1", 2, opts)
			if _, err := appendTo(other, `{"n":"another 3"}`, opts); err != nil {
				t.Fatal(err)
			}
			if err := open(t, other, opts).SaveKeyframe(t.Context(), framed(3)); err != nil {
				t.Fatal(err)
			}
			copyTo(t, keyframePath(other, 3), keyframePath(dir, 3))
		},
		"of another record": func(t *testing.T, dir string) {
			other := createAs(t, "team-1", 5, opts)
			if err := open(t, other, opts).SaveKeyframe(t.Context(), framed(4)); err != nil {
				t.Fatal(err)
			}
			copyTo(t, keyframePath(other, 4), keyframePath(dir, 3))
		},
		"of a newer version": func(t *testing.T, dir string) {
			write(t, keyframePath(dir, 3), filejournal.AppendLine(nil, "cadre-state", 2, []byte(`,"seq":3`)))
		},
		"empty": func(t *testing.T, dir string) { write(t, keyframePath(dir, 3), nil) },
		"a pipe": func(t *testing.T, dir string) {
			if err := syscall.Mkfifo(keyframePath(dir, 3), 0o600); err != nil {
				t.Fatal(err)
			}
		},
		"a folder": func(t *testing.T, dir string) {
			if err := os.Mkdir(keyframePath(dir, 3), 0o700); err != nil {
				t.Fatal(err)
			}
		},
		"a file in place of all": func(t *testing.T, dir string) {
			if err := os.RemoveAll(filepath.Dir(keyframePath(dir, 3))); err != nil {
				t.Fatal(err)
			}
			write(t, filepath.Dir(keyframePath(dir, 3)), nil)
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := createAs(t, "team-1", 5, opts)
			if err := os.MkdirAll(filepath.Dir(keyframePath(dir, 3)), 0o700); err != nil {
				t.Fatal(err)
			}
			spoil(t, dir)
			j := open(t, dir, opts)
			if s, err := j.Keyframe(t.Context(), 3); s != (journal.Snapshot{}) || err != nil &&
				!errors.Is(err, syscall.ENOTDIR) {
				t.Errorf("the keyframe is believed: %+v, %v", s, err)
			}
			for seq := int64(4); seq <= 5; seq++ { // writers are not held up
				if err := j.SaveSnapshot(t.Context(), framed(seq).Taken); err != nil {
					t.Error(err)
				}
			}
			if s, err := open(t, dir, opts).Snapshot(t.Context()); err != nil || s != framed(5) {
				t.Errorf("the snapshot is %+v, %v", s, err)
			}
		})
	}
}

// TestKeyframesOfAMendedJournal mends journals that have keyframes before, in and beyond the
// damage.
func TestKeyframesOfAMendedJournal(t *testing.T) {
	t.Parallel()
	opts := filejournal.Options{KeyframeEvery: 2, SegmentSize: 80}
	t.Run("with a hole", func(t *testing.T) {
		dir := withSnapshots(t, 9, opts)
		spoil(t, dir, 5)
		j := open(t, dir, opts)
		for _, seq := range []int64{2, 4, 6, 8, 9} { // beyond the damage too
			if s, err := j.Keyframe(t.Context(), seq); err != nil || s != framed(seq) {
				t.Errorf("the keyframe of record %d is %+v, %v", seq, s, err)
			}
		}
		if _, err := filejournal.Mend(t.Context(), dir); err != nil {
			t.Fatal(err)
		}
		for seq, want := range map[int64]journal.Snapshot{2: framed(2), 6: {}, 9: framed(9)} {
			if s, err := open(t, dir, opts).Keyframe(t.Context(), seq); err != nil || s != want {
				t.Errorf("after mending, the keyframe of record %d is %+v, %v", seq, s, err)
			}
		}
	})
	t.Run("that lost its end", func(t *testing.T) {
		dir := withSnapshots(t, 9, opts)
		if err := os.Remove(filepath.Join(dir, "state.json")); err != nil {
			t.Fatal(err)
		}
		spoil(t, dir, 5)
		if m, err := filejournal.Mend(t.Context(), dir); err != nil || m.Last != 4 {
			t.Fatalf("%+v, %v", m, err)
		}
		for n := range 5 {
			if _, err := appendTo(dir, fmt.Sprintf(`{"n":"another %d"}`, 5+n), opts); err != nil {
				t.Fatal(err)
			}
		}
		expectKeyframes(t, dir, 9, 2, 4)
	})
}
