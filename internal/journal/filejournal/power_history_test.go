package filejournal_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"cadre/internal/journal"
	"cadre/internal/journal/filejournal"
	"cadre/internal/journal/filejournal/disktest"
)

const teamDir = "/teams/team"

// history is a history of processes on one disk. It is determined by its choices.
type history struct {
	choices *choices
	lie     lie
	losses  int  // number of power losses to try after each change of the disk
	keepLog bool // keep a log of events

	mu  sync.Mutex // guards log, wrong and at: when the power is off, all processes end at once
	log []string

	opts   filejournal.Options // of every process
	faults bool                // operations may fail
	kills  bool
	book   *book
	disk   *disktest.Disk
	wrong  error // the broken guarantee
	at     string
	steps  int // so far
	lost   int // number of power losses
}

// choices are numbers by chance, or those of an earlier history, and then zeros.
type choices struct {
	chance *rand.Rand
	given  []int
	made   []int
}

func (c *choices) choose(n int) int {
	if n <= 1 {
		return 0
	}
	v := 0
	if c.chance != nil {
		v = c.chance.IntN(n)
	} else if len(c.made) < len(c.given) {
		v = c.given[len(c.made)] % n
	}
	c.made = append(c.made, v)
	return v
}

// run plays the history until a guarantee is broken.
func (h *history) run(t *testing.T) {
	h.book = newBook()
	h.opts.SegmentSize = 250 + int64(h.choices.choose(8))*250
	h.opts.KeyframeEvery = 2
	h.faults = h.choices.choose(3) == 1
	h.kills = h.choices.choose(3) == 1
	h.disk = disktest.New()
	opts := h.opts
	opts.Disk = h.disk.Process("founder")
	if h.lie.when != later {
		opts.Disk = h.lie.to(opts.Disk)
	}
	if h.lie.when == founding {
		h.lie = lie{}
	}
	name := "team"
	if h.lie.when == bySector {
		h.opts.SegmentSize, h.faults, h.kills = 1<<20, false, false
	}
	if h.lie.when == bySector || h.choices.choose(2) == 1 {
		// With this name, the first record begins at a sector.
		name += strings.Repeat("-", sectorSize-len(filejournal.Header(name)))
	}
	if err := filejournal.Create(teamDir, name, nil, opts); err != nil {
		h.fail(err)
	}
	if h.lie.when == bySector || h.choices.choose(8) == 1 {
		h.haunt(int64(len(filejournal.Header(name))))
	}
	for life, lives := 1, 1+h.choices.choose(2); life <= lives && h.wrong == nil; life++ {
		h.disk = h.disk.LosePower(h.choices.choose)
		h.lost++
		h.note("the power is lost and comes back")
		h.recover()
		if h.wrong == nil {
			synctest.Test(t, func(*testing.T) { h.live(life) })
		}
	}
}

// haunt begins the journal with a possible state after a power loss: the first record, which was
// never acknowledged, is missing, and the second, written with it, is there.
func (h *history) haunt(at int64) {
	h.book.try("ghost")
	f, err := h.disk.Process("ghost").Open(filepath.Join(teamDir, "journal", filejournal.SegmentName(1)), os.O_RDWR)
	if err == nil {
		_, err = f.WriteAt(filejournal.AppendRecord(nil, 2, entry("ghost", []string{"lost"}, 0)), at+sectorSize)
	}
	h.fail(err)
	h.disk.Flush()
}

func (h *history) fail(err error) {
	if err == nil {
		return
	}
	h.mu.Lock()
	first := h.wrong == nil
	if first {
		h.wrong, h.at = err, fmt.Sprintf("step %d", h.steps)
	}
	h.mu.Unlock()
	if first {
		h.note("WRONG: %v", err)
	}
}

func (h *history) note(format string, args ...any) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.keepLog {
		h.log = append(h.log, fmt.Sprintf(format, args...))
	}
}

// recover reads the disk after a power loss. From then on, every process must see the same.
func (h *history) recover() {
	limit(h.disk, 3000)
	ids, err := h.book.verify(h.lie.to(h.disk.Process("looker")), h.opts)
	if err != nil {
		h.fail(err)
		return
	}
	h.book.shown = ids
	h.note("there are %d records, %d of them acknowledged", len(ids), len(h.book.kept))
}

