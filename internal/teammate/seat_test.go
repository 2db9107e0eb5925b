package teammate

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"cadre/internal/agent"
	"cadre/internal/agent/prompts"
	"cadre/internal/claude/projection"
	"cadre/internal/claude/teamfiles"
	"cadre/internal/team"
)

// take sits ann down.
func (s *stage) take(agent string) *Seat {
	s.t.Helper()
	seat, err := Take(s.ctx, seats(s.claude), s.team, "ann", agent)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { seat.Leave(s.ctx) })
	return seat
}

func (s *stage) members() (names []string) {
	s.t.Helper()
	c, err := s.team.Config(s.ctx)
	if err != nil {
		s.t.Fatal(err)
	}
	for _, m := range c.Members {
		names = append(names, m.Name)
	}
	return names
}

// missed waits until the lead hears that ann was killed.
func (s *stage) missed() {
	s.t.Helper()
	s.hears("that ann was killed", func(e teamfiles.Entry) bool {
		idle, ok := teamfiles.Parse(e.Text).(*teamfiles.Idle)
		return ok && idle.Reason == "failed" && strings.Contains(idle.Result, "ann was killed") &&
			strings.Contains(idle.Result, "start it")
	})
}

// A member that is killed at work is missed: its lead is told. Who is started under its name goes
// on with its session, knows that it was cut off, and has each message once.
func TestKilledAtWork(t *testing.T) {
	s := newStage(t, "ann", "bob")
	s.say(teamfiles.Lead, "You look after the port.")
	victim := s.victim("busy", "given")
	there := &Seat{dir: filepath.Join(seats(s.claude), "demo", "ann")}
	s.eventually("it works", func() bool { return there.last().Working })
	s.kill(victim)
	s.missed()
	s.eventually("it is not active", func() bool {
		c, err := s.team.Config(s.ctx)
		return err == nil && c.Members[1].IsActive != nil && !*c.Members[1].IsActive
	})
	s.say("bob", "which port is it?") // nobody is there
	s.say("bob", "which was it again?")
	waiting, err := s.team.Waiting(s.ctx, "ann")
	if err != nil || len(waiting) < 2 {
		t.Fatal(waiting, err)
	}
	prompted := make(chan string, 8)
	after := actor(func(a *act, p agent.Prompt) { prompted <- a.spec.Resume + ": " + p.Text; a.says("ok") })
	after.seen = []int64{0, number(waiting[len(waiting)-2])} // it was in the middle of settling that
	seat := s.take("claude")
	s.work(after, func(o *Options) { o.Seat = seat })
	next := func() string {
		t.Helper()
		select {
		case got := <-prompted:
			return got
		case <-s.ctx.Done():
			t.Fatal("it is told nothing")
			return ""
		}
	}
	if got := next(); got != "one: "+prompts.CutOff(true) {
		t.Errorf("it was told %q", got)
	}
	if got := next(); !strings.Contains(got, "which was it again?") || strings.Contains(got, "which port is it?") ||
		strings.Contains(got, "look after the port") {
		t.Errorf("it was told %q", got)
	}
	s.eventually("all is settled", func() bool {
		mail, err := s.team.Inbox(s.ctx, "ann")
		return err == nil &&
			len(mail) == 0
	})
}

// Another agent under the name of one that was killed begins anew, and so does one in another team
// of that name. One that sits is not disturbed, and one that leaves leaves nothing.
func TestSeat(t *testing.T) {
	s := newStage(t, "ann")
	first := s.take("claude")
	if err := first.keep("one", true); err != nil {
		t.Fatal(err)
	}
	// too late: somebody sits there again
	if err := Bury(s.ctx, s.claude, seats(s.claude), "demo", "ann", "x"); err != nil {
		t.Error(err)
	}
	if _, err := Take(s.ctx, seats(s.claude), s.team, "ann", "claude"); team.CodeOf(err) != team.Taken {
		t.Errorf("two sit there: %v", err)
	}
	first.Procs.Close(s.ctx) // killed
	if again := s.take("claude"); again.sits.Session != "one" || !again.cut {
		t.Errorf("it goes on for %+v", again.sits)
	} else {
		again.Procs.Close(s.ctx)
	}
	other := s.take("codex")
	if other.sits.Session != "" || other.cut {
		t.Errorf("another agent goes on for %+v", other.sits)
	}
	if waiting, err := s.team.Waiting(s.ctx, teamfiles.Lead); err != nil || len(waiting) > 0 {
		t.Errorf("the lead heard %v, %v", waiting, err)
	}
	if err := other.Leave(s.ctx); err != nil {
		t.Error(err)
	}
	if left, _ := filepath.Glob(filepath.Join(seats(s.claude), "*")); len(left) > 0 {
		t.Errorf("left are %v", left)
	}
}

