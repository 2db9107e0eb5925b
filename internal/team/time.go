package team

import (
	"math"
	"time"
)

// Time is a point in time, in milliseconds since 1970 UTC. It is for people and for timeouts, and
// never decides order. This package uses time.Duration but never the clock: the present time comes
// in with the command.
type Time int64

// Add returns the time d later. It stops at the largest time, because a deadline that overflowed
// would seem to have passed.
func (t Time) Add(d time.Duration) Time { return plus(t, Time(d/time.Millisecond)) }

// Sub returns the duration from u to t, negative if t is before u. It is exact up to 292 years.
func (t Time) Sub(u Time) time.Duration {
	switch {
	case u < 0 && t > math.MaxInt64+u:
		return longest
	case u > 0 && t < math.MinInt64+u:
		return -longest
	}
	return multiple(int64(t-u), time.Millisecond)
}

// longest is the longest duration in whole milliseconds.
const longest = math.MaxInt64 / time.Millisecond * time.Millisecond

// multiple returns n units, or the largest multiple that a duration can hold.
func multiple(n int64, unit time.Duration) time.Duration {
	most := int64(math.MaxInt64 / unit)
	return time.Duration(max(-most, min(n, most))) * unit
}

// wholeUnits returns d in whole units, rounded away from zero, so that a very short timeout does
// not become 0, which means none.
func wholeUnits(d, unit time.Duration) int64 {
	n := int64(d / unit)
	switch rest := d % unit; {
	case rest > 0:
		n++
	case rest < 0:
		n--
	}
	return n
}
