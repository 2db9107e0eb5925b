package host_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"cadre/internal/agent"
	"cadre/internal/host"
	"cadre/internal/journal/store/filestore"
	"cadre/internal/sys/filelock"
	"cadre/internal/sys/proc"
	"cadre/internal/team"
)

func TestASessionForEveryMember(t *testing.T) {
	t.Parallel()
	s := newStage(t, spawn("ann"), spawn("bob"), &team.SpawnMember{Name: "eve", Agent: team.External})
	s.start("h1", scripted(obedient))
	s.untilStatus("ann", team.Idle)
	s.untilStatus("bob", team.Idle)
	if m := s.member("ann"); m.Host != "h1" || m.Session != "session of ann" || m.Incarnation != 1 {
		t.Errorf("ann is %+v", m)
	}
	if m := s.member("eve"); m.Host != "" {
		t.Errorf("eve, who has no session of ours, is on host %s", m.Host)
	}
	s.do(team.User, spawn("zoe"))
	s.untilStatus("zoe", team.Idle)
	if !host.Hosted(t.Context(), s.shared()) {
		t.Error("Hosted reports no host while one runs")
	}
}

// TestTheEndOfAHost checks that when a host ends its members wait for the next one, unchanged.
func TestTheEndOfAHost(t *testing.T) {
	t.Parallel()
	s := newStage(t, spawn("ann"), &team.CreateTask{Subject: "look"})
	h := s.start("h1", scripted(obedient))
	s.untilStatus("ann", team.Idle)
	s.do("ann", &team.ClaimTask{Task: "1"})
	h.wait()
	s.untilStatus("ann", team.Spawning)
	if m := s.member("ann"); m.Host != "" {
		t.Errorf("ann is still on host %s", m.Host)
	}
	s.until("the task is free", func(st *team.State) bool { return st.Count(team.Pending) == 1 })
	if left, _ := os.ReadDir(s.hosts); len(left) > 0 || host.Hosted(t.Context(), s.shared()) {
		t.Errorf("the host left %v", left)
	}
	s.start("h2", scripted(obedient))
	s.untilStatus("ann", team.Idle)
	if m := s.member("ann"); m.Host != "h2" || m.Incarnation != 2 {
		t.Errorf("ann is %+v", m)
	}
}

// TestEndOfRun checks that a host that ends in order while the team can continue records that its
// members' run ended, and not that a host died.
func TestEndOfRun(t *testing.T) {
	t.Parallel()
	s := newStage(t, spawn("ann"))
	h := s.start("h1", scripted(obedient))
	s.untilStatus("ann", team.Idle)
	h.wait()
	s.untilStatus("ann", team.Spawning)
	if m := s.member("ann"); m.Summary != team.RunEndedReason || m.Host != "" {
		t.Errorf("ann is %+v", m)
	}
}

// stubborn is an agent whose sessions take all the time that they get to end.
type stubborn struct{ scripted }

func (a stubborn) Start(ctx context.Context, spec agent.Spec, t agent.Team) (agent.Session, error) {
	s, err := a.scripted.Start(ctx, spec, t)
	return stubbornSession{s}, err
}

type stubbornSession struct{ agent.Session }

func (s stubbornSession) Stop(ctx context.Context) error {
	<-ctx.Done()
	return s.Session.Stop(ctx)
}

// TestHaste checks that a caller that pauses a team can shorten the end of its sessions. Its
// members are recorded as paused anyway.
func TestHaste(t *testing.T) {
	t.Parallel()
	for _, what := range []string{"hurry", "kill", "kill after hurry"} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			s := newStage(t, spawn("ann"), &team.CreateTask{Subject: "look"})
			hurry, kill := make(chan struct{}), make(chan struct{})
			h := s.start("h1", stubborn{scripted(obedient)}, func(o *host.Options) {
				o.StopGrace, o.Hurry, o.Kill = time.Hour, hurry, kill
			})
			s.untilStatus("ann", team.Idle)
			s.do("ann", &team.ClaimTask{Task: "1"})
			h.pause()
			if strings.Contains(what, "hurry") {
				close(hurry)
			}
			if strings.Contains(what, "kill") {
				close(kill)
			}
			h.ended()
			s.untilStatus("ann", team.Spawning)
			if m := s.member("ann"); m.Summary != team.PausedReason || m.Host != "" {
				t.Errorf("ann is %+v", m)
			}
			s.View(func(st *team.State) {
				found := &team.Outside{Sights: map[string]team.Sight{"ann": {Life: team.LifePaused}}}
				if phase := st.Standing("ann", found); phase != team.Paused || st.Count(team.Pending) != 1 {
					t.Errorf("ann is %s, and %d tasks are pending", phase, st.Count(team.Pending))
				}
			})
			s.start("h2", scripted(obedient))
			s.untilStatus("ann", team.Idle)
		})
	}
}

