package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"cadre/internal/engine"
	"cadre/internal/journal/store"
	"cadre/internal/journal/store/storetest"
	"cadre/internal/team"
	"cadre/internal/testkit/soak"
)

// attended is an external session, until it ends.
type attended struct {
	*engine.Outside
	t     *testing.T
	ctx   context.Context // of the session
	leave func() error    // ends it, and returns its result
}

// attend lets a session act as the member, "" for the lead.
func (l *lab) attend(of *engine.Team, member string) *attended {
	l.t.Helper()
	ctx, cancel := context.WithCancel(within(l.t))
	a, ended := &attended{t: l.t}, make(chan error, 1)
	started := make(chan struct{})
	go func() {
		ended <- of.Attend(ctx, member, l.project, func(ctx context.Context, o *engine.Outside) error {
			a.Outside, a.ctx = o, ctx
			close(started)
			<-ctx.Done()
			return nil
		})
	}()
	a.leave = func() error {
		cancel()
		err := <-ended
		ended <- nil
		return err
	}
	l.t.Cleanup(func() { a.leave() })
	select {
	case <-started:
	case err := <-ended:
		l.t.Fatalf("%s cannot be attended: %v", member, err)
	}
	return a
}

// call calls a tool, which answers with text.
func (a *attended) call(name, input string) string {
	a.t.Helper()
	text, failed := a.Tools().Call(a.ctx, name, json.RawMessage(input))
	if failed {
		a.t.Fatalf("%s answers: %s", name, text)
	}
	return text
}

// TestShownIsRead: mail that was shown is read once a later call shows that it arrived. Mail of a
// session that ended before that is given again to the next one.
func TestShownIsRead(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.create(&team.SpawnMember{Name: "eve", Agent: team.External})
	of, lead := l.open(), l.open()
	send := func(text string) { l.do(lead, "lead", &team.SendMessage{To: "eve", Body: text}) }
	eve := l.attend(of, "eve")
	send("the first note")
	if got := eve.call("TeamStatus", "{}"); strings.Count(got, "the first note") != 1 {
		t.Fatalf("with the first call: %s", got)
	}
	send("the second note")
	if got := eve.call("TeamStatus", "{}"); strings.Contains(got, "the first note") ||
		!strings.Contains(got, "the second note") {
		t.Errorf("with the second call: %s", got)
	}
	if err := eve.leave(); err != nil {
		t.Error(err)
	}
	eve = l.attend(l.open(), "eve")
	if got := eve.call("TeamStatus", "{}"); strings.Contains(got, "the first note") ||
		strings.Count(got, "the second note") != 1 {
		t.Errorf("the next session is given: %s", got)
	}
	if got := eve.call("TeamStatus", "{}"); strings.Contains(got, "note") {
		t.Errorf("and then: %s", got)
	}
}

// TestNotesOutside: the notes come with the first result of a session, and once.
func TestNotesOutside(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.create(&team.SpawnMember{Name: "eve", Agent: team.External})
	of, lead := l.open(), l.open()
	l.do(lead, "lead", &team.SetNote{Key: "plan", Text: "first the parser"})
	l.do(lead, "lead", &team.SendMessage{To: "eve", Body: "hello"})
	for range 2 {
		eve := l.attend(of, "eve")
		got := eve.call("TaskList", "{}")
		if strings.Count(got, `- plan (lead): "first the parser"`) != 1 || !strings.Contains(got, "hello") {
			t.Errorf("with its first call it is told: %s", got)
		}
		eve.leave()
		of = l.open()
	}
	eve := l.attend(of, "eve")
	eve.call("TaskList", "{}")
	if got := eve.call("TaskList", "{}"); strings.Contains(got, "parser") {
		t.Errorf("with its second call it is told: %s", got)
	}
}

