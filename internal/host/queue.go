package host

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// queue is the place of a host among those that wait for a turn of the machine: first come, first
// served. A host has one place, whatever the number of its members that wait, so that a team with
// many members does not go before a team with few. A place is a file whose name begins with the
// time since which the host waits. The host renews it whenever it looks for a free turn. A place
// that was not renewed lets others pass: its host was killed or is suspended.
type queue struct {
	dir, id string
	place   string // name of the file; "" for a host that does not wait
}

const (
	placeLapses  = 20 * turnPace     // a place that was not renewed for so long lets others pass
	placeRemoved = 100 * placeLapses // and after this time it is removed
	placeSuffix  = ".place"
)

// ahead returns how many other hosts wait, for a host that waits itself only those before it.
func (q *queue) ahead(now time.Time) (n int) {
	entries, err := os.ReadDir(q.dir) // by name, so by the time that they wait
	if err != nil {
		return 0
	}
	for _, e := range entries {
		name := e.Name()
		if !strings.HasSuffix(name, placeSuffix) || strings.HasSuffix(name, "-"+q.id+placeSuffix) {
			continue
		}
		if q.place != "" && name > q.place {
			break
		}
		info, err := e.Info()
		if err != nil {
			continue
		}
		switch age := now.Sub(info.ModTime()); {
		case age > placeRemoved:
			_ = os.Remove(filepath.Join(q.dir, name)) // another host may have removed it
		case age <= placeLapses:
			n++
		}
	}
	return n
}

// wait gives the host a place at the end, or renews the one that it has.
func (q *queue) wait(now time.Time) error {
	if q.place != "" {
		if err := os.Chtimes(filepath.Join(q.dir, q.place), now, now); err == nil {
			return nil
		}
	}
	q.place = fmt.Sprintf("%020d-%s%s", now.UnixNano(), q.id, placeSuffix)
	f, err := os.OpenFile(filepath.Join(q.dir, q.place), os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		q.place = ""
		return err
	}
	return f.Close()
}

// leave gives up the place.
func (q *queue) leave() {
	if q.place != "" {
		_ = os.Remove(filepath.Join(q.dir, q.place)) // what stays lapses
		q.place = ""
	}
}
