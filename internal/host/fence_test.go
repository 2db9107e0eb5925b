package host_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"cadre/internal/agent"
	"cadre/internal/host"
	"cadre/internal/journal"
	"cadre/internal/journal/pgjournal"
	"cadre/internal/journal/store"
	"cadre/internal/journal/store/memstore"
	"cadre/internal/journal/store/storetest"
	"cadre/internal/liveness/heartbeat"
	"cadre/internal/sys/proc"
	"cadre/internal/team"
	"cadre/internal/testkit/postgrestest"
)

// unreachable are heartbeats in a store that stops answering.
type unreachable struct {
	heartbeat.Store
	after time.Time
	over  context.Context
}

func (u unreachable) Write(ctx context.Context, beats ...heartbeat.Beat) error {
	if time.Now().After(u.after) {
		<-u.over.Done() // whatever ctx is: the fate of a commit is waited for
		return u.over.Err()
	}
	return u.Store.Write(ctx, beats...)
}

// ending is a place for what the processes of a team share, where the leases of the first process
// are not renewed after cut.
type ending struct {
	first, second store.Team
	cut           func()
}

func inMemory(*testing.T) ending {
	under := &memstore.Store{}
	return ending{&storetest.Losing{Team: under, Lasts: 4 * time.Second}, under, func() {}}
}

// onPostgreSQL returns a place in a database, where cut locks the rows of the leases.
func onPostgreSQL(t *testing.T) ending {
	if testing.Short() {
		t.Skip("it starts a server; not with -short")
	}
	ctx := context.Background()
	dsn, schema := postgrestest.Shared(t).Schema(t)
	if _, _, err := pgjournal.Migrate(ctx, dsn, schema); err != nil {
		t.Fatal(err)
	}
	shared := func() store.Team {
		s, err := pgjournal.Connect(ctx, dsn, pgjournal.Options{Schema: schema, Lease: 6 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(s.Close)
		err = s.Create(ctx, store.Entry{ID: "demo-1", Name: "demo"}, nil)
		if err != nil && !errors.Is(err, journal.ErrExists) {
			t.Fatal(err)
		}
		j, err := s.Open(ctx, "demo-1")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { j.Close() })
		return j.Shared()
	}
	e := ending{first: shared(), second: shared()}
	e.cut = func() {
		conn, err := pgx.Connect(ctx, dsn)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close(ctx) })
		for _, sql := range []string{"BEGIN", "SELECT FROM " + schema + ".lease WHERE name = 'host-h1' FOR UPDATE"} {
			if _, err := conn.Exec(ctx, sql); err != nil {
				t.Fatal(err)
			}
		}
	}
	return e
}

// TestLeaseThatEnds checks that a host whose lease runs out has ended its sessions before another
// host can take its members, and records nothing of that: also sessions that do not end when they
// are told to, and while the host itself waits for a store that does not answer.
func TestLeaseThatEnds(t *testing.T) {
	t.Parallel()
	for name, place := range map[string]func(*testing.T) ending{"in memory": inMemory, "on PostgreSQL": onPostgreSQL} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			place(t).leaseThatEnds(t)
		})
	}
}

func (e ending) leaseThatEnds(t *testing.T) {
	s := newStageOf(t, &team.CreateTeam{TeamID: "demo-1", Name: "demo", Dir: t.TempDir(), Timing: quick}, spawn("ann"),
		spawn("bob"))
	var running, most [2]atomic.Int32
	script := func(s *session) error {
		of := map[string]int{"ann": 0, "bob": 1}[s.Member]
		most[of].Store(max(most[of].Load(), running[of].Add(1)))
		defer running[of].Add(-1)
		if s.Member == "bob" || s.Incarnation > 1 {
			return obedient(s)
		}
		s.updates <- agent.Started{}
		s.updates <- agent.TurnEnded{}
		child, err := s.Procs.Start(proc.Cmd{Args: []string{"sleep", "1000"}, Member: s.Member})
		if err != nil {
			return err
		}
		_, err = child.Wait(context.Background()) // whatever it is told
		return err
	}
	over, end := context.WithCancel(t.Context())
	defer end()
	first := s.startIn(e.first, "h1", scripted(script), func(o *host.Options) {
		o.Machine.Beats = unreachable{heartbeat.In(e.second), time.Now().Add(time.Second), over}
	})
	s.untilStatus("ann", team.Idle)
	s.untilStatus("bob", team.Idle)
	e.cut()
	s.startIn(e.second, "h2", scripted(script))
	held := func() bool { return e.second.Held(t.Context(), store.Host("h1")) }
	for sessions := int32(1); sessions > 0; time.Sleep(time.Millisecond) {
		free := !held()
		if sessions = running[0].Load() + running[1].Load(); sessions > 0 && free {
			t.Fatalf("%d sessions run when the lease has ended", sessions)
		}
	}
	if !held() {
		t.Error("the lease was free while sessions ran")
	}
	seq := s.Seq()
	for _, name := range []string{"ann", "bob"} {
		s.until(name+" is on the other host", func(st *team.State) bool {
			m, _ := st.Member(name)
			return m.Host == "h2" && m.Incarnation == 2
		})
	}
	if held() {
		t.Error("another host took them before the end of the lease")
	}
	end()
	select {
	case err := <-first.over:
		if !errors.Is(err, host.ErrLeaseLost) {
			t.Errorf("the first host: %v", err)
		}
		first.over <- nil
	case <-time.After(20 * time.Second):
		t.Fatal("the first host does not end")
	}
	for i := range most {
		if n := most[i].Load(); n != 1 {
			t.Errorf("%d sessions at once", n)
		}
	}
	for r, err := range s.Read(t.Context(), seq) {
		if err != nil || r.Actor == team.Host("h1") {
			t.Errorf("%v: the host that lost its lease recorded %+v", err, r)
		}
	}
}