// TestSessionsThatFail checks that a session that ends by itself has failed, in its own words, and
// is not started again.
func TestSessionsThatFail(t *testing.T) {
	t.Parallel()
	var starts atomic.Int32
	for _, c := range []struct {
		name   string
		agents func(string) agent.Agent
		reason string
	}{
		{"at its start", agents("scripted", unwilling{}), "no key for the model"},
		{"by an error", agents("scripted", scripted(func(s *session) error {
			starts.Add(1)
			s.updates <- agent.Started{}
			return errors.New("the model went away")
		})), "the model went away"},
		{"without one", agents("scripted", scripted(func(*session) error { return nil })), "ended by itself"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newStage(t, spawn("ann"))
			s.start("h1", nil, func(o *host.Options) { o.Agent = c.agents })
			s.untilStatus("ann", team.Failed)
			if m := s.member("ann"); !strings.Contains(m.Summary, c.reason) {
				t.Errorf("it failed because %q", m.Summary)
			}
			told := false
			s.View(func(st *team.State) {
				for _, m := range st.Inbox("lead") {
					told = told || strings.Contains(m.Body, c.reason)
				}
			})
			if !told {
				t.Error("the lead got no message")
			}
		})
	}
	if n := starts.Load(); n != 1 {
		t.Errorf("it was started %d times", n)
	}
}

// TestUnknownAgents checks that a member whose agent a host does not know waits for a host that
// does.
func TestUnknownAgents(t *testing.T) {
	t.Parallel()
	s := newStage(t, spawn("ann"), &team.SpawnMember{Name: "bob", Agent: "other"})
	s.start("h1", scripted(obedient))
	s.untilStatus("ann", team.Idle)
	if m := s.member("bob"); m.Host != "" || m.Status != team.Spawning {
		t.Errorf("bob is %+v", m)
	}
	s.start("h2", nil, func(o *host.Options) { o.Agent = agents("other", scripted(obedient)) })
	s.untilStatus("bob", team.Idle)
	if ann, bob := s.member("ann"), s.member("bob"); ann.Host != "h1" || bob.Host != "h2" {
		t.Errorf("ann is on %s and bob on %s", ann.Host, bob.Host)
	}
}

type unwilling struct{}

func (unwilling) Start(context.Context, agent.Spec, agent.Team) (agent.Session, error) {
	return nil, &agent.Problem{Kind: agent.ProblemLogin, Text: "no key for the model"}
}

// TestDelivery checks that a message counts as delivered once the session has it, not before.
func TestDelivery(t *testing.T) {
	t.Parallel()
	got := make(chan []team.Message)
	take := make(chan struct{})
	s := newStage(t, spawn("ann"))
	s.start("h1", scripted(func(s *session) error {
		s.updates <- agent.Started{}
		for {
			select {
			case <-take:
				select {
				case mail := <-s.mail:
					got <- mail
				case <-s.stop:
					return nil
				}
			case <-s.stop:
				return nil
			}
		}
	}))
	s.untilStatus("ann", team.Active)
	s.do("lead", &team.SendMessage{To: "ann", Body: "one"})
	s.do("lead", &team.SendMessage{To: "ann", Body: "two"})
	if m := s.member("ann"); len(m.Inbox) != 2 || m.DeliveredSeq != 0 {
		t.Errorf("before she took her mail ann has %v, delivered %d", m.Inbox, m.DeliveredSeq)
	}
	var bodies []string
	for len(bodies) < 2 {
		take <- struct{}{}
		for _, m := range <-got {
			bodies = append(bodies, m.Body)
		}
	}
	if strings.Join(bodies, " ") != "one two" {
		t.Errorf("she was given %v", bodies)
	}
	s.until("both are delivered", func(st *team.State) bool {
		m, _ := st.Member("ann")
		return len(m.Inbox) == 0 && m.DeliveredSeq == 2
	})
}

