package heartbeat

import "time"

// Watch measures how long a member has been silent, for a process that looks at its beats
// repeatedly. It belongs to one goroutine.
type Watch struct {
	// Every is the interval between beats. A watch reports silence only after it has observed for
	// twice as long itself.
	Every time.Duration

	began     time.Time // the first look
	looks     bool
	wall      time.Time     // wall clock at the last look
	last      time.Duration // steady clock at the last look
	since     time.Duration // steady clock at the start of uninterrupted observation
	changedAt time.Duration // steady clock when it first saw the present beat
	seen      Beat
	alive     bool // the beat changed during uninterrupted observation
}

// Look records the member's present beat. If it has none, there is false. Look returns how long the
// member has been silent for certain, and whether the clocks of writer and reader disagree.
func (w *Watch) Look(now time.Time, b Beat, there bool) (silent time.Duration, skewed bool) {
	if w.began.IsZero() {
		w.began = now
	}
	return w.LookBy(now.Round(0), now.Sub(w.began), b, there)
}

// LookBy is Look with two clocks. The wall clock may be set at any time. The steady clock runs
// evenly; it may stop only while the machine is suspended, and the wall clock then shows the pause.
func (w *Watch) LookBy(wall time.Time, steady time.Duration, b Beat, there bool) (silent time.Duration, skewed bool) {
	pause := max(steady-w.last, wall.Sub(w.wall))
	backwards := w.looks && wall.Before(w.wall.Add(-Tolerance))
	changed := w.seen.At != b.At || w.seen.Count != b.Count || w.seen.Pid != b.Pid || w.seen.Machine != b.Machine
	if !w.looks || pause > 3*w.Every || backwards {
		w.since, w.changedAt, w.alive = steady, steady, false
	} else if there && changed {
		w.alive = true
	}
	w.looks, w.wall, w.last = true, wall, steady
	if !there {
		return 0, false
	}
	if changed {
		w.seen, w.changedAt = b, steady
	}
	age, skewed := b.Age(wall)
	skewed = skewed || backwards
	unchanged := steady - w.changedAt
	switch {
	case steady-w.since < 2*w.Every:
		return 0, skewed
	case w.alive ||
		skewed: // the age compares two clocks; the time without a new beat needs only ours
		return unchanged, skewed || age > unchanged+2*w.Every+Tolerance // it arrived just now with an old timestamp
	}
	return max(age, unchanged), false
}