// live runs processes until they are done, or until the power is lost again.
func (h *history) live(life int) {
	schedule := disktest.NewSchedule(h.disk, h.choices.choose)
	alive := map[*disktest.Process]bool{}
	done := make(chan *disktest.Process)
	actors := 1 + h.choices.choose(4)
	var order []*disktest.Process
	for n := range actors {
		a := &actor{h: h, process: h.disk.Process(fmt.Sprintf("%d.%d", life, n))}
		a.disk = h.lie.to(a.process)
		for range 1 + h.choices.choose(3) {
			a.plan = append(a.plan, deed{deeds[h.choices.choose(len(deeds))], h.size()})
		}
		alive[a.process] = true
		order = append(order, a.process)
		go func() {
			a.run()
			done <- a.process
		}()
	}
	ended := func(wait bool) {
		for len(alive) > 0 {
			if wait {
				delete(alive, <-done)
				continue
			}
			select {
			case p := <-done:
				delete(alive, p)
				continue
			default:
			}
			return
		}
	}
	most := 1 + h.choices.choose(600)
	for step, idle := 0, 0; len(alive) > 0 && step < most && h.wrong == nil; step++ {
		op := schedule.Next(h.fault)
		ended(false)
		if op == nil {
			if len(alive) == 0 {
				break
			}
			if idle++; idle > 100 {
				h.fail(errors.New("all processes wait, and for nothing"))
			}
			time.Sleep(time.Second) // all processes are blocked, so let time pass
			continue
		}
		h.steps++
		if op.Kind.Changes() {
			h.note("%v", op)
		}
		if op.Kind.Changes() {
			h.tryLosses()
		}
		switch h.choices.choose(100) {
		case 99:
			if p := order[h.choices.choose(len(order))]; h.kills && alive[p] {
				h.note("%s is killed", p.Name)
				p.Kill()
				schedule.Release(p)
				ended(false)
			}
		case 98:
			time.Sleep(2 * time.Second)
		}
		if step == 20_000 {
			h.fail(errTooMany)
		}
	}
	h.disk.Off()
	schedule.Release(nil)
	for len(alive) > 0 {
		select {
		case p := <-done:
			delete(alive, p)
		case <-time.After(time.Hour):
			panic("a process does not end with the power off")
		}
	}
}

// size chooses the additional length of a record, often so that it fills a sector.
func (h *history) size() int {
	if h.lie.when != bySector && h.choices.choose(2) == 0 {
		return h.choices.choose(900)
	}
	return fullSector
}

// fault makes an operation fail now and then.
func (h *history) fault(op *disktest.Op) disktest.Fault {
	if !h.faults || !op.Kind.Changes() || h.choices.choose(20) != 19 {
		return disktest.Fault{}
	}
	err := syscall.ENOSPC
	if op.Kind == disktest.Sync || op.Kind == disktest.SyncFolder || op.Kind == disktest.Truncate {
		err = syscall.EIO
	}
	h.note("this fails: %v", err)
	return disktest.Fault{Err: err, Choose: h.choices.choose}
}

// tryLosses tries power losses at this point, on copies of the disk.
func (h *history) tryLosses() {
	losses := h.losses
	if h.lie.when == bySector {
		losses *= 10
	}
	for n := range losses {
		chance := rand.New(rand.NewPCG(uint64(h.steps), uint64(n)))
		choose := chance.IntN
		if n == 1 {
			choose = func(int) int { return 0 }
		}
		h.lost++
		if err := h.book.goOn(h.disk.LosePower(choose), h.lie, h.opts); err != nil {
			h.fail(fmt.Errorf("after a loss of power here: %w", err))
			return
		}
	}
}

// Actions of a process.
const (
	sectorSize = 512
	fullSector = -1 // long enough to fill a sector
)

type deed struct {
	what string
	size int // of a record
}

const (
	anAppend    = "append"
	aSecondLook = "append nothing"
	aReader     = "read"
	aSnapshot   = "snapshot"
	aNewHandle  = "open again"
	aMend       = "mend"
)

var deeds = [...]string{anAppend, anAppend, anAppend, anAppend, anAppend, anAppend, aSecondLook, aReader, aSnapshot,
	aSnapshot, aNewHandle, aMend}

// actor is a process that works on the journal.
type actor struct {
	h       *history
	process *disktest.Process
	disk    filejournal.Disk
	plan    []deed
	j       *filejournal.Journal
	ids     []string // the history as it knows it
	saved   bool
	n       int
}

