package filejournal

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"cadre/internal/journal"
	"cadre/internal/sys/regularfile"
)

const (
	keyframeFolder = "keyframes"
	keyframeSuffix = ".json"
	// defaultKeyframeEvery is how many records are read and applied in a few milliseconds.
	defaultKeyframeEvery = 4096
	// keyframeShare is about how many bytes a record takes. The next keyframe comes only after as
	// many bytes of records as a keyframe has.
	keyframeShare = 256
	// defaultKeyframeBytes bounds all keyframes of a journal.
	defaultKeyframeBytes = 64 << 20
)

func (o Options) keyframeEvery() int64 { return positive(o.KeyframeEvery, defaultKeyframeEvery) }

func (o Options) keyframeBytes() int64 { return positive(o.KeyframeBytes, defaultKeyframeBytes) }

func keyframeName(seq int64) string { return fmt.Sprintf("%020d%s", seq, keyframeSuffix) }

func (j *Journal) keyframes() string { return filepath.Join(j.dir, keyframeFolder) }

func (j *Journal) keyframe(seq int64) string { return filepath.Join(j.keyframes(), keyframeName(seq)) }

// listKeyframes returns the seqs of the keyframes in a folder, in order. A folder that does not
// exist has none.
func listKeyframes(d Disk, dir string) ([]int64, error) {
	names, err := d.List(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var seqs []int64
	for _, name := range names {
		digits, is := strings.CutSuffix(name, keyframeSuffix)
		if seq, err := strconv.ParseInt(digits, 10, 64); is && err == nil && name == keyframeName(seq) && seq > 0 {
			seqs = append(seqs, seq)
		}
	}
	slices.Sort(seqs)
	return seqs, nil
}

// Keyframes implements [journal.Journal].
func (j *Journal) Keyframes(ctx context.Context) ([]int64, error) {
	if err := j.enter(); err != nil {
		return nil, err
	}
	defer j.leave()
	if err := j.ended(ctx); err != nil {
		return nil, err
	}
	seqs, err := listKeyframes(j.disk, j.keyframes())
	if err != nil {
		return nil, err
	}
	if h, _, ok := j.readHead(); ok && h.seq > 0 {
		seqs = append(seqs, h.seq)
		slices.Sort(seqs)
		seqs = slices.Compact(seqs)
	}
	return seqs, nil
}

// Keyframe implements [journal.Journal]. It removes a keyframe that belongs to another history or
// is damaged, to make room for the next one.
func (j *Journal) Keyframe(ctx context.Context, seq int64) (journal.Snapshot, error) {
	if err := j.enter(); err != nil {
		return journal.Snapshot{}, err
	}
	defer j.leave()
	if err := j.ended(ctx); err != nil {
		return journal.Snapshot{}, err
	}
	path := j.keyframe(seq)
	s, bad, err := j.loadKeyframe(path, seq)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		// The newest snapshot is no file of its own yet.
		s, _, err = j.loadKeyframe(filepath.Join(j.root, snapshotName), seq)
	case bad && j.writable == nil:
		_ = j.disk.Remove(path)
	}
	if _, damaged := errors.AsType[*journal.DamageError](err); damaged || regularfile.Is(err) ||
		errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return s, err
}

// loadKeyframe returns the state after the record seq from a file. bad reports that the file will
// never be usable.
func (j *Journal) loadKeyframe(path string, seq int64) (s journal.Snapshot, bad bool, err error) {
	h, data, newer, defect, err := readSnapshot(j.disk, path)
	switch {
	case err != nil || newer > 0:
		return s, false, err
	case defect != "" || !h.bound || h.seq != seq || h.foreign(j.id) != "":
		return s, true, nil
	}
	place, err := j.find(h)
	if err != nil {
		return s, false, err
	}
	if h.another(place) != "" {
		return s, true, nil
	}
	j.remember(place)
	return journal.Snapshot{Seq: seq, Data: data}, false, nil
}