// TestWork checks that an idle session is told once of a task that it could take.
func TestWork(t *testing.T) {
	t.Parallel()
	woken := make(chan struct{})
	s := newStage(t, spawn("ann"))
	s.start("h1", scripted(func(s *session) error {
		s.updates <- agent.Started{}
		s.updates <- agent.TurnEnded{}
		for {
			select {
			case <-s.wake:
				woken <- struct{}{}
			case <-s.stop:
				return nil
			}
		}
	}))
	s.untilStatus("ann", team.Idle)
	s.do(team.User, &team.CreateTask{Subject: "look"})
	<-woken
	s.do(team.User, &team.CreateTask{Subject: "for the lead", Owner: "lead"})
	select {
	case <-woken:
		t.Error("the session was woken twice for one task; want once")
	default:
	}
	s.do("ann", &team.ClaimTask{})
}

// TestWorkThatWasRefused checks that a worker that was not allowed to start a task is asked again
// when it may.
func TestWorkThatWasRefused(t *testing.T) {
	t.Parallel()
	s := newStage(t, spawn("ann"))
	asked, claims, tried := make(chan struct{}), make(chan team.Body), make(chan error)
	s.start("h1", scripted(func(s *session) error {
		s.updates <- agent.Started{}
		s.updates <- agent.TurnEnded{}
		for {
			select {
			case <-s.wake:
				asked <- struct{}{}
				_, err := s.Do(context.Background(), <-claims)
				tried <- err
				if err == nil { // it works on its task
					<-s.stop
					return nil
				}
				s.updates <- agent.TurnEnded{}
			case <-s.stop:
				return nil
			}
		}
	}))
	s.untilStatus("ann", team.Idle)
	s.do(team.User, &team.CreateTask{Subject: "look"})
	try := func(meanwhile team.Body) error {
		t.Helper()
		select {
		case <-asked:
		case <-time.After(20 * time.Second):
			t.Fatal("the session was not asked to end within 20 s")
		}
		if meanwhile != nil {
			s.do(team.User, meanwhile)
		}
		claims <- &team.ClaimTask{}
		return <-tried
	}
	if err := try(&team.SetStatus{Status: team.TeamConsolidating}); team.CodeOf(err) != team.NotReady {
		t.Fatal(err)
	}
	s.do(team.User, &team.SetStatus{Status: team.TeamActive})
	if err := try(nil); err != nil {
		t.Error(err)
	}
}

func TestShutdown(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		answer bool
		atMost time.Duration
	}{{"agreed", true, 5 * time.Second}, {"at the deadline", false, time.Second}} {
		t.Run(c.name, func(t *testing.T) {
			grace := make(chan time.Duration, 1)
			s := newStage(t, spawn("ann"))
			h := s.start("h1", scripted(func(s *session) error {
				s.updates <- agent.Started{}
				for {
					select {
					case mail := <-s.mail:
						if c.answer {
							if _, err := s.Do(context.Background(), &team.AnswerShutdown{Request: mail[0].Ref,
								Approved: true}); err != nil {
								return err
							}
						}
					case <-s.stop:
						grace <- s.grace
						return nil
					}
				}
			}), func(o *host.Options) { o.UntilIdle = true })
			s.untilStatus("ann", team.Active)
			deadline := team.Time(time.Now().UnixMilli()) + 100
			if c.answer {
				deadline += 60_000
			}
			s.do("lead", &team.RequestShutdown{Member: "ann", Deadline: deadline})
			s.untilStatus("ann", team.Stopped)
			if g := <-grace; g <= 0 || g > c.atMost {
				t.Errorf("the session had %s to end", g)
			}
			h.ended() // it has no work left
		})
	}
}

// TestTheEndOfATeam checks that the end of the team ends its host and every session.
func TestTheEndOfATeam(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]team.Body{"aborted": &team.SetStatus{Status: team.TeamAborted},
		"cleaned up": &team.CleanUp{Force: true}} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t, spawn("ann"))
			h := s.start("h1", scripted(obedient))
			s.untilStatus("ann", team.Idle)
			s.do(team.User, end)
			h.ended()
		})
	}
}

// TestASpentBudgetBeforeTheSession checks that a host gives a member back if the budget was spent
// after it took the member and before it started the session. A run would wait for that session's
// end for ever.
func TestASpentBudgetBeforeTheSession(t *testing.T) {
	t.Parallel()
	s := newStage(t, spawn("ann"), &team.SetBudget{Budget: team.Budget{Tokens: 100}})
	s.do(team.Host("h1"), &team.AttachMember{Member: "ann"})
	s.do(team.Host("h1"), &team.ReportUsage{Member: "ann", Usage: team.Usage{InputTokens: 101}})
	if what := s.Team().Exhausted; what == "" {
		t.Fatal("the budget is not spent")
	}
	s.start("h1", scripted(obedient))
	s.until("ann is given back", func(st *team.State) bool {
		m, _ := st.Member("ann")
		return m.Host == ""
	})
}

