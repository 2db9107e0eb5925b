package agent

import (
	"strconv"
	"strings"
	"time"

	"cadre/internal/sys/lazyregexp"
)

// FreeAt returns when the provider takes requests again after the problem, and the zero time if it
// did not say. The driver's own reading counts first: the agent's protocol has it in a field.
// Otherwise the words do. now is the present time in the zone of the words, which may name an hour
// alone.
func (p *Problem) FreeAt(now time.Time) time.Time {
	switch {
	case p.Kind != ProblemLimit:
		return time.Time{}
	case !p.Until.IsZero():
		return p.Until
	case p.After > 0:
		return now.Add(p.After)
	}
	return freeAt(p.Text, now)
}

var (
	// wait matches a length of time after words for a retry: "try again in 1h 3m", "reset after
	// 3h20m", "retry in 34.07s", "retryDelay": "34s", "retry-after: 30".
	wait = lazyregexp.New(`(?i)\b(?:(?:try(?: again)?|retry|retrying|resets?) (?:in|after)|retry[-_ ]?(?:after|delay)"?\s*[:=]?)\s*"?(?:about )?((?:\d+(?:\.\d+)?\s*[a-z]*[,\s]*(?:and )?)+)`)
	part = lazyregexp.New(`(?i)(\d+(?:\.\d+)?)\s*([a-z]*)`)
	// clock matches a time of day, perhaps with a date before it: "try again at 3:05 PM", "resets
	// 3pm", "try again at Feb 22nd, 2026 9:26 PM".
	clock = lazyregexp.New(`(?i)\b(?:(?:try|retry) again at|resets?(?: at)?)\s+(?:([a-z]{3}) (\d{1,2})(?:st|nd|rd|th)?,? (?:(\d{4}) |at )?)?(\d{1,2})(?::(\d\d))?\s*([ap]m)\b(?:\s*\(([A-Za-z_+\-/0-9]+)\))?`)
	// stamp matches a time in the form of RFC 3339, or in seconds since 1970 behind a bar.
	stamp = lazyregexp.New(`(?i)\b(?:try again|retry|resets?)(?: again)?(?: at)?\s+(\d{4}-\d\d-\d\dT[0-9:.]+(?:Z|[+-]\d\d:\d\d))|\blimit reached\|(\d{10})\b`)
)

func freeAt(words string, now time.Time) time.Time {
	if m := stamp().FindStringSubmatch(words); m != nil {
		if at, err := time.Parse(time.RFC3339, m[1]); err == nil {
			return at
		}
		if n, err := strconv.ParseInt(m[2], 10, 64); err == nil {
			return time.Unix(n, 0)
		}
	}
	if m := clock().FindStringSubmatch(words); m != nil {
		return clockAt(m, now)
	}
	if m := wait().FindStringSubmatch(words); m != nil {
		if d := lengthOf(m[1]); d > 0 {
			return now.Add(d)
		}
	}
	return time.Time{}
}

// lengthOf adds up the parts of a length of time. A number alone counts seconds, as in the header
// Retry-After.
func lengthOf(words string) (all time.Duration) {
	for _, m := range part().FindAllStringSubmatch(words, 6) {
		n, err := strconv.ParseFloat(m[1], 64)
		if err != nil || n > 1e7 {
			return 0
		}
		unit := time.Second
		switch strings.TrimSuffix(strings.ToLower(m[2]), "s") {
		case "m": // with an s it counts milliseconds
			if unit = time.Minute; len(m[2]) > 1 {
				unit = time.Millisecond
			}
		case "millisecond":
			unit = time.Millisecond
		case "d", "day":
			unit = 24 * time.Hour
		case "h", "hr", "hour":
			unit = time.Hour
		case "min", "minute":
			unit = time.Minute
		}
		all += time.Duration(n * float64(unit))
	}
	return all
}

// clockAt returns the time that the words name: the next one after now if they name no date.
func clockAt(m []string, now time.Time) time.Time {
	zone := now.Location()
	if named, err := time.LoadLocation(m[7]); m[7] != "" && err == nil {
		zone = named
	}
	now = now.In(zone)
	hour, _ := strconv.Atoi(m[4])
	minute, _ := strconv.Atoi(m[5])
	hour %= 12
	if strings.EqualFold(m[6], "pm") {
		hour += 12
	}
	at := time.Date(now.Year(), now.Month(), now.Day(), hour, minute, 0, 0, zone)
	if month, err := time.Parse("Jan", m[1]); m[1] != "" && err == nil {
		day, _ := strconv.Atoi(m[2])
		year, err := strconv.Atoi(m[3])
		if err != nil {
			year = now.Year()
		}
		if at = time.Date(year, month.Month(), day, hour, minute, 0, 0, zone); err != nil && at.Before(now) {
			at = at.AddDate(1, 0, 0)
		}
		return at
	}
	if !at.After(now) {
		at = at.AddDate(0, 0, 1)
	}
	return at
}
