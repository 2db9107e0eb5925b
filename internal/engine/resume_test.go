package engine_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"cadre/internal/consolidate"
	"cadre/internal/engine"
	"cadre/internal/engine/upkeep"
	"cadre/internal/host"
	"cadre/internal/replica"
	"cadre/internal/team"
	"cadre/internal/testkit/soak"
)

// resume resumes the team demo, up to the point where a process has to stay.
func (l *lab) resume(of *engine.Team, how upkeep.Takeover) (engine.Continuation, error) {
	l.t.Helper()
	found, err := of.Prepare(within(l.t), upkeep.Resumption{})
	if err != nil {
		l.t.Fatal(err)
	}
	return of.Continue(within(l.t), found, how)
}

// TestHostThatIsAboutToEnd: a host that is about to end starts no more sessions. A new host
// replaces it after its end, whether a member needs a session or a budget was raised.
func TestHostThatIsAboutToEnd(t *testing.T) {
	soak.Long(t)
	t.Parallel()
	for name, need := range map[string]func(*engine.Team) error{
		"a session": func(of *engine.Team) error { return of.EnsureHost(within(t), "ann") },
		"a budget": func(of *engine.Team) error {
			started, _, err := of.Rehost(within(t))
			if err == nil && !started {
				err = errors.New("no host was started")
			}
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t)
			l.create(ann)
			of := l.open()
			ending, _, err := host.Enroll(t.Context(), of.Shared(), of.Hosts(), "ending")
			if err != nil {
				t.Fatal(err)
			}
			result := make(chan error, 1)
			go func() { result <- need(of) }()
			select {
			case err := <-result:
				t.Fatalf("it did not wait for the end of the host: %v", err)
			case <-time.After(300 * time.Millisecond):
			}
			if err := ending.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := <-result; err != nil {
				t.Error(err)
			}
			until(t, of, func(s *team.State) bool { m, _ := s.Member("ann"); return m.Host != "" })
			l.do(of, team.User, &team.RequestShutdown{Member: "ann"})
			until(t, of, func(s *team.State) bool { m, _ := s.Member("ann"); return !m.Status.Running() })
			eventually(t, "the host ends", func() bool { return !of.Hosted(t.Context()) })
		})
	}
}

// TestContinueByHand: a team that a person leads by commands is theirs again, and its sessions run
// in the background.
func TestContinueByHand(t *testing.T) {
	soak.Long(t)
	t.Parallel()
	l := newLab(t)
	l.create(ann)
	of := l.open()
	if continues, err := l.resume(of, upkeep.LeaveIt); err != nil || continues != engine.LedByHand {
		t.Fatalf("%v, %v", continues, err)
	}
	l.unled(of)
	if of.Team().LeadSession != team.User || !of.Hosted(t.Context()) {
		t.Errorf("%q leads; a host runs: %v", of.Team().LeadSession, of.Hosted(t.Context()))
	}
	l.endBackground(of, "ann")
}

// endBackground ends the member, and waits for its host.
func (l *lab) endBackground(of *engine.Team, name string) {
	l.t.Helper()
	l.do(of, "lead", &team.RequestShutdown{Member: name})
	eventually(l.t, "the host in the background ends", func() bool { return len(names(of.Hosts())) == 0 })
}

// TestContinueBesideALead: a running lead keeps the lead. If only the host of its teammates has
// ended, they get another.
func TestContinueBesideALead(t *testing.T) {
	soak.Long(t)
	t.Parallel()
	l := newLab(t)
	l.create(ann)
	l.host(l.open(), engine.HostOptions{}).End() // like a host that died after it had returned ann's lease
	lead := l.attend(l.open(), "")
	of := l.open()
	session := of.Team().LeadSession
	if continues, err := l.resume(of, upkeep.LeaveIt); err != nil || continues != engine.Rehosted {
		t.Fatalf("%v, %v", continues, err)
	}
	if now := of.Team().LeadSession; now != session || !of.Hosted(t.Context()) {
		t.Errorf("%s leads, and not %s; a host runs: %v", now, session, of.Hosted(t.Context()))
	}
	var led *upkeep.LedError
	if _, err := l.resume(of, upkeep.LeaveIt); !errors.As(err, &led) || team.CodeOf(err) != team.NotReady {
		t.Errorf("once it has a host: %v", err)
	}
	if continues, err := l.resume(of, upkeep.TakeIt); err != nil || continues != engine.LedByHand {
		t.Errorf("taken over: %v, %v", continues, err)
	}
	if err := lead.leave(); team.CodeOf(err) != team.Conflict {
		t.Errorf("who led ends with %v", err)
	}
	l.endBackground(of, "ann")
}

