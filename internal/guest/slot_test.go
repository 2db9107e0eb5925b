package guest

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

// takeSlot takes ann's slot.
func (s *stage) takeSlot(agent string) *Slot {
	s.t.Helper()
	slot, err := TakeSlot(s.ctx, slots(s.claude), s.team, "ann", agent)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { slot.Leave(s.ctx) })
	return slot
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

// missed waits until the lead is told that ann was killed.
func (s *stage) missed() {
	s.t.Helper()
	s.hears("that ann was killed", func(e teamfiles.Entry) bool {
		idle, ok := teamfiles.Parse(e.Text).(*teamfiles.Idle)
		return ok && idle.Reason == "failed" && strings.Contains(idle.Result, "ann was killed") &&
			strings.Contains(idle.Result, "start it")
	})
}

// TestKilledAtWork checks that the lead is notified of a killed member. A successor resumes its
// session, learns of the interruption, and has each message once.
func TestKilledAtWork(t *testing.T) {
	s := newStage(t, "ann", "bob")
	s.say(teamfiles.Lead, "You look after the port.")
	victim := s.victim("busy", "given")
	there := &Slot{dir: filepath.Join(slots(s.claude), "demo", "ann")}
	s.eventually("it works", func() bool { return there.previous().Working })
	s.kill(victim)
	s.missed()
	s.eventually("it is not active", func() bool {
		c, err := s.team.Config(s.ctx)
		return err == nil && c.Members[1].IsActive != nil && !*c.Members[1].IsActive
	})
	s.say("bob", "which port is it?") // no member is running
	s.say("bob", "which was it again?")
	waiting, err := s.team.Waiting(s.ctx, "ann")
	if err != nil || len(waiting) < 2 {
		t.Fatal(waiting, err)
	}
	prompted := make(chan string, 8)
	after := actor(func(a *act, p agent.Prompt) { prompted <- a.spec.Resume + ": " + p.Text; a.says("ok") })
	after.seen = []int64{0, number(waiting[len(waiting)-2])} // it was killed while it acknowledged that entry
	slot := s.takeSlot("claude")
	s.work(after, func(o *Options) { o.Slot = slot })
	next := func() string {
		t.Helper()
		select {
		case got := <-prompted:
			return got
		case <-s.ctx.Done():
			t.Fatal("it gets no prompt")
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

// TestSlot checks that another agent under the name of a killed one starts over, and so does one in
// another team of that name. A running occupant is not disturbed, and one that leaves removes its
// slot.
func TestSlot(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it waits for two handovers; not with -short")
	}
	s := newStage(t, "ann")
	first := s.takeSlot("claude")
	if err := first.keep("one", true); err != nil {
		t.Fatal(err)
	}
	// This call is too late: the slot is occupied again.
	if err := ReportKilled(s.ctx, s.claude, slots(s.claude), "demo", "ann", "x"); err != nil {
		t.Error(err)
	}
	if _, err := TakeSlot(s.ctx, slots(s.claude), s.team, "ann", "claude"); team.CodeOf(err) != team.Taken {
		t.Errorf("the slot has two occupants: %v", err)
	}
	first.Procs.Close(s.ctx) // killed
	if again := s.takeSlot("claude"); again.occupant.Session != "one" || !again.cutOff {
		t.Errorf("it continues for %+v", again.occupant)
	} else {
		again.Procs.Close(s.ctx)
	}
	other := s.takeSlot("codex")
	if other.occupant.Session != "" || other.cutOff {
		t.Errorf("another agent continues for %+v", other.occupant)
	}
	if waiting, err := s.team.Waiting(s.ctx, teamfiles.Lead); err != nil || len(waiting) > 0 {
		t.Errorf("the lead got %v, %v", waiting, err)
	}
	if err := other.Leave(s.ctx); err != nil {
		t.Error(err)
	}
	if left, _ := filepath.Glob(filepath.Join(slots(s.claude), "*")); len(left) > 0 {
		t.Errorf("left are %v", left)
	}
}

// TestSweep checks a member that was killed together with its watchdog. Once its team has ended,
// the next member that takes any slot removes the abandoned slot, and no other.
func TestSweep(t *testing.T) {
	t.Parallel()
	s := newStage(t, "ann")
	slot := s.takeSlot("claude")
	sweep := func() bool {
		t.Helper()
		if err := Sweep(s.ctx, s.claude, slots(s.claude)); err != nil {
			t.Fatal(err)
		}
		_, err := os.Stat(slot.file())
		return err != nil
	}
	if slot.Procs.Close(s.ctx); sweep() {
		t.Error("its team exists, and its slot does not")
	}
	again := s.takeSlot("claude")
	if err := s.team.Remove(); err != nil {
		t.Fatal(err)
	}
	if sweep() {
		t.Error("an occupied slot was removed")
	}
	if again.Procs.Close(s.ctx); !sweep() {
		t.Error("the slot is still there")
	}
	if left, _ := filepath.Glob(filepath.Join(slots(s.claude), "*")); len(left) > 0 {
		t.Errorf("left are %v", left)
	}
}

// TestKilledAfterJoining checks a member that joined by hand and was killed. It is taken off the
// roster, so that no member writes to it, and can come back under its name, even without its
// watchdog. It does not get a name that another member has.
func TestKilledAfterJoining(t *testing.T) {
	s := newStage(t, "bob")
	s.kill(s.victim("joined", "joined"))
	s.missed()
	s.eventually("ann is off the roster", func() bool { return !slices.Contains(s.members(), "ann") })
	entry := teamfiles.Member{AgentID: "ann@demo", Name: "ann", AgentType: "general-purpose", JoinedAt: 7,
		Subscriptions: []string{}}
	slot := s.takeSlot("claude")
	if err := slot.Join(s.ctx, entry); err != nil {
		t.Error(err)
	}
	slot.Procs.Close(s.ctx) // killed with its watchdog
	entry.JoinedAt = 8
	again := s.takeSlot("claude")
	if err := again.Join(s.ctx, entry); err != nil || len(s.members()) != 3 {
		t.Errorf("it does not come back: %v, %v", err, s.members())
	}
	if err := again.Leave(s.ctx); err != nil {
		t.Error(err)
	}
	stranger := s.takeSlot("claude")
	entry.JoinedAt = 9
	if err := stranger.Join(s.ctx, entry); team.CodeOf(err) != team.Taken {
		t.Errorf("it has another member's name: %v", err)
	}
}

// TestKilledOffTheRoster checks that the lead is notified of a kill even if it lost the entry of a
// member that joined by hand.
func TestKilledOffTheRoster(t *testing.T) {
	s := newStage(t)
	victim := s.victim("joined", "joined")
	if err := s.team.Leave(s.ctx, "ann"); err != nil {
		t.Fatal(err)
	}
	s.kill(victim)
	s.missed()
}

// TestKeptKey checks that a successor can use a member's key as long as the same lead process runs,
// and that no other member can: each teammate has its own key.
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
	slot := s.takeSlot("claude")
	if k, err := slot.LeadKey(s.ctx, ""); k != nil || err != nil {
		t.Errorf("before there was one it has %v, %v", k, err)
	}
	if k, err := slot.LeadKey(s.ctx, key); k == nil || err != nil {
		t.Errorf("it takes %v, %v", k, err)
	}
	if _, err := slot.LeadKey(s.ctx, "nonsense"); err == nil {
		t.Error("it accepts nonsense as a key")
	}
	other, err := TakeSlot(s.ctx, slots(s.claude), s.team, "bob", "claude")
	if err != nil {
		t.Fatal(err)
	}
	if k, err := other.LeadKey(s.ctx, ""); k != nil || err != nil {
		t.Errorf("another has %v, %v", k, err)
	}
	if err := errors.Join(slot.Procs.Close(s.ctx), other.Leave(s.ctx)); err != nil { // as where it was killed
		t.Fatal(err)
	}
	slot = s.takeSlot("codex")
	if k, err := slot.LeadKey(s.ctx, ""); k == nil || err != nil {
		t.Errorf("its successor has %v, %v", k, err)
	}
	lead(2)
	if k, err := slot.LeadKey(s.ctx, ""); k != nil || err != nil {
		t.Errorf("of a lead that ended it has %v, %v", k, err)
	}
	lead(1)
	if err := slot.Join(s.ctx, teamfiles.Member{Name: "cyd", JoinedAt: 7}); err != nil {
		t.Fatal(err)
	}
	if k, err := slot.LeadKey(s.ctx, ""); k != nil || err != nil {
		t.Errorf("who joined by hand has %v, %v", k, err)
	}
}
