package team

import "strings"

// limits adds one item for each rate limit that lasts, whoever waits for it.
func (a *attention) limits() {
	for _, l := range a.s.RateLimits() {
		if max(a.now, l.Until).Sub(l.Since) < lastingLimit {
			continue
		}
		wait := "it is tried again now"
		if l.Until > a.now {
			wait = "it is tried again in " + Span(l.Until.Sub(a.now))
		}
		a.add(Item{Kind: ItemRateLimit, Member: onlyOne(l.Members), About: l.Pool, Since: l.Since,
			Hint: Hint{Action: ActLift, Member: l.Members[0]}},
			"%s for a rate limit (%s); %s. Wait, or give %s another model or agent. It says: %s",
			andMore(l.Members)+word(len(l.Members), " waits", " wait"), l.Pool, wait,
			word(len(l.Members), "it", "them"), clipTo(strings.TrimSpace(l.Text), 200))
	}
}

// onlyOne returns the only name of the list; "" if there are more.
func onlyOne(names []string) string {
	if len(names) == 1 {
		return names[0]
	}
	return ""
}