// TestContinueARun: a team of a run is left to a run, which takes the lead itself.
func TestContinueARun(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	at := replica.Now()
	if err := l.Create("demo", []team.Command{
		{ID: "1", Actor: team.User, At: at, Body: &team.CreateTeam{TeamID: "demo-1", Name: "demo", Dir: l.project,
			Origin: "/team.yaml", OriginDigest: "x"}},
		{ID: "2", Actor: team.User, At: at, Body: ann}}); err != nil {
		t.Fatal(err)
	}
	of := l.open()
	if continues, err := l.resume(of, upkeep.LeaveIt); err != nil || continues != engine.NeedsRun {
		t.Fatalf("%v, %v", continues, err)
	}
	l.unled(of)
	if of.Hosted(t.Context()) {
		t.Error("a host was started")
	}
}

// TestContinueAConsolidation: after an interrupted consolidation, only the consolidation continues:
// the team gets no lead, and no session starts. The same holds for a complete team if the record of
// its completion is missing, which the consolidation writes.
func TestContinueAConsolidation(t *testing.T) {
	soak.Long(t)
	t.Parallel()
	l := newLab(t)
	l.create(&team.SpawnMember{Name: "eve", Agent: team.External})
	of := l.open()
	l.do(of, team.User, &team.Consolidate{})
	consolidates := func() {
		t.Helper()
		if continues, err := l.resume(of, upkeep.TakeIt); err != nil || continues != engine.Consolidates {
			t.Fatalf("%v, %v", continues, err)
		}
		l.unled(of)
		if of.Team().LeadSession != "" || of.Hosted(t.Context()) {
			t.Errorf("%q leads; a host runs: %v", of.Team().LeadSession, of.Hosted(t.Context()))
		}
	}
	consolidates()
	seal := func() {
		t.Helper()
		if _, err := of.Consolidate(within(t), consolidate.Options{Actor: team.User}); err != nil {
			t.Fatal(err)
		}
	}
	seal()
	if _, err := of.Prepare(within(t), upkeep.Resumption{}); team.CodeOf(err) != team.Finished {
		t.Errorf("once it is consolidated: %v", err)
	}
	record := filepath.Join(of.Dir, consolidate.RecordFile)
	if err := os.Remove(record); err != nil { // as if it was killed before it wrote that
		t.Fatal(err)
	}
	consolidates()
	seal()
	if _, err := os.Stat(record); err != nil {
		t.Error(err)
	}
}

// TestAwaitEnd: without a running host, the waiting caller ends the member itself. It does not wait
// for a member whose request was withdrawn.
func TestAwaitEnd(t *testing.T) {
	soak.Long(t)
	t.Parallel()
	l := newLab(t)
	l.create(ann, &team.SpawnMember{Name: "bob", Agent: team.Shell},
		&team.SpawnMember{Name: "eve", Agent: team.External}, &team.SpawnMember{Name: "kim", Agent: team.External})
	of := l.open()
	end := func(name string, deadline time.Duration) (team.Member, error) {
		t.Helper()
		after := of.Seq()
		l.do(of, "lead", &team.RequestShutdown{Member: name, Deadline: replica.Now() +
			team.Time(deadline.Milliseconds())})
		if name == "kim" {
			l.do(of, "lead", &team.WithdrawShutdown{Member: "kim"})
		}
		return of.AwaitEnd(within(t), name, after, func(m team.Member, reason string) {
			t.Errorf("%s refuses: %s", m.Name, reason)
		})
	}
	if m, err := end("ann", time.Hour); err != nil || m.Status.Running() { // it was never hosted
		t.Errorf("ann: %s, %v", m.Status, err)
	}
	if m, err := end("eve", 300*time.Millisecond); err != nil || m.Status.Running() { // no session answers
		t.Errorf("eve: %s, %v", m.Status, err)
	}
	if _, err := end("kim", time.Hour); !errors.Is(err, engine.ErrWithdrawn) {
		t.Errorf("kim: %v", err)
	}
	h := l.host(of, engine.HostOptions{})
	if m, err := end("bob", time.Hour); err != nil || m.Status.Running() { // its host ends it
		t.Errorf("bob: %s, %v", m.Status, err)
	}
	if err := h.End(); err != nil {
		t.Error(err)
	}
}

// TestAwaitEndOfWhoRefuses: a refusal is reported once, with its reason, and the member still ends
// at the deadline.
func TestAwaitEndOfWhoRefuses(t *testing.T) {
	soak.Long(t)
	t.Parallel()
	l := newLab(t)
	l.create(&team.SpawnMember{Name: "eve", Agent: team.External})
	of := l.open()
	after := of.Seq()
	l.do(of, "lead", &team.RequestShutdown{Member: "eve", Deadline: replica.Now() + 700})
	request := ""
	of.View(func(s *team.State) { m, _ := s.Member("eve"); request = m.Shutdown.Request })
	l.do(of, "eve", &team.AnswerShutdown{Request: request, Reason: "busy"})
	var refused []string
	m, err := of.AwaitEnd(within(t), "eve", after, func(m team.Member, reason string) {
		refused = append(refused, m.Name+" is "+reason)
	})
	if err != nil || m.Status.Running() || len(refused) != 1 || refused[0] != "eve is busy" {
		t.Errorf("%s, %v; refused: %q", m.Status, err, refused)
	}
}
