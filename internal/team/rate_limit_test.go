package team

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"
)

var drawPool = rapid.SampledFrom([]string{"", "", "p", "p", "p", "q"})

// modelLimits is a naive twin of the rate limits: when each pool takes turns again, by the records.
type modelLimits map[string]Time

func (l modelLimits) apply(r *Record) {
	for _, e := range r.Events {
		switch e := e.(type) {
		case *RateLimited:
			l[e.Pool] = max(l[e.Pool], e.Until)
		case *RateLimitLifted:
			l[e.Pool] = 0
		case *TeamRestored:
			clear(l)
		}
	}
}

// judge checks that a rate limit costs nobody anything: no setback, no end, and no task unless the
// session itself has ended.
func (l modelLimits) judge(t fataler, c Command, r *Record) {
	b, ok := c.Body.(*ReportTrouble)
	if !ok || b.Trouble != TroubleLimit || b.Pool == "" {
		return
	}
	for _, e := range r.Events {
		switch e := e.(type) {
		case *MemberTroubled, *MemberFailed:
			t.Fatalf("the rate limit of %s is a setback: %+v", b.Member, e)
		case *TaskReleased:
			if !b.Gone {
				t.Fatalf("the rate limit of %s returns the task %s", b.Member, e.Task)
			}
		case *RateLimited:
			if e.Until <= c.At {
				t.Fatalf("the rate limit of %s is over at %d, before %d", e.Pool, e.Until, c.At)
			}
		}
	}
}

// compare checks that no turn starts in a limited pool before its time, and that no more turns run
// than the team allows. What runs already is not cut short for either.
func (l modelLimits) compare(t fataler, s *State, now Time) {
	wants, _ := s.Wants(now)
	starts := map[string]bool{}
	for _, w := range wants {
		m, _ := s.Member(w.Member)
		begins := w.Kind == WantDelivery || w.Kind == WantWork || w.Kind == WantRetry ||
			w.Kind == WantSession && m.Status == Spawning && m.Host != ""
		if !begins || m.Status == Active {
			continue
		}
		if starts[m.Name] = true; now < l[m.Pool] {
			t.Fatalf("%s starts with %s at %d, and its pool %s is limited until %d", m.Name, w.Key, now, m.Pool,
				l[m.Pool])
		}
	}
	if s.team.MaxParallel == 0 {
		return
	}
	begin, run := 0, 0
	for _, m := range s.Members() {
		switch {
		case m.Name == s.team.Lead || m.Agent == External:
		case starts[m.Name]:
			begin++
		case m.Status == Active && m.Plan.State != "submitted" && !asks(s, m.Name):
			run++
		}
	}
	if begin > 0 && int64(begin+run) > s.team.MaxParallel {
		t.Fatalf("%d turns start beside %d, of at most %d: %v", begin, run, s.team.MaxParallel, wants)
	}
}

func asks(s *State, member string) bool {
	for _, p := range s.Permissions() {
		if p.Member == member {
			return true
		}
	}
	return false
}

// limitedTeam returns a team of that many claude members in one pool, each with a task in progress,
// of which the first was rate limited for the wait.
func limitedTeam(t *testing.T, members int, wait time.Duration) *State {
	t.Helper()
	s := &State{}
	n := 0
	do := func(actor string, body Body) {
		t.Helper()
		n++
		d, err := Decide(s, Command{ID: fmt.Sprint("c", n), Actor: actor, At: 1000, Body: body})
		if err != nil {
			t.Fatal(err)
		}
		if d.Record != nil {
			s.Apply(d.Record)
		}
	}
	do(User, &CreateTeam{TeamID: "t", Name: "demo", Dir: "/d"})
	for i := range members {
		name := fmt.Sprint("m", i)
		do(User, &SpawnMember{Name: name, Agent: Claude})
		do(Host("h"), &AttachMember{Member: name, Pool: "p"})
		do(Host("h"), &ReportStarted{Member: name, Session: "s"})
		do(User, &CreateTask{Subject: "work", Owner: name})
		do(Host("h"), &ClaimTask{Member: name})
	}
	for i := range members {
		do(Host("h"), &ReportTrouble{Member: fmt.Sprint("m", i), Trouble: TroubleLimit, Pool: "p", Text: "429",
			Until: Time(1000).Add(wait)})
	}
	return s
}

