package metrics

import "time"

// histogram counts durations. The zero value is empty. Each histogram is always used with the same
// bounds.
type histogram struct {
	counts []int64 // by the first bound that the duration does not exceed; the last one is for longer durations
	sum    int64   // of the durations, in microseconds
}

// The upper bounds of the histograms. A change of bounds changes what Prometheus computes from the
// series that it has.
var (
	taskBounds = []time.Duration{time.Second, 5 * time.Second, 15 * time.Second, 30 * time.Second, time.Minute,
		2 * time.Minute, 5 * time.Minute, 10 * time.Minute, 20 * time.Minute, 30 * time.Minute, time.Hour,
		2 * time.Hour, 4 * time.Hour, 8 * time.Hour, 24 * time.Hour}
	waitBounds = []time.Duration{100 * time.Millisecond, 500 * time.Millisecond, time.Second, 5 * time.Second,
		15 * time.Second, 30 * time.Second, time.Minute, 2 * time.Minute, 5 * time.Minute, 10 * time.Minute,
		30 * time.Minute, time.Hour, 4 * time.Hour, 24 * time.Hour}
	deliveryBounds = []time.Duration{10 * time.Millisecond, 50 * time.Millisecond, 100 * time.Millisecond,
		250 * time.Millisecond, 500 * time.Millisecond, time.Second, 2500 * time.Millisecond, 5 * time.Second,
		15 * time.Second, 30 * time.Second, time.Minute, 5 * time.Minute, 30 * time.Minute, time.Hour}
	permissionBounds = []time.Duration{time.Second, 5 * time.Second, 15 * time.Second, 30 * time.Second, time.Minute,
		2 * time.Minute, 5 * time.Minute, 10 * time.Minute, 30 * time.Minute, time.Hour}
	appendBounds = []time.Duration{100 * time.Microsecond, 250 * time.Microsecond, 500 * time.Microsecond,
		time.Millisecond, 2500 * time.Microsecond, 5 * time.Millisecond, 10 * time.Millisecond, 25 * time.Millisecond,
		50 * time.Millisecond, 100 * time.Millisecond, 250 * time.Millisecond, 500 * time.Millisecond, time.Second}
)

// observe counts a duration. A negative one, of a clock that was set back, counts as 0.
func (h *histogram) observe(bounds []time.Duration, d time.Duration) {
	d = max(0, d)
	if h.counts == nil {
		h.counts = make([]int64, len(bounds)+1)
	}
	i := 0
	for i < len(bounds) && d > bounds[i] {
		i++
	}
	h.counts[i]++
	h.sum += d.Microseconds()
}

// merge adds another histogram with the same bounds.
func (h *histogram) merge(o *histogram) {
	if h.counts == nil {
		h.counts = append(h.counts, o.counts...)
		h.sum = o.sum
		return
	}
	for i, n := range o.counts {
		h.counts[i] += n
	}
	h.sum += o.sum
}
