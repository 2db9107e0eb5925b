package team

import (
	"fmt"
	"math"
	"strconv"
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

// Duration is a duration that JSON shows in whole milliseconds, as it shows a [Time].
type Duration time.Duration

// Std returns the duration in the type of the standard library.
func (d Duration) Std() time.Duration { return time.Duration(d) }

func (d Duration) String() string { return d.Std().String() }

// MarshalJSON writes the duration as a number of milliseconds.
func (d Duration) MarshalJSON() ([]byte, error) {
	return strconv.AppendInt(nil, d.Std().Milliseconds(), 10), nil
}

// UnmarshalJSON reads what MarshalJSON writes.
func (d *Duration) UnmarshalJSON(data []byte) error {
	n, err := strconv.ParseInt(string(data), 10, 64)
	*d = Duration(multiple(n, time.Millisecond))
	return err
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

// Span formats a duration for people, in one unit or two. All texts above the tools use it.
func Span(d time.Duration) string {
	if d < time.Second {
		if d = max(0, d.Truncate(time.Millisecond)); d > 0 {
			return fmt.Sprintf("%d ms", d.Milliseconds())
		}
		return "0 s"
	}
	if d < time.Minute {
		if d = d.Round(time.Second / 10); d%time.Second != 0 && d < time.Minute {
			return fmt.Sprintf("%.1f s", d.Seconds())
		}
	}
	two := func(big time.Duration, name string, small time.Duration, rest string) string {
		if n := d % big / small; n > 0 {
			return fmt.Sprintf("%d %s %02d %s", d/big, name, n, rest)
		}
		return fmt.Sprintf("%d %s", d/big, name)
	}
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%d s", d/time.Second)
	case d < time.Hour:
		return two(time.Minute, "min", time.Second, "s")
	case d < 48*time.Hour:
		return two(time.Hour, "h", time.Minute, "min")
	}
	return fmt.Sprintf("%d days", d/(24*time.Hour))
}