func TestASpentBudgetEndsSessions(t *testing.T) {
	t.Parallel()
	s := newStage(t, spawn("ann"), &team.SetBudget{Budget: team.Budget{Tokens: 100}})
	h := s.start("h1", scripted(func(s *session) error {
		s.updates <- agent.Started{}
		s.updates <- agent.Used{Usage: team.Usage{InputTokens: 101}}
		<-s.stop
		return nil
	}), func(o *host.Options) { o.UntilIdle = true })
	h.ended()
	if m := s.member("ann"); m.Host != "" || !m.Status.Running() {
		t.Errorf("ann is %s on host %q", m.Status, m.Host)
	}
}

// TestOneHostPerMember checks that of several hosts one has the member. When that host is dead,
// another one takes the member.
func TestOneHostPerMember(t *testing.T) {
	t.Parallel()
	var running, most atomic.Int32
	one := scripted(func(s *session) error {
		most.Store(max(most.Load(), running.Add(1)))
		defer running.Add(-1)
		return obedient(s)
	})
	s := newStage(t, spawn("ann"))
	dead, _, err := host.Enroll(t.Context(), s.shared(), s.hosts, "h0")
	if err != nil {
		t.Fatal(err)
	}
	s.do(team.Host("h0"), &team.AttachMember{Member: "ann"})
	hosts := []*hosted{s.start("h1", one), s.start("h2", one), s.start("h3", one)}
	for _, id := range []string{"h1", "h2", "h3"} {
		if !filelock.Held(filepath.Join(s.hosts, id, proc.AliveFile)) {
			t.Fatalf("%s does not live", id)
		}
	}
	if m := s.member("ann"); m.Host != "h0" {
		t.Errorf("ann was taken from a living host by %s", m.Host)
	}
	if err := dead.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	for range hosts {
		was := s.member("ann").Host
		s.until("another host has ann", func(st *team.State) bool {
			m, _ := st.Member("ann")
			return m.Status == team.Idle && m.Host != was
		})
		n := s.member("ann").Host[1] - '1'
		hosts[n].wait()
	}
	if most.Load() != 1 {
		t.Errorf("ann had %d sessions at once", most.Load())
	}
	if _, err := os.Stat(filepath.Join(s.hosts, "h0")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the folder of the dead host is left: %v", err)
	}
}

// TestALostLease checks that a session that lost its lease is ended, and does nothing more in the
// team.
func TestALostLease(t *testing.T) {
	t.Parallel()
	s := newStage(t, spawn("ann"))
	s.start("h1", scripted(obedient))
	s.untilStatus("ann", team.Idle)
	other, _, err := host.Enroll(t.Context(), s.shared(), s.hosts, "h9")
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close(t.Context())
	s.do(team.Host("h9"), &team.AttachMember{Member: "ann", From: "h1"}) // it believed that h1 was dead
	seq := s.Seq()
	s.do(team.Host("h9"), &team.ReportStarted{Member: "ann"})
	if m := s.member("ann"); m.Host != "h9" || m.Incarnation != 2 {
		t.Errorf("ann is %+v", m)
	}
	for r, err := range s.Read(t.Context(), seq) {
		if err == nil && r.Actor == team.Host("h1") {
			t.Errorf("the host that lost her reported %+v", r)
		}
	}
}

func TestSettle(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	hosts, leases := filepath.Join(dir, "hosts"), filestore.Team(dir)
	log := func(string) {}
	if err := host.Settle(t.Context(), leases, hosts, "", log); err != nil {
		t.Errorf("without a host: %v", err)
	}
	procs, _, err := host.Enroll(t.Context(), leases, hosts, "h1")
	if err != nil {
		t.Fatal(err)
	}
	command, err := procs.Start(proc.Cmd{Args: []string{"sleep", "100"}, Member: "ann"})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	want := fmt.Sprintf("a host is still running: ann (process %d)", command.Pid())
	if err := host.Settle(ctx, leases, hosts, "", log); err == nil || err.Error() != want {
		t.Errorf("Settle returned %v, want %s", err, want)
	}
	if err := host.Clear(t.Context(), hosts, log); err != nil || !host.Hosted(t.Context(), leases) {
		t.Errorf("a living host was cleared away: %v", err)
	}
	if err := procs.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := host.Settle(t.Context(), leases, hosts, "", log); err != nil {
		t.Error(err)
	}
	if left, _ := os.ReadDir(hosts); len(left) > 0 {
		t.Errorf("%v are left", left)
	}
}