// TestLimitedPoolComesBackOneByOne checks that the members of a limited pool do not come back at
// one moment: one tries first, and after its success the others follow within the spread.
func TestLimitedPoolComesBackOneByOne(t *testing.T) {
	for _, c := range []struct{ wait, spread time.Duration }{
		{2 * time.Second, 2 * time.Second}, {20 * time.Second, 10 * time.Second}, {5 * time.Minute, 30 * time.Second},
		{24 * time.Hour, time.Minute},
	} {
		s := limitedTeam(t, 8, c.wait)
		until := Time(1000).Add(c.wait)
		first, probes := Time(0), 0
		for _, m := range s.Members()[1:] {
			at := s.LimitedUntil(m.Name, 1000)
			if at < until.Add(probeTime) {
				probes++
				first = at
			}
			if at < until || at >= until.Add(probeTime+c.spread) {
				t.Errorf("after %s, %s comes back at %d", c.wait, m.Name, at-until)
			}
		}
		if probes != 1 || first >= until.Add(c.spread) {
			t.Errorf("after %s, %d members try first, at %d", c.wait, probes, first-until)
		}
		s.Apply(&Record{Seq: s.Seq() + 1, ID: "lift", At: first + 10, Events: []Event{&RateLimitLifted{Pool: "p"}}})
		moments := map[Time]bool{}
		for _, m := range s.Members()[1:] {
			at := s.LimitedUntil(m.Name, first+9)
			moments[at] = true
			if at < first+10 || at >= (first+10).Add(c.spread) {
				t.Errorf("after the limit of %s was lifted, %s comes back %d later", c.wait, m.Name, at-first-10)
			}
		}
		if len(moments) < 6 {
			t.Errorf("8 members come back at %d moments", len(moments))
		}
	}
}

// TestLimitsAreForgotten checks that the state does not grow with pools that nobody is in.
func TestLimitsAreForgotten(t *testing.T) {
	s := limitedTeam(t, 1, time.Second)
	at := Time(10_000)
	for n := range 50 {
		pool := fmt.Sprint("pool ", n)
		for _, e := range []Event{&RateLimited{Pool: pool, By: "m0", Until: at + 1, Tries: 1},
			&RateLimitLifted{Pool: pool}} {
			at = at.Add(2 * liftedFor)
			s.Apply(&Record{Seq: s.Seq() + 1, ID: "x", At: at, Events: []Event{e}})
		}
	}
	if n := len(s.rateLimits); n > 3 {
		t.Errorf("the state keeps %d limits", n)
	}
}

// TestALastingLimitIsOneItem checks that a person is told once of a limit, for all that wait, and
// not of a short one.
func TestALastingLimitIsOneItem(t *testing.T) {
	items := func(s *State, now Time) (found []Item) {
		for _, i := range s.Attention(now, nil) {
			if i.Kind == ItemRateLimit {
				found = append(found, i)
			}
		}
		return found
	}
	s := limitedTeam(t, 3, 4*time.Minute)
	if got := items(s, 1000); len(got) != 0 {
		t.Errorf("a limit of 4 min: %+v", got)
	}
	if got := items(s, Time(1000).Add(6*time.Minute)); len(got) != 1 {
		t.Errorf("a limit that has lasted for 6 min: %+v", got)
	}
	s = limitedTeam(t, 3, 2*time.Hour)
	got := items(s, 1000)
	if len(got) != 1 || got[0].About != "p" || got[0].WaitsFor != ForUser || got[0].Member != "" ||
		got[0].Text != "m0, m1, m2 wait for a rate limit (p); it is tried again in 2 h. Wait, or give them another "+
			"model or agent. It says: 429" {
		t.Errorf("a limit of 2 h: %+v", got)
	}
	s.Apply(&Record{Seq: s.Seq() + 1, ID: "lift", At: 2000, Events: []Event{&RateLimitLifted{Pool: "p"}}})
	if got := items(s, Time(1000).Add(time.Hour)); len(got) != 0 {
		t.Errorf("it was lifted: %+v", got)
	}
}

// TestLimitLeavesTurns: in a team that limits its turns, a member that waits for a rate limit
// within its turn leaves it to others.
func TestLimitLeavesTurns(t *testing.T) {
	w := &worker{t, &State{}, 0}
	w.do(&CreateTeam{TeamID: "t", Name: "demo", Dir: "/d", MaxParallel: 1})
	for name, pool := range map[string]string{"one": "a", "other": "b"} {
		w.do(&SpawnMember{Name: name, Agent: "claude"})
		w.as(Host("h"), &AttachMember{Member: name, Pool: pool})
	}
	w.as(Host("h"), &GrantTurn{Member: "one"})
	w.as(Host("h"), &ReportStarted{Member: "one", Session: "s"})
	if w.MayStart("other", 100) {
		t.Fatal("two have the only turn")
	}
	w.as(Host("h"), &ReportTrouble{Member: "one", Trouble: TroubleLimit, Pool: "a", Text: "429", Retrying: true,
		Until: 3_600_000})
	w.as(Host("h"), &GrantTurn{Member: "other"})
	if !w.MayStart("other", 200) {
		t.Error("nobody works while the turn waits for a rate limit")
	}
}
