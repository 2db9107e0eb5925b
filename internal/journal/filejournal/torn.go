package filejournal

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
)

// cutTorn copies the bytes after the last record aside and cuts them off, or refuses because they
// were acknowledged.
func (w *walk) cutTorn(ctx context.Context) error {
	durable, ok, err := w.j.stableMarker(ctx)
	if err != nil {
		return err
	}
	if (ok && w.cur.seq < durable) || (!ok && w.bad != "") {
		return w.badLine()
	}
	if later, err := w.hasLater(); err != nil {
		return err
	} else if later {
		return w.badLine()
	}
	size, err := w.seg.size()
	if err != nil {
		return err
	}
	kept := w.keepTorn(size)
	if err := w.seg.f.Truncate(w.cur.off); err != nil {
		return fmt.Errorf("cut a torn line: %w", err)
	}
	// This sync comes before any write to the same place. Otherwise a power loss could leave the
	// new bytes beside the rest of the old ones.
	if err := w.j.sync(w.seg.f); err != nil {
		return err
	}
	w.dropBuffer()
	w.j.report("%s: removed %d bytes after record %d, the unfinished write of a process that died; they were never "+
		"acknowledged; %s", w.seg.path, size-w.cur.off, w.cur.seq, kept)
	w.j.step("cut")
	return nil
}

// keepTorn copies the bytes that will be cut off. The copy is for people to inspect, so a failure
// is only reported.
func (w *walk) keepTorn(size int64) string {
	name := fmt.Sprintf("%s.torn-%d", w.seg.path, w.cur.off)
	f, err := w.j.disk.Open(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC)
	if err == nil {
		_, err = io.Copy(io.NewOffsetWriter(f, 0), io.NewSectionReader(w.seg.f, w.cur.off, size-w.cur.off))
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		return fmt.Sprintf("they could not be saved: %v", err)
	}
	return "they are saved in " + name
}

// hasLater reports whether there are segments after the walk's.
func (w *walk) hasLater() (bool, error) {
	firsts, err := listSegments(w.j.disk, w.j.dir)
	return len(firsts) > 0 && firsts[len(firsts)-1] > w.seg.First, err
}