// excused reports whether an error is caused only by the disk.
func (a *actor) excused(err error) bool {
	return a.process.Alive() != nil || a.h.faults && (errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EIO))
}

func (a *actor) check(what string, err error) bool {
	if err != nil && !a.excused(err) {
		a.h.fail(fmt.Errorf("%s, %s: %w", a.process.Name, what, err))
	}
	return err == nil
}

func (a *actor) open() bool {
	opts := a.h.opts
	opts.Disk = a.disk
	opts.Step = func(step string) { a.saved = a.saved || step == "snapshot saved" }
	j, err := filejournal.Open(teamDir, opts)
	if !a.check("open", err) {
		return false
	}
	a.j = j
	return true
}

func (a *actor) run() {
	if !a.open() {
		return
	}
	defer func() {
		if a.j != nil {
			a.j.Close()
		}
	}()
	for _, d := range a.plan {
		a.h.note("%s: now: %s", a.process.Name, d.what)
		ok := true
		switch d.what {
		case anAppend:
			ok = a.append(func() ([]byte, error) { return a.decide(d.size) })
		case aSecondLook:
			ok = a.append(func() ([]byte, error) { return nil, nil })
		case aReader:
			ok = a.read(d.size%2 == 0)
		case aSnapshot:
			ok = a.save()
		case aMend:
			ok = a.mend()
		case aNewHandle:
			ok = false
		}
		if !ok {
			a.j.Close()
			if a.j = nil; !a.open() {
				return
			}
		}
	}
}

func (a *actor) decide(size int) ([]byte, error) {
	a.n++
	id := fmt.Sprintf("%s.%d", a.process.Name, a.n)
	a.h.book.try(id)
	if size == fullSector {
		size = sectorSize - len(filejournal.AppendRecord(nil, int64(len(a.ids)+1), entry(id, a.ids, 0)))
	}
	return entry(id, a.ids, size), nil
}

func (a *actor) append(decide func() ([]byte, error)) bool {
	id := ""
	seq, err := a.j.Append(context.Background(), int64(len(a.ids)), func(r journal.Record) error {
		id, err := a.h.book.next(a.ids, r)
		if a.check("catch up", err) {
			a.ids = append(a.ids, id)
			a.h.fail(a.h.book.show(a.ids))
		}
		return err
	}, func() ([]byte, error) {
		data, err := decide()
		if data != nil {
			id = fmt.Sprintf("%s.%d", a.process.Name, a.n)
		}
		return data, err
	})
	switch {
	case err == nil:
		a.h.note("%s: record %d is acknowledged", a.process.Name, seq)
		if id != "" {
			a.ids = append(a.ids, id)
		}
		if seq != int64(len(a.ids)) {
			a.h.fail(fmt.Errorf("%s appended record %d, and knows of %d", a.process.Name, seq, len(a.ids)))
		}
		a.h.fail(a.h.book.keep(a.ids))
	case !errors.Is(err, journal.ErrUncertain) && a.process.Alive() == nil:
		a.h.book.refuse(id)
	}
	return a.check("append", err)
}

func (a *actor) read(fromSnapshot bool) bool {
	least, _ := a.h.book.acknowledged()
	ids, err := a.h.book.read(a.j, fromSnapshot)
	if err == nil && len(ids) < least {
		a.h.fail(fmt.Errorf("%s read %d records, and %d were acknowledged before", a.process.Name, len(ids), least))
	}
	a.h.fail(a.h.book.show(ids))
	return a.check("read", err)
}

func (a *actor) save() bool {
	a.saved = false
	ids := a.ids
	err := a.j.SaveSnapshot(context.Background(), func() (int64, []byte) { return int64(len(ids)), state(ids) })
	if err == nil && a.saved {
		a.h.fail(a.h.book.keepSnapshot(ids))
	}
	return a.check("save a snapshot", err)
}

// mend mends a journal without problems.
func (a *actor) mend() bool {
	m, err := filejournal.MendOn(context.Background(), a.disk, teamDir)
	if err == nil && (m.Aside != nil || m.Lost != nil || m.Hole != nil) {
		a.h.fail(fmt.Errorf("%s mended what was whole: %+v, lost %v", a.process.Name, m, m.Lost))
	}
	return a.check("mend", err)
}
