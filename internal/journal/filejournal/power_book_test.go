package filejournal_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"cadre/internal/journal"
	"cadre/internal/journal/filejournal"
	"cadre/internal/journal/filejournal/disktest"
)

// entry returns the content of a record in these histories: "id after ...", that is its id, the id
// of the last record when it was decided, and some dots.
func entry(id string, ids []string, dots int) []byte {
	return fmt.Appendf(nil, `"%s %s %s"`, id, last(ids), strings.Repeat(".", max(dots, 0)))
}

// last returns the last record, or "-" if there is none.
func last(ids []string) string {
	if len(ids) == 0 {
		return "-"
	}
	return ids[len(ids)-1]
}

// book records what processes were told, and so what a journal must keep. Processes are told one at
// a time, except when the power is off: then all of them end at once.
type book struct {
	mu       sync.Mutex
	tried    map[string]bool
	refused  map[string]bool // reported as not written
	kept     []string        // reported as durable, by seq; the records before one are durable as well
	shown    []string        // shown to any process since the last power loss
	snapshot int64           // seq of the last snapshot reported as durable
}

func newBook() *book { return &book{tried: map[string]bool{"next": true}, refused: map[string]bool{}} }

// try records that a process is about to write a record.
func (b *book) try(id string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.tried[id] = true
}

// refuse records that the writer was told that its record was not written.
func (b *book) refuse(id string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.refused[id] = true
}

// acknowledged returns the number of records reported as durable, and the seq of the newest such
// snapshot.
func (b *book) acknowledged() (records int, snapshot int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.kept), b.snapshot
}

// keepSnapshot records that the snapshot after these records is durable, and so are they.
func (b *book) keepSnapshot(ids []string) error {
	b.mu.Lock()
	b.snapshot = max(b.snapshot, int64(len(ids)))
	b.mu.Unlock()
	return b.keep(ids)
}

// keep records that a record and all before it are durable.
func (b *book) keep(ids []string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := min(len(ids), len(b.kept))
	if !slices.Equal(ids[:n], b.kept[:n]) {
		return fmt.Errorf("%q were said to be durable, and before that %q", ids, b.kept)
	}
	b.kept = append(b.kept, ids[n:]...)
	return b.look(ids)
}

// show records what a process was shown of the history from its start.
func (b *book) show(ids []string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.look(ids)
}

func (b *book) look(ids []string) error {
	n := min(len(ids), len(b.shown))
	if !slices.Equal(ids[:n], b.shown[:n]) {
		return fmt.Errorf("one process is shown %q, and another was shown %q", ids, b.shown)
	}
	b.shown = append(b.shown, ids[n:]...)
	return nil
}

// next checks a record against the ones before it.
func (b *book) next(before []string, r journal.Record) (id string, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	id, rest, _ := strings.Cut(strings.Trim(string(r.Data), `"`), " ")
	after, _, ok := strings.Cut(rest, " ")
	switch {
	case !ok:
		err = fmt.Errorf("record %d is %q", r.Seq, r.Data)
	case r.Seq != int64(len(before)+1):
		err = fmt.Errorf("record %d comes after %d others", r.Seq, len(before))
	case !b.tried[id]:
		err = fmt.Errorf("record %d is %s, which no process wrote", r.Seq, id)
	case b.refused[id]:
		err = fmt.Errorf("record %d is %s, and its writer was told that it was not written", r.Seq, id)
	case slices.Contains(before, id):
		err = fmt.Errorf("record %d is %s, which is there twice", r.Seq, id)
	case after != last(before):
		err = fmt.Errorf("record %d is %s, which was decided after %s and not after %s", r.Seq, id, after, last(before))
	}
	return id, err
}

// state returns the snapshot of a history.
func state(ids []string) []byte {
	return fmt.Appendf(nil, `"%s"`, strings.Join(ids, " "))
}