// TestWhoCanBeOutside: a member has one session at a time. A member that cadre runs, or that does
// not exist, has no external session.
func TestWhoCanBeOutside(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.create(ann, &team.SpawnMember{Name: "eve", Agent: team.External})
	of := l.open()
	eve := l.attend(of, "eve")
	seq := of.Seq()
	for name, code := range map[string]team.Code{"eve": team.NotReady, "ann": team.Taken, "zoe": team.NotFound} {
		err := l.open().Attend(within(t), name, "", func(context.Context, *engine.Outside) error {
			t.Errorf("%s is attended", name)
			return nil
		})
		if team.CodeOf(err) != code {
			t.Errorf("%s: %v", name, err)
		}
	}
	if of.Seq() != seq {
		t.Errorf("%d records came of that", of.Seq()-seq)
	}
	eve.leave()
	l.attend(l.open(), "eve")
}

// TestPresenceLost: a session that loses the right to act as its member ends, with that reason.
// Another one can be the member then.
func TestPresenceLost(t *testing.T) {
	t.Parallel()
	for member, lease := range map[string]string{"eve": store.Presence("eve"), "": store.Lead} {
		t.Run(lease, func(t *testing.T) {
			t.Parallel()
			l := newLab(t)
			l.Memory = new(engine.Memory)
			l.create(&team.SpawnMember{Name: "eve", Agent: team.External})
			of := l.open()
			shared := &storetest.Losing{Team: of.Shared(), Lasts: time.Hour}
			of.Share(shared)
			lost := l.attend(of, member)
			shared.Lose(lease)
			select {
			case <-lost.ctx.Done():
			case <-time.After(10 * time.Second):
				t.Fatal("it does not hear of it")
			}
			if err := lost.leave(); team.CodeOf(err) != team.Conflict || !strings.Contains(err.Error(), "cannot act") {
				t.Errorf("it ended with %v", err)
			}
			l.attend(l.open(), member)
		})
	}
}

// TestLeadOutside: the session that acts as the lead leads while it is alive. When another one
// takes the lead over, its context ends with that reason. A second session beside it works as the
// same lead.
func TestLeadOutside(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	if err := l.CreateLed(within(t), "demo", l.project); err != nil {
		t.Fatal(err)
	}
	if err := l.CreateLed(within(t), "demo", l.project); err != nil {
		t.Errorf("a team that is there: %v", err)
	}
	of := l.open()
	lead := l.attend(of, "")
	if s := of.Team().LeadSession; !strings.HasPrefix(s, "mcp-") || !of.Shared().Held(t.Context(), store.Lead) {
		t.Errorf("the lead is %q", s)
	}
	if text := lead.Greet("gemini-cli-mcp-client"); !strings.Contains(text, "demo") {
		t.Errorf("it is briefed with %q", text)
	}
	l.do(l.open(), team.User, &team.AttachLead{Session: team.User, TakeOver: true})
	<-lead.ctx.Done()
	if err := lead.leave(); team.CodeOf(err) != team.Conflict || !strings.Contains(err.Error(), "cannot act in team") {
		t.Errorf("it ends with %v", err)
	}
	l.unled(of)
}

// TestToolsOutside: the tools of an external lead add members with a background host, and remove
// the team.
func TestToolsOutside(t *testing.T) {
	soak.Long(t)
	t.Parallel()
	l := newLab(t)
	l.create()
	of := l.open()
	lead := l.attend(of, "")
	l.do(of, "lead", ann)
	if err := of.EnsureHost(within(t), "ann"); err != nil {
		t.Fatal(err)
	}
	lead.call("TaskCreate", `{"subject": "say hello", "description": "aloud"}`)
	l.do(of, "lead", &team.RequestShutdown{Member: "ann"})
	until(t, of, func(s *team.State) bool { m, _ := s.Member("ann"); return !m.Status.Running() })
	lead.call("CleanupTeam", "{}")
	if _, err := os.Stat(of.Dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the folder of the team: %v", err)
	}
}

func TestNameOf(t *testing.T) {
	for dir, want := range map[string]string{"/src/port": "port", "/src/my app (2)": "my-app--2",
		"/src/Ünïcode": "n-code",
		"/":            "", "/src/日本": "", "/" + strings.Repeat("a", 80): strings.Repeat("a", 64)} {
		if got, ok := engine.NameOf(dir); ok != (want != "") || ok && got != want {
			t.Errorf("%s: %q, %v", dir, got, ok)
		}
	}
}
