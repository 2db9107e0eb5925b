package agent_test

import (
	"testing"
	"time"

	"cadre/internal/agent"
)

// TestFreeAt checks that the time that a provider names is found in the words of the agents.
func TestFreeAt(t *testing.T) {
	zone := time.FixedZone("here", 3600)
	now := time.Date(2026, 2, 20, 14, 0, 0, 0, zone)
	in := func(d time.Duration) time.Time { return now.Add(d) }
	for words, want := range map[string]time.Time{
		"Please retry in 34.5s.":                                   in(34500 * time.Millisecond),
		`{"@type":"RetryInfo","retryDelay":"34s"}`:                 in(34 * time.Second),
		"Your quota will reset after 3h20m.":                       in(3*time.Hour + 20*time.Minute),
		"try again in 3 days 4 hours 2 minutes":                    in(76*time.Hour + 2*time.Minute),
		"Please try again in 250ms. Visit the site.":               in(250 * time.Millisecond),
		"429 Too Many Requests, retry-after: 30":                   in(30 * time.Second),
		"You've hit your usage limit. Try again at 3:05 PM.":       time.Date(2026, 2, 20, 15, 5, 0, 0, zone),
		"5-hour limit reached ∙ resets 1pm":                        time.Date(2026, 2, 21, 13, 0, 0, 0, zone),
		"session limit · resets 3:45pm (UTC)":                      time.Date(2026, 2, 20, 15, 45, 0, 0, time.UTC),
		"or try again at Feb 22nd, 2026 9:26 PM.":                  time.Date(2026, 2, 22, 21, 26, 0, 0, zone),
		"weekly limit reached, resets Jan 3 at 12am":               time.Date(2027, 1, 3, 0, 0, 0, 0, zone),
		"Claude AI usage limit reached|1771600000":                 time.Unix(1771600000, 0),
		"limit reached, resets at 2026-02-20T18:00:00Z":            time.Date(2026, 2, 20, 18, 0, 0, 0, time.UTC),
		"slow down a little":                                       {},
		"I retry in the loop of attempt 3":                         {},
		"API Error: Request rejected (429) · slow down a little":   {},
		"exceeded retry limit, last status: 429 Too Many Requests": {},
	} {
		p := &agent.Problem{Kind: agent.ProblemLimit, Text: words}
		if got := p.FreeAt(now); !got.Equal(want) {
			t.Errorf("%q is free at %s, not %s", words, got, want)
		}
	}
	until := now.Add(time.Hour)
	for _, c := range []struct {
		p    agent.Problem
		want time.Time
	}{
		{agent.Problem{Kind: agent.ProblemLimit, Text: "retry in 5s", Until: until}, until},
		{agent.Problem{Kind: agent.ProblemLimit, Text: "retry in 5s", After: time.Minute}, in(time.Minute)},
		{agent.Problem{Kind: agent.ProblemModel, Text: "retry in 5s", After: time.Minute}, time.Time{}},
	} {
		if got := c.p.FreeAt(now); !got.Equal(c.want) {
			t.Errorf("%+v is free at %s, not %s", c.p, got, c.want)
		}
	}
}