// Whoever was killed with its leash is not there any more when its team is over: the next one that
// sits down anywhere takes its seat away, and no other.
func TestSweep(t *testing.T) {
	s := newStage(t, "ann")
	seat := s.take("claude")
	sweep := func() bool {
		t.Helper()
		if err := Sweep(s.ctx, s.claude, seats(s.claude)); err != nil {
			t.Fatal(err)
		}
		_, err := os.Stat(seat.file())
		return err != nil
	}
	if seat.Procs.Close(s.ctx); sweep() {
		t.Error("its team is there, and its seat is not")
	}
	again := s.take("claude")
	if err := s.team.Remove(); err != nil {
		t.Fatal(err)
	}
	if sweep() {
		t.Error("the seat is taken from under somebody")
	}
	if again.Procs.Close(s.ctx); !sweep() {
		t.Error("the seat is still there")
	}
	if left, _ := filepath.Glob(filepath.Join(seats(s.claude), "*")); len(left) > 0 {
		t.Errorf("left are %v", left)
	}
}

// One that joined by hand and is killed is off the roster, so that nobody writes to it, and comes
// back under its name; where it was not missed, too. A name that somebody else has it does not get.
func TestKilledAfterJoining(t *testing.T) {
	s := newStage(t, "bob")
	s.kill(s.victim("joined", "joined"))
	s.missed()
	s.eventually("ann is off the roster", func() bool { return !slices.Contains(s.members(), "ann") })
	entry := teamfiles.Member{AgentID: "ann@demo", Name: "ann", AgentType: "general-purpose", JoinedAt: 7,
		Subscriptions: []string{}}
	seat := s.take("claude")
	if err := seat.Join(s.ctx, entry); err != nil {
		t.Error(err)
	}
	seat.Procs.Close(s.ctx) // killed with its leash
	entry.JoinedAt = 8
	again := s.take("claude")
	if err := again.Join(s.ctx, entry); err != nil || len(s.members()) != 3 {
		t.Errorf("it does not come back: %v, %v", err, s.members())
	}
	if err := again.Leave(s.ctx); err != nil {
		t.Error(err)
	}
	stranger := s.take("claude")
	entry.JoinedAt = 9
	if err := stranger.Join(s.ctx, entry); team.CodeOf(err) != team.Taken {
		t.Errorf("it has somebody else's name: %v", err)
	}
}

// A lead that rewrites the roster may lose the entry of a member that joined by hand. It hears of
// its death all the same.
func TestKilledOffTheRoster(t *testing.T) {
	s := newStage(t)
	victim := s.victim("joined", "joined")
	if err := s.team.Leave(s.ctx, "ann"); err != nil {
		t.Fatal(err)
	}
	s.kill(victim)
	s.missed()
}

// The key that a member was given holds for whoever goes on for it, as long as the same lead runs,
// and for nobody else: each teammate has its own.
func TestKeptKey(t *testing.T) {
	s := newStage(t, "ann")
	lead := func(pid int) {
		t.Helper()
		c, err := s.team.Config(s.ctx)
		if err != nil {
			t.Fatal(err)
		}
		c.LeadProcess = &projection.LeadProcess{PID: pid, ClaimedAt: 1, ProcStart: "1"}
		data, err := projection.Encode(c)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(s.claude, "teams", "demo", "config.json"), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const key = "1795216422106.MCowBQYDK2VwAyEAGb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE"
	lead(1)
	seat := s.take("claude")
	if k, err := seat.LeadKey(s.ctx, ""); k != nil || err != nil {
		t.Errorf("before there was one it has %v, %v", k, err)
	}
	if k, err := seat.LeadKey(s.ctx, key); k == nil || err != nil {
		t.Errorf("it takes %v, %v", k, err)
	}
	if _, err := seat.LeadKey(s.ctx, "nonsense"); err == nil {
		t.Error("it takes nonsense for a key")
	}
	other, err := Take(s.ctx, seats(s.claude), s.team, "bob", "claude")
	if err != nil {
		t.Fatal(err)
	}
	if k, err := other.LeadKey(s.ctx, ""); k != nil || err != nil {
		t.Errorf("another has %v, %v", k, err)
	}
	if err := errors.Join(seat.Procs.Close(s.ctx), other.Leave(s.ctx)); err != nil { // as where it was killed
		t.Fatal(err)
	}
	seat = s.take("codex")
	if k, err := seat.LeadKey(s.ctx, ""); k == nil || err != nil {
		t.Errorf("who goes on for it has %v, %v", k, err)
	}
	lead(2)
	if k, err := seat.LeadKey(s.ctx, ""); k != nil || err != nil {
		t.Errorf("of a lead that ended it has %v, %v", k, err)
	}
	lead(1)
	if err := seat.Join(s.ctx, teamfiles.Member{Name: "cyd", JoinedAt: 7}); err != nil {
		t.Fatal(err)
	}
	if k, err := seat.LeadKey(s.ctx, ""); k != nil || err != nil {
		t.Errorf("who joined by hand has %v, %v", k, err)
	}
}
