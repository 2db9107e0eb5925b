package leader_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"cadre/internal/journal/store"
	"cadre/internal/journal/store/filestore"
	"cadre/internal/journal/store/storetest"
	"cadre/internal/layout"
	"cadre/internal/liveness/heartbeat"
	"cadre/internal/liveness/leader"
	"cadre/internal/replica"
	"cadre/internal/team"
)

// The test binary is also a process that leads.
const leadMode = "LEADER_TEST_LEAD"

func TestMain(m *testing.M) {
	if root := os.Getenv(leadMode); root != "" {
		if err := lead(root, os.Args[1]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

// patience limits every wait for something that should happen soon. It is shorter than the default
// heartbeat interval.
const patience = 10 * time.Second

var (
	often = team.Timing{Beat: 20 * time.Millisecond, LeadLost: time.Minute, Stale: time.Hour}
	usual = team.Timing{}
)

// place is a team on disk whose lead has no hosted session.
type place struct {
	t    *testing.T
	home layout.Home
	dir  string // the team's
}

func newPlace(t *testing.T, timing team.Timing) place {
	t.Helper()
	p := place{t: t, home: layout.Home{Root: t.TempDir()}}
	var commands []team.Command
	for _, body := range []team.Body{
		&team.CreateTeam{TeamID: "demo-" + strings.ToLower(replica.NewID()), Name: "demo", Dir: "/", Timing: timing},
		&team.SpawnMember{Name: "ann", Agent: team.External},
	} {
		commands = append(commands, team.Command{ID: replica.NewID(), Actor: team.User, At: replica.Now(), Body: body})
	}
	if err := p.home.Create("demo", commands); err != nil {
		t.Fatal(err)
	}
	p.dir = filepath.Join(p.home.Root, "teams", "demo")
	return p
}

func (p place) replica() *replica.Replica {
	p.t.Helper()
	j, _, err := p.home.Open("demo", nil)
	if err != nil {
		p.t.Fatal(err)
	}
	rep, err := replica.Open(p.t.Context(), j, replica.Options{})
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { rep.Close() })
	return rep
}

func (p place) do(rep *replica.Replica, body team.Body) {
	p.t.Helper()
	if _, err := rep.Do(p.t.Context(), team.Command{Actor: team.User, Body: body}); err != nil {
		p.t.Fatal(err)
	}
}

// shared is what the processes of the team share.
func (p place) shared() filestore.Team { return filestore.Team(p.dir) }

// beaten writes a heartbeat of the lead.
func (p place) beaten(b heartbeat.Beat) {
	p.t.Helper()
	b.Member = team.DefaultLead
	if err := heartbeat.In(p.shared()).Write(p.t.Context(), b); err != nil {
		p.t.Fatal(err)
	}
}

// damaged replaces the lead's heartbeat file with text.
func (p place) damaged(text string) {
	p.t.Helper()
	p.beaten(heartbeat.Beat{})
	if err := os.WriteFile(filepath.Join(p.dir, "heartbeats", team.DefaultLead+".json"), []byte(text),
		0o600); err != nil {
		p.t.Fatal(err)
	}
}

// sign returns the lead's last heartbeat.
func (p place) sign() (heartbeat.Beat, bool) {
	p.t.Helper()
	b, there, err := heartbeat.In(p.shared()).Of(p.t.Context(), team.DefaultLead)
	if err != nil {
		p.t.Fatal(err)
	}
	return b, there
}

// attached returns the sessions that took the lead, each with the session that it took the lead
// from.
func (p place) attached(rep *replica.Replica) (all []string) {
	p.t.Helper()
	for r, err := range rep.Read(p.t.Context(), 0) {
		if err != nil {
			p.t.Fatal(err)
		}
		for _, e := range r.Events {
			if e, ok := e.(*team.LeadAttached); ok {
				all = append(all, e.Session+"<"+e.TakenOver)
			}
		}
	}
	return all
}

// until waits until holds returns true for the team.
func (p place) until(rep *replica.Replica, what string, holds func(team.Team) bool) {
	p.t.Helper()
	eventually(p.t, what, func() bool {
		if err := rep.Refresh(p.t.Context()); err != nil {
			p.t.Fatal(err)
		}
		return holds(rep.Team())
	})
}

func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !holds(); {
		if time.Now().After(deadline) {
			t.Fatalf("still not: %s", what)
		}
		<-time.After(2 * time.Millisecond)
	}
}

// notes collects log lines.
type notes struct {
	mu  sync.Mutex
	all []string
}

func (n *notes) log(text string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.all = append(n.all, text)
}

func (n *notes) String() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return strings.Join(n.all, "\n")
}

func here(t *testing.T) string {
	t.Helper()
	name, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	return name
}

