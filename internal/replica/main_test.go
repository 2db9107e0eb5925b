package replica_test

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"cadre/internal/layout"
	"cadre/internal/replica"
	"cadre/internal/team"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// place is a team on disk, with the members lead, ann and bob, who have no sessions.
type place struct {
	t    *testing.T
	home layout.Home
	dir  string
}

func newPlace(t *testing.T, more ...team.Body) place {
	t.Helper()
	p := place{t: t, home: layout.Home{Root: filepath.Join(t.TempDir(), "cadre")}, dir: t.TempDir()}
	bodies := append([]team.Body{
		&team.CreateTeam{TeamID: "demo-" + strings.ToLower(replica.NewID()), Name: "demo", Dir: p.dir},
		&team.SpawnMember{Name: "ann", Agent: team.External},
		&team.SpawnMember{Name: "bob", Agent: team.External},
	}, more...)
	var commands []team.Command
	for _, body := range bodies {
		commands = append(commands, team.Command{ID: replica.NewID(), Actor: team.User, At: replica.Now(), Body: body})
	}
	if err := p.home.Create("demo", commands); err != nil {
		t.Fatal(err)
	}
	return p
}

// open opens one more replica on the team, as another process would.
func (p place) open(o replica.Options) *replica.Replica {
	p.t.Helper()
	if o.Log == nil {
		o.Log = func(text string) { p.t.Log(text) }
	}
	j, _, err := p.home.Open("demo", o.Log)
	if err != nil {
		p.t.Fatal(err)
	}
	rep, err := replica.Open(p.t.Context(), j, o)
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { rep.Close() })
	return rep
}

func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func do(t *testing.T, rep *replica.Replica, actor string, body team.Body) *team.Record {
	t.Helper()
	r, err := rep.Do(within(t), team.Command{Actor: actor, Body: body})
	if err != nil {
		t.Fatal(err)
	}
	return r.Record
}

func task(rep *replica.Replica, id string) (t team.Task) {
	rep.View(func(s *team.State) { t, _ = s.Task(id) })
	return t
}

func inbox(rep *replica.Replica, member string) (mail []team.Message) {
	rep.View(func(s *team.State) { mail = s.Inbox(member) })
	return mail
}
