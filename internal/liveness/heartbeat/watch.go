package heartbeat

import "time"

// Watch sees how long a member has been silent, for a process that looks at its beats again and
// again. It belongs to one goroutine.
type Watch struct {
	// Every is how often beats come. A watch believes in a silence only after it has itself looked
	// on for twice as long.
	Every time.Duration

	began time.Time // the first look
	looks bool
	wall  time.Time     // by the clock on the wall, when it looked last
	last  time.Duration // when that was, by the clock that nobody sets
	since time.Duration // from when on it has looked without a pause
	fresh time.Duration // when it saw the present beat first
	seen  Beat
	alive bool // it saw the beat change, since then
}

// Look takes note of the member's present beat; there is false where it has none. It returns how
// long it has been silent, as far as that is sure, and whether the beat's clock and ours disagree.
func (w *Watch) Look(now time.Time, b Beat, there bool) (silent time.Duration, skewed bool) {
	if w.began.IsZero() {
		w.began = now
	}
	return w.LookBy(now.Round(0), now.Sub(w.began), b, there)
}

// LookBy is Look by two clocks: the one on the wall, which anybody may set, and one that runs
// evenly and stands still at most while the machine is suspended, which shows in the other one.
func (w *Watch) LookBy(wall time.Time, steady time.Duration, b Beat, there bool) (silent time.Duration, skewed bool) {
	pause := max(steady-w.last, wall.Sub(w.wall))
	backwards := w.looks && wall.Before(w.wall.Add(-Tolerance))
	changed := w.seen.At != b.At || w.seen.Count != b.Count || w.seen.Pid != b.Pid || w.seen.Machine != b.Machine
	if !w.looks || pause > 3*w.Every || backwards {
		w.since, w.fresh, w.alive = steady, steady, false
	} else if there && changed {
		w.alive = true
	}
	w.looks, w.wall, w.last = true, wall, steady
	if !there {
		return 0, false
	}
	if changed {
		w.seen, w.fresh = b, steady
	}
	age, skewed := b.Age(wall)
	skewed = skewed || backwards
	unchanged := steady - w.fresh
	switch {
	case steady-w.since < 2*w.Every:
		return 0, skewed
	case w.alive ||
		skewed: // how old a beat seems is a matter of two clocks, and that we have not seen a new one for so long is not
		return unchanged, skewed || age > unchanged+2*w.Every+Tolerance // it came just now and says that it is old
	}
	return max(age, unchanged), false
}
