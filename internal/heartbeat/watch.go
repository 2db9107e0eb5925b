package heartbeat

import "time"

// Watch sees how long a member has been silent, for a process that looks at its beats again and again. It belongs to one goroutine.
type Watch struct {
	// Every is how often beats come. A watch believes in a silence only after it has itself looked on for twice as long.
	Every time.Duration

	since time.Time // from when on it has looked without a pause
	last  time.Time // when it looked last
	seen  Beat
	fresh time.Time // when it saw that beat first
	came  bool      // it saw that beat come, and not only that it was there
}

// Look takes note of the member's present beat; there is false where it has none. It returns how long it has been silent, as far as that is sure,
// and whether the beat's clock and ours disagree.
func (w *Watch) Look(now time.Time, b Beat, there bool) (silent time.Duration, skewed bool) {
	// Round strips the monotonic reading: a suspended machine shows in the one clock or in the other.
	pause := max(now.Sub(w.last), now.Round(0).Sub(w.last.Round(0)))
	backwards := now.Round(0).Before(w.last.Round(0).Add(-Tolerance))
	if w.last.IsZero() || pause > 3*w.Every || backwards {
		w.since, w.fresh, w.came = now, now, false
	}
	w.last = now
	if !there {
		return 0, false
	}
	if w.seen.At != b.At || w.seen.Count != b.Count || w.seen.Pid != b.Pid || w.seen.Machine != b.Machine {
		w.came = now.Sub(w.since) > 0
		w.seen, w.fresh = b, now
	}
	unchanged := now.Sub(w.fresh)
	age, skewed := b.Age(now)
	switch {
	case now.Sub(w.since) < 2*w.Every:
		return 0, skewed || backwards
	case skewed || backwards:
		return unchanged, true
	case w.came: // it was written since the look before, whatever the writer's clock says
		return unchanged, age > unchanged+2*w.Every+Tolerance
	}
	return max(age, unchanged), false
}