// SaveKeyframe implements [journal.Journal]. It syncs nothing: a keyframe that a power loss damages
// is not usable, and the history has everything.
func (j *Journal) SaveKeyframe(ctx context.Context, s journal.Snapshot) error {
	done, err := j.saves(ctx)
	if done == nil {
		return err
	}
	defer done()
	if err := j.gone(); err != nil {
		return err
	}
	if !j.room(s.Seq, int64(len(s.Data))) {
		return nil
	}
	w, err := j.walkTo(s.Seq)
	if err != nil {
		return fmt.Errorf("save a keyframe: %w", err)
	}
	h := headOf(s.Seq, w.cur, j.id)
	w.close()
	if err := j.makeKeyframes(); err != nil {
		return fmt.Errorf("save a keyframe: %w", err)
	}
	tmp := j.keyframe(s.Seq) + ".tmp" // the lock makes it this process's
	if err := j.writeKeyframe(tmp, h, s.Data); err != nil {
		_ = j.disk.Remove(tmp)
		return fmt.Errorf("save a keyframe: %w", err)
	}
	if err := j.disk.Rename(tmp, j.keyframe(s.Seq)); err != nil {
		return fmt.Errorf("save a keyframe: %w", err)
	}
	j.thinKeyframes()
	return nil
}

func (j *Journal) writeKeyframe(path string, h snapshotHead, data string) error {
	f, err := j.disk.Open(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC)
	if err != nil {
		return err
	}
	_, err = io.NewOffsetWriter(f, 0).Write(appendSnapshot(make([]byte, 0, len(data)+headSize), h, []byte(data)))
	return errors.Join(err, f.Close())
}

// keepSnapshot keeps the present snapshot, which is about to be replaced, as a keyframe if there is
// none near. Its failure fails nothing: keyframes only save time. The caller holds the lock.
func (j *Journal) keepSnapshot(h snapshotHead, size int64) {
	if !j.room(h.seq, size) || j.makeKeyframes() != nil {
		return
	}
	if j.disk.Link(filepath.Join(j.root, snapshotName), j.keyframe(h.seq)) == nil {
		j.step("keyframe kept")
		j.thinKeyframes()
	}
}

func (j *Journal) makeKeyframes() error {
	if err := j.disk.Mkdir(j.keyframes()); !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}

// room reports whether no keyframe is near the record seq, for one of that size.
func (j *Journal) room(seq, size int64) bool {
	seqs, err := listKeyframes(j.disk, j.keyframes())
	if err != nil {
		return false
	}
	away := max(j.opts.keyframeEvery(), size/keyframeShare)
	i, _ := slices.BinarySearch(seqs, seq)
	before := int64(0)
	if i > 0 {
		before = seqs[i-1]
	}
	return seq-before >= away && (i == len(seqs) || seqs[i]-seq >= away)
}

// thinKeyframes removes keyframes until the others fit the limit. Each time it removes the one
// whose neighbors are nearest to each other.
func (j *Journal) thinKeyframes() {
	seqs, err := listKeyframes(j.disk, j.keyframes())
	if err != nil {
		return
	}
	sizes, sum := make([]int64, len(seqs)), int64(0)
	for i, seq := range seqs {
		if f, err := j.disk.Open(j.keyframe(seq), os.O_RDONLY); err == nil {
			sizes[i], _ = f.Size()
			f.Close()
		}
		sum += sizes[i]
	}
	for sum > j.opts.keyframeBytes() && len(seqs) > 0 {
		drop, gap := 0, int64(1)<<62
		for i := range seqs[:len(seqs)-1] {
			before := int64(0)
			if i > 0 {
				before = seqs[i-1]
			}
			if now := seqs[i+1] - before; now < gap {
				drop, gap = i, now
			}
		}
		if err := j.disk.Remove(j.keyframe(seqs[drop])); err != nil {
			return
		}
		sum -= sizes[drop]
		seqs, sizes = slices.Delete(seqs, drop, drop+1), slices.Delete(sizes, drop, drop+1)
	}
}

// dropKeyframes removes the keyframes after the record last, which is the last one of a mended
// journal.
func dropKeyframes(d Disk, dir string, last int64) error {
	folder := filepath.Join(dir, keyframeFolder)
	seqs, err := listKeyframes(d, folder)
	if err != nil {
		return nil // what is in its place is not read either
	}
	for _, seq := range seqs {
		if seq > last {
			err = errors.Join(err, d.Remove(filepath.Join(folder, keyframeName(seq))))
		}
	}
	return err
}
