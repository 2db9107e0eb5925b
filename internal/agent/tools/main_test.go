package tools_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"go.uber.org/goleak"

	"cadre/internal/agent/envelope"
	"cadre/internal/agent/tools"
	"cadre/internal/hook"
	"cadre/internal/journal/memjournal"
	"cadre/internal/replica"
	"cadre/internal/team"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// noon is the time of all tests, far ahead, so that no deadline of a test has passed by the real
// clock.
const noon team.Time = 4_102_444_800_000

// bench is a team in memory: the lead, and the members that a test adds.
type bench struct {
	t *testing.T
	*replica.Replica
	ctx  context.Context
	now  team.Time
	gate func(hook.Event) hook.Verdict
}

func newBench(t *testing.T, bodies ...team.Body) *bench {
	t.Helper()
	b := &bench{t: t, now: noon}
	var cancel context.CancelFunc
	b.ctx, cancel = context.WithTimeout(context.Background(), 30*time.Second)
	t.Cleanup(cancel)
	hooks := func(_ context.Context, _ team.Team, e hook.Event) (hook.Verdict, error) {
		if b.gate == nil {
			return hook.Verdict{}, nil
		}
		return b.gate(e), nil
	}
	var err error
	if b.Replica, err = replica.Open(b.ctx, memjournal.New("demo").Open(), replica.Options{Hooks: hooks}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	b.do(team.User, &team.CreateTeam{TeamID: "demo-1", Name: "demo", Dir: "/w", LeadAgent: "claude", Goal: "Ship it",
		Commands: []team.NamedCommand{{Name: "vet", Run: "go vet ./..."}}})
	for _, body := range bodies {
		b.do(team.User, body)
	}
	return b
}

func (b *bench) do(actor string, body team.Body) *team.Record {
	b.t.Helper()
	r, err := b.Replica.Do(b.ctx, team.Command{Actor: actor, At: b.now, Body: body})
	if err != nil {
		b.t.Fatal(err)
	}
	return r.Record
}

// asMember is the replica of one member.
type asMember struct {
	*bench
	name string
}

func (s asMember) Do(ctx context.Context, body team.Body) (*team.Record, error) {
	r, err := s.Replica.Do(ctx, team.Command{Actor: s.name, At: s.now, Body: body})
	return r.Record, err
}

// mail takes the member's messages.
func (s asMember) mail(ctx context.Context) (string, error) {
	var id string
	var mail []team.Message
	s.View(func(st *team.State) { id, mail = st.Team().ID, st.Inbox(s.name) })
	if len(mail) == 0 {
		return "", nil
	}
	_, err := s.Do(ctx, &team.ReceiveMessages{})
	return envelope.Batch(id, s.name, mail), err
}

func (b *bench) options(name string) tools.Options {
	return tools.Options{Team: asMember{b, name}, Member: name, Now: func() team.Time { return b.now },
		Records: b.History,
		Mail:    asMember{b, name}.mail,
		Agents:  func() []string { return []string{"claude", "codex", team.External} },
		Cleanup: func(context.Context) error { return nil }}
}

func (b *bench) tools(name string) *tools.Set { return tools.New(b.options(name)) }

func (b *bench) call(name, tool, input string) (string, bool) {
	return b.tools(name).Call(b.ctx, tool, json.RawMessage(input))
}
