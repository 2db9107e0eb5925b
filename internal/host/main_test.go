package host_test

import (
	"cmp"
	"context"
	"errors"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"cadre/internal/agent"
	"cadre/internal/host"
	"cadre/internal/journal/memjournal"
	"cadre/internal/journal/store"
	"cadre/internal/journal/store/filestore"
	"cadre/internal/replica"
	"cadre/internal/team"
	"cadre/internal/testkit/postgrestest"
	"cadre/internal/testkit/soak"
)

func TestMain(m *testing.M) {
	soak.Beside(16)
	soak.InMemory()
	goleak.VerifyTestMain(stopping{m})
}

// stopping are tests that stop their database at the end.
type stopping struct{ *testing.M }

func (s stopping) Run() int {
	defer postgrestest.Stop()
	return s.M.Run()
}

// scripted is an agent whose sessions follow a script. A session has ended when its script returns;
// the error is the reason.
type scripted func(s *session) error

func (a scripted) Start(_ context.Context, spec agent.Spec, d agent.Team) (agent.Session, error) {
	return start(a, spec, d), nil
}

// TakesTasks says that a script finds its tasks by itself.
func (scripted) TakesTasks() {}

// model is a scripted agent that is told of its tasks, like agents with a model.
type model func(s *session) error

func (a model) Start(_ context.Context, spec agent.Spec, d agent.Team) (agent.Session, error) {
	return start(a, spec, d), nil
}

func start(script func(*session) error, spec agent.Spec, d agent.Team) *session {
	s := &session{Spec: spec, Team: d, updates: make(chan agent.Update), wake: make(chan struct{}, 8),
		mail: make(chan []team.Message), prompts: make(chan agent.Prompt, 8),
		stop: make(chan struct{}), done: make(chan struct{}), taken: make(chan string, 8),
		may: make(chan agent.Access, 8), cuts: make(chan struct{}, 8)}
	over := make(chan struct{})
	var acknowledging sync.WaitGroup
	acknowledging.Go(func() {
		for {
			select {
			case id := <-s.taken:
				select {
				case s.updates <- agent.Received{ID: id}:
				case <-over:
				}
			case <-over:
				return
			}
		}
	})
	go func() {
		defer close(s.done)
		defer close(s.updates)
		err := script(s)
		close(over)
		acknowledging.Wait()
		s.updates <- agent.Ended{Err: err}
	}()
	return s
}

type session struct {
	agent.Spec
	agent.Team
	updates chan agent.Update
	wake    chan struct{}
	mail    chan []team.Message // taken by the script; Give waits for that
	prompts chan agent.Prompt   // of a model: prompts that it must acknowledge
	taken   chan string         // ids of the prompts that the script has
	may     chan agent.Access   // access that it was granted
	cuts    chan struct{}       // interrupts of its turn
	refuses error               // its answer to that; nil for ErrUnsupported
	started chan agent.Started  // of a model: how it starts
	end     chan error          // of a model: it ends by itself
	stop    chan struct{}       // closed by Stop
	done    chan struct{}
	grace   time.Duration // that Stop was given
}

func (s *session) Updates() <-chan agent.Update { return s.updates }

func (s *session) Interrupt(context.Context) error {
	s.cuts <- struct{}{}
	return nil
}

func (s *session) SetAccess(_ context.Context, a agent.Access) error {
	s.may <- a
	return cmp.Or(s.refuses, errors.ErrUnsupported)
}

// allowed returns the next access that the session was granted.
func (s *session) allowed(t *testing.T) agent.Access {
	t.Helper()
	select {
	case a := <-s.may:
		return a
	case <-time.After(10 * time.Second):
		t.Fatal("the session got no new access within 10 s")
		return agent.Access{}
	}
}

