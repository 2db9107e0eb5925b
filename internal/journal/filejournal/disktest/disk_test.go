package disktest_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"

	"cadre/internal/journal/filejournal"
	"cadre/internal/journal/filejournal/disktest"
)

// sectors returns n sectors filled with one letter.
func sectors(letter string, n int) []byte { return []byte(strings.Repeat(letter, n*512)) }

func open(t *testing.T, p *disktest.Process, path string) filejournal.File {
	t.Helper()
	f, err := p.Open(path, os.O_RDWR|os.O_CREATE)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func write(t *testing.T, f filejournal.File, b []byte, off int64) {
	t.Helper()
	if _, err := f.WriteAt(b, off); err != nil {
		t.Fatal(err)
	}
}

// outcomes loses the power many times and returns all results of look.
func outcomes(d *disktest.Disk, look func(*disktest.Disk) string) map[string]bool {
	all := map[string]bool{}
	for seed := range uint64(3000) {
		all[look(d.LosePower(rand.New(rand.NewPCG(seed, 0)).IntN))] = true
	}
	return all
}

// shape describes a file's content: a letter for each sector, and the length of an incomplete last
// sector.
func shape(b []byte) string {
	var s strings.Builder
	for part := range slices.Chunk(b, 512) {
		switch {
		case len(part) < 512:
			fmt.Fprint(&s, "+")
		case bytes.Count(part, part[:1]) == 512 && part[0] >= 'a':
			s.WriteByte(part[0])
		default:
			s.WriteByte('?')
		}
	}
	return s.String()
}

// TestFile has a file with two safe sectors, one of which is overwritten, and two new sectors.
func TestFile(t *testing.T) {
	d := disktest.New()
	p := d.Process("p")
	f := open(t, p, "/f")
	write(t, f, sectors("a", 2), 0)
	must(t, f.SyncData())
	must(t, p.SyncFolder("/"))
	write(t, f, sectors("b", 3), 512)
	all := outcomes(d, func(left *disktest.Disk) string {
		b, err := left.Read("/f")
		must(t, err)
		return shape(b)
	})
	for _, want := range []string{"aa", "abbb", "ab", "aabb", "aa?b", "ab?b", "aab?", "aab+", "ab?+", "ab+"} {
		if !all[want] {
			t.Errorf("%s is never left", want)
		}
	}
	for got := range all {
		if got[0] != 'a' || len(got) < 2 || len(got) > 4 || strings.Contains(got[:2], "?") {
			t.Errorf("%s is left", got)
		}
	}
	must(t, f.SyncData())
	if all = outcomes(d, func(left *disktest.Disk) string { b, _ := left.Read("/f"); return shape(b) }); len(
		all) != 1 || !all["abbb"] {
		t.Errorf("after a sync: %v", all)
	}
}

// TestNames has unsafe names, each of which is left or lost independently of the others.
func TestNames(t *testing.T) {
	d := disktest.New()
	p := d.Process("p")
	for _, name := range []string{"/old", "/gone"} {
		f := open(t, p, name)
		write(t, f, []byte(name), 0)
		must(t, f.Sync())
	}
	must(t, p.SyncFolder("/"))
	must(t, p.Rename("/old", "/new"))
	must(t, p.Link("/gone", "/link"))
	must(t, p.Remove("/gone"))
	look := func(left *disktest.Disk) string {
		names, err := left.Process("q").List("/")
		must(t, err)
		return strings.Join(names, " ")
	}
	all := outcomes(d, look)
	want := []string{"gone old", "gone new", "gone link old", "gone link new", "old", "new", "link old", "link new"}
	for _, w := range want {
		if !all[w] {
			t.Errorf("%s is never left", w)
		}
	}
	if len(all) != len(want) {
		t.Errorf("left are %v", all)
	}
	must(t, p.SyncFolder("/"))
	if all := outcomes(d, look); len(all) != 1 || !all["link new"] {
		t.Errorf("after a sync: %v", all)
	}
}

// TestFailedSync reports the failure once to each file that was open, and to no other. The data of
// the failed sync is not on the disk until it is written again.
func TestFailedSync(t *testing.T) {
	d := disktest.New()
	p, q := d.Process("p"), d.Process("q")
	f, other := open(t, p, "/f"), open(t, q, "/f")
	must(t, p.SyncFolder("/"))
	write(t, f, sectors("a", 1), 0)
	d.Before = func(op *disktest.Op) disktest.Fault {
		return disktest.Fault{Err: syscall.EIO, Choose: func(int) int { return 0 }}
	}
	if err := f.SyncData(); err == nil {
		t.Error("no error")
	}
	d.Before = nil
	must(t, f.SyncData())
	if err := other.SyncData(); err == nil {
		t.Error("the other opening was not told")
	}
	late := open(t, q, "/f")
	must(t, late.SyncData())
	left := func() string {
		b, err := d.LosePower(func(int) int { return 0 }).Read("/f")
		must(t, err)
		return shape(b)
	}
	if b, _ := d.Read("/f"); shape(b) != "a" || left() != "?" {
		t.Errorf("seen is %s, safe is %s", shape(b), left())
	}
	write(t, late, []byte("a"), 7)
	must(t, late.SyncData())
	if left() != "a" {
		t.Errorf("written again, safe is %s", left())
	}
}

// TestKilled checks that the operations of a killed process fail and its locks are released.
func TestKilled(t *testing.T) {
	d := disktest.New()
	p, q := d.Process("p"), d.Process("q")
	f, g := open(t, p, "/f"), open(t, q, "/f")
	must(t, f.Flock(syscall.LOCK_EX))
	if err := g.Flock(syscall.LOCK_EX | syscall.LOCK_NB); err != syscall.EWOULDBLOCK {
		t.Errorf("two have the lock: %v", err)
	}
	p.Kill()
	must(t, g.Flock(syscall.LOCK_EX|syscall.LOCK_NB))
	if _, err := f.WriteAt([]byte("x"), 0); err == nil || p.Alive() == nil {
		t.Error("the dead write")
	}
	d.Off()
	if q.Alive() == nil {
		t.Error("there is life without power")
	}
}