// TestTake takes the lead from leads in every state: alive, silent, dead, skewed.
func TestTake(t *testing.T) {
	t.Parallel()
	now := func(ago time.Duration) int64 { return time.Now().Add(-ago).UnixMilli() }
	for _, c := range []struct {
		name  string
		leads string                      // the session that leads before; "" for none
		beats func(t *testing.T, p place) // writes heartbeats; nil for none
		here  bool                        // the session took the lead on this machine
		over  bool                        // take the lead with TakeOver
		from  string                      // the recorded previous lead
		code  team.Code                   // of the refusal
		says  string                      // expected in the refusal or the log
	}{
		{name: "no lead"},
		{name: "the user", leads: team.User},
		{name: "one whose process died here, a moment ago", leads: "old", from: "old",
			beats: func(t *testing.T, p place) {
				p.beaten(heartbeat.Beat{At: now(0), Session: "old",
					Machine: here(t)})
			}},
		{name: "one on another machine, seen a moment ago", leads: "old", code: team.Conflict,
			says: "another session has the lead: session old",
			beats: func(_ *testing.T, p place) {
				p.beaten(heartbeat.Beat{At: now(0), Session: "old", Machine: "elsewhere"})
			}},
		{name: "one on another machine, silent for almost too long", leads: "old", code: team.Conflict,
			says: "expires after 1 h",
			beats: func(_ *testing.T, p place) {
				p.beaten(heartbeat.Beat{At: now(59 * time.Minute), Session: "old", Machine: "elsewhere"})
			}},
		{name: "one on another machine, silent for too long", leads: "old", from: "old",
			beats: func(_ *testing.T, p place) {
				p.beaten(heartbeat.Beat{At: now(61 * time.Minute), Session: "old", Machine: "elsewhere"})
			}},
		{name: "one whose clock is wrong, or ours", leads: "old", code: team.Conflict, says: "was seen 0 s ago",
			beats: func(_ *testing.T, p place) {
				p.beaten(heartbeat.Beat{At: now(-2 * time.Hour), Session: "old", Machine: "elsewhere"})
			}},
		{name: "one that sent no heartbeat yet", leads: "old", code: team.Conflict,
			says: "another session has the lead"},
		{name: "one with only the heartbeat of an earlier session", leads: "old", code: team.Conflict,
			says: "another session has the lead",
			beats: func(t *testing.T, p place) {
				p.beaten(heartbeat.Beat{At: now(24 * time.Hour), Session: "older", Machine: here(t)})
			}},
		{name: "one whose heartbeat is damaged", leads: "old", code: team.Conflict, says: "another session has the lead",
			beats: func(t *testing.T, p place) { p.damaged(`{"teammate_id":"le`) }},
		{name: "one whose process died here, and whose heartbeat is damaged", leads: "old", here: true, from: "old",
			beats: func(t *testing.T, p place) { p.damaged(`{"teammate_id":"le`) }},
		{name: "one whose process died here, and whose heartbeat the machine lost", leads: "old",
			here: true, from: "old",
			beats: func(t *testing.T, p place) { p.damaged("") }},
		{name: "one that runs elsewhere, taken over by the user", leads: "old", over: true, from: "old",
			beats: func(_ *testing.T, p place) {
				p.beaten(heartbeat.Beat{At: now(0), Session: "old", Machine: "elsewhere"})
			}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t, often)
			rep, log := p.replica(), &notes{}
			if c.leads != "" {
				attach := &team.AttachLead{Session: c.leads}
				if c.here {
					attach.Machine = here(t)
				}
				p.do(rep, attach)
			}
			if c.beats != nil {
				c.beats(t, p)
			}
			before := p.attached(rep)
			l, err := leader.Take(t.Context(), leader.Options{Replica: rep, Shared: p.shared(), Session: "new",
				TakeOver: c.over, Log: log.log})
			if team.CodeOf(err) != c.code || c.code == "" && err != nil {
				t.Fatalf("%v, with code %q", err, team.CodeOf(err))
			}
			if err != nil {
				if !strings.Contains(err.Error(), c.says) {
					t.Errorf("it does not say %q: %v", c.says, err)
				}
				if h := team.HintsOf(err); strings.HasPrefix(err.Error(), "another session has the lead") &&
					(len(h) != 1 || h[0].Action != team.ActTakeOver || h[0].Team != "demo") {
					t.Errorf("it hints at %+v", h)
				}
				if after := p.attached(rep); !slices.Equal(before, after) || rep.Team().LeadSession != c.leads {
					t.Errorf("refused, and recorded: %v, and %s leads", after, rep.Team().LeadSession)
				}
				return
			}
			defer l.Close()
			if after := p.attached(rep); !slices.Equal(after, append(before, "new<"+c.from)) ||
				rep.Team().LeadSession != "new" {
				t.Errorf("recorded: %v, and %s leads", after, rep.Team().LeadSession)
			}
		})
	}
	t.Run("skew is logged", func(t *testing.T) {
		t.Parallel()
		p, log := newPlace(t, often), &notes{}
		rep := p.replica()
		p.do(rep, &team.AttachLead{Session: "old"})
		p.beaten(heartbeat.Beat{At: now(-2 * time.Hour), Session: "old", Machine: "elsewhere"})
		if _, err := leader.Take(t.Context(), leader.Options{Replica: rep, Shared: p.shared(), Session: "new",
			Log: log.log}); team.CodeOf(err) != team.Conflict {
			t.Fatal(err)
		}
		if !strings.Contains(log.String(), "clock skew: the last heartbeat of lead lies in the future") {
			t.Errorf("logged: %q", log)
		}
	})
}