func (s *session) Give(ctx context.Context, p agent.Prompt) error {
	if s.Tools != nil {
		s.prompts <- p
		return nil
	}
	if len(p.Mail) == 0 {
		s.wake <- struct{}{}
		s.taken <- p.ID
		return nil
	}
	select {
	case s.mail <- p.Mail:
		s.taken <- p.ID
		return nil
	case <-s.done:
		return errors.New("the session is over")
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s *session) Stop(ctx context.Context) error {
	if until, ok := ctx.Deadline(); ok {
		s.grace = time.Until(until)
	}
	close(s.stop)
	<-s.done
	return nil
}

// obedient starts, idles, and ends when asked.
func obedient(s *session) error {
	s.updates <- agent.Started{Session: "session of " + s.Member}
	s.updates <- agent.TurnEnded{}
	<-s.stop
	return nil
}

// stage is a team in memory, and the folder of its hosts on disk.
type stage struct {
	t     *testing.T
	team  *memjournal.Store
	hosts string
	*replica.Replica
}

func newStage(t *testing.T, bodies ...team.Body) *stage {
	t.Helper()
	return newStageOf(t, append([]team.Body{&team.CreateTeam{TeamID: "demo-1", Name: "demo", Dir: t.TempDir()}},
		bodies...)...)
}

func newStageOf(t *testing.T, bodies ...team.Body) *stage {
	t.Helper()
	s := &stage{t: t, team: memjournal.New("demo"), hosts: filepath.Join(t.TempDir(), "hosts")}
	s.Replica = s.open()
	for _, body := range bodies {
		s.do(team.User, body)
	}
	return s
}

// shared is what the processes of the team share.
func (s *stage) shared() filestore.Team { return filestore.Team(filepath.Dir(s.hosts)) }

// open opens one more replica on the team, as another process would.
func (s *stage) open() *replica.Replica {
	s.t.Helper()
	rep, err := replica.Open(s.t.Context(), s.team.Open(), replica.Options{})
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { rep.Close() })
	return rep
}

func (s *stage) do(actor string, body team.Body) *team.Record {
	s.t.Helper()
	r, err := s.Do(s.t.Context(), team.Command{Actor: actor, Body: body})
	if err != nil {
		s.t.Fatal(err)
	}
	return r.Record
}

// hosted is a running host.
type hosted struct {
	t     *testing.T
	end   context.CancelFunc
	pause context.CancelFunc // ends it for a team that is resumed later
	over  chan error
}

// start starts a host with that id, whose members all have the agent.
func (s *stage) start(id string, a agent.Agent, change ...func(*host.Options)) *hosted {
	s.t.Helper()
	return s.startIn(s.shared(), id, a, change...)
}

// startIn does the same, with what the processes share elsewhere.
func (s *stage) startIn(shared store.Team, id string, a agent.Agent, change ...func(*host.Options)) *hosted {
	s.t.Helper()
	procs, lease, err := host.Enroll(s.t.Context(), shared, s.hosts, id)
	if err != nil {
		s.t.Fatal(err)
	}
	o := host.Options{Replica: s.open(), Agent: agents("scripted", a), Hosts: s.hosts, Procs: procs,
		Lease: lease, ID: id, Machine: host.Machine{Shared: shared},
		Log: func(text string) { s.t.Log(id + ": " + text) }}
	for _, c := range change {
		c(&o)
	}
	ctx, end := context.WithCancelCause(context.Background())
	h := &hosted{t: s.t, end: func() { end(nil) }, pause: func() { end(host.ErrPaused) }, over: make(chan error, 1)}
	go func() { h.over <- host.New(o).Run(ctx) }()
	s.t.Cleanup(func() { h.wait() })
	return h
}

// wait ends the host, unless it has ended by itself, and waits for its end.
func (h *hosted) wait() {
	h.end()
	h.ended()
}

func (h *hosted) ended() {
	h.t.Helper()
	select {
	case err := <-h.over:
		if err != nil {
			h.t.Errorf("the host: %v", err)
		}
		h.over <- nil
	case <-time.After(20 * time.Second):
		h.t.Fatal("the host did not end within 20 s")
	}
}

// until waits until the condition holds for the team. It fails if nothing is recorded for twenty
// seconds: on a busy machine, a test that runs git a hundred times takes longer than that.
func (s *stage) until(what string, holds func(*team.State) bool) {
	s.t.Helper()
	all, cancel := context.WithTimeout(s.t.Context(), 3*time.Minute)
	defer cancel()
	for {
		var ok bool
		seq := s.Seq()
		s.View(func(st *team.State) { ok = holds(st) })
		if ok {
			return
		}
		ctx, cancel := context.WithTimeout(all, 20*time.Second)
		err := s.Wait(ctx, seq)
		cancel()
		if err != nil {
			s.t.Fatalf("still not: %s", what)
		}
	}
}

// member returns the member as this replica saw it last.
func (s *stage) member(name string) (m team.Member) {
	s.View(func(st *team.State) { m, _ = st.Member(name) })
	return m
}

func (s *stage) untilStatus(name string, status team.MemberStatus) {
	s.t.Helper()
	s.until(name+" is "+string(status), func(st *team.State) bool {
		m, _ := st.Member(name)
		return m.Status == status
	})
}

func spawn(name string) team.Body { return &team.SpawnMember{Name: name, Agent: "scripted"} }