// read reads a journal, from the start or from its snapshot, and checks it against the book.
func (b *book) read(j *filejournal.Journal, fromSnapshot bool) (ids []string, err error) {
	ctx := context.Background()
	_, saved := b.acknowledged()
	s, err := j.Snapshot(ctx)
	if err != nil {
		return nil, err
	}
	start := int64(0)
	if fromSnapshot && s.Seq > 0 {
		ids, start = strings.Fields(strings.Trim(s.Data, `"`)), s.Seq
	}
	for r, err := range j.Read(ctx, start) {
		if err != nil {
			return ids, err
		}
		id, err := b.next(ids, r)
		if err != nil {
			return ids, err
		}
		ids = append(ids, id)
	}
	switch {
	case s.Seq < saved:
		err = fmt.Errorf("the snapshot is the state after %d, and one after %d was said to be durable", s.Seq, saved)
	case s.Seq > int64(len(ids)):
		err = fmt.Errorf("the snapshot is the state after %d of %d records", s.Seq, len(ids))
	case s.Seq > 0 && s.Data != string(state(ids[:s.Seq])):
		err = fmt.Errorf("the snapshot is %s, and the history %s", s.Data, state(ids[:s.Seq]))
	}
	if err != nil {
		return ids, err
	}
	return ids, b.keyframes(j, ids)
}

// keyframes checks that each keyframe of the journal is the state of its history.
func (b *book) keyframes(j *filejournal.Journal, ids []string) error {
	seqs, err := j.Keyframes(context.Background())
	for _, seq := range seqs {
		s, err := j.Keyframe(context.Background(), seq)
		switch {
		case err != nil:
			return err
		case s.Seq > 0 && s.Seq != seq:
			return fmt.Errorf("the keyframe of record %d is the state after %d", seq, s.Seq)
		case s.Seq > 0 && seq <= int64(len(ids)) && s.Data != string(state(ids[:seq])):
			return fmt.Errorf("the keyframe of record %d is %s, and the history %s", seq, s.Data, state(ids[:seq]))
		}
	}
	return err
}

// verify opens a journal after a power loss. Every acknowledged record is there, in order and once,
// no other record was added, and Check reports no damage.
func (b *book) verify(disk filejournal.Disk, opts filejournal.Options) ([]string, error) {
	h, err := filejournal.CheckOn(disk, teamDir)
	if err != nil {
		return nil, fmt.Errorf("check: %w", err)
	}
	if len(h.Problems) > 0 {
		return nil, fmt.Errorf("check calls it damaged: %v", h.Problems)
	}
	opts.Disk = disk
	j, err := filejournal.Open(teamDir, opts)
	if err != nil {
		return nil, fmt.Errorf("open: %w", err)
	}
	defer j.Close()
	ids, err := b.read(j, false)
	if err != nil {
		return nil, fmt.Errorf("read: %w", err)
	}
	if n := len(b.kept); len(ids) < n || !slices.Equal(ids[:n], b.kept) {
		return nil, fmt.Errorf("there are %q, and %q were acknowledged", ids, b.kept)
	}
	if h.Last != int64(len(ids)) {
		return nil, fmt.Errorf("check says that the last record is %d of %d", h.Last, len(ids))
	}
	return ids, nil
}

// errTooMany ends a read that would not end.
var errTooMany = errors.New("there is no end to it")

func limit(d *disktest.Disk, most int) {
	done := 0
	d.Before = func(op *disktest.Op) disktest.Fault {
		if done++; done > most {
			return disktest.Fault{Err: errTooMany, Choose: func(int) int { return 0 }}
		}
		return disktest.Fault{}
	}
}

// goOn verifies a journal, appends to it, loses the power once more, in the worst way, and verifies
// it again.
func (b *book) goOn(d *disktest.Disk, lie lie, opts filejournal.Options) error {
	limit(d, 3000)
	disk := lie.to(d.Process("next"))
	ids, err := b.verify(disk, opts)
	if err != nil {
		return err
	}
	later := &book{tried: b.tried, refused: b.refused, kept: append(slices.Clone(ids), "next"), snapshot: b.snapshot}
	opts.Disk = disk
	j, err := filejournal.Open(teamDir, opts)
	if err != nil {
		return fmt.Errorf("open: %w", err)
	}
	defer j.Close()
	seq, err := j.Append(context.Background(), int64(len(ids)), func(r journal.Record) error {
		return fmt.Errorf("record %d is behind the end", r.Seq)
	}, func() ([]byte, error) {
		return entry("next", ids, 0), nil
	})
	if err != nil || seq != int64(len(ids)+1) {
		return fmt.Errorf("append: record %d, %w", seq, err)
	}
	again := d.LosePower(func(int) int { return 0 })
	limit(again, 3000)
	if _, err := later.verify(lie.to(again.Process("last")), opts); err != nil {
		return fmt.Errorf("after one more record, and one more loss: %w", err)
	}
	return nil
}