// TestAttach checks that a user who leads by commands sends no heartbeats and is never lost.
func TestAttach(t *testing.T) {
	t.Parallel()
	p := newPlace(t, often)
	rep := p.replica()
	p.do(rep, &team.AttachLead{Session: "old"})
	p.beaten(heartbeat.Beat{At: time.Now().UnixMilli(), Session: "old", Machine: here(t)})
	for range 2 { // attaching twice is harmless
		if err := leader.Attach(t.Context(), leader.Options{Replica: rep, Shared: p.shared()}); err != nil {
			t.Fatal(err)
		}
	}
	if all := p.attached(rep); !slices.Equal(all, []string{"old<", team.User + "<old"}) {
		t.Errorf("recorded: %v", all)
	}
	p.do(rep, &team.LoseLead{Session: team.User, Since: rep.Team().LeadSince})
	if now := rep.Team(); now.LeadSession != team.User || now.LeadLost != 0 {
		t.Errorf("%s leads, lost since %d", now.LeadSession, now.LeadLost)
	}
	p.do(rep, &team.SetStatus{Status: team.TeamAborted, Reason: "a fire"})
	if err := leader.Attach(t.Context(), leader.Options{Replica: rep, Shared: p.shared(), TakeOver: true}); team.CodeOf(
		err) != team.Finished {
		t.Errorf("a team that has ended can be led: %v", err)
	}
	if _, err := leader.Take(t.Context(), leader.Options{Replica: rep, Shared: p.shared(), Session: "new"}); team.CodeOf(
		err) != team.Finished {
		t.Errorf("a team that has ended can be led: %v", err)
	}
}

// TestHeartbeats checks that a lead sends heartbeats if no host does so for it. After Close, the
// last heartbeat stays, and so does the lead.
func TestHeartbeats(t *testing.T) {
	t.Parallel()
	p := newPlace(t, often)
	rep := p.replica()
	quiet, err := leader.Take(t.Context(), leader.Options{Replica: rep, Shared: p.shared(), Session: "hosted"})
	if err != nil {
		t.Fatal(err)
	}
	quiet.Release(t.Context())
	if b, there := p.sign(); there {
		t.Errorf("its host gives its heartbeats, and there is %+v", b)
	}
	l, err := leader.Take(t.Context(), leader.Options{Replica: rep, Shared: p.shared(), Session: "new", Beats: true})
	if err != nil {
		t.Fatal(err)
	}
	first, there := p.sign() // Take writes the first heartbeat
	if !there || first.Session != "new" || first.Machine != here(t) || first.Pid != os.Getpid() || first.Count < 1 ||
		time.Since(time.UnixMilli(first.At)) > patience {
		t.Errorf("%v: %+v", there, first)
	}
	eventually(t, "it gives more of them", func() bool { b, _ := p.sign(); return b.Count > first.Count+3 })
	l.Close()
	if b, there := p.sign(); !there || b.Session != "new" || rep.Team().LeadSession != "new" {
		t.Errorf("closed, %s leads, and the last heartbeat is %+v", rep.Team().LeadSession, b)
	}
}

// TestRelease checks that a released lead belongs to the user, and that its heartbeat is removed.
func TestRelease(t *testing.T) {
	t.Parallel()
	p := newPlace(t, often)
	rep, log := p.replica(), &notes{}
	l, err := leader.Take(t.Context(), leader.Options{Replica: rep, Shared: p.shared(), Session: "new", Beats: true,
		Log: log.log})
	if err != nil {
		t.Fatal(err)
	}
	l.Release(t.Context())
	if b, there := p.sign(); there || rep.Team().LeadSession != team.User {
		t.Errorf("%s leads, and the last heartbeat is %+v", rep.Team().LeadSession, b)
	}
	if all := p.attached(rep); !slices.Equal(all, []string{"new<", team.User + "<"}) {
		t.Errorf("recorded: %v", all)
	}
	next, err := leader.Take(t.Context(), leader.Options{Replica: rep, Shared: p.shared(), Session: "next", Beats: true,
		Log: log.log})
	if err != nil {
		t.Fatal(err)
	}
	p.do(rep, &team.SetStatus{Status: team.TeamAborted, Reason: "a fire"})
	next.Release(t.Context()) // the team has ended: nothing is logged
	if log.String() != "" {
		t.Errorf("logged: %q", log)
	}
	select {
	case <-next.Lost():
		t.Error("a lead was taken over that ended with its team")
	default:
	}
}

// TestTakenOver checks that a lead is notified when another session takes over, and then leaves the
// new lead's files alone.
func TestTakenOver(t *testing.T) {
	t.Parallel()
	p := newPlace(t, usual)
	mine, theirs, log := p.replica(), p.replica(), &notes{}
	first, err := leader.Take(t.Context(), leader.Options{Replica: mine, Shared: p.shared(), Session: "first", Beats: true,
		Log: log.log})
	if err != nil {
		t.Fatal(err)
	}
	waits := func(session string) {
		t.Helper()
		eventually(t, session+" waits until its next heartbeat is due",
			func() bool { b, _ := p.sign(); return b.Session == session && b.Count == 2 })
	}
	waits("first")
	select {
	case <-first.Lost():
		t.Fatal("it is lost before it was taken")
	default:
	}
	second, err := leader.Take(t.Context(), leader.Options{Replica: theirs, Shared: p.shared(), Session: "second", Beats: true,
		TakeOver: true})
	if err != nil {
		t.Fatal(err)
	}
	defer second.Close()
	select {
	case <-first.Lost():
	case <-time.After(patience):
		t.Fatal("who had the lead does not hear that it is gone")
	}
	waits("second")
	first.Release(t.Context())
	if b, there := p.sign(); !there || b.Session != "second" {
		t.Errorf("%v: the last heartbeat is %+v", there, b)
	}
	p.until(mine, "the second leads", func(now team.Team) bool { return now.LeadSession == "second" })
	if all := p.attached(mine); !slices.Equal(all, []string{"first<", "second<first"}) || log.String() != "" {
		t.Errorf("recorded: %v, logged %q", all, log)
	}
}

// TestLeaseLost checks that a lead which loses its lease stops at once: it sends no heartbeats, and
// leaves the lead and its heartbeat to whoever leads next.
func TestLeaseLost(t *testing.T) {
	t.Parallel()
	p := newPlace(t, often)
	rep := p.replica()
	shared := &storetest.Losing{Team: p.shared(), Lasts: time.Hour}
	lease, err := leader.Claim(t.Context(), shared)
	if err != nil {
		t.Fatal(err)
	}
	l, err := leader.Take(t.Context(), leader.Options{Replica: rep, Shared: shared, Session: "new", Lease: lease,
		Beats: true})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	shared.Lose(store.Lead)
	select {
	case <-l.Lost():
	case <-time.After(patience):
		t.Fatal("it does not hear of it")
	}
	if err := l.Why(); !errors.Is(err, store.ErrLost) {
		t.Errorf("why: %v", err)
	}
	before, _ := p.sign()
	p.do(rep, &team.LoseLead{Session: "new", Since: rep.Team().LeadSince, Seen: 1}) // it would take it back
	l.Release(t.Context())
	time.Sleep(3 * often.Beat)
	if after, there := p.sign(); !there || after != before {
		t.Errorf("the heartbeat is %+v, and was %+v", after, before)
	}
	if all := p.attached(p.replica()); !slices.Equal(all, []string{"new<"}) {
		t.Errorf("recorded: %v", all)
	}
}

// TestLostAndBack checks that a lead recorded as lost takes the lead back if its process is alive.
func TestLostAndBack(t *testing.T) {
	t.Parallel()
	p := newPlace(t, usual)
	rep := p.replica()
	l, err := leader.Take(t.Context(), leader.Options{Replica: rep, Shared: p.shared(), Session: "new", Beats: true})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	host := p.replica()
	p.do(host, &team.LoseLead{Session: "new", Since: host.Team().LeadSince, Seen: 1})
	p.until(rep, "it leads again", func(now team.Team) bool { return now.LeadLost == 0 && now.LeadSession == "new" })
	if all := p.attached(rep); !slices.Equal(all, []string{"new<", "new<"}) {
		t.Errorf("recorded: %v", all)
	}
	select {
	case <-l.Lost():
		t.Error("it was not taken over")
	default:
	}
}

// TestCloseIsQuick checks that Close does not wait for the next heartbeat.
func TestCloseIsQuick(t *testing.T) {
	t.Parallel()
	p := newPlace(t, usual)
	l, err := leader.Take(t.Context(), leader.Options{Replica: p.replica(), Shared: p.shared(), Session: "new", Beats: true})
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	if l.Close(); time.Since(began) > patience {
		t.Errorf("it took %s", time.Since(began))
	}
}
